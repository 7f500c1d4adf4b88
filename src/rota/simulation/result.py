"""`Result`: what a simulation measured, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rota.arrays import Array
from rota.decide import policy_name
from rota.display import html_lines, html_table, html_title, number, per_cent
from rota.model import System
from rota.policy import Policy

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """What was measured after the warm-up; arrays have one entry per type (K,). Intervals are half-widths at 95 % confidence.

    If the queue kept growing (`stable` is False), means and quantiles are not a number: `growth` tells how many jobs pile up per unit of
    time.
    """

    system: System
    policy: Policy
    seed: int
    jobs: int
    warmup: float
    stable: bool
    growth: float
    interrupted: bool
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
    batches: Array = field(repr=False)  # (n, 3) jobs done, sum of response times, time: for paired comparisons
    log: pl.DataFrame | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The policy's short name."""
        return policy_name(self.policy)

    @property
    def events_per_s(self) -> float:
        """Events per second of computing time."""
        return self.events / self.time_s if self.time_s > 0 else np.nan

    @property
    def response_times_by_type(self) -> dict[str, dict[str, float]]:
        """Mean and quantiles of each type's response time, by name: mean, p50, p90, …; what was not seen is left out."""
        columns = {"mean": self.response_time} | {f"p{100 * level:g}": row for level, row in self.type_response_time_quantiles.items()}
        return {
            name: {key: float(values[i]) for key, values in columns.items() if np.isfinite(values[i])}
            for i, name in enumerate(self.system.names)
        }

    def __repr__(self) -> str:
        if not self.stable:
            return f"<Result of {self.name}: the queue kept growing, by {self.growth:.4g} jobs per unit of time>"
        return f"<Result of {self.name}: mean response time {self.mean_response_time:.5g} ± {self.interval:.2g}, {self.jobs:,} jobs>"

    def _repr_html_(self) -> str:
        title = html_title(repr(self)[1:-1])
        if not self.stable:
            return title
        columns = [
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
        return title + html_table(["", *(head for head, _, _ in columns)], rows, most=len(rows)) + html_lines(about)
