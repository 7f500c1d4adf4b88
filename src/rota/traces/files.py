"""The format of stored traces: a parquet file with arrival, size, type and what else is known, sorted by arrival; types in its metadata."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from rota.arguments import whole_file
from rota.errors import BadSpec, Problem
from rota.traces.trace import COLUMNS, OPTIONAL, Trace

__all__ = ["ROW_GROUP", "is_trace_file", "open_trace", "save_trace", "trace_metadata"]

_KEY = "rota.trace"
_VERSION = 1
ROW_GROUP = 1 << 18


def trace_metadata(trace: Trace) -> dict[str, str]:
    """The types in the parquet metadata of a trace."""
    table = {
        "version": _VERSION,
        "names": list(trace.names),
        "resources": list(trace.resources),
        "demand": trace.demand.tolist(),
        "capacity": None if trace.capacity is None else [float(c) for c in trace.capacity],
        "about": trace.about,
    }
    return {_KEY: json.dumps(table)}


def save_trace(trace: Trace, path: str | Path) -> None:
    """Writes a trace, streaming; the file appears whole or not at all."""
    columns = [name for name in (*COLUMNS, *OPTIONAL) if name in trace.jobs.collect_schema().names()]
    with whole_file(Path(path)) as place:
        trace.jobs.select(columns).sink_parquet(
            place, compression="zstd", compression_level=1, row_group_size=ROW_GROUP, maintain_order=True, metadata=trace_metadata(trace)
        )


def is_trace_file(path: str | Path) -> bool:
    """Whether a file is a parquet file in this form."""
    path = Path(path)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    try:
        return _KEY in pl.read_parquet_metadata(path)
    except pl.exceptions.PolarsError:
        return False


def open_trace(path: str | Path) -> Trace:
    """A trace from a file in this form; its jobs are read when they are needed."""
    path = Path(path)
    if not is_trace_file(path):
        what = "is not a trace made by Rota" if path.exists() else "does not exist"
        raise BadSpec([Problem("trace", f"{what}: make one with `rota trace import`")], source=str(path))
    table = json.loads(pl.read_parquet_metadata(path)[_KEY])
    if table["version"] > _VERSION:
        raise BadSpec([Problem("version", f"is newer than {_VERSION}, the newest this Rota knows", table["version"])], source=str(path))
    jobs = pl.scan_parquet(path)
    missing = [name for name in COLUMNS if name not in jobs.collect_schema().names()]
    if missing:
        raise BadSpec([Problem("columns", f"{', '.join(missing)} missing")], source=str(path))
    return Trace(jobs, tuple(table["names"]), tuple(table["resources"]), table["demand"], table["capacity"], table["about"])
