"""`rota trace group`: fewer types, with an account of what that costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from rota.cli.output import finite, print_json, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Capacity, Force, Json, TraceFile, TraceOutput


def group(
    file: TraceFile,
    /,
    *,
    output: TraceOutput,
    clusters: int | None = None,
    top: int | None = None,
    cover: float | None = None,
    of: Literal["jobs", "work"] = "work",
    rest: Literal["leave", "enclose"] = "leave",
    grid: float | None = None,
    relative_grid: float | None = None,
    capacity: Capacity = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Groups the job types of a trace into few, and says what is left out and what is lost.

    Jobs that do not fit the server are left out. The server is kept with the new trace.

    Parameters
    ----------
    clusters
        Choose this many types that lose the least capacity by rounding demands up; no job is left out.
    top
        Keep this many of the most frequent types.
    cover
        Keep the largest types that hold this part of the work (0.95, say).
    of
        What --cover is a part of.
    rest
        What happens to jobs of other types: leave them out, or enclose them in the smallest kept type that they fit into.
    grid
        Before that, round demands up to multiples of this.
    relative_grid
        Before that, round demands up by at most this part (0.001: powers of 1.001).
    """
    check_output(output, force)
    from rota.traces.files import open_trace, save_trace
    from rota.traces.grouping import group_types

    found = group_types(
        open_trace(file),
        grid=grid,
        relative_grid=relative_grid,
        top=top,
        cover=cover,
        of=of,
        clusters=clusters,
        rest=rest,
        capacity=capacity,
    )
    save_trace(found.trace, output)
    if json:
        account = {"types_before": found.types_before, "moved_share": found.moved_share, "lost": found.lost}
        out = [asdict(part) for part in found.left_out]
        print_json(finite({"output": str(output), "types": len(found.trace.names), **account, "left_out": out}))
    else:
        print(found.explain())
    remark(f"written to {output}")
