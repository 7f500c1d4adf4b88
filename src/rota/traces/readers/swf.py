"""SWF, the Standard Workload Format: 18 numbers per job separated by blanks, −1 where unknown, and a header of comments.

processors are those requested, else those allocated; memory is the requested KB per processor (else the used ones) times the processors,
and is left out if no job states it; the size is the run time, the estimate the requested time; the start is known if the wait is. Lines
of partial executions (status 2, 3 or 4) are left out, since the job has a line of its own as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from rota.traces.readers.head import Head, look
from rota.traces.readers.reader import Field, Reader

__all__ = ["HEADER", "READER", "header_of"]

HEADER = (
    *("job", "submit", "wait", "run", "processors", "cpu_time", "memory", "requested_processors", "requested_time", "requested_memory"),
    *("status", "user", "group", "executable", "queue", "partition", "preceding", "think_time"),
)
_READ = (*("submit", "wait", "run", "processors", "memory", "requested_processors", "requested_time", "requested_memory", "status"),)
_FAILED, _PARTIAL, _CANCELLED = 0.0, (2.0, 3.0, 4.0), 5.0
FAILED = "failed, but ran"
CANCELLED = "cancelled while they ran"
NO_MEMORY = "of unknown memory (taken as 0)"
NO_ESTIMATE = "without a requested time (the estimate is then the run time)"
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")


def fits(head: Head) -> bool:
    """Whether the first line that is no comment has 18 numbers."""
    parts = head.lines[0].split() if head.container == "text" and head.lines else []
    return len(parts) == len(HEADER) and all(_NUMBER.fullmatch(part) for part in parts)


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Lines as jobs."""
    processors = _first_known("requested_processors", "processors")
    memory = _first_known("requested_memory", "memory")
    run, status = pl.col("run"), pl.col("status")
    start = pl.when(pl.col("wait") >= 0).then(pl.col("submit") + pl.col("wait"))
    rules = [
        (status.is_in(_PARTIAL), "a partial execution (the line of the whole job counts)"),
        (pl.col("submit") < 0, "submit time unknown"),
        (run < 0, "run time unknown"),
        (processors.is_null(), "number of processors unknown"),
    ]
    return rows.select(
        arrival="submit",
        size=run,
        start=start,
        end=start + run,
        estimate=_first_known("requested_time"),
        processors=processors.fill_null(0.0),
        memory=(memory * processors).fill_null(0.0),
        reason=pl.coalesce([pl.when(broken).then(pl.lit(text)) for broken, text in rules]),
        group="row",
        member=pl.lit(0, dtype=pl.Int64),
        **{
            FAILED: status == _FAILED,
            CANCELLED: status == _CANCELLED,
            NO_MEMORY: memory.is_null(),
            NO_ESTIMATE: _first_known("requested_time").is_null(),
        },
    )


def _first_known(*names: str) -> pl.Expr:
    """The first of the columns that is above 0: −1 means unknown, and 0 processors or KB make no sense."""
    return pl.coalesce([pl.when(pl.col(name) > 0).then(pl.col(name)) for name in names])


def header_of(path: Path) -> dict[str, str]:
    """The header's `; Name: value` lines."""
    pairs = (re.fullmatch(r";\s*(\w+):\s*(.*?)\s*", line) for line in look(path).comments)
    return {pair[1]: pair[2] for pair in pairs if pair}


def capacity(paths: Sequence[Path]) -> Mapping[str, float]:
    """The processors from the header (MaxProcs, else MaxNodes). The header does not give the memory of the whole machine."""
    header = header_of(paths[0]) if paths else {}
    for name in ("MaxProcs", "MaxNodes"):
        found = re.match(r"\d+", header.get(name, ""))
        if found and int(found[0]) > 0:
            return {"processors": float(found[0])}
    return {}


READER = Reader(
    format="swf",
    looks_for="lines of 18 numbers separated by blanks (Standard Workload Format)",
    fits=fits,
    fields={name: Field(pl.Float64, required=True) for name in _READ},
    resources=("processors", "memory"),
    optional=("memory",),
    shape=shape,
    remarks=(FAILED, CANCELLED, NO_MEMORY, NO_ESTIMATE),
    header=HEADER,
    spaced=True,
    capacity=capacity,
)
