"""Curves against a parameter: E[T] against the load, E[Q] against the switching rate or the setup rate.

A table has a row per point: where it is (`load`, `switching_rate` or `setup_rate`), its value (`mean_response_time` or
`mean_queue_length`), and, where known, `interval` (95 % half-width), `lower` and `upper` bounds and the `prediction`. What is
not known is missing or not a number. A point that is not `stable` has no value; the chart says that it is unstable there.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from rota.errors import BadSpec, Problem
from rota.report.style import (
    GREY,
    HEIGHT,
    INK,
    TIME,
    WIDTH,
    log_axis,
    number,
    policy_colour,
    policy_colours,
    policy_shapes,
    styled,
    type_colours,
)

__all__ = [
    "queue_against_setup_rate",
    "queue_against_switching_rate",
    "response_times_against_load",
]

_FEW = 15  # points of a line, up to which each is marked
_OPTIONAL = ("interval", "lower", "upper", "prediction")


# ---------------------------------------------------------------------------------------------------------------- charts


def response_times_against_load(table: pl.DataFrame, *, title: str = "Mean response time against load") -> Any:
    """E[T] against the load, a line per policy: columns `policy`, `load`, `mean_response_time` and those that all tables may have."""
    data = _prepared(table, "load", "mean_response_time", "policy")
    names = _by_last_value(data)
    x = alt.X("x:Q", title="system load ρ", scale=alt.Scale(zero=False, nice=False, padding=12), axis=alt.Axis(format=".2~f", tickCount=8))
    colour, shape = ("policy:N", policy_colours(names)), ("policy:N", policy_shapes(names))
    return _curves(data, x, f"mean response time E[T] ({TIME})", colour, shape, title)


def queue_against_switching_rate(
    table: pl.DataFrame, best: float | None = None, *, title: str = "Mean queue length against switching rate", y_title: str | None = None
) -> Any:
    """E[Q] against α: columns `switching_rate`, `mean_queue_length`; `best` is α*. With a column `policy` or `type`, a line for each."""
    name = "switching rate α (switches per unit of working time)"
    return _against_rate(table, "switching_rate", name, None if best is None else (best, "α*"), title, y_title)


def queue_against_setup_rate(
    table: pl.DataFrame, best: float | None = None, *, title: str = "Mean queue length against setup rate", y_title: str | None = None
) -> Any:
    """E[Q] against γ: columns `setup_rate`, `mean_queue_length`; `best` is a rate to mark, as that at which setups begin to pay."""
    name = "setup rate γ (setups per unit of time)"
    return _against_rate(table, "setup_rate", name, None if best is None else (best, "γ*"), title, y_title)


def _against_rate(table: pl.DataFrame, x: str, x_title: str, best: tuple[float, str] | None, title: str, y_title: str | None) -> Any:
    by = "policy" if "policy" in table.columns else "type" if "type" in table.columns else None
    if by is None:
        by, table = "policy", table.with_columns(policy=pl.lit("MSR"))
    data = _prepared(table, x, "mean_queue_length", by)
    names = data[by].unique(maintain_order=True).to_list()
    if by == "type":
        colours, shapes = type_colours(names), alt.Scale(domain=names, range=["circle"])
    elif names == ["MSR"]:
        colours, shapes = alt.Scale(domain=names, range=[policy_colour("pMSR")]), alt.Scale(domain=names, range=["circle"])
    else:
        colours, shapes = policy_colours(names), policy_shapes(names)
    low, high = float(np.asarray(data["x"].min())), float(np.asarray(data["x"].max()))
    channel = log_axis(alt.X, "x", x_title, low / 1.05, high * 1.05)
    y_title = y_title or "mean number of jobs in the system E[Q]"
    return _curves(data, channel, y_title, (f"{by}:N", colours), (f"{by}:N", shapes), title, best, names != ["MSR"], True)


def _curves(
    data: pl.DataFrame,
    x: Any,
    y_title: str,
    colour: tuple[str, Any],
    shape: tuple[str, Any],
    title: str,
    best: tuple[float, str] | None = None,
    legend: bool = True,
    by_rate: bool = False,
) -> Any:
    """The layers that all curves have in common, from the back to the front."""
    low, high = _span(data)

    def y(field: str = "y") -> Any:
        return log_axis(alt.Y, field, y_title, low, high)

    color = alt.Color(colour[0], scale=colour[1], title=None, legend=alt.Legend(symbolOpacity=1) if legend else None)
    base = alt.Chart(data)
    layers, words = [], []
    if _known(data, "lower") and _known(data, "upper"):
        bounds = base.transform_filter("isValid(datum.upper) && isValid(datum.lower)").transform_calculate(
            floor=f"max(datum.lower, {low})", ceiling=f"min(datum.upper, {high})"
        )
        layers.append(bounds.mark_area(opacity=0.16, clip=True).encode(x, y("floor"), alt.Y2("ceiling:Q"), color))
        words.append("shaded: between the bounds")
    solid = base.transform_filter("isValid(datum.y)")
    layers.append(solid.mark_line(clip=True).encode(x, y(), color))
    if _known(data, "prediction"):
        line = base.transform_filter("isValid(datum.prediction)").mark_line(strokeDash=[5, 5], strokeWidth=1.75, clip=True)
        layers.append(line.encode(x, y("prediction"), color if legend else alt.ColorValue(INK)))
        words.append("dashed: prediction")
    form = alt.Shape(shape[0], scale=shape[1], title=None, legend=alt.Legend() if legend else None)
    if _known(data, "interval"):
        bars = solid.transform_filter("isValid(datum.interval)").transform_calculate(
            floor=f"max(datum.y - datum.interval, {low})", ceiling=f"min(datum.y + datum.interval, {high})"
        )
        layers.append(bars.mark_rule(strokeWidth=1.75).encode(x, y("floor"), alt.Y2("ceiling:Q"), color))
        words.append("bars: 95% confidence")
    if _known(data, "interval") or len(data) <= _FEW * data[data.columns[0]].n_unique():
        layers.append(solid.mark_point(filled=True, size=48, opacity=1, clip=True).encode(x, y(), color, form, tooltip=_tooltip(data)))
    if best is not None:
        layers += _marked(best, x, data)
    if (ranges := _unstable_ranges(data)) is not None and by_rate:
        layers = [*_unstable_bands(ranges, x), *layers]
    elif not by_rate and (arrows := _first_unstable(data, high / low, high)) is not None:
        layers.append(alt.Chart(arrows).mark_text(text="↑", fontSize=17, fontWeight="bold").encode(x, y(), color, tooltip=_tooltip(data)))
        words.append("↑: from here on the queue keeps growing")
    return styled(alt.layer(*layers), title, "; ".join(words) or None, width=WIDTH, height=HEIGHT)


def _marked(best: tuple[float, str], x: Any, data: pl.DataFrame) -> list[Any]:
    """A line at the best rate, with its name at the foot, where U-shaped curves leave space."""
    at = alt.Chart(pl.DataFrame({"x": [best[0]], "text": [f"{best[1]} = {number(best[0])}"]}))
    middle = float(np.sqrt(np.asarray(data["x"].min()) * np.asarray(data["x"].max())))
    left = best[0] > middle
    rule = at.mark_rule(color=INK, strokeWidth=1.25, strokeDash=[2, 3]).encode(x)
    text = at.mark_text(align="right" if left else "left", baseline="bottom", dx=-6 if left else 6, dy=-6, color=INK)
    return [rule, text.encode(x, y=alt.value(HEIGHT), text="text:N")]


def _unstable_bands(ranges: pl.DataFrame, x: Any) -> list[Any]:
    """Grey where nothing is stable."""
    base = alt.Chart(ranges)
    band = base.mark_rect(color="#f3f3f3", clip=True).encode(x, alt.X2("end"))
    text = base.mark_text(baseline="top", dy=6, color=GREY).encode(
        alt.X("middle:Q", title=x["title"], scale=x["scale"], axis=x["axis"]), y=alt.value(0), text=alt.value("unstable")
    )
    return [band, text]


# ---------------------------------------------------------------------------------------------------- from a table to what is drawn


def _prepared(table: pl.DataFrame, x: str, y: str, by: str) -> pl.DataFrame:
    """The columns of one kind of curve as x, y, series and what else is known; numbers that are not finite are missing."""
    problems = [Problem(name, "is a column that the table needs", list(table.columns)) for name in (x, y, by) if name not in table.columns]
    if problems or not len(table):
        raise BadSpec(problems or [Problem("table", "must have at least one row")])
    more = [pl.col(name).cast(pl.Float64) if name in table.columns else pl.lit(None, pl.Float64).alias(name) for name in _OPTIONAL]
    data = table.select(pl.col(by), pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y"), *more)
    finite = [pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in ("y", *_OPTIONAL)]
    data = data.with_columns(finite)
    stable = table["stable"] if "stable" in table.columns else pl.Series([True] * len(table))
    return data.with_columns(stable=stable.fill_null(True)).sort("x", maintain_order=True)


def _by_last_value(data: pl.DataFrame) -> list[str]:
    """Policies in the order in which their lines end, from the top, so that the legend reads like the picture; the early ends first."""
    last = data.filter(pl.col("y").is_not_null()).group_by("policy", maintain_order=True).agg(pl.col("x").last(), pl.col("y").last())
    ordered = last.sort(["x", "y"], descending=[False, True], maintain_order=True)["policy"].to_list()
    never = [name for name in data["policy"].unique(maintain_order=True) if name not in ordered]
    return never + ordered


def _span(data: pl.DataFrame) -> tuple[float, float]:
    """The range of y: all values and predictions, and bounds unless they would squeeze these into a corner."""
    values = np.concatenate([data[name].drop_nulls().to_numpy() for name in ("y", "prediction")])
    values = values[values > 0]
    if not len(values):
        return 1.0, 10.0
    low, high = float(values.min()), float(values.max())
    margin = max((high / low) ** 0.15, 1.15)
    upper = data["upper"].drop_nulls().to_numpy()
    lower = data["lower"].drop_nulls().to_numpy()
    lower = lower[lower > 0]
    high = min(max(high, float(upper.max())), high * margin**2) if len(upper) else high
    low = max(min(low, float(lower.min())), low / margin**2) if len(lower) else low
    return low / margin**0.5, high * margin


def _first_unstable(data: pl.DataFrame, ratio: float, high: float) -> pl.DataFrame | None:
    """For each policy, an arrow at the upper edge where it first becomes unstable; one below the other where several do."""
    rows = data.filter(~pl.col("stable") & pl.col("y").is_null()).unique("policy", keep="first", maintain_order=True)
    return rows.with_columns(y=high / ratio ** (0.03 + 0.05 * pl.int_range(pl.len()).over("x"))) if len(rows) else None


def _unstable_ranges(data: pl.DataFrame) -> pl.DataFrame | None:
    """Runs of rates at which nothing is stable: from half way to the last stable one to half way to the next."""
    rates = data.group_by("x", maintain_order=True).agg(stable=pl.col("stable").any())
    x, stable = rates["x"].to_numpy(), rates["stable"].to_numpy()
    edges = np.concatenate([[x[0] / 1.05], np.sqrt(x[:-1] * x[1:]), [x[-1] * 1.05]])
    ranges = [(edges[k], edges[k + 1]) for k in np.flatnonzero(~stable)]
    joined: list[tuple[float, float]] = []
    for begin, end in ranges:
        joined = [*joined[:-1], (joined[-1][0], end)] if joined and joined[-1][1] == begin else [*joined, (begin, end)]
    if not joined:
        return None
    return pl.DataFrame(joined, schema=["x", "end"], orient="row").with_columns(middle=(pl.col("x") * pl.col("end")).sqrt())


def _known(data: pl.DataFrame, name: str) -> bool:
    return data[name].null_count() < len(data)


def _tooltip(data: pl.DataFrame) -> list[Any]:
    known = [name for name in _OPTIONAL if _known(data, name)]
    return [alt.Tooltip(f"{data.columns[0]}:N"), *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("x", "y", *known))]
