"""Drift: how the work changes from window to window of a trace, and how well a rota designed on earlier jobs still does.

A trace is cut into windows of equal length. Each gives a system of its own: rates, sizes, system load. Then a rota designed on one window
plays the jobs of the next, beside the rota designed on those jobs and beside First-Fit. All rotas backfill, so that a type that was
absent when the rota was made is served too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rota.design import design_policy
from rota.errors import BadSpec, Problem, RotaError
from rota.model import System
from rota.policy import MSR, FirstFit, Policy
from rota.simulation import simulate
from rota.traces import Trace
from rota.traces.to_system import load_of

__all__ = ["Drift", "drift"]


@dataclass(frozen=True)
class Drift:
    """`windows`: a row per window (begin, end, jobs, load, arrival rate, mean size). `types`: the same per type and window. `policies`: the
    mean response time in each window but the first: of First-Fit, of the rota designed on the window before, and of the one designed on the
    window itself; not a number with a reason where a rota cannot be designed or the queue grows.
    """

    windows: pl.DataFrame
    types: pl.DataFrame
    policies: pl.DataFrame


def drift(
    trace: Trace,
    windows: int = 8,
    *,
    capacity: ArrayLike | None = None,
    preemption: Literal["full", "none"] = "none",
    loops: int = 1,
    evaluate: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Drift:
    """Cuts a trace into windows and follows rates, sizes, load, and, unless `evaluate` is False, how well a rota of the window before does.

    `loops`: how often the jobs of a window are played; a quarter of it is left out as warm-up if it is played more than once.
    """
    if windows < 2:
        raise BadSpec([Problem("windows", "must be at least 2", windows)])
    edges = trace.begin + trace.span * np.linspace(0, 1, windows + 1)
    edges[-1] = np.nextafter(max(edges[-1], trace.end), np.inf)
    parts = [trace.window(begin, end).in_memory() for begin, end in pairwise(edges)]
    empty = [k for k, part in enumerate(parts) if part.jobs.select(pl.len()).collect().item() == 0]
    if empty:
        raise BadSpec([Problem("windows", f"window {empty[0] + 1} of {windows} has no jobs: take fewer", windows)])
    systems = [part.system(capacity, preemption=preemption) for part in parts]
    by_window = pl.DataFrame(
        {
            "window": range(1, windows + 1),
            "begin": edges[:-1],
            "end": edges[1:],
            "jobs": [len(part) for part in parts],
            "load": [load_of(system) for system in systems],
            "arrival_rate": [float(system.arrival_rate.sum()) for system in systems],
            "mean_size": [float(system.offered_work.sum() / system.arrival_rate.sum()) for system in systems],
        }
    )
    by_type = pl.concat(
        pl.DataFrame(
            {
                "window": np.full(len(trace.names), k + 1),
                "type": trace.names,
                "arrival_rate": system.arrival_rate,
                "mean_size": np.where(system.arrival_rate > 0, 1 / system.service_rate, np.nan),
            }
        )
        for k, system in enumerate(systems)
    )
    rows = []
    rota_before = _designed(systems[0]) if evaluate else None
    for k in range(1, windows if evaluate else 0):
        rota_now = _designed(systems[k])
        for label, policy in (("first-fit", FirstFit()), ("window before", rota_before), ("this window", rota_now)):
            rows.append({"window": k + 1, "designed_on": label, **_played(systems[k], parts[k], policy, loops)})
        rota_before = rota_now
        if progress is not None:
            progress(k, windows - 1)
    schema = {"window": pl.Int64, "designed_on": pl.String, "mean_response_time": pl.Float64, "interval": pl.Float64, "reason": pl.String}
    return Drift(by_window, by_type, pl.DataFrame(rows, schema=schema))


def _designed(system: System) -> MSR | str:
    """The rota of a system, or why there is none."""
    present = system.arrival_rate > 0
    here = system.replace(
        demand=system.demand[present],
        arrival_rate=system.arrival_rate[present],
        sizes=[size for size, there in zip(system.sizes, present, strict=True) if there],
        names=[name for name, there in zip(system.names, present, strict=True) if there],
    )
    try:
        policy = design_policy(here, objective="load", by="prediction")
    except RotaError as error:
        return str(error)
    candidates = np.zeros((len(policy.candidates), len(present)), dtype=np.int64)
    candidates[:, present] = policy.candidates
    return policy.replace(candidates=candidates, backfill=True)


def _played(system: System, part: Trace, policy: Policy | str | None, loops: int) -> dict[str, object]:
    """The mean response time of a policy on the jobs of a window."""
    nothing = {"mean_response_time": np.nan, "interval": np.nan}
    if policy is None or isinstance(policy, str):
        return {**nothing, "reason": policy or ""}
    try:
        result = simulate(system, policy, workload=part.looped(loops), warmup=0.25 if loops > 1 else 0.0)
    except RotaError as error:
        return {**nothing, "reason": str(error)}
    if result.growing:  # looped for longer, the mean would be larger
        return {**nothing, "reason": "the queue kept growing"}
    return {"mean_response_time": result.mean_response_time, "interval": result.interval, "reason": ""}
