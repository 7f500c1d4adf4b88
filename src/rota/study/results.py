"""The results of a sweep: one row per run, in a parquet file; beside it, while a sweep runs, a journal of the runs that are done.

A row goes into the journal, a line of JSON, as soon as its run is done. At the end the journal is merged into the parquet file, which
appears whole or not at all. So a sweep that is killed loses only the unfinished runs: the next one finds the rest by their keys.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rota.arguments import checked_path, whole_file
from rota.errors import BadSpec, Problem, RotaError

__all__ = ["SCHEMA", "Results", "as_table", "is_results_file", "read_results"]

_KEY, _VERSION = "rota.sweep", 2

_LIST = pl.List(pl.Float64)
SCHEMA: dict[str, Any] = {
    # what defines the run
    "policy": pl.String,
    "load": pl.Float64,
    "switching_rate": pl.Float64,
    "setup_rate": pl.Float64,
    "jobs": pl.Int64,
    "seed": pl.Int64,
    # the outcome: "done", "impossible" (this policy cannot run here) or "failed" (tried again by the next sweep)
    "outcome": pl.String,
    "error": pl.String,
    "stable": pl.Boolean,
    "growth": pl.Float64,
    "mean_response_time": pl.Float64,
    "interval": pl.Float64,
    **dict.fromkeys(("p50", "p90", "p95", "p99", "p99.9"), pl.Float64),
    "mean_waiting_time": pl.Float64,
    "mean_slowdown": pl.Float64,
    "names": pl.List(pl.String),
    "mean_queue_length": _LIST,
    "mean_queue_length_interval": _LIST,
    "response_time": _LIST,
    "response_time_interval": _LIST,
    "resources": pl.List(pl.String),
    "utilization": _LIST,
    "preemption_rate": pl.Float64,
    "switch_rate": pl.Float64,
    "switching_fraction": pl.Float64,
    "warmup": pl.Float64,
    "simulated_time": pl.Float64,
    "events": pl.Int64,
    "time_s": pl.Float64,
    # what is needed to repeat it
    "key": pl.String,
    "case": pl.String,
    "system": pl.String,
    "policy_json": pl.String,
    "workload": pl.String,
    "rota": pl.String,
    "finished_at": pl.String,
}


def as_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a table; what a row does not have is null."""
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA, orient="row")


def read_results(path: str | Path) -> pl.DataFrame:
    """The table that a sweep wrote."""
    path = checked_path(path, "results")
    try:
        table = json.loads(pl.read_parquet_metadata(path)[_KEY])
    except (KeyError, pl.exceptions.PolarsError):
        raise BadSpec([Problem("results", "is not a file that rota sweep wrote")], str(path)) from None
    except OSError as error:
        raise BadSpec([Problem("results", f"cannot be read: {error.strerror or error}")], str(path)) from None
    if table["version"] > _VERSION:
        raise BadSpec([Problem("version", f"is newer than {_VERSION}, the newest this Rota knows", table["version"])], str(path))
    rows = pl.read_parquet(path)
    missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in SCHEMA.items() if name not in rows.columns]  # of an older version
    return rows.with_columns(missing).select(list(SCHEMA))


def is_results_file(path: str | Path) -> bool:
    """Whether a sweep wrote this file."""
    try:
        return Path(path).is_file() and _KEY in pl.read_parquet_metadata(path)
    except pl.exceptions.PolarsError:
        return False


class Results:
    """The results file of a running sweep. A context manager; without a path, the rows are kept in memory only.

    `anew`: what the file holds is not read, and is written over at the end.
    """

    def __init__(self, path: str | Path | None, anew: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._anew = anew
        self._rows: dict[str, dict[str, Any]] = {}  # by key: what need not be run again
        self._before = as_table([])
        self._journal: Any = None

    def __enter__(self) -> Results:
        if self.path is None:
            return self
        self._journal = _locked(journal_of(self.path))
        try:
            self._read(self.path)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _read(self, path: Path) -> None:
        if self._anew:
            self._journal.truncate(0)
            return
        whole = self._journal.read().rpartition(b"\n")[0]  # a line without its end was being written when its sweep was killed
        self._journal.truncate(len(whole) + 1 if whole else 0)
        self._before = as_table([json.loads(line) for line in whole.splitlines()])
        if path.exists():
            self._before = pl.concat([read_results(path), self._before]).unique(["key", "policy"], maintain_order=True)
        self._rows = {row["key"]: row for row in self._before.to_dicts() if row["outcome"] != "failed"}

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            if self.path is not None and os.fstat(self._journal.fileno()).st_size == 0:
                journal_of(self.path).unlink()
            self._journal.close()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._rows[key]

    def add(self, row: dict[str, Any]) -> None:
        """Stores a row, on disk before this returns, unless its run is to be repeated."""
        if row["outcome"] == "failed":
            return
        self._rows[row["key"]] = row
        if self._journal is not None:
            self._journal.write(json.dumps(row).encode() + b"\n")
            self._journal.flush()
            os.fsync(self._journal.fileno())

    def merge(self, table: pl.DataFrame) -> None:
        """Writes the table, and the rows of other grids that were there before, in place of the journal."""
        if self.path is None:
            return
        others = self._before.join(table, on=["key", "policy"], how="anti", maintain_order="left")
        with whole_file(self.path) as place:
            pl.concat([others, table]).write_parquet(place, metadata={_KEY: json.dumps({"version": _VERSION})})
        self._journal.truncate(0)


def journal_of(path: Path) -> Path:
    """The file of finished runs while a sweep is running."""
    return path.with_name(path.name + ".journal")


def _locked(journal: Path) -> Any:
    """The journal, opened by this process alone."""
    try:
        file = open(journal, "a+b")  # noqa: SIM115  # closed by Results
    except OSError as error:
        raise BadSpec([Problem("output", f"cannot be written: {error.strerror or error}")], str(journal)) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RotaError(f"another sweep is writing {journal}: wait for it, or choose another output") from None
    file.seek(0)
    return file
