"""Parts of a plan's page: the page around them, tables as HTML, and the chart that shows all policies side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.report.save import PAGE_POLICY, chart_script, library_script
from rota.report.style import GREY, INK, TIME, log_axis, number, policy_colours, styled

if TYPE_CHECKING:
    from rota.study import Plan

__all__ = ["GENERATOR", "chart_place", "html_table", "means_side_by_side", "plus_minus", "policies_side_by_side", "value", "whole_page"]

GENERATOR = '<meta name="generator" content="rota plan">'  # marks a page that may be overwritten
_WIDTH = 640
_ROW = 30


def whole_page(title: str, body: str, charts: Mapping[str, Any]) -> str:
    """One file that loads nothing: the body, and the charts drawn into their places (`chart_place`)."""
    drawing = "\n".join(chart_script(chart, name) for name, chart in charts.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{PAGE_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{files("rota.report").joinpath("page.css").read_text(encoding="utf-8")}</style>
<script>{library_script()}</script>
</head>
<body>
<main>
{body}
</main>
<script>
{drawing}
</script>
</body>
</html>
"""


def chart_place(name: str) -> str:
    """Where the chart of this name is drawn."""
    return f'<div class="chart"><div id="{name}"></div></div>'


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
    best = plan.optimum.reference
    said = "" if best is None else f"; dashed: {'the best possible mean' if plan.optimum.settled else 'no mean can be below'}"
    title = f"How long jobs take at today's load, {plan.load.load:.3g}"
    return means_side_by_side(plan.table(), best, title, f"{said}. At most {plan.jobs:,} jobs each")


def means_side_by_side(table: pl.DataFrame, best: float | None, title: str, said: str) -> Any:
    """A row per policy, or what the column `policy` names, of a plan's table; a dashed line at the mean that is `best`."""
    table = table.with_columns(known=pl.col("stable") & pl.col("mean_response_time").is_not_nan())
    settled = table.filter("known").sort("mean_response_time")
    names = [*settled["policy"].to_list(), *table.filter(~pl.col("known"))["policy"].to_list()]
    # Intervals of half the mean or more are cut off: on a logarithmic axis they would squeeze everything else.
    low, high = float(np.asarray(settled["mean_response_time"].min())) / 2, float(np.asarray(settled["p99"].max())) * 1.4
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
    subtitle = f"points: mean; thick bars: 95% confidence; ticks: 99% of the jobs are faster{said}"
    return styled(alt.layer(*layers), title, subtitle, width=_WIDTH, height=(_ROW + 4) * len(names))
