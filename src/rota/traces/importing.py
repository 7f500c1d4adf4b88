"""The import of a trace: files of any known format in, one parquet file of jobs sorted by arrival out, and a report of what was left out.

    files ─► blocks of rows ─► events ─► jobs ─► types and jobs in order of arrival ─► output
                               (dealt by key)    (sorted in stretches)

Memory stays bounded at every step (see `spilling`). The output appears whole or not at all.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rota.errors import BadSpec, Infeasible, Problem
from rota.traces.detect import Choice, Options, Source, choose
from rota.traces.files import is_trace_file, open_trace, save_trace
from rota.traces.readers.ledger import BadLine, ImportProgress, Ledger, OnError
from rota.traces.readers.lifecycle import jobs_of_events
from rota.traces.readers.reader import Reader
from rota.traces.readers.rows import rows
from rota.traces.spilling import EventStore, JobStore, Limits
from rota.traces.trace import OPTIONAL, Trace

__all__ = ["ImportReport", "import_trace", "on_grid", "read_trace"]


@dataclass(frozen=True)
class ImportReport:
    """What an import read, kept and left out. `kept` and the counts of `left_out` add up to the jobs that the log has."""

    format: str
    files: int
    bytes: int
    rows: int  # lines, events or rows of a table
    kept: int
    left_out: dict[str, int]  # reason: jobs
    remarks: dict[str, int]  # of the jobs that were kept
    bad_lines: int
    bad_places: tuple[BadLine, ...]  # the first few
    other_files: dict[str, str]  # found beside the others, not read: the reason

    @property
    def jobs(self) -> int:
        """All jobs that were found."""
        return self.kept + sum(self.left_out.values())

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain data."""
        return {**asdict(self), "bad_places": [bad._asdict() for bad in self.bad_places]}


def import_trace(
    source: Source,
    output: str | PathLike[str],
    *,
    format: str | None = None,
    on_error: OnError = "stop",
    grid: float | None = None,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    nodes: str | PathLike[str] | None = None,
    progress: Callable[[ImportProgress], None] | None = None,
    limits: Limits | None = None,
) -> tuple[Trace, ImportReport]:
    """Reads a log into one parquet file of jobs and returns the trace with a report of what was kept and left out.

    `source` is a file, a directory, a pattern, or a list of them; if the format is not given, the content decides. Lines that
    cannot be read stop the import, or are counted and skipped (`on_error="skip"`). `grid` rounds demands up to its multiples.
    `columns` (what a table's columns mean) and `time_unit` are for the format `table`, `nodes` (the list of nodes) is for
    `alibaba_openb`. `limits` says how much may be in memory at a time.
    """
    if on_error not in ("stop", "skip"):
        raise BadSpec([Problem("on_error", 'must be "stop" or "skip"', on_error)])
    if grid is not None and not (grid > 0 and np.isfinite(grid)):
        raise BadSpec([Problem("grid", "must be positive and finite", grid)])
    output = Path(output)
    if not output.parent.is_dir():
        raise BadSpec([Problem("output", "is in a directory that does not exist", str(output))])
    choice = choose(source, format, Options(columns, time_unit, None if nodes is None else Path(nodes)))
    if choice.reader.settled is not None:
        choice = replace(choice, reader=choice.reader.settled(choice.paths))
    reader = choice.reader
    capacity = reader.capacity(choice.paths)
    ledger = Ledger("skip" if reader.skips_bad_lines else on_error, sum(path.stat().st_size for path in choice.paths), progress)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as directory:
        folder = Path(directory)
        store: JobStore | None = None
        for jobs in _jobs(choice, ledger, folder, limits or Limits()):
            kept = _kept(jobs, reader, ledger, grid)
            if store is None:
                key = [name for name in ("label", *reader.resources) if name in jobs.columns]
                store = JobStore(folder, limits or Limits(), key, reader.types)
            store.add(kept)
        report = _report(choice, ledger, store.jobs if store else 0)
        if store is None or not store.jobs:
            raise Infeasible("no job was kept: " + (_counted(report.left_out) or "the files hold none"))
        save_trace(_trace(store, reader, capacity, folder, report, grid, ledger), output)
    return open_trace(output), report


def read_trace(path: Source, format: str | None = None, **options: Any) -> Trace:
    """A trace from a file made by `rota trace import`, or from a log of any known format, imported into a temporary file of this process.

    `options` are those of `import_trace`.
    """
    if not isinstance(path, str | PathLike | Sequence):
        raise BadSpec([Problem("trace", "must be a path, or a list of them", path)])
    if isinstance(path, str | PathLike) and format is None and is_trace_file(Path(path)):
        if options:
            raise BadSpec([Problem(name, "is for the import of a log; this is a trace already") for name in options], source=str(path))
        return open_trace(Path(path))
    directory = tempfile.mkdtemp(prefix="rota-trace-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    trace, _ = import_trace(path, Path(directory) / "jobs.parquet", format=format, **options)
    return trace


def on_grid(amount: pl.Expr, grid: float) -> pl.Expr:
    """Rounded up to a multiple of the grid; what is a multiple already, up to 1e-9 of itself, stays: 0.002 is 0.002 on a grid of 0.001."""
    steps = (amount / grid * (1 - 1e-9)).ceil()
    per_unit = round(1 / grid)
    # 57 / 1000 is the number 0.057; 57 × 0.001, which is how Polars divides by a constant, may be its neighbour.
    return steps / (0 * steps + per_unit) if per_unit and abs(per_unit * grid - 1) < 1e-12 else steps * grid


# ------------------------------------------------------------------------------------------------------------- the pieces


def _jobs(choice: Choice, ledger: Ledger, folder: Path, limits: Limits) -> Iterator[pl.DataFrame]:
    """Tables of jobs, also of those to be left out (`reason`)."""
    reader = choice.reader
    shaped = (reader.shape(block) for path in choice.paths for block in rows(path, reader, ledger))
    codes, assemble = reader.codes, reader.assemble
    if codes is not None:
        assemble = partial(jobs_of_events, codes=codes, resources=reader.resources)
    if assemble is None:
        yield from shaped
        return
    events = EventStore(folder, limits)
    for some in shaped:
        events.add(some, ledger.read_bytes / max(ledger.total_bytes, 1))
    for number, part in enumerate(events, 1):
        yield assemble(part)
        ledger.step("joining events", number, events.parts)


def _kept(jobs: pl.DataFrame, reader: Reader, ledger: Ledger, grid: float | None) -> pl.DataFrame:
    """The jobs to keep; the ledger counts the others by reason."""
    demands = [pl.col(name) for name in reader.resources]
    reason = pl.coalesce(
        "reason",
        pl.when(pl.col("size") <= 0).then(pl.lit("size not above 0")),
        pl.when(pl.all_horizontal(demand <= 0 for demand in demands)).then(pl.lit("demand of zero")),
    )
    judged = jobs.with_columns(reason=reason)
    counts = judged.filter(pl.col("reason").is_not_null()).group_by("reason", maintain_order=True).len()
    ledger.left_out.update(dict(counts.iter_rows()))
    kept = judged.filter(pl.col("reason").is_null())
    ledger.remarks.update({text: int(kept[text].sum()) for text in reader.remarks})
    if grid is not None:
        kept = kept.with_columns(on_grid(demand, grid) for demand in demands)
    columns = [name for name in ("arrival", "size", *OPTIONAL, "label", *reader.resources, "group", "member") if name in jobs.columns]
    return kept.select(columns)


def _trace(
    store: JobStore, reader: Reader, capacity: Mapping[str, float], folder: Path, report: ImportReport, grid: float | None, ledger: Ledger
) -> Trace:
    """The trace to be written: its jobs are in the folder, sorted."""
    sorted_files: list[Path] = []
    done = 0
    known: set[str] = set()  # of the optional columns: those that have values
    for part in store.sorted_jobs():
        known |= {name for name in OPTIONAL if name in part.columns and part[name].count()}
        sorted_files.append(folder / f"sorted-{len(sorted_files)}.parquet")
        part.write_parquet(sorted_files[-1], compression="lz4")
        done += part.height
        ledger.step("sorting", done, store.jobs)
    jobs = pl.scan_parquet(sorted_files)
    jobs = jobs.drop([name for name in OPTIONAL if name not in known], strict=False)
    if "estimate" in known:
        jobs = jobs.with_columns(pl.col("estimate").fill_null(pl.col("size")))
    types = store.types()
    resources = [name for name in reader.resources if name not in reader.optional or (types[name] > 0).any()]
    server = {name: capacity[name] for name in resources if name in capacity}
    about: dict[str, Any] = {"import": report.as_dict(), **reader.about}
    if grid is not None:
        about["grid"] = grid
    if server and len(server) < len(resources):
        about["known_capacity"] = server
    return Trace(
        jobs=jobs,
        names=_names(types, resources),
        resources=tuple(resources),
        demand=types.select(resources).to_numpy(),
        capacity=np.array([server[name] for name in resources]) if len(server) == len(resources) else None,
        about=about,
    )


def _names(types: pl.DataFrame, resources: Sequence[str]) -> tuple[str, ...]:
    """`cpu0.002_memory0.003`, with digits enough to distinguish demands; or the log's labels, with the demand where one has several."""
    demands = [
        "_".join(f"{name}{_digits(x)}" for name, x in zip(resources, row, strict=True)) for row in types.select(resources).iter_rows()
    ]
    if "label" not in types.columns:
        return tuple(demands)
    several = types["label"].is_duplicated()
    return tuple(f"{label}_{demand}" if more else label for label, demand, more in zip(types["label"], demands, several, strict=True))


def _digits(amount: float) -> str:
    return repr(amount).removesuffix(".0")


def _report(choice: Choice, ledger: Ledger, kept: int) -> ImportReport:
    return ImportReport(
        format=choice.reader.format,
        files=len(choice.paths),
        bytes=ledger.total_bytes,
        rows=ledger.rows,
        kept=kept,
        left_out=dict(ledger.left_out.most_common()),
        remarks={text: count for text, count in ledger.remarks.items() if count},
        bad_lines=ledger.bad,
        bad_places=tuple(ledger.places),
        other_files=choice.others,
    )


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
