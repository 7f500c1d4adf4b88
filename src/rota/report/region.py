"""The capacity region of two job types: which arrival rates a server can serve.

A schedule u serves type i at the rate μ_i u_i; running several, each part of the time, serves any mix of them. So the region is the convex
hull of the points μ⊙u over all schedules, and everything below. The load ρ says how far out the arrivals λ lie: λ/ρ is on the edge.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.errors import BadSpec, Problem
from rota.report.style import INK, number, policy_colour, styled

if TYPE_CHECKING:
    from rota.arrays import Array
    from rota.model import System

__all__ = ["capacity_region", "region_corners", "region_points"]

_SIZE = 400
_MANY = 1500  # schedules beyond which only maximal ones are drawn
_LIMIT = 1_000_000
BLUE, RED = policy_colour("pMSR"), policy_colour("nMSR")


def capacity_region(system: System, types: tuple[str, str] | None = None, *, title: str = "Capacity region") -> Any:
    """The region, the schedules as points, the arrivals and the same mix on the edge. `types`: two of many; the others do not arrive."""
    pair = _pair(system, types)
    corners, points = region_corners(pair), region_points(pair)
    first, second = pair.names
    edge = _edge(corners, pair.arrival_rate)
    high = np.maximum(corners.max(axis=0), pair.arrival_rate) * 1.06

    def axes(x: str = "x", y: str = "y") -> tuple[Any, Any]:
        scales = [alt.Scale(domain=[0, float(top)], nice=False, zero=True) for top in high]
        name = "arrival rate of {} (jobs per unit of time)"
        return (
            alt.X(f"{x}:Q", title=name.format(first), scale=scales[0]),
            alt.Y(f"{y}:Q", title=name.format(second), scale=scales[1]),
        )

    outline = pl.DataFrame({"x": corners[:, 0], "y": corners[:, 1], "order": np.arange(len(corners))})
    area = alt.Chart(outline).mark_area(color=BLUE, opacity=0.13).encode(*axes())
    line = alt.Chart(outline).mark_line(color=BLUE, strokeWidth=2).encode(*axes(), order="order:Q")
    dots = (
        alt.Chart(points)
        .mark_circle(color=BLUE, opacity=0.75)
        .encode(
            *axes(),
            size=alt.Size("maximal:O", scale=alt.Scale(domain=[True, False], range=[42, 14]), legend=None),
            tooltip=["schedule:N", "maximal:N"],
        )
    )
    layers = [area, line, dots]
    words = ["dots: schedules (large: maximal)"]
    if edge is not None:
        lam = pair.arrival_rate
        load = float(np.linalg.norm(lam) / np.linalg.norm(edge))
        ends = pl.DataFrame({"x": [0.0], "y": [0.0], "x2": [max(lam[0], edge[0])], "y2": [max(lam[1], edge[1])]})
        layers.append(
            alt.Chart(ends).mark_rule(color=INK, strokeDash=[4, 4], strokeWidth=1.25).encode(*axes(), alt.X2("x2:Q"), alt.Y2("y2:Q"))
        )
        named = pl.DataFrame({"x": [lam[0], edge[0]], "y": [lam[1], edge[1]], "text": [f"λ (load {number(load)})", "λ/ρ"]})
        layers.append(
            alt.Chart(named).mark_point(filled=True, size=90, color=RED, opacity=1).encode(*axes(), tooltip=["text:N", "x:Q", "y:Q"])
        )
        halo = alt.Chart(named).mark_text(align="left", dx=9, dy=9, fontSize=13, stroke="white", strokeWidth=4, strokeJoin="round")
        text = alt.Chart(named).mark_text(align="left", dx=9, dy=9, fontSize=13, color=RED)
        layers += [halo.encode(*axes(), text="text:N"), text.encode(*axes(), text="text:N")]
        words.append("λ: arrivals, λ/ρ: the same mix on the edge")
    return styled(alt.layer(*layers), title, ["shaded: arrival rates that can be served", "; ".join(words)], width=_SIZE, height=_SIZE)


def region_corners(system: System) -> Array:
    """The corners of the region in the order of the first rate: from (0, most of type 2) to (most of type 1, 0), along the edge."""
    from rota.capacity import list_schedules

    points = np.unique(list_schedules(_pair(system, None), maximal=True, limit=_LIMIT) * system.service_rate, axis=0)
    # Below every schedule are those with fewer jobs: the ends of the edge lie on the axes.
    points = np.vstack([[0.0, points[:, 1].max()], points, [points[:, 0].max(), 0.0]])
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    edge: list[Array] = []
    for point in points:
        while len(edge) >= 2 and _turn(edge[-2], edge[-1], point) >= 0:
            edge.pop()
        edge.append(point)
    corners = np.array(edge)
    keep = np.append(True, (np.abs(np.diff(corners, axis=0)) > 0).any(axis=1))
    return np.asarray(corners[keep], dtype=np.float64)


def region_points(system: System) -> pl.DataFrame:
    """The schedules as points (`x`, `y`: the rates they serve), and whether each is maximal; only maximal ones if there are too many."""
    from rota.capacity import is_maximal, list_schedules
    from rota.errors import TooManySchedules

    try:
        found = list_schedules(system, limit=_MANY)
    except TooManySchedules:
        found = list_schedules(system, maximal=True, limit=_LIMIT)
    served = found * system.service_rate
    names = [f"({int(a)}, {int(b)})" for a, b in found]
    return pl.DataFrame({"x": served[:, 0], "y": served[:, 1], "schedule": names, "maximal": np.asarray(is_maximal(system, found))})


def _turn(a: Array, b: Array, c: Array) -> float:
    """Positive if a → b → c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _edge(corners: Array, arrivals: Array) -> Array | None:
    """Where the way from 0 through the arrivals leaves the region."""
    if not arrivals.any():
        return None
    best = np.inf
    for (x0, y0), (x1, y1) in pairwise(corners):
        a, b = y0 - y1, x1 - x0  # the edge is a x + b y = c, with a, b ≥ 0
        c = a * x0 + b * y0
        reach = a * arrivals[0] + b * arrivals[1]
        if reach > 0:
            best = min(best, c / reach)
    return np.asarray(best * arrivals)


def _pair(system: System, types: tuple[str, str] | None) -> System:
    from rota.model import System

    if types is None:
        if len(system.names) != 2:
            raise BadSpec([Problem("types", "must name two of the job types", list(system.names))])
        return system
    unknown = [name for name in types if name not in system.names]
    if unknown or len(set(types)) != 2:
        raise BadSpec([Problem("types", f"must name two of {', '.join(system.names)}", list(types))])
    i = [system.names.index(name) for name in types]
    return System(
        capacity=system.capacity,
        demand=system.demand[i],
        arrival_rate=system.arrival_rate[i],
        service_rate=system.service_rate[i],
        names=types,
        resources=system.resources,
    )
