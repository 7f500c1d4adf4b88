"""`rota trace drift`: how the work changes over a trace, and whether a rota of an earlier window still fits."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Literal

from rota.cli.output import ProgressLine, finite, print_json, print_table
from rota.cli.parameters import Capacity, Json


def drift(
    file: Path,
    /,
    *,
    windows: int = 8,
    capacity: Capacity = None,
    preemption: Literal["full", "none"] = "none",
    loops: int = 1,
    evaluate: bool = True,
    json: Json = False,
) -> None:
    """Splits a trace into windows: how rates, sizes and load move, and how a rota designed on one window does on the next.

    Parameters
    ----------
    file
        The trace, a parquet file (from: rota trace import), of few types (see: rota trace group).
    windows
        How many windows of equal length.
    preemption
        Whether the rotas may stop jobs.
    loops
        How often to play the jobs of a window; beyond 1, the first quarter is warm-up.
    evaluate
        Design and play rotas, not only measure the windows.
    """
    from rota.study.drift import drift as follow
    from rota.traces import open_trace

    began = time.perf_counter()
    with ProgressLine() as line:

        def show(done: int, of: int) -> None:
            line.update(time.perf_counter() - began, f"{done} of {of} windows played")

        found = follow(open_trace(file), windows, capacity=capacity, preemption=preemption, loops=loops, evaluate=evaluate, progress=show)
    if json:
        names = ("windows", "types", "policies")
        print_json(finite({name: getattr(found, name).to_dicts() for name in names}))
        return
    print_table(
        "Windows",
        ["", "from (s)", "jobs", "per s", "mean size", "load"],
        [
            (
                str(row["window"]),
                f"{row['begin']:.0f}",
                f"{row['jobs']:,}",
                *(f"{row[name]:.4g}" for name in ("arrival_rate", "mean_size", "load")),
            )
            for row in found.windows.to_dicts()
        ],
    )
    if evaluate:
        rows = found.policies.to_dicts()
        labels = ("first-fit", "window before", "this window")
        by_window = [rows[k : k + len(labels)] for k in range(0, len(rows), len(labels))]
        print_table(
            "Mean response time in the window, by what the rota was designed on",
            ["", *labels],
            [
                (
                    str(group[0]["window"]),
                    *("–" if math.isnan(row["mean_response_time"]) else f"{row['mean_response_time']:.5g}" for row in group),
                )
                for group in by_window
            ],
        )
        for reason in dict.fromkeys(f"window {row['window']}, {row['designed_on']}: {row['reason']}" for row in rows if row["reason"]):
            print(f"  {reason}")
