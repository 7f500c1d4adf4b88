"""`rota trace …`: from a log to jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App

import rota
from rota.cli import trace_drift, trace_fleet, trace_group, trace_info, trace_make, trace_parts
from rota.cli.output import finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, Json, TraceOutput

if TYPE_CHECKING:
    from rota.traces import ImportReport, Trace
    from rota.traces.readers.ledger import ImportProgress

trace = App(name="trace", help="Traces: real logs of jobs, from import to analysis.")
trace.command(trace_info.info)
trace.command(trace_group.group)
trace.command(trace_parts.cut)
trace.command(trace_parts.scale)
trace.command(trace_parts.system)
trace.command(trace_fleet.fleet)
trace.command(trace_drift.drift)
trace.command(trace_make.borg)
trace.command(trace_make.resample)


@trace.command(name="import")
def import_(
    source: list[str],
    /,
    *,
    output: TraceOutput,
    format: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    grid: float | None = None,
    columns: str | None = None,
    time_unit: Literal["ns", "us", "ms", "s", "min", "h", "d"] | None = None,
    nodes: Path | None = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Reads a log into one parquet file of jobs, and says what was kept and what was left out.

    Parameters
    ----------
    source
        Files, directories or patterns of files: plain or gzipped text, or parquet.
    format
        The format of the log, one of {formats}; found from its content if not given.
    on_error
        At a line that cannot be read: stop, or skip it and count it.
    grid
        Round demands up to multiples of this.
    columns
        For plain tables: which column is what, arrival=submit,size=runtime,cpu=ncpus. Known are arrival, size, start, end, estimate, type;
        every other name is a resource.
    time_unit
        For plain tables: the unit of their times (seconds if not given).
    nodes
        For alibaba_openb: the list of nodes, which gives the capacity of one.
    """
    check_output(output, force)
    from rota.traces import import_trace

    with _progress_bar() as show:
        made, report = import_trace(
            source,
            output,
            format=format,
            on_error=on_error,
            grid=grid,
            columns=None if columns is None else _mapping(columns),
            time_unit=time_unit,
            nodes=nodes,
            progress=show,
        )
    if json:
        print_json(finite({"output": str(output), "types": len(made.names), "resources": made.resources, **report.as_dict()}))
    else:
        _print_report(made, report)
    remark(f"written to {output}")


def _mapping(text: str) -> dict[str, str]:
    """`arrival=submit,size=runtime` as a dictionary."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    wrong = [name for name, equals, column in pairs if not (name.strip() and equals and column.strip())]
    names = [name.strip() for name, _, _ in pairs]
    if wrong:
        raise rota.BadSpec([rota.Problem("--columns", "must be of the form name=column,name=column", name) for name in wrong])
    if len(set(names)) < len(names):
        raise rota.BadSpec([rota.Problem("--columns", "must name each thing once", text)])
    return {name: column.strip() for name, (_, _, column) in zip(names, pairs, strict=True)}


def _print_report(made: Trace, report: ImportReport) -> None:
    """What was kept and left out, in words."""
    found = f"{_count(report.rows, 'row')} in {_count(report.files, 'file')}, {_count(report.jobs, 'job')}"
    print(f"{report.format}: {found}, {report.kept:,} kept")
    print(f"{_count(len(made.names), 'type')} of {', '.join(made.resources)}; arrivals from {_seconds(made.begin)} to {_seconds(made.end)}")
    if report.left_out:
        print_table("Left out", ["", "jobs"], [(reason, f"{count:,}") for reason, count in report.left_out.items()])
    if report.remarks:
        print_table("Of those kept", ["", "jobs"], [(text, f"{count:,}") for text, count in report.remarks.items()])
    if report.bad_lines:
        print(f"\nLines that could not be read: {report.bad_lines:,}")
        for bad in report.bad_places:
            print(f"  {bad}")
        if report.bad_lines > len(report.bad_places):
            print("  …")
    if report.other_files:
        print_table("Files not read", ["", ""], report.other_files.items(), left=(0, 1))


def _seconds(time: float) -> str:
    return f"{time:,.0f} s" if time >= 1e6 else f"{time:,.6g} s"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' if number != 1 else ''}"


@contextmanager
def _progress_bar() -> Iterator[Callable[[ImportProgress], None]]:
    """A bar on standard error for each step, shown on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    look = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Progress(*look, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def show(at: ImportProgress) -> None:
            if at.step not in tasks:
                tasks[at.step] = bar.add_task(at.step, total=at.total)
            bar.update(tasks[at.step], completed=at.done)

        yield show
