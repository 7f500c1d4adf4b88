"""From runs to cases: the runs of a case differ in their seeds only, so their spread gives the error of the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from rota.simulation.statistics import spread_interval

__all__ = ["over_seeds"]

_SAME = ("policy", "load", "switching_rate", "setup_rate", "jobs", "names", "resources", "case")
_MEANS = (
    *("p50", "p90", "p95", "p99", "p99.9", "mean_waiting_time", "mean_slowdown"),
    *("mean_queue_length", "response_time", "utilization", "preemption_rate", "switch_rate"),
)


def over_seeds(results: pl.DataFrame) -> pl.DataFrame:
    """One row per case of a table of runs: means over the seeds, with a 95 % half-width from the spread between them.

    The interval is Student's t over the means of the runs; of a single run, its own. If a run found a growing queue, there are no means.
    `runs` is how many were measured; the `error` of a case is that of its first run that has one.
    """
    cases = [_case(runs) for _, runs in results.group_by("case", "policy", maintain_order=True)]
    schema: dict[str, Any] = {
        **{name: results.schema[name] for name in _SAME},
        **{"runs": pl.Int64, "stable": pl.Boolean, "mean_response_time": pl.Float64, "interval": pl.Float64},
        **{name: results.schema[name] for name in _MEANS},
        "error": pl.String,
    }
    return pl.DataFrame(cases, schema=schema, orient="row")


def _case(runs: pl.DataFrame) -> dict[str, Any]:
    done = runs.filter(pl.col("outcome") == "done")
    errors = runs["error"].drop_nulls()
    known = (runs if done.is_empty() else done).row(0, named=True)
    case = {name: known[name] for name in _SAME} | {"runs": len(done), "error": errors[0] if len(errors) else None}
    if done.is_empty():
        return case
    stable = bool(done["stable"].all())
    means = {name: _mean(done[name]) for name in ("mean_response_time", *_MEANS)}
    return case | means | {"stable": stable, "interval": _half_width(done)}


def _mean(values: pl.Series) -> Any:
    return np.array(values.to_list()).mean(axis=0).tolist()


def _half_width(runs: pl.DataFrame) -> float:
    if len(runs) == 1:
        return float(runs["interval"][0])
    return float(spread_interval(runs["mean_response_time"].to_numpy(), np.ones(len(runs))))
