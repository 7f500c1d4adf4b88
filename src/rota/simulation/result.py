"""`Result`: what a simulation measured, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rota.arrays import Array, Int
from rota.display import html_lines, html_table, html_title, number, per_cent
from rota.errors import Unstable
from rota.model import System
from rota.policy import Policy, policy_name
from rota.simulation.start import Start

if TYPE_CHECKING:
    import polars as pl

__all__ = ["JOBS", "RELATIVE", "RESPONSES", "Result"]

JOBS, RESPONSES, RELATIVE = 0, 1, 3  # columns of `Result.batches`
_PARTED = 0.1  # relative difference between the two sides of Little's law that is worth a remark


@dataclass(frozen=True, eq=False)
class Result:
    """What was measured after the warm-up; arrays have one entry per type (K,). Intervals are half-widths at 95 % confidence.

    Every job that came after the warm-up counts; one that was not done at the end (`unfinished`) counts with its time in the system so far.
    If jobs kept piling up (`stable` is False), means and quantiles are not a number: `growing` names the types, and `growth` says how many
    jobs pile up per unit of time. A type of which fewer than 100 jobs were done (`unknown`) has no means, and if more than 5 % of the jobs
    present are of such types, there is no mean over all. A finite list of jobs always has means.
    """

    system: System
    policy: Policy
    seed: int
    jobs: int
    counted: Int
    unfinished: Int
    warmup: float
    stable: bool
    growth: float
    growing: tuple[str, ...]
    unknown: tuple[str, ...]
    interrupted: bool
    reached: bool | None  # whether the interval that `until` asked for was reached; None if it did not ask
    mean_queue_length: Array
    mean_queue_length_interval: Array
    response_time: Array
    response_time_interval: Array
    response_time_variance: Array
    waiting_time: Array
    waiting_time_variance: Array
    slowdown: Array
    slowdown_variance: Array
    mean_response_time: float
    interval: float
    little_response_time: float  # ΣE[Q] / Λ, from the time integrals of the same run
    mean_waiting_time: float
    mean_slowdown: float
    response_time_quantiles: dict[float, float]
    waiting_time_quantiles: dict[float, float]
    slowdown_quantiles: dict[float, float]
    type_response_time_quantiles: dict[float, Array]
    type_waiting_time_quantiles: dict[float, Array]
    type_slowdown_quantiles: dict[float, Array]
    utilization: Array
    unused_service: Array
    preemption_rate: float
    switch_rate: float
    switching_fraction: float
    unproved_decisions: int  # of MaxWeight: taken without a proof that no schedule weighs more
    simulated_time: float
    events: int
    time_s: float
    totals: Array = field(repr=False)  # (4, K) jobs, sum of response times, time integral of jobs present, time: to join runs
    batches: Array = field(repr=False)  # (n, 4) jobs, sum of response times, time, sum of T μ: for paired comparisons
    fingerprint: str = field(repr=False)  # of the jobs that came: equal for two policies that saw the same
    log: pl.DataFrame | None = field(default=None, repr=False)
    start: Start | None = None  # the state that it began in, if that was given
    response_time_quantile_intervals: dict[float, float] = field(default_factory=dict)
    runs: int = 1  # independent runs that the jobs were split over

    @property
    def name(self) -> str:
        """The policy's short name."""
        return policy_name(self.policy)

    @property
    def events_per_s(self) -> float:
        """Events per second of computing time."""
        return self.events / self.time_s if self.time_s > 0 else np.nan

    @property
    def relative_response_time(self) -> float:
        """The mean over all jobs of the response time by the mean size of the job's type, E[T_i] μ_i averaged over the types of the jobs.

        The mean of response time by the job's own size (`mean_slowdown`) is infinite for exponential sizes, as soon as jobs wait.
        """
        return float(self.batches[:, RELATIVE].sum() / self.batches[:, JOBS].sum())

    @property
    def response_times_by_type(self) -> dict[str, dict[str, float]]:
        """Mean and quantiles of each type's response time, by name: mean, p50, p90, …; what was not seen is left out."""
        columns = {"mean": self.response_time} | {f"p{100 * level:g}": row for level, row in self.type_response_time_quantiles.items()}
        return {
            name: {key: float(values[i]) for key, values in columns.items() if np.isfinite(values[i])}
            for i, name in enumerate(self.system.names)
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the numbers, one sentence each."""
        names = self.system.names
        found = [f"Only {self.counted[names.index(name)]:,} jobs of '{name}' counted: too few for a mean." for name in self.unknown]
        if self.unknown and self.stable and np.isnan(self.mean_response_time):
            found.append("Too many of the jobs present are of such types for a mean over all: simulate more jobs.")
        for name, count in zip(names, self.unfinished.tolist(), strict=True):
            if count and self.stable:
                found.append(f"{count:,} jobs of '{name}' were not done at the end: they count with the time they had spent in the system.")
        apart = abs(self.little_response_time - self.mean_response_time)
        if apart > max(_PARTED * self.mean_response_time, 2 * self.interval):
            found.append(
                f"ΣE[Q]/Λ over the run is {self.little_response_time:.4g}, the mean over its jobs {self.mean_response_time:.4g}: "
                "by Little's law they should agree, so the run is too short."
            )
        if self.stable and self.growing:
            found.append(f"Jobs of {_listed(self.growing)} piled up until the list of jobs ended.")
        if self.reached is False:
            found.append(f"The interval that was asked for was not reached within {self.jobs:,} jobs.")
        if self.stable and self.interval == np.inf:
            found.append("The run is too short for an interval: the error of the mean is not known.")
        return tuple(found)

    def require_stable(self) -> None:
        """Raises `Unstable`, saying which queue kept growing."""
        if not self.stable:
            of = "" if len(self.growing) == len(self.system.names) else f" of {', '.join(map(repr, self.growing))}"
            raise Unstable(
                f"under {self.name} the queue{of} was still growing at the end, by {self.growth:.4g} jobs per unit of time: "
                f"it is unstable, or {self.jobs:,} jobs are too few to know"
            )

    def __repr__(self) -> str:
        if not self.stable:
            of = "" if len(self.growing) == len(self.system.names) else f" of {_listed(self.growing)}"
            return f"<Result of {self.name}: the queue{of} kept growing, by {self.growth:.4g} jobs per unit of time>"
        if np.isnan(self.mean_response_time):
            return f"<Result of {self.name}: too few jobs of {_listed(self.unknown)} for a mean, {self.jobs:,} jobs>"
        return f"<Result of {self.name}: mean response time {self.mean_response_time:.5g} ± {self.interval:.2g}, {self.jobs:,} jobs>"

    def _repr_html_(self) -> str:
        title = html_title(repr(self)[1:-1])
        if not self.stable:
            return title
        columns = [
            ("jobs", 9, [*self.counted, int(self.counted.sum())]),
            ("E[Q]", 4, [*self.mean_queue_length, self.mean_queue_length.sum()]),
            ("±", 2, [*self.mean_queue_length_interval, None]),
            ("E[T]", 4, [*self.response_time, self.mean_response_time]),
            ("±", 2, [*self.response_time_interval, self.interval]),
            ("waiting", 4, [*self.waiting_time, self.mean_waiting_time]),
            *((f"T {p:.0%}", 4, [*self.type_response_time_quantiles[p], self.response_time_quantiles[p]]) for p in (0.5, 0.95, 0.99)),
        ]
        names = [*self.system.names, "all jobs"]
        rows = [(name, *(number(values[i], digits) for _, digits, values in columns)) for i, name in enumerate(names)]
        used = ", ".join(f"{name} {per_cent(part)}" for name, part in zip(self.system.resources, self.utilization, strict=True))
        about = f"In use: {used}. Preemptions per unit of time: {number(self.preemption_rate)}. Seed {self.seed}."
        words = "\n".join([about, *self.remarks])
        return title + html_table(["", *(head for head, _, _ in columns)], rows, most=len(rows)) + html_lines(words)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
