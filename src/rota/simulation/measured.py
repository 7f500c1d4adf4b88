"""What a run measured, and the `Result` of one run or of several.

Independent runs of the same length are joined by putting their batches one after the other. The residuals of the joined series have the
spectral density of a single run, as long as each run is long against the time over which its queue is correlated, so the intervals of
`rota.simulation.statistics` hold for it as for one long run. A queue counts as growing if it grew in half of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.arrays import Array, Bool, Int
from rota.model import System
from rota.policy import MSR, Policy
from rota.process import build_process
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.result import fleet_result
from rota.simulation.fleet.run import KindSums
from rota.simulation.result import Result
from rota.simulation.run import Rates
from rota.simulation.start import Start
from rota.simulation.statistics import QUANTILES, MeanInterval, mean_interval, quantile_intervals, quantiles, ratio_interval
from rota.simulation.tally import COUNT, PRESENT, RESPONSE, SERVED, SLOWDOWN, SQUARE, WAITING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FEWEST", "About", "Measured", "quantiles_of", "result_of", "too_little", "type_quantiles_of"]

FEWEST = 100  # jobs of a type, for a mean of them
_MANY_GROW = 0.5  # of several runs: a short one may look as if it grew, but not many of them
_ROUNDING = 2e-15  # of the clock: times that are less than this part of it are 0
_UNKNOWN_PART = 0.05  # of the jobs present that may be of types of which too little is known


class Measured(NamedTuple):
    """The batches and histograms of a run after its warm-up."""

    jobs: int
    left_out: int  # jobs of the warm-up
    rows: Array  # (n, K, 7), see `Tally`
    areas: Array  # (m, 2, K)
    lengths: Array  # (m,)
    growing: Bool  # (K,)
    growth: float
    unfinished: Int  # (K,)
    arrived: Int  # (K,) warm-up included
    histogram: Int  # (3, K or 1, BUCKETS)
    segments: Int  # (parts of the run, BUCKETS)
    simulated_time: float
    rates: Rates
    fingerprint: int
    by_kind: KindSums | None = None  # of a fleet

    @property
    def over(self) -> int:
        """Batches of which both the jobs and the time are known."""
        return min(len(self.rows), len(self.areas))


class About(NamedTuple):
    """What was simulated. `finite`: a workload with an end. `poisson`: the system's own."""

    system: System
    policy: Policy
    seed: int
    finite: bool
    poisson: bool
    start: Start | None
    log: pl.DataFrame | None


def too_little(unknown: Bool, counted: Array, present: Array) -> bool:
    """Whether there is no mean over all: one unknown type, or all together, hold too large a part of the jobs present (K,)."""
    parts = present * unknown / max(float(present.sum()), 1e-300)
    return bool(parts.max() > _UNKNOWN_PART or (parts.sum() > _UNKNOWN_PART and counted[unknown].sum() < FEWEST))


def result_of(runs: Sequence[Measured], about: About, elapsed: float, *, interrupted: bool = False, reached: bool | None = None) -> Result:
    """The result of one run, or of independent runs together."""
    system, finite, K = about.system, about.finite, len(about.system.names)
    rows, areas, lengths = (np.concatenate([getattr(run, name) for run in runs]) for name in ("rows", "areas", "lengths"))
    growing = np.mean([run.growing for run in runs], axis=0) >= _MANY_GROW
    unfinished, arrived = sum(run.unfinished for run in runs), sum(run.arrived for run in runs)
    total_time, jobs = float(lengths.sum()), sum(run.jobs for run in runs)
    counts, totals = rows[:, :, COUNT], rows.sum(axis=0)
    counted = totals[:, COUNT]
    area = areas[:, PRESENT].sum(axis=0)
    comes = (arrived > 0) | (system.arrival_rate > 0) & (not finite)
    few = comes & ((counted - unfinished < FEWEST) | (_expected(about, counted) < FEWEST))
    unsettled = growing.any() and not finite
    unknown = np.zeros(K, dtype=bool) if finite or unsettled else few
    refused = too_little(unknown, counted, np.maximum(area, total_time * system.offered_work * unknown))
    hidden = np.nan if unsettled else 1.0  # an unstable queue has no means
    overall_hidden = np.nan if refused else hidden
    type_hidden = np.where(unknown, np.nan, hidden)

    def per_job(column: int) -> Array:
        return np.asarray(np.divide(totals[:, column], counted, out=np.full(K, np.nan), where=counted > 0))

    def overall(column: int) -> float:
        return overall_hidden * float(rows[:, :, column].sum() / counted.sum()) if counted.sum() > 0 else np.nan

    def waited(mean: Array | float) -> Array:
        # Waiting is response time less size: of jobs that never wait, only the rounding of the clock is left.
        return np.where(np.asarray(mean) < _ROUNDING * total_time, 0.0, mean)

    jobs_done, sums = counts.sum(axis=1), rows[:, :, RESPONSE].sum(axis=1)
    histogram = sum((run.histogram for run in runs[1:]), start=runs[0].histogram)
    parts = np.concatenate([run.segments for run in runs])
    busy = areas[:, SERVED].sum(axis=0) / total_time if total_time > 0 else np.full(K, np.nan)
    response = per_job(RESPONSE)
    rates = Rates(*(sum(column) for column in zip(*(run.rates for run in runs), strict=True)))
    now = max(rates.time, 1e-300)
    over = np.concatenate([np.arange(len(run.rows)) < run.over for run in runs])  # the batches whose time is known too
    little = float(area.sum() / jobs_done[over].sum()) if over.any() and jobs_done[over].sum() > 0 else np.nan
    variance = float(rows[:, :, RESPONSE + SQUARE].sum() / max(counted.sum(), 1) - (sums.sum() / max(counted.sum(), 1)) ** 2)
    interval = overall_hidden * mean_interval(sums, jobs_done, variance).half_width
    type_variance = per_job(RESPONSE + SQUARE) - response**2
    by_type = [
        mean_interval(rows[:, i, RESPONSE], counts[:, i], float(type_variance[i])) if counted[i] else MeanInterval(np.inf, 0.0)
        for i in range(K)
    ]
    spans = np.concatenate([run.lengths[: run.over] for run in runs])
    names = np.array(system.names, dtype=object)
    result = Result(
        system=system,
        policy=about.policy,
        seed=about.seed,
        jobs=jobs,
        counted=counted.astype(np.int64),
        unfinished=np.asarray(unfinished),
        warmup=sum(run.left_out for run in runs) / max(jobs, 1),
        stable=not unsettled,
        growth=float(np.mean([run.growth for run in runs])) if growing.any() else 0.0,
        growing=tuple(names[growing]),
        unknown=tuple(names[unknown]),
        interrupted=interrupted,
        reached=reached,
        mean_queue_length=type_hidden * (area / total_time if total_time > 0 else np.full(K, np.nan)),
        mean_queue_length_interval=type_hidden
        * np.array([ratio_interval(areas[:, PRESENT, i], lengths, each.worth) for i, each in enumerate(by_type)]),
        response_time=type_hidden * response,
        response_time_interval=type_hidden * np.array([each.half_width for each in by_type]),
        response_time_variance=type_hidden * type_variance,
        waiting_time=waited(type_hidden * per_job(WAITING)),
        waiting_time_variance=type_hidden * (per_job(WAITING + SQUARE) - per_job(WAITING) ** 2),
        slowdown=type_hidden * per_job(SLOWDOWN),
        slowdown_variance=type_hidden * (per_job(SLOWDOWN + SQUARE) - per_job(SLOWDOWN) ** 2),
        mean_response_time=overall(RESPONSE),
        interval=interval,
        little_response_time=overall_hidden * little,
        mean_waiting_time=float(waited(overall(WAITING))),
        mean_slowdown=overall(SLOWDOWN),
        response_time_quantiles=quantiles_of(histogram[0].sum(axis=0), overall_hidden),
        waiting_time_quantiles=quantiles_of(histogram[1].sum(axis=0), overall_hidden),
        slowdown_quantiles=quantiles_of(histogram[2].sum(axis=0), overall_hidden),
        type_response_time_quantiles=type_quantiles_of(histogram[0], type_hidden),
        type_waiting_time_quantiles=type_quantiles_of(histogram[1], type_hidden),
        type_slowdown_quantiles=type_quantiles_of(histogram[2], type_hidden),
        utilization=np.asarray(busy @ system.demand / system.capacity),
        unused_service=_unused(about, busy),
        preemption_rate=rates.preemptions / now,
        switch_rate=rates.switches / now,
        switching_fraction=rates.switching / now,
        unproved_decisions=rates.unproved,
        simulated_time=sum(run.simulated_time for run in runs),
        events=rates.events,
        time_s=elapsed,
        totals=np.stack([counted, totals[:, RESPONSE], area, np.full(K, total_time)]),
        batches=np.column_stack([jobs_done[over], sums[over], spans, rows[over][:, :, RESPONSE] @ system.service_rate]),
        fingerprint=f"{sum(run.fingerprint for run in runs) % (1 << 64):016x}",
        log=about.log,
        start=about.start,
        response_time_quantile_intervals={level: overall_hidden * width for level, width in quantile_intervals(parts).items()},
        runs=len(runs),
    )
    if not isinstance(about.policy, FleetPolicy):
        return result
    return fleet_result(result, about.policy, [run.by_kind for run in runs if run.by_kind is not None], total_time)


def _expected(about: About, counted: Array) -> Array:
    """The expected number of jobs of each type, where it is known.

    Runs that happen to have enough jobs of a rare type are not typical: whether there is a mean must not depend on chance.
    """
    rate = about.system.arrival_rate
    return rate / rate.sum() * counted.sum() if about.poisson else counted


def quantiles_of(counts: Int, hidden: float = 1.0) -> dict[float, float]:
    """The quantiles of a histogram by their level; `hidden` is not a number where there are none, else 1."""
    return dict(zip(QUANTILES, (hidden * quantiles(counts)).tolist(), strict=True))


def type_quantiles_of(counts: Int, hidden: Array) -> dict[float, Array]:
    """The same for each type (K,); not a number if all types have one histogram."""
    per_type = (
        np.array([quantiles(row) for row in counts]) if len(counts) == len(hidden) else np.full((len(hidden), len(QUANTILES)), np.nan)
    )
    return dict(zip(QUANTILES, (hidden[:, None] * per_type).T, strict=True))


def _unused(about: About, busy: Array) -> Array:
    """The part of the slots that an MSR opened for each type without a job to fill them; not a number for other policies."""
    policy = about.policy
    if not isinstance(policy, MSR) or policy.backfill or (policy.empty_slots == "skip" and policy.preemption == "none"):
        return np.full(len(busy), np.nan)
    slots = build_process(about.system, policy).mean_schedule
    return np.asarray(1 - np.divide(busy, slots, out=np.full(len(busy), np.nan), where=slots > 0))
