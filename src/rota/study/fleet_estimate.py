"""Mean response times of a fleet from independent runs, without the noise of the sizes.

A job waits, and it runs. How long it runs is known in the mean: 1/(μ_i v_ci) on kind c, as no rule looks at the size of a job. So

    E[T_i] = E[W_i] + Σ_c p_ci / (μ_i v_ci),      p_ci the part of the type that runs on kind c,

and only the wait and the parts have to be measured. Where hardly anyone waits this is far more exact than the mean of what the jobs took,
most of which is their sizes. The interval comes from the spread of independent runs. Where servers fail, which long jobs meet more often,
the plain means are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
from rota.model import Fleet
from rota.simulation import FleetResult, Result, SimulationProgress
from rota.simulation.statistics import WARMUP
from rota.simulation.student import student_quantile
from rota.study.fleet_options import FleetOption
from rota.study.fleet_runs import in_parallel, run_option

__all__ = ["RUNS", "Estimate", "estimate", "estimate_of", "mean_by_type"]

RUNS = 5
_ROUNDING = 1e-12
_OF_A_TYPE = 150  # jobs of the rarest type in each run: below 100 there is no mean


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean response times of each type (K,) and of all jobs, with 95 % half-widths; not a number where a run had no mean.

    `jobs`: of all runs together.
    """

    response_time: Array
    response_time_interval: Array
    mean_response_time: float
    interval: float
    jobs: int


def estimate(fleet: Fleet, option: FleetOption, *, jobs: int, seed: int, tell: Callable[[float], None]) -> Estimate:
    """`RUNS` independent runs that share the jobs. A run whose queue grows has no means."""
    rate = fleet.arrival_rate[fleet.arrival_rate > 0]
    each = max(jobs // RUNS, int(np.ceil(_OF_A_TYPE / (1 - WARMUP) * rate.sum() / rate.min())))

    def one(watch: Callable[[SimulationProgress], None], k: int) -> Result:
        return run_option(fleet, option, jobs=each, seed=seed + k, watch=watch)

    return estimate_of(fleet, in_parallel(one, [(k,) for k in range(RUNS)], tell))


def mean_by_type(fleet: Fleet, result: Result) -> Array:
    """E[T_i] by one run (K,), as above."""
    if not isinstance(result, FleetResult) or np.isfinite(fleet.up_time).any():
        return result.response_time
    running = np.nansum(result.parts / (fleet.service_rate * fleet.speed), axis=0)
    return np.asarray(result.waiting_time + running)


def estimate_of(fleet: Fleet, results: Sequence[Result]) -> Estimate:
    """The mean over independent runs, and its interval by Student's t."""
    rate = fleet.arrival_rate
    values = np.array([mean_by_type(fleet, result) if result.stable else np.full(len(rate), np.nan) for result in results])
    values[:, rate == 0] = np.nan
    everything = np.nansum(np.where(rate > 0, values * rate, 0.0), axis=1) / rate.sum()
    everything[np.isnan(values[:, rate > 0]).any(axis=1)] = np.nan
    width = student_quantile(0.975, len(results) - 1) / np.sqrt(len(results))
    means, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    return Estimate(
        response_time=means,
        response_time_interval=width * np.where(spread < _ROUNDING * means, 0.0, spread),
        mean_response_time=float(everything.mean()),
        interval=float(width * everything.std(ddof=1)),
        jobs=sum(result.jobs for result in results),
    )
