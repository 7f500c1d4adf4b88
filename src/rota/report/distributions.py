"""Whole distributions: queue lengths, exact against simulated, and how many jobs wait longer than x.

A `Result` keeps five quantiles of the response times. Where it also has a log of its jobs (`log_jobs`), the distribution is counted from
that: the tail, point by point, and the time spent at each queue length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.errors import BadSpec, Problem
from rota.report.style import HEIGHT, TIME, WIDTH, log_axis, policy_colours, policy_shapes, styled, type_colours

if TYPE_CHECKING:
    from rota.analysis import Analysis
    from rota.arrays import Array
    from rota.simulation import Result

__all__ = ["ccdf_table", "queue_length_distribution", "queue_length_table", "response_time_ccdf", "simulated_queue_lengths"]

_POINTS = 80  # of a tail that was counted
_MOST = 400  # queue lengths in a table, per type


# ---------------------------------------------------------------------------------------------------------------- queue lengths


def queue_length_distribution(table: pl.DataFrame, *, floor: float = 1e-6, title: str = "How many jobs are in the system") -> Any:
    """P(Q_i = q) on a logarithmic axis down to `floor`: lines are exact, points simulated.

    Columns: `type`, `queue_length`, `probability`, `source` ("exact" or "simulated"), as `queue_length_table` gives them.
    """
    _require(table, ("type", "queue_length", "probability", "source"))
    names = table["type"].unique(maintain_order=True).to_list()
    data = table.filter(pl.col("probability") >= floor).sort("queue_length", maintain_order=True)
    if not len(data):
        raise BadSpec([Problem("table", f"has no probability of at least {floor:g}")])
    top = float(np.asarray(data["probability"].max()))
    x = alt.X("queue_length:Q", title="jobs of a type in the system, q", scale=alt.Scale(nice=False, zero=True, padding=6))
    y = log_axis(alt.Y, "probability", "part of the time, P(Q = q)", floor, min(1.0, 2 * top))
    color = alt.Color("type:N", scale=type_colours(names), title=None)
    tooltip = ["type:N", "source:N", "queue_length:Q", alt.Tooltip("probability:Q", format=".3~g")]
    base = alt.Chart(data)
    exact = base.transform_filter("datum.source == 'exact'").mark_line(strokeWidth=2).encode(x, y, color, tooltip=tooltip)
    points = base.transform_filter("datum.source == 'simulated'").mark_point(size=26, strokeWidth=1.4, opacity=0.9)
    words = {"exact": "lines: exact", "simulated": "points: simulated"}
    subtitle = "; ".join(text for source, text in words.items() if (data["source"] == source).any())
    return styled(exact + points.encode(x, y, color, tooltip=tooltip), title, subtitle, width=WIDTH, height=HEIGHT)


def queue_length_table(analysis: Analysis | None = None, result: Result | None = None) -> pl.DataFrame:
    """The law of every type's queue length: exact from an analysis, counted from a result that has a log, or both."""
    parts = []
    if analysis is not None:
        laws = {name: analysis.queue_length_distribution(i, _MOST) for i, name in enumerate(analysis.system.names)}
        parts.append(_law_table(laws, "exact"))
    if result is not None:
        parts.append(_law_table(simulated_queue_lengths(result), "simulated"))
    if not parts:
        raise BadSpec([Problem("analysis, result", "are both missing: give at least one")])
    return pl.concat(parts)


def simulated_queue_lengths(result: Result) -> dict[str, Array]:
    """The part of the time with 0, 1, 2, … jobs of each type, from the log, without its warm-up.

    Counted until the last logged arrival: later jobs are not in the log.
    """
    log = _log(result)
    arrivals = log.filter(pl.col("event") == "arrive")["time"]
    end = float(np.asarray(arrivals.max()))
    begin = float(arrivals[int(result.warmup * len(arrivals))])
    laws = {}
    for name in result.system.names:
        events = log.filter((pl.col("type") == name) & pl.col("event").is_in(["arrive", "finish"]) & (pl.col("time") < end))
        times = np.concatenate([[0.0], events["time"].to_numpy(), [end]])
        present = np.concatenate([[0], np.cumsum(np.where(events["event"].to_numpy() == "arrive", 1, -1))])
        spent = np.diff(np.maximum(times, begin))
        laws[name] = np.bincount(present, weights=spent) / spent.sum()
    return laws


def _law_table(laws: Mapping[str, Array], source: str) -> pl.DataFrame:
    tables = []
    for name, law in laws.items():
        law = law[:_MOST]
        columns = {"type": [name] * len(law), "source": [source] * len(law), "queue_length": np.arange(len(law)), "probability": law}
        tables.append(pl.DataFrame(columns))
    return pl.concat(tables)


# ---------------------------------------------------------------------------------------------------------------- response times


def response_time_ccdf(table: pl.DataFrame, *, title: str = "How many jobs take longer than t") -> Any:
    """P(T > t), both axes logarithmic, a line per policy: columns `policy`, `response_time`, `ccdf`."""
    _require(table, ("policy", "response_time", "ccdf"))
    data = table.filter(pl.col("response_time").is_finite() & (pl.col("response_time") > 0) & (pl.col("ccdf") > 0))
    if not len(data):
        raise BadSpec([Problem("table", "has no finite response time: no policy is stable")])
    last = data.group_by("policy", maintain_order=True).agg(pl.col("response_time").max())
    names = last.sort("response_time", descending=True)["policy"].to_list()  # the worst tail is the line on the right
    times, tail = data["response_time"].to_numpy(), data["ccdf"].to_numpy()
    x = log_axis(alt.X, "response_time", f"response time t ({TIME})", float(times.min()) / 1.1, float(times.max()) * 1.1)
    y = log_axis(alt.Y, "ccdf", "part of the jobs, P(T > t)", float(tail.min()) / 1.2, 1.0)
    color = alt.Color("policy:N", scale=policy_colours(names), title=None)
    tooltip = ["policy:N", alt.Tooltip("response_time:Q", format=".4~g"), alt.Tooltip("ccdf:Q", format=".3~g")]
    base = alt.Chart(data.sort("response_time", maintain_order=True))
    lines = base.mark_line().encode(x, y, color, tooltip=tooltip, order="response_time:Q")
    few = int(np.asarray(data.group_by("policy").len()["len"].max())) <= 12
    shape = alt.Shape("policy:N", scale=policy_shapes(names), title=None)
    chart = lines + base.mark_point(filled=True, size=48, opacity=1).encode(x, y, color, shape, tooltip=tooltip) if few else lines
    return styled(chart, title, "points: quantiles" if few else None, width=WIDTH, height=HEIGHT)


def ccdf_table(results: Sequence[Result] | Mapping[str, Result]) -> pl.DataFrame:
    """P(T > t) of several results, by policy: counted where a result has a log, from its quantiles (50 … 99.9 %) otherwise.

    A mapping gives names of one's own. Results of an unstable run have no row.
    """
    named = results.items() if isinstance(results, Mapping) else [(result.name, result) for result in results]
    tables = []
    for name, result in named:
        if result.stable:
            times, tail = _counted_tail(result) if result.log is not None else _quantile_tail(result)
            tables.append(pl.DataFrame({"policy": [name] * len(times), "response_time": times, "ccdf": tail}))
    return pl.concat(tables) if tables else pl.DataFrame(schema={"policy": pl.String, "response_time": pl.Float64, "ccdf": pl.Float64})


def _quantile_tail(result: Result) -> tuple[Array, Array]:
    levels = np.array(list(result.response_time_quantiles))
    return np.array(list(result.response_time_quantiles.values())), 1 - levels


def _counted_tail(result: Result) -> tuple[Array, Array]:
    """The share of logged jobs that took longer than t, at times that are evenly spread over the logarithm of that share."""
    log = _log(result)
    finish = log.filter(pl.col("event") == "finish").select("job", end="time")
    arrive = log.filter(pl.col("event") == "arrive").select("job", begin="time")
    both = arrive.join(finish, on="job").sort("job")
    both = both[int(result.warmup * len(both)) :]
    times = np.sort((both["end"] - both["begin"]).to_numpy())
    n = len(times)
    # At least ten jobs are beyond the last point: fewer say little.
    ranks = np.unique(np.round(n * (1 - np.geomspace(1.0, min(1.0, 10 / n), _POINTS))).astype(np.int64))
    ranks = ranks[(ranks > 0) & (ranks < n)]
    return times[ranks - 1], 1 - ranks / n


def _log(result: Result) -> pl.DataFrame:
    if result.log is None:
        raise BadSpec([Problem("result", "has no log: simulate with log_jobs=…", result.log)])
    return result.log


def _require(table: pl.DataFrame, names: Sequence[str]) -> None:
    problems = [Problem(name, "is a column that the table needs", list(table.columns)) for name in names if name not in table.columns]
    if problems:
        raise BadSpec(problems)
