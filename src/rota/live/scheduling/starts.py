"""What is known of the start of a job: the exact law, or the starts in simulated futures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rota.analysis import TimeLaw

__all__ = ["Starts"]


@dataclass(frozen=True)
class Starts:
    """Times from now until a job starts: by `law`, or in futures, in order of time.

    `cut`: futures in which it had not started when they were left, and how far they were followed; infinite if it never starts in them.
    The time `since` has passed while this was computed, and the job has not started: times count from then on.
    """

    times: tuple[float, ...] = ()
    cut: tuple[float, ...] = ()
    law: TimeLaw | None = None
    since: float = 0.0
    unit_s: float = 1.0

    def in_seconds(self, unit_s: float, passed_s: float) -> Starts:
        """The same in seconds, from `passed_s` later on."""
        return replace(self, unit_s=unit_s, since=passed_s / unit_s)

    @property
    def runs(self) -> int:
        """Simulated futures."""
        return len(self.times) + len(self.cut)

    def quantile(self, p: float) -> tuple[float, bool]:
        """The time by which the job has started with probability p, and whether that is known only to be a lower bound.

        The job's own future is one more draw from the law of the n others, so it is before the j-th of them with probability j/(n + 1). The
        point between them at p(n + 1) is therefore met with probability p, however few they are. If none is so late, there is a bound.
        """
        if self.law is not None:  # given that it has not started: P(T > t) = (1 − p) P(T > since)
            left = float(self.law.tail(self.since))
            known = 1 - (1 - p) * left
            return (max(self.law.quantile(known) - self.since, 0.0) * self.unit_s if known < 1 else 0.0), False
        times = [time - self.since for time in self.times if time >= self.since]
        reached = [time - self.since for time in self.cut if np.isfinite(time)]
        place = p * (len(times) + len(self.cut) + 1)
        if place <= len(times):
            return float(np.interp(place, np.arange(1, len(times) + 1), times)) * self.unit_s, False
        if not times and not self.cut:  # it should have started by now in all of them
            return 0.0, False
        bound = max([*times[-1:], *reached[:1]], default=0.0)
        return max(bound, 0.0) * self.unit_s, True
