"""Schedules as packed bars: how full each resource is while a schedule runs, and with what.

Schedules that lie close to each other are drawn in two parts: what all of them have in common, which runs always, and what each has
beside it. The second part has an axis of its own, as it may be a few jobs of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.policy import Adaptive
from rota.report.style import styled, text_colour, type_colour, type_colours

if TYPE_CHECKING:
    from rota.capacity import Load
    from rota.model import System
    from rota.policy import MSR

__all__ = ["SUBTITLE", "packed_panels", "schedule_table", "schedules", "segments"]

_WIDTH = 520
_BAR = 20  # pixels
_LETTERS = 84  # in a line above a panel
SUBTITLE = "bars: part of each resource in use, by job type; numbers: jobs that run at once"
_NUMBER = 0.045  # of the width, which a number within a segment needs


def schedules(plan: Load | MSR | Adaptive, system: System, *, title: str = "What runs together", common: bool = False) -> Any:
    """A panel per schedule, with its weight; a bar per resource, with a segment per type and the number of its jobs. 100 % is full.

    `common`: what all schedules have in common is a panel of its own, "always", and the others show only what they have beside it.
    """
    data = schedule_table(plan, system, common=common)
    return styled(packed_panels(data, system.names, system.resources), title, SUBTITLE)


def packed_panels(data: pl.DataFrame, names: Sequence[str], resources: Sequence[str]) -> Any:
    """The panels of a table as `schedule_table` gives it; resources that a schedule has no rows of are left out of its panel."""
    color = alt.Color("type:N", scale=type_colours(names), title=None, legend=alt.Legend(orient="bottom", columns=6))
    axis = alt.Axis(ticks=False, domain=False, labelPadding=6, labelLimit=160)
    y = alt.Y("resource:N", sort=list(resources), title=None, axis=axis)
    tooltip = ["schedule:N", "resource:N", "type:N", "jobs:Q", alt.Tooltip("share:Q", format=".1%")]
    panels = []
    labels = data.unique("schedule", maintain_order=True)[["schedule", "always"]].rows()
    for k, (label, always) in enumerate(labels):
        part = data.filter(pl.col("schedule") == label)
        beside = not always and labels[0][1]
        widest = max(part["free"].to_list())
        ticks = {"tickCount": 5} if beside else {"values": [0, 0.25, 0.5, 0.75, 1]}
        axis = alt.Axis(format=".2~%", grid=False, **ticks)
        said = "part of the capacity beside what runs always" if beside else "part of the capacity in use"
        x = alt.X("start:Q", title=said, scale=alt.Scale(domain=[0, widest], nice=False), axis=axis)
        bare = alt.Axis(labels=False, ticks=False, grid=False, domain=False, title=None)
        last = k == len(labels) - 1 or always
        here = x if last else alt.X("start:Q", title=None, scale=x["scale"], axis=bare)
        background = alt.Chart(part.unique("resource", maintain_order=True)).mark_bar(color="#f0f0f0", height=_BAR)
        background = background.transform_calculate(zero="0").encode(_moved(here, "zero"), alt.X2("free:Q"), y)
        used = alt.Chart(part.filter(pl.col("jobs") > 0)).mark_bar(stroke="white", strokeWidth=1, height=_BAR)
        used = used.encode(here, alt.X2("end"), y, color, tooltip=tooltip)
        count = alt.Chart(part.filter(pl.col("share") >= _NUMBER * widest)).mark_text(fontSize=11)
        count = count.encode(_moved(here, "middle"), y, text="jobs:Q", color=alt.Color("ink:N", scale=None))
        header = alt.TitleParams(wrap(label, _LETTERS), fontSize=13, fontWeight="normal", offset=5, anchor="start")
        height = (_BAR + 6) * part["resource"].n_unique()
        panels.append((background + used + count).properties(width=_WIDTH, height=height, title=header))
    return alt.vconcat(*panels, spacing=14).resolve_scale(color="shared")


def _moved(x: Any, field: str) -> Any:
    return alt.X(f"{field}:Q", title=x["title"], scale=x["scale"], axis=x["axis"])


def schedule_table(plan: Load | MSR | Adaptive, system: System, *, common: bool = False) -> pl.DataFrame:
    """A row per schedule, resource and type: `jobs`, the `share` of the resource they hold, and where the segment begins and ends.

    The heaviest schedule comes first. A schedule that the loop visits more than once is there once, with all of its time. With `common`,
    what all schedules have in common comes before them, marked `always`, and they have only what is beside it. `free` is the part of the
    resource that is left for a bar: 1, or what the common part leaves. The goals of a queue-driven rota have no weights: its queues choose.
    """
    chosen = isinstance(plan, Adaptive)
    candidates, weights = (plan.goals, np.zeros(len(plan.goals))) if isinstance(plan, Adaptive) else (plan.candidates, plan.weights)
    time: dict[tuple[int, ...], float] = {}
    for schedule, weight in zip(map(tuple, candidates.tolist()), weights.tolist(), strict=True):
        time[schedule] = time.get(schedule, 0.0) + weight
    always = candidates.min(axis=0) if common else np.zeros(len(system.names), dtype=np.int64)
    heaviest = sorted(time.items(), key=lambda item: -item[1])
    bars = [((np.array(schedule) - always).tolist(), weight, False) for schedule, weight in heaviest]
    if always.any():
        bars = [(always.tolist(), 1.0, True), *(bars if len(bars) > 1 else [])]
    rows: list[dict[str, object]] = []
    for counts, weight, first in bars:
        running = ", ".join(f"{n} {name}" for n, name in zip(counts, system.names, strict=True) if n)
        when = "always" if first else "if the queues choose it" if chosen else f"{weight:.1%} of the time"
        when += ", beside that" if always.any() and not first else ""
        label = f"{when}: {running or 'nothing'}{' more' if not running and always.any() else ''}"
        for r, resource in enumerate(system.resources):
            free = 1.0 if first else 1.0 - float(always @ system.demand[:, r] / system.capacity[r])
            row = {"schedule": label, "weight": weight, "always": first, "resource": resource, "free": free}
            rows += segments(row, system.names, counts, (system.demand[:, r] / system.capacity[r]).tolist())
    return pl.DataFrame(rows)


def segments(row: dict[str, object], names: Sequence[str], counts: Sequence[int], needs: Sequence[float]) -> list[dict[str, object]]:
    """The bar of a resource: a row per type, where its segment begins and ends. `needs`: the part of the resource that one job holds."""
    rows, begin = [], 0.0
    for i, (name, jobs, need) in enumerate(zip(names, counts, needs, strict=True)):
        share = jobs * need
        place = {"share": share, "start": begin, "end": begin + share, "middle": begin + share / 2}
        rows.append({**row, "type": name, "jobs": jobs, **place, "ink": text_colour(type_colour(i))})
        begin += share
    return rows
