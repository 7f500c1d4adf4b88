"""The pictures of each redrawn figure, from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from rota.report.against import queue_against_setup_rate, queue_against_switching_rate, response_times_against_load
from rota.report.distributions import queue_length_distribution
from rota.report.packing import schedules
from rota.report.states import process_graph
from rota.report.style import GREY, HEIGHT, INK, WIDTH, beside, log_axis, number, policy_colour, policy_colours, policy_shape, styled
from rota.study.reproduce.borg import CLOSE, OWN, PAPER, paper_table
from rota.study.reproduce.processes import example_processes
from rota.study.reproduce.vm import best_plan, printed_policy, vm_system

__all__ = ["charts_of"]

Tables = Mapping[str, pl.DataFrame]
_QUEUE = "mean queue length (types weighted by arrivals)"
_LOOKS = dict(zip(CLOSE, ("nMSR", "nMSR+hold"), strict=True))  # colours and marks of policies that the Borg picture has not
_TURN = 0.7  # from low to high load
_MARK = 4.0  # pixels that a bar must reach up or down to be seen: half of the mark on it is 3.5


def charts_of(name: str, tables: Tables) -> dict[str, Any]:
    """The charts of the figure of this name, each with the name of its files."""
    return _CHARTS[name](tables)


def _comparison(tables: Tables) -> dict[str, Any]:
    table = tables["comparison"]
    best_known = pl.when(pl.col("exact").is_finite()).then(pl.col("exact")).otherwise(pl.col("mean_response_time"))
    times = table.with_columns(mean_response_time=best_known)
    dots = (
        _dots(times, "mean_response_time", "E[T] at load 0.95 (MSR: exact)", "unstable", labels=True),
        _dots(table, "ten_types_us", "µs per event with ten types", "cannot run"),
        _dots(table, "preemptions_per_job", "preemptions per job", "none", zero=True),
    )
    return {"comparison": beside(*dots, title="Policies compared: stable at load 0.95, quick, preempting?")}


def _dots(table: pl.DataFrame, column: str, title: str, nothing: str, *, zero: bool = False, labels: bool = False) -> Any:
    """A dot per policy with its number; what has none says why. Dots, because a logarithmic axis has no zero for a bar to start at."""
    known = pl.col(column).is_finite() & (pl.col(column) > 0)
    data = table.select(
        "policy",
        value=pl.when(known).then(pl.col(column)),
        text=pl.when(known).then(pl.col(column).map_elements(number, return_dtype=pl.String)).otherwise(pl.lit(nothing)),
    )
    names = table["policy"].to_list()
    least, most = (float(x or 1.0) for x in (data["value"].min(), data["value"].max()))  # type: ignore[arg-type]
    low = 0.0 if zero else least / 2
    if zero:
        axis, scale = alt.Axis(grid=False, tickCount=4, format="~g"), alt.Scale(domain=[0, 1.35 * most], nice=False)
    else:
        axis, scale = (
            alt.Axis(grid=False, values=_tens(low, 6 * most), format=",~g"),
            alt.Scale(type="log", domain=[low, 6 * most], nice=False),
        )
    # Lines from one name to the dots of all three panels.
    y_axis = alt.Axis(ticks=False, domain=False, labels=labels, labelLimit=160, labelPadding=8, grid=True)
    y = alt.Y("policy:N", sort=names, title=None, axis=y_axis)
    base = alt.Chart(data.with_columns(place=pl.col("value").fill_null(low)))
    x = alt.X("place:Q", title=title, scale=scale, axis=axis)
    dots = base.transform_filter("isValid(datum.value)").mark_point(filled=True, size=90, opacity=1)
    # The lines run behind the numbers too: a white rim keeps these readable.
    words = base.mark_text(align="left", dx=9).encode(
        x, y, text="text:N", color=alt.condition("isValid(datum.value)", alt.value(INK), alt.value(GREY))
    )
    rim = base.mark_text(align="left", dx=9, stroke="white", strokeWidth=5).encode(x, y, text="text:N")
    coloured = dots.encode(x, y, alt.Color("policy:N", scale=policy_colours(names), legend=None))
    return styled((rim + coloured + words).properties(width=180, height=26 * len(names)))


def _tens(low: float, high: float) -> list[float]:
    """The powers of ten in a range."""
    return [10.0**power for power in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1)]


def _queues(tables: Tables) -> dict[str, Any]:
    laws = tables["laws"]
    least = float(laws.filter(pl.col("probability") > 0)["probability"].min())  # type: ignore[arg-type]
    title = "Each type's queue: decoupled (exact) and in one central queue"
    chart = queue_length_distribution(laws, floor=max(least / 1.2, 1e-4), title=title)
    counted = int(laws["jobs"].max())  # type: ignore[arg-type]
    return {
        "queues": chart.properties(
            title=alt.TitleParams(title, subtitle=f"lines: exact; points: the first {counted:,} jobs of a simulation")
        )
    }


def _switching(tables: Tables) -> dict[str, Any]:
    best = float(tables["rates"].filter(pl.col("yardstick") == "exact")["switching_rate"][0])
    return {
        "pmsr": queue_against_switching_rate(tables["pmsr"], title="pMSR at load 0.9: the faster, the better", y_title=_QUEUE),
        "nmsr": queue_against_switching_rate(tables["nmsr"], best, title="nMSR at load 0.9: neither too slow nor too fast", y_title=_QUEUE),
    }


def _setup(tables: Tables) -> dict[str, Any]:
    even = float(tables["break_even"]["break_even"][0])
    title = "sMSR at load 0.9: from γ* on preempting beats waiting"
    return {"setup": queue_against_setup_rate(tables["setup"], even, title=title, y_title=_QUEUE)}


def _load(tables: Tables) -> dict[str, Any]:
    table = tables["load"]
    others = table.filter(~pl.col("policy").is_in(["pMSR", "nMSR"]))
    pmsr, nmsr = (pl.concat([table.filter(pl.col("policy") == name), others]) for name in ("pMSR", "nMSR"))
    return {
        "pmsr": _against_load(pmsr, "pMSR and the others"),
        "nmsr-low": _against_load(nmsr.filter(pl.col("load") <= _TURN), "nMSR at low loads"),
        "nmsr-high": _against_load(nmsr.filter(pl.col("load") >= _TURN), "nMSR at high loads"),
    }


def _against_load(table: pl.DataFrame, title: str) -> Any:
    data = table.drop("mean_response_time").rename({"mean_queue_length": "mean_response_time"})  # the column that the chart draws
    chart = _with_y(response_times_against_load(data, title=title), _QUEUE)
    words = chart.title["subtitle"].replace("bars: 95% confidence", _intervals(chart, table))
    return chart.properties(title=alt.TitleParams(title, subtitle=words))


def _with_y(chart: Any, title: str) -> Any:
    """The chart with another name on its y-axis."""
    for layer in chart.layer:
        y = layer.encoding.y
        if isinstance(y, alt.Y):
            layer.encoding.y = y.copy()
            layer.encoding.y["title"] = title
    return chart


def _intervals(chart: Any, table: pl.DataFrame) -> str:
    """What can be seen of the intervals: after many jobs a mark hides its bar."""
    low, high = next(layer.encoding.y["scale"]["domain"] for layer in chart.layer if isinstance(layer.encoding.y, alt.Y))
    known = table.filter(pl.col("mean_queue_length").is_finite() & pl.col("interval").is_finite())
    value, half = known["mean_queue_length"].to_numpy(), known["interval"].to_numpy()
    reach = HEIGHT * np.log(value / np.maximum(value - half, low)) / np.log(high / low)  # down, which is further than up
    return "95 % intervals are no wider than the marks" if (reach < _MARK).all() else "bars: 95 % intervals, where wider than the marks"


def _borg(tables: Tables) -> dict[str, Any]:
    ours = tables["borg"].filter(pl.col("policy").is_in([*PAPER, *OWN]))
    paper = paper_table().rename({"paper": "mean_response_time"})
    seen = pl.concat([ours["mean_response_time"], paper["mean_response_time"], ours["least"], ours["most"]]).drop_nulls()
    span = float(seen.min()) / 1.3, float(seen.max()) * 1.3  # type: ignore[arg-type]
    last = ours.drop_nulls("mean_response_time").sort("load").group_by("policy").agg(pl.col("mean_response_time").last())
    names = last.sort("mean_response_time", descending=True)["policy"].to_list()
    names += [name for name in PAPER if name not in names]
    months = int(ours["months"].max() or 0)  # type: ignore[arg-type]
    words = f"lines: one month; shaded: from the least to the most of {months} months" if months > 1 else None
    if words and (alone := ours.filter(pl.col("months") == 1)["policy"].unique(maintain_order=True).to_list()):
        words += f" ({', '.join(alone)}: one)"
    panels = (_panel(ours, names, span, "Redrawn", words), _panel(paper, names, span, "The paper's numbers"))
    return {"borg": styled(alt.vconcat(*panels, spacing=28))}


def _panel(data: pl.DataFrame, names: list[str], span: tuple[float, float], title: str, words: str | None = None) -> Any:
    """Response times in seconds against load. All panels have these `names`, so that one legend does for them."""
    x = alt.X(
        "load:Q", title="nominal load ρ", scale=alt.Scale(zero=False, nice=False, padding=12), axis=alt.Axis(format=".2~f", tickCount=8)
    )
    looks = [_LOOKS.get(name, name) for name in names]
    colours = alt.Scale(domain=names, range=[policy_colour(name) for name in looks])
    color = alt.Color("policy:N", scale=colours, title=None, legend=alt.Legend(symbolOpacity=1))
    rim = alt.Stroke("policy:N", scale=colours, legend=None)
    shape = alt.Shape("policy:N", scale=alt.Scale(domain=names, range=[policy_shape(name) for name in looks]), title=None)

    def y(field: str) -> Any:
        return log_axis(alt.Y, field, "mean response time E[T] (s)", *span)

    base = alt.Chart(data)
    known = base.transform_filter("isValid(datum.mean_response_time)")
    lines = known.mark_line().encode(x, y("mean_response_time"), color)
    points = known.mark_point(filled=True, size=48, opacity=1).encode(x, y("mean_response_time"), color, shape)
    layers = [lines, points]
    if words is not None:
        bands = base.transform_filter("datum.months > 1").mark_area(fillOpacity=0.1, strokeOpacity=0.4, strokeWidth=1)
        layers.insert(0, bands.encode(x, y("least"), alt.Y2("most:Q"), color, rim))
    named = alt.TitleParams(title, subtitle=words) if words else alt.TitleParams(title)
    return alt.layer(*layers).properties(title=named, width=WIDTH, height=HEIGHT)


def _processes(tables: Tables) -> dict[str, Any]:
    return {
        name.lower(): process_graph(process, title=f"The modulating process of the {name}") for name, process in example_processes().items()
    }


def _vm(tables: Tables) -> dict[str, Any]:
    system = vm_system()
    return {
        "rota": schedules(best_plan(), system, title="Rota's candidates: load 0.655"),
        "paper": schedules(printed_policy(), system, title="The paper's candidates: load 0.655"),
    }


_CHARTS = {
    "comparison": _comparison,
    "queues": _queues,
    "switching-rate": _switching,
    "setup-rate": _setup,
    "load": _load,
    "borg": _borg,
    "processes": _processes,
    "vm": _vm,
}
