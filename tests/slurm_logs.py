"""Small logs of Slurm, and the plain-Python reading of them that the import is compared with."""

import re
from datetime import UTC, datetime
from pathlib import Path

LOGS = Path(__file__).parent / "traces" / "readers" / "logs"
AGAIN = {"REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"}
GOING_ON = {"PENDING", "RUNNING", "SUSPENDED"}
DAY = datetime(2026, 11, 18, tzinfo=UTC).timestamp()


def clock(seconds):
    """Seconds after the midnight of the sample day, as Slurm writes them; other values as they are."""
    return seconds if isinstance(seconds, str) else datetime.fromtimestamp(DAY + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def line(job, submit=0, start=None, end=None, state="COMPLETED", tres="cpu=4,mem=8G,node=1", **other):
    """One row of sacct as a dictionary; times in seconds after midnight."""
    start = submit if start is None else start
    end = start + 60 if end is None else end
    times = {"Submit": clock(submit), "Eligible": clock(submit), "Start": clock(start), "End": clock(end)}
    elapsed = end - start if not isinstance(start, str) and not isinstance(end, str) else 0
    return {"JobID": str(job), "State": state, **times, "ElapsedRaw": str(elapsed), "Timelimit": "01:00:00", "AllocTRES": tres} | other


def sacct_text(rows, separator="|"):
    """Rows as `sacct -P` prints them."""
    header = list(dict.fromkeys(name for row in rows for name in row))
    return "\n".join([separator.join(header), *(separator.join(row.get(name, "") for name in header) for row in rows)]) + "\n"


def rows_of_sacct(text):
    """The rows of `sacct -P` as dictionaries."""
    header, *lines = (row.split("|") for row in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in lines]


def seconds(text):
    """A time, or None."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() if text[:1].isdigit() else None


def gigabytes(text):
    """An amount of memory with its unit."""
    return float(text[:-1]) * {"K": 1 / 1024**2, "M": 1 / 1024, "G": 1.0, "T": 1024.0}[text[-1]]


def plain_jobs(rows):
    """The rules for jobs, word for word and slowly: a sorted list of (arrival, start, end, size, cores, memory) of those that are kept."""
    lives = {}
    for row in rows:
        if "." in row["JobID"]:
            continue
        whole, _, part = row["JobID"].partition("+")
        lives.setdefault(whole, {}).setdefault(part, []).append(row)
    jobs = []
    for parts in lives.values():
        together = [_of_one_part(runs) for runs in parts.values()]
        for components in zip(*together, strict=True):
            if all(components):
                arrival, start, end, size, cores, memory = zip(*components, strict=True)
                jobs.append((max(arrival), min(start), max(end), max(size), sum(cores), sum(memory)))
    return sorted(jobs)


def _of_one_part(runs):
    """The jobs of one id, one after the other; None for those that are left out."""
    jobs, current = [], []
    for run in sorted(runs, key=lambda row: row["Submit"]):
        if current and current[-1]["State"].split()[0] not in AGAIN:
            jobs.append(current)
            current = []
        current.append(run)
    return [_job(some) for some in [*jobs, current]]


def _job(runs):
    first, last = runs[0], runs[-1]
    start, end, size = (next(filter(None, (seconds(run["Start"]) for run in runs)), None), seconds(last["End"]), int(last["ElapsedRaw"]))
    if last["State"].split()[0] in GOING_ON | {"REQUEUED"} or start is None or not size:
        return None
    arrival = max(filter(None, (seconds(first["Submit"]), seconds(first["Eligible"]))))
    held = dict(entry.split("=") for entry in re.split(",", last["AllocTRES"]))
    return min(arrival, start), start, end, size, int(held["cpu"]), gigabytes(held["mem"])


def imported(trace):
    """The jobs of a trace as `plain_jobs` gives them."""
    table = trace.jobs.select("arrival", "start", "end", "size", "type").collect()
    wanted = [trace.resources.index("cores"), trace.resources.index("memory_gb")]
    return sorted((*times, *trace.demand[kind][wanted].tolist()) for *times, kind in table.iter_rows())
