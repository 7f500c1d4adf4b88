"""What the daemon has counted since it started: starts, preemptions, swaps of the plan, ends, and histograms of times.

Memory is bounded: a histogram has fixed buckets, and the others are counted by type and outcome.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["DECISION_BOUNDS", "RESPONSE_BOUNDS", "Counters", "Histogram"]

RESPONSE_BOUNDS = tuple(float(f"{digit}e{power}") for power in range(-1, 7) for digit in (1, 3))  # 0.1 s … 3e6 s
DECISION_BOUNDS = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))  # 1 µs … 0.5 s


class Histogram:
    """Counts per bucket; a value belongs to the first bucket whose bound is not below it."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last one is for values above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Counters:
    """Counts since the daemon started; Prometheus expects that such counts start at 0 with each process."""

    def __init__(self) -> None:
        self.starts = 0
        self.preemptions = 0
        self.plan_swaps = 0
        self.ended: dict[tuple[str, str], int] = {}  # by type and outcome
        self.response: dict[str, Histogram] = {}
        self.decision = Histogram(DECISION_BOUNDS)

    def job_ended(self, type: str, outcome: str, response_s: float) -> None:
        """A job ended as done, failed or cancelled."""
        self.ended[type, outcome] = self.ended.get((type, outcome), 0) + 1
        if type not in self.response:
            self.response[type] = Histogram(RESPONSE_BOUNDS)
        self.response[type].observe(response_s)

    def decided(self, time_s: float) -> None:
        """Counts a decision that took this long."""
        self.decision.observe(time_s)
