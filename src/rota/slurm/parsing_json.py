"""The output of Slurm's commands with `--json` as data: the same records as `rota.slurm.parsing` makes from the text.

Two forms are read. Up to Slurm 22.05 a number is a number, or null if there is none, and a state is a word with a list of flags beside it.
Later a number is `{"set": true, "infinite": false, "number": 5}`, and a state is a list of words. Ended jobs, which `squeue --json` also
prints, are left out, and the waiting tasks of an array, which it prints as one job, are written out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rota.slurm.errors import UnknownOutput
from rota.slurm.parsing import asks_of, parse_gres, parse_tres, text_of
from rota.slurm.world import Amounts, Node, SlurmJob

__all__ = ["jobs_from_json", "nodes_from_json"]

# How squeue writes the states of jobs that have not ended; the first one that a job has is its state.
_STATES: Mapping[str, str] = {
    "COMPLETING": "CG",
    "STAGE_OUT": "SO",
    "CONFIGURING": "CF",
    "RESIZING": "RS",
    "REQUEUED": "RQ",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "SPECIAL_EXIT": "SE",
    "STOPPED": "ST",
    "SIGNALING": "SI",
    "PENDING": "PD",
    "RUNNING": "R",
    "SUSPENDED": "S",
}


def jobs_from_json(text: str) -> tuple[SlurmJob, ...]:
    """The jobs that have not ended in the output of `squeue --json`."""
    found = list[SlurmJob]()
    for entry in _entries(text, "jobs", "squeue"):
        try:
            words = _words(entry["job_state"])
            state = next((short for word, short in _STATES.items() if word in words), None)
            if state is not None:
                found += [_job(entry, id, state) for id in _ids(entry)]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnknownOutput(f"squeue --json printed a job that Rota cannot read ({error!r}): {str(entry)[:200]}") from None
    return tuple(found)


def _job(f: Mapping[str, Any], id: str, state: str) -> SlurmJob:
    limit = _number(f["time_limit"])
    return SlurmJob(
        id=id,
        state=state,
        reason=text_of(f["state_description"] or f["state_reason"]),
        asks=asks_of(f["tres_alloc_str"] or f["tres_req_str"], f["tres_per_node"], f["tres_per_job"]),
        nodes=_number(f["node_count"]) or 1,
        node=text_of(f["nodes"]),
        partition=f["partition"],
        priority=_number(f["priority"]) or 0,
        submitted=float(_number(f["submit_time"]) or 0),
        begins=None if not (start := _number(f["start_time"])) else float(start),
        dependency=text_of(f["dependency"]),
        reservation=text_of(f["resv_name"]),
        wanted_node=text_of(f["required_nodes"]),
        features=text_of(f["features"]),
        exclusive="NONE" in _words(f["shared"]),
        comment=text_of(f["comment"]),
        restarts=_number(f["restart_cnt"]) or 0,
        time_limit_s=None if limit is None else 60.0 * limit,
    )


def _ids(f: Mapping[str, Any]) -> Iterator[str]:
    """17, or 17_3 for a task of an array, one for each task that waits, or 17+1 for a part of a heterogeneous job."""
    array, task, tasks = _number(f["array_job_id"]), _number(f["array_task_id"]), f["array_task_string"]
    if whole := _number(f["het_job_id"]):
        yield f"{whole}+{_number(f['het_job_offset']) or 0}"
    elif array and task is not None:
        yield f"{array}_{task}"
    elif array and tasks:
        yield from (f"{array}_{task}" for task in _tasks(tasks))
    else:
        yield str(int(f["job_id"]))


def _tasks(text: str) -> Iterator[int]:
    """The numbers in `1-3,7,10-20:5%2`. Slurm cuts a long list off (`1,3,5,...`), and then the text is complete and this is not."""
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match is None:
            raise ValueError(f"the tasks of an array, {text!r}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        yield from range(first, last + 1, step)


def nodes_from_json(text: str) -> tuple[Node, ...]:
    """The nodes in the output of `scontrol show node --json`, or of Slurm 22.05's `sinfo --json`."""
    found = list[Node]()
    for f in _entries(text, "nodes", "scontrol"):
        try:
            cpus = _number(f.get("effective_cpus")) or _number(f["cpus"]) or 0
            used = parse_tres(f["tres_used"] or "").gres or parse_gres(f["gres_used"] or "")
            state = "+".join([*_words(f["state"]), *_words(f.get("state_flags"))])
            has = Amounts(cpus, _number(f["real_memory"]) or 0, parse_gres(f["gres"] or ""))
            taken = Amounts(_number(f["alloc_cpus"]) or 0, _number(f["alloc_memory"]) or 0, used)
            found.append(Node(f["name"], has, taken, state, tuple(f["partitions"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnknownOutput(f"scontrol --json printed a node that Rota cannot read ({error!r}): {str(f)[:200]}") from None
    return tuple(found)


def _entries(text: str, name: str, command: str) -> list[dict[str, Any]]:
    try:
        return list(json.loads(text)[name])
    except (ValueError, KeyError, TypeError) as error:
        raise UnknownOutput(f"{command} --json printed no {name} ({error!r}): {text[:80]!r}") from None


def _number(value: Any) -> int | None:
    """The number; None if there is none, or no limit."""
    if isinstance(value, dict):
        return int(value["number"]) if value["set"] and not value.get("infinite") else None
    return None if value is None else int(value)


def _words(value: Any) -> list[str]:
    """A word or a list of words, in capitals."""
    return [str(word).upper() for word in ([value] if isinstance(value, str) else value or [])]
