"""A time limit that every step of a design checks."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Deadline", "OutOfTime"]


class OutOfTime(Exception):
    """The time limit is over. Never leaves this package: the best found by then is the answer."""


@dataclass(frozen=True)
class Deadline:
    """`budget_s` seconds, from `began` on.

    Choices made in advance use the budget and estimates, never the clock, so that they are the same on every machine; the clock only
    ends what takes longer than estimated.
    """

    budget_s: float
    began: float

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """A limit this many seconds from now; None: no limit."""
        return Deadline(float("inf") if seconds is None else seconds, time.perf_counter())

    @property
    def left_s(self) -> float:
        """Seconds until it is over; negative after that."""
        return self.began + self.budget_s - time.perf_counter()

    def check(self) -> None:
        """Raises `OutOfTime` if it is over."""
        if self.left_s < 0:
            raise OutOfTime
