"""The output of Slurm's commands as data: pure functions, tested on recorded output.

`squeue -O` pads each field to a width and puts a suffix behind it. Rota makes a new random suffix for each call, so that nothing that users
write into their jobs can be taken for a field or for another job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from rota.slurm.errors import UnknownOutput
from rota.slurm.world import Amounts, Node, SlurmJob

__all__ = ["JOB_FIELDS", "asks_of", "job_format", "parse_gres", "parse_jobs", "parse_nodes", "parse_tres", "text_of"]

# Fields of squeue -O, and how wide they are at most.
JOB_FIELDS: Mapping[str, int] = {
    "jobarrayid": 20,
    "statecompact": 4,
    "reason": 40,
    "tres-alloc": 100,
    "tres-per-node": 48,
    "tres-per-job": 48,
    "numnodes": 8,
    "nodelist": 48,
    "partition": 48,
    "prioritylong": 12,
    "submittime": 12,
    "starttime": 12,
    "dependency": 12,
    "reservation": 12,
    "reqnodes": 48,
    "feature": 12,
    "oversubscribe": 8,
    "timelimit": 14,
    "restartcnt": 6,
    "comment": 64,
}
_MB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3, "": 1}
_PAIR = re.compile(r"(?:^|\s)([A-Za-z:/]+)=(\S*)")
_NOTHING = ("", "(null)", "N/A", "None", "Unknown")


def job_format(nonce: str) -> str:
    """The value of squeue's option -O for this nonce (letters and digits)."""
    last = list(JOB_FIELDS)[-1]
    return ",".join(f"{name}:{width}{_end(nonce) if name == last else _between(nonce)}" for name, width in JOB_FIELDS.items())


def _between(nonce: str) -> str:
    return f"|{nonce}|"


def _end(nonce: str) -> str:
    return f"|{nonce}$"


def parse_jobs(text: str, nonce: str) -> tuple[SlurmJob, ...]:
    """The jobs in the output of `squeue -h -r -O` with `job_format(nonce)`, with times as seconds (SLURM_TIME_FORMAT=%s)."""
    records = text.split(_end(nonce))
    if records.pop().strip():
        raise UnknownOutput(f"squeue ended in the middle of a job: {text[-80:]!r}")
    return tuple(_job(record.lstrip("\n").split(_between(nonce)), record) for record in records)


def _job(parts: list[str], record: str) -> SlurmJob:
    if len(parts) != len(JOB_FIELDS):
        raise UnknownOutput(f"squeue printed {len(parts)} fields for a job, and {len(JOB_FIELDS)} were asked for: {record[:200]!r}")
    f = dict(zip(JOB_FIELDS, map(str.strip, parts), strict=True))
    try:
        return SlurmJob(
            id=f["jobarrayid"],
            state=f["statecompact"],
            reason=text_of(f["reason"]),
            asks=asks_of(f["tres-alloc"], f["tres-per-node"], f["tres-per-job"]),
            nodes=int(f["numnodes"].split("-")[0] or 1),
            node=text_of(f["nodelist"]),
            partition=f["partition"],
            priority=int(f["prioritylong"] or 0),
            submitted=float(f["submittime"]),
            begins=None if f["starttime"] in _NOTHING else float(f["starttime"]),
            dependency=text_of(f["dependency"]),
            reservation=text_of(f["reservation"]),
            wanted_node=text_of(f["reqnodes"]),
            features=text_of(f["feature"]),
            exclusive=f["oversubscribe"] in ("NO", "EXCLUSIVE"),
            comment=text_of(f["comment"]),
            restarts=int(f["restartcnt"] or 0),
            time_limit_s=_limit(f["timelimit"]),
        )
    except ValueError as error:
        raise UnknownOutput(f"squeue printed a job that Rota cannot read ({error}): {record[:300]!r}") from None


def text_of(field: str) -> str:
    """The field; nothing where Slurm writes that there is nothing."""
    return "" if field in _NOTHING else field


@lru_cache(maxsize=4096)
def _limit(text: str) -> float | None:
    """Seconds of a limit such as 1-02:03:04, 02:03:04 or 5:00; None without a limit."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 86_400.0 * days + 3600 * hours + 60 * minutes + seconds


def parse_tres(text: str) -> Amounts:
    """Amounts from `cpu=4,mem=2G,node=1,billing=4,gres/gpu=2`; what names a model (gres/gpu:a100=2) is in the sum already."""
    cpus, memory, gres, models = 0, 0.0, dict[str, int](), dict[str, int]()
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name == "cpu":
            cpus = int(value)
        elif name == "mem":
            memory = _megabytes(value)
        elif name.startswith("gres/"):
            kind, model = name[5:].partition(":")[::2]
            where = models if model else gres
            where[kind] = where.get(kind, 0) + int(value)
    return Amounts(cpus, round(memory), {**models, **gres})


@lru_cache(maxsize=4096)  # many jobs ask for the same
def asks_of(tres: str, per_node: str, per_job: str) -> Amounts:
    """What a job asks for. Slurm counts generic resources in its TRES only where it accounts for them, so the request is read too."""
    found = parse_tres(tres)
    return Amounts(found.cpus, found.memory_mb, found.gres or parse_gres(per_node) or parse_gres(per_job))


def _megabytes(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    if match is None:
        raise ValueError(f"an amount of memory, {text!r}")
    return float(match[1]) * _MB[match[2]]


def parse_nodes(text: str) -> tuple[Node, ...]:
    """The nodes in the output of `scontrol show node --details --oneliner`."""
    return tuple(_node(line) for line in text.splitlines() if line.startswith("NodeName="))


def _node(line: str) -> Node:
    f = dict[str, str]()
    for match in _PAIR.finditer(line):
        f.setdefault(match[1], match[2])  # the first of a name: a reason or a comment at the end may have anything in it
    try:
        has = Amounts(int(f.get("CPUEfctv", f["CPUTot"])), int(f["RealMemory"]), parse_gres(f["Gres"]))
        used = Amounts(int(f["CPUAlloc"]), int(f["AllocMem"]), parse_tres(f.get("AllocTRES", "")).gres or parse_gres(f.get("GresUsed", "")))
        state = f["State"]
        unreachable = "+NOT_RESPONDING" if state.endswith("*") else ""
        return Node(f["NodeName"], has, used, state.rstrip("*~#!%$@^-") + unreachable, tuple(f.get("Partitions", "").split(",")))
    except (KeyError, ValueError) as error:
        raise UnknownOutput(f"scontrol printed a node that Rota cannot read ({error!r}): {line[:200]!r}") from None


def parse_gres(text: str) -> dict[str, int]:
    """Generic resources from `gpu:a100:4(S:0-1),fpga:2`, `gres:gpu:1` or `gres/gpu=1`."""
    found = dict[str, int]()
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        pieces = re.split(r"[:=]", re.sub(r"^gres[:/]", "", part.strip()))
        if pieces[0] and pieces[0] not in ("null", "N/A"):
            found[pieces[0]] = found.get(pieces[0], 0) + (int(pieces[-1]) if pieces[-1].isdecimal() else 1)
    return found
