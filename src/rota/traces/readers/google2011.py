"""Google 2011 (clusterdata-2011-2): the official `task_events` parts, and two condensed tables made from the log.

- events: CSV of 13 columns without a header; one job is one task (job ID, task index), by the rule of `lifecycle`;
- tasks: parquet, one row per task with its times and its request; the size is from the last SCHEDULE to the FINISH;
- jobs: parquet, one row per job without a request: each asks for one slot; the size is from the first SCHEDULE to the FINISH.

Event codes are those of 2011, not those of 2019. Requests are normalised: 1 is the largest machine.
"""

from __future__ import annotations

import polars as pl

from rota.traces.readers.head import Head
from rota.traces.readers.lifecycle import BEFORE, RESTARTED, TWICE, Codes
from rota.traces.readers.reader import Field, Reader

__all__ = ["CODES", "READERS"]

CODES = Codes(submit=0, schedule=1, evict=2, fail=3, finish=4, kill=5, lost=6, most=8)
RESOURCES = ("cpu", "memory", "disk")
_WHOLE, _WHOLE_REQUIRED, _AMOUNT = Field(pl.Int64), Field(pl.Int64, required=True, least=0), Field(pl.Float64, least=0)

# ------------------------------------------------------------------------------------------------------------------ events

HEADER = (
    *("time", "missing info", "job ID", "task index", "machine ID", "event type", "user", "scheduling class", "priority"),
    *("CPU request", "memory request", "disk space request", "different machines restriction"),
)
_EVENT_FIELDS = {
    "time": _WHOLE_REQUIRED,
    "job ID": _WHOLE_REQUIRED,
    "task index": _WHOLE_REQUIRED,
    "event type": Field(pl.Int64, required=True, least=0, most=CODES.most),
    "CPU request": _AMOUNT,
    "memory request": _AMOUNT,
    "disk space request": _AMOUNT,
}


def _is_events(head: Head) -> bool:
    if head.container != "text" or head.separator != ",":
        return False
    first = (line.split(",") for line in head.lines[:5])
    return any(len(parts) == len(HEADER) and all(parts[j].strip().isdigit() for j in (0, 2, 3, 5)) for parts in first)


def _events(rows: pl.DataFrame) -> pl.DataFrame:
    asked = {"cpu": pl.col("CPU request"), "memory": pl.col("memory request"), "disk": pl.col("disk space request")}
    known = pl.any_horizontal(part.is_not_null() for part in asked.values())
    return rows.select(
        group="job ID",
        member="task index",
        time="time",
        event=pl.col("event type").cast(pl.UInt8),
        **{name: pl.when(known).then(part.fill_null(0.0)) for name, part in asked.items()},
    )


# ------------------------------------------------------------------------------------------------------------- tasks, jobs

_LIFE_FIELDS = {"job_id": _WHOLE_REQUIRED, "submit_us": _WHOLE, "end_us": _WHOLE, "end_type": _WHOLE}
_TASK_FIELDS = _LIFE_FIELDS | {
    "task_index": _WHOLE_REQUIRED,
    "last_schedule_us": _WHOLE,
    "n_schedules": _WHOLE,
    "cpu": _AMOUNT,
    "mem": _AMOUNT,
    "disk": _AMOUNT,
}
_JOB_FIELDS = _LIFE_FIELDS | {"schedule_us": _WHOLE}


def _tasks(rows: pl.DataFrame) -> pl.DataFrame:
    asked = {"cpu": pl.col("cpu"), "memory": pl.col("mem"), "disk": pl.col("disk")}
    return rows.select(
        group="job_id",
        member="task_index",
        **_life("last_schedule_us"),
        **{name: part.fill_null(0.0) for name, part in asked.items()},
        **{RESTARTED: pl.col("n_schedules") > 1},
    )


def _jobs(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(group="job_id", member=pl.lit(0, dtype=pl.Int64), **_life("schedule_us"), slots=pl.lit(1.0))


def _life(start: str) -> dict[str, pl.Expr]:
    """Arrival, size and the reason to leave a row out."""
    words = {CODES.evict: "evicted", CODES.fail: "failed", CODES.kill: "killed", CODES.lost: "lost"}
    ended, submit, begin = pl.col("end_type"), pl.col("submit_us"), pl.col(start)
    rules = [(ended == code, f"ended without FINISH: {word}") for code, word in words.items()]
    rules += [
        (ended.is_null() | (ended != CODES.finish) | pl.col("end_us").is_null(), "not finished inside the log"),
        (submit.is_null(), "no SUBMIT event"),
        (submit == BEFORE, "submitted before the log begins"),
        (begin.is_null() | (begin == BEFORE), "no SCHEDULE before its FINISH"),
    ]
    return {
        "arrival": submit / 1e6,
        "size": (pl.col("end_us") - begin) / 1e6,
        "reason": pl.coalesce([pl.when(broken).then(pl.lit(text)) for broken, text in rules]),
    }


READERS = (
    Reader(
        format="google2011",
        looks_for="task_events, CSV of 13 columns without a header (time, missing info, job ID, task index, machine ID, event type, …)",
        fits=_is_events,
        fields=_EVENT_FIELDS,
        resources=RESOURCES,
        shape=_events,
        codes=CODES,
        remarks=(RESTARTED, TWICE),
        header=HEADER,
        capacity=lambda paths: dict.fromkeys(RESOURCES, 1.0),
    ),
    Reader(
        format="google2011",
        looks_for="tasks with the columns job_id, task_index, submit_us, last_schedule_us, end_us, end_type, cpu, mem and disk",
        fits=lambda head: {*_TASK_FIELDS} - {"n_schedules"} <= set(head.columns),
        fields=_TASK_FIELDS,
        resources=RESOURCES,
        shape=_tasks,
        remarks=(RESTARTED,),
        capacity=lambda paths: dict.fromkeys(RESOURCES, 1.0),
    ),
    Reader(
        format="google2011",
        looks_for="jobs with the columns job_id, submit_us, schedule_us, end_us and end_type",
        fits=lambda head: set(_JOB_FIELDS) <= set(head.columns),
        fields=_JOB_FIELDS,
        resources=("slots",),
        shape=_jobs,
    ),
)
