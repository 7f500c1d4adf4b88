"""Charts of a fleet: which servers hold which jobs, how the types are split over the kinds, E[T] against the number of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.display import jobs_together
from rota.policy import Pinned
from rota.report.packing import SUBTITLE, packed_panels, segments
from rota.report.style import GREY, HEIGHT, INK, TIME, TYPE_COLOURS, styled

if TYPE_CHECKING:
    from rota.capacity import FleetLoad
    from rota.model import Fleet
    from rota.study import FleetPlan

__all__ = ["fleet_schedules", "fleet_split", "means_against_servers", "schedules_of_fleet"]

_WIDTH = 640
_MOST_PANELS = 12
_KIND_COLOURS = tuple(reversed(TYPE_COLOURS))


def schedules_of_fleet(load: FleetLoad, pinned: Pinned | None) -> list[tuple[int, float, tuple[int, ...]]]:
    """Kind, number of servers and schedule (K,): of pinned servers, or of the best rotas, where the number is an average."""
    if pinned is not None:
        rows = zip(pinned.kind.tolist(), pinned.servers.tolist(), map(tuple, pinned.candidates.tolist()), strict=True)
    else:
        rows = zip(load.kind.tolist(), load.weights.tolist(), map(tuple, load.candidates.tolist()), strict=True)
    return sorted(((c, float(n), row) for c, n, row in rows if n >= 0.005), key=lambda one: (one[0], -one[1]))


def fleet_schedules(load: FleetLoad, pinned: Pinned | None = None, *, title: str = "What the servers run together") -> Any:
    """A panel per kind and schedule, with how many servers hold it; a bar per resource, with a segment per type. 100 % is full."""
    fleet = load.fleet
    rows: list[dict[str, object]] = []
    found = schedules_of_fleet(load, pinned)
    for c, n, counts in found[:_MOST_PANELS]:
        whole = f"{n:,.0f}" if pinned is not None else f"{n:,.1f}"
        label = f"{whole} of {fleet.count[c]:,} {fleet.kinds[c]}: {jobs_together(counts, fleet.names)}"
        for r in np.flatnonzero(fleet.capacity[c] > 0):
            row: dict[str, object] = {"schedule": label, "always": False, "resource": fleet.resources[r], "free": 1.0}
            rows += segments(row, fleet.names, counts, (fleet.demand[:, r] / fleet.capacity[c, r]).tolist())
    more = len(found) - _MOST_PANELS
    left = f"; {more} more sets of jobs are not drawn" if more > 0 else ""
    return styled(packed_panels(pl.DataFrame(rows), fleet.names, fleet.resources), title, SUBTITLE + left)


def fleet_split(fleet: Fleet, split: np.ndarray, *, title: str = "Where the jobs of each type run", said: str = "") -> Any:
    """A bar per type: the part of its jobs that runs on each kind, from `split` (C, K)."""
    rows = [
        {"type": name, "kind": kind, "part": float(split[c, i]), "place": c}
        for i, name in enumerate(fleet.names)
        for c, kind in enumerate(fleet.kinds)
        if split[c, i] >= 0.0005
    ]
    names = [name for name in fleet.names if any(row["type"] == name for row in rows)]
    colours = [_KIND_COLOURS[c % len(_KIND_COLOURS)] for c in range(len(fleet.kinds))]
    axis = alt.Axis(ticks=False, domain=False, labelPadding=8, labelFontSize=13, labelLimit=200)
    bars = (
        alt.Chart(pl.DataFrame(rows))
        .mark_bar(stroke="white", strokeWidth=1, height=20)
        .encode(
            alt.X("part:Q", title="part of the jobs", axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1], grid=False), stack=True),
            alt.Y("type:N", sort=names, title=None, axis=axis),
            alt.Color("kind:N", scale=alt.Scale(domain=list(fleet.kinds), range=colours), title=None, legend=alt.Legend(orient="bottom")),
            order="place:O",
            tooltip=["type:N", "kind:N", alt.Tooltip("part:Q", format=".1%")],
        )
    )
    return styled(bars, title, said or None, width=_WIDTH - 120, height=28 * max(len(names), 1))


def means_against_servers(plan: FleetPlan) -> Any:
    """E[T] against the number of servers at today's arrivals: pinned servers (exact), what is recommended (simulated), the bound."""
    table = plan.by_servers
    unit = TIME if plan.fleet.time_unit is None else plan.fleet.time_unit
    settled = table.filter(pl.col("stable") & pl.col("mean_response_time").is_not_nan())
    names = {
        "bound": "no dispatcher and no policy is below",
        "pinned": "pinned servers, exact",
        "shown": f"{plan.recommended_name}, simulated",
    }
    colours = alt.Scale(domain=list(names.values()), range=[GREY, "#D55E00", "#0072B2"])
    color = alt.Color("curve:N", scale=colours, title=None, legend=alt.Legend(orient="bottom", columns=1, symbolType="stroke"))
    sides = alt.Scale(zero=False, nice=False, padding=14)
    x = alt.X("servers:Q", title="servers, all kinds in today's proportions", scale=sides, axis=alt.Axis(format=",d", tickMinStep=1))
    y = alt.Y("value:Q", title=f"mean response time ({unit})", scale=alt.Scale(zero=False))
    layers = []
    for name, dashes in (("bound", [5, 4]), ("pinned", [1, 0])):
        rows = table.filter(pl.col(name).is_not_null()).select("servers", value=name, curve=pl.lit(names[name]))
        if len(rows):
            layers.append(alt.Chart(rows).mark_line(strokeDash=dashes, point=name == "pinned").encode(x, y, color))
    if len(settled):
        rows = settled.select(
            "servers",
            value="mean_response_time",
            low=pl.col("mean_response_time") - pl.col("interval"),
            high=pl.col("mean_response_time") + pl.col("interval"),
            curve=pl.lit(names["shown"]),
        )
        tooltip = [
            "servers:Q",
            alt.Tooltip("value:Q", format=".4~g"),
            alt.Tooltip("low:Q", format=".4~g"),
            alt.Tooltip("high:Q", format=".4~g"),
        ]
        base = alt.Chart(rows)
        layers.append(base.mark_rule(strokeWidth=2).encode(x, alt.Y("low:Q", title=None), alt.Y2("high:Q"), color))
        layers.append(base.mark_line(opacity=0.5).encode(x, y, color))
        layers.append(base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color, tooltip=tooltip))
    today = alt.Chart(pl.DataFrame({"servers": [plan.fleet.servers], "text": ["today"]}))
    layers.append(today.mark_rule(color=INK, strokeDash=[2, 3]).encode(x))
    layers.append(today.mark_text(align="left", dx=5, dy=6, fontSize=12).encode(x, y=alt.value(0), text="text:N"))
    unsettled = table.filter(~pl.col("stable"))["servers"].to_list()
    said = f"; with {', '.join(f'{n:,}' for n in unsettled)} servers the queue keeps growing" if unsettled else ""
    title = "Mean response time against the number of servers"
    return styled(alt.layer(*layers), title, f"at today's arrivals; bars: 95% confidence{said}", width=_WIDTH, height=HEIGHT)
