"""The pictures of each redrawn figure, from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from rota.report.against import queue_against_setup_rate, queue_against_switching_rate, response_times_against_load
from rota.report.distributions import queue_length_distribution
from rota.report.packing import schedules
from rota.report.states import process_graph
from rota.report.style import GREY, INK, beside, number, policy_colours, styled
from rota.study.reproduce.borg import PAPER, paper_table
from rota.study.reproduce.processes import example_processes
from rota.study.reproduce.vm import best_plan, printed_policy, vm_system

__all__ = ["charts_of"]

Tables = Mapping[str, pl.DataFrame]
_QUEUE = "mean queue length (types weighted by arrivals)"
_TURN = 0.7  # from low to high load


def charts_of(name: str, tables: Tables) -> dict[str, Any]:
    """The charts of the figure of this name, each with the name of its files."""
    return _CHARTS[name](tables)


def _comparison(tables: Tables) -> dict[str, Any]:
    table = tables["comparison"]
    best_known = pl.when(pl.col("exact").is_finite()).then(pl.col("exact")).otherwise(pl.col("mean_response_time"))
    times = _bars(table.with_columns(mean_response_time=best_known), "mean_response_time", "E[T] at load 0.95 (MSR: exact)", "unstable")
    costs = _bars(table, "ten_types_us", "µs per event with ten types", "cannot run")
    stops = _bars(table, "preemptions_per_job", "preemptions per job", "none", zero=True)
    title = "Policies compared: stable at load 0.95, quick, preempting?"
    return {"comparison": beside(times, costs, stops, title=title)}


def _bars(table: pl.DataFrame, column: str, title: str, nothing: str, *, zero: bool = False) -> Any:
    """A bar per policy with its number; what has none says why."""
    known = pl.col(column).is_finite() & (pl.col(column) > 0)
    data = table.select(
        "policy",
        value=pl.when(known).then(pl.col(column)),
        text=pl.when(known).then(pl.col(column).map_elements(number, return_dtype=pl.String)).otherwise(pl.lit(nothing)),
    )
    names = table["policy"].to_list()
    least, most = (float(x or 1.0) for x in (data["value"].min(), data["value"].max()))  # type: ignore[arg-type]
    scale = alt.Scale(domain=[0, 1.35 * most], nice=False) if zero else alt.Scale(type="log", domain=[least / 2, 4 * most], nice=False)
    low = 0.0 if zero else least / 2
    y = alt.Y("policy:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=160))
    base = alt.Chart(data.with_columns(floor=pl.lit(low), place=pl.col("value").fill_null(low)))
    x = alt.X("place:Q", title=title, scale=scale, axis=alt.Axis(grid=False, tickCount=4, format="~g"))
    bars = base.mark_bar(height=16).encode(x, alt.X2("floor"), y, alt.Color("policy:N", scale=policy_colours(names), legend=None))
    words = base.mark_text(align="left", dx=5).encode(
        x, y, text="text:N", color=alt.condition("isValid(datum.value)", alt.value(INK), alt.value(GREY))
    )
    return styled((bars + words).properties(width=210, height=26 * len(names)))


def _queues(tables: Tables) -> dict[str, Any]:
    return {
        "queues": queue_length_distribution(
            tables["laws"], floor=1e-4, title="Each type's queue: decoupled (exact) and in one central queue"
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
    return _with_y(response_times_against_load(data, title=title), _QUEUE)


def _with_y(chart: Any, title: str, domain: list[float] | None = None) -> Any:
    """The chart with another name on its y-axis, and another range."""
    for layer in chart.layer:
        y = layer.encoding.y
        if isinstance(y, alt.Y):
            scale = y["scale"].copy() if domain is None else alt.Scale(type="log", domain=domain, nice=False)
            layer.encoding.y = y.copy()
            layer.encoding.y["title"] = title
            layer.encoding.y["scale"] = scale
    return chart


def _borg(tables: Tables) -> dict[str, Any]:
    ours = tables["borg"].filter(pl.col("policy").is_in(list(PAPER))).select("policy", "load", "mean_response_time")
    both = [ours, paper_table().rename({"paper": "mean_response_time"})]
    values = pl.concat(both)["mean_response_time"].drop_nulls()
    domain = [float(values.min()) / 1.3, float(values.max()) * 1.5]  # type: ignore[arg-type]
    unit = "mean response time E[T] (s)"
    charts = [
        _with_y(response_times_against_load(data, title=title), unit, domain)
        for data, title in zip(both, ("Redrawn", "The paper's numbers"), strict=True)
    ]
    return {"borg": beside(*charts)}


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
