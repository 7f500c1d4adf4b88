"""Parts of the plan's page: tables as HTML, and the chart that shows all policies side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.report.style import GREY, INK, TIME, log_axis, number, policy_colours, styled

if TYPE_CHECKING:
    from rota.study import Plan

__all__ = ["html_table", "plus_minus", "policies_side_by_side", "value"]

_WIDTH = 640
_ROW = 30


def value(x: float | None, digits: int = 3) -> str:
    """A number for people, or a dash."""
    return number(float(x), digits) if x is not None and np.isfinite(x) else "–"


def plus_minus(x: float | None) -> str:
    """The half-width of an interval, set back a little."""
    return f'<span class="pm">± {value(x, 2)}</span>' if x is not None and np.isfinite(x) else ""


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = (0,), chosen: int | None = None) -> str:
    """A table. Cells are HTML already; columns are aligned right except those listed in `left`; `chosen` is a row to highlight."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f'<{tag} class="left">{cell}</{tag}>' if j in left else f"<{tag}>{cell}</{tag}>" for j, cell in enumerate(row))

    marks = {chosen: ' class="chosen"'}
    body = "\n".join(f"<tr{marks.get(k, '')}>{cells('td', row)}</tr>" for k, row in enumerate(rows))
    title = cells("th", [escape(name) for name in head])
    return f'<div class="scroll"><table><thead><tr>{title}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def policies_side_by_side(plan: Plan) -> Any:
    """Mean response time of every policy at the system's own load, with its interval, and how long the slowest 1 % of the jobs take."""
    table = plan.table().with_columns(known=pl.col("stable") & pl.col("mean_response_time").is_not_nan())
    settled = table.filter("known").sort("mean_response_time")
    names = [*settled["policy"].to_list(), *table.filter(~pl.col("known"))["policy"].to_list()]
    # Intervals of half the mean or more are cut off: on a logarithmic axis they would squeeze everything else.
    low, high = float(np.asarray(settled["mean_response_time"].min())) / 2, float(np.asarray(settled["p99"].max())) * 1.4
    best = plan.optimum.reference
    low = low if best is None else min(low, 0.9 * best)
    data = table.with_columns(
        floor=pl.max_horizontal(pl.col("mean_response_time") - pl.col("interval"), pl.lit(low)),
        ceiling=pl.min_horizontal(pl.col("mean_response_time") + pl.col("interval"), pl.lit(high)),
        text=pl.when("known")
        .then(pl.col("mean_response_time").map_elements(value, return_dtype=pl.String))
        .otherwise(pl.when("stable").then(pl.lit("too few jobs of a type for a mean")).otherwise(pl.lit("the queue keeps growing"))),
    ).select("policy", "known", "recommended", "mean_response_time", "floor", "ceiling", "p99", "text")
    axis = alt.Axis(ticks=False, domain=False, labelPadding=8, labelFontSize=13, labelLimit=200)
    y = alt.Y("policy:N", sort=names, title=None, axis=axis)
    color = alt.Color("policy:N", scale=policy_colours(names), legend=None)

    def x(field: str) -> Any:
        return log_axis(alt.X, field, f"response time ({TIME}; logarithmic)", low, high)

    tooltip = ["policy:N", alt.Tooltip("mean_response_time:Q", format=".4~g"), alt.Tooltip("p99:Q", format=".4~g")]
    good = alt.Chart(data.filter("known"))
    tail = good.mark_rule(strokeWidth=2, opacity=0.35).encode(x("mean_response_time"), alt.X2("p99:Q"), y, color)
    slowest = good.mark_tick(thickness=2.5, size=14).encode(x("p99"), y, color, tooltip=tooltip)
    width = good.mark_rule(strokeWidth=6, opacity=0.45).encode(x("floor"), alt.X2("ceiling:Q"), y, color)
    mean = good.mark_point(filled=True, size=110, opacity=1).encode(x("mean_response_time"), y, color, tooltip=tooltip)
    text = good.mark_text(dy=-11, fontSize=12, color=INK).encode(x("mean_response_time"), y, text="text:N")
    layers = [tail, slowest, width, mean, text]
    lost = data.filter(~pl.col("known"))
    if len(lost):
        words = alt.Chart(lost).mark_text(align="left", fontSize=12, color=GREY, dx=4)
        layers.append(words.encode(y, x=alt.value(0), text="text:N"))
    if best is not None:
        line = alt.Chart(pl.DataFrame({"best": [best]})).mark_rule(color=GREY, strokeDash=[5, 4])
        layers.insert(0, line.encode(x("best")))
    said = "" if best is None else f"; dashed: {'the best possible mean' if plan.optimum.settled else 'no mean can be below'}"
    subtitle = f"points: mean; thick bars: 95% confidence; ticks: 99% of the jobs are faster{said}. At most {plan.jobs:,} jobs each"
    title = f"How long jobs take at today's load, {plan.load.load:.3g}"
    return styled(alt.layer(*layers), title, subtitle, width=_WIDTH, height=(_ROW + 4) * len(names))
