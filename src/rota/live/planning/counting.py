"""Counts that forget: an event s seconds ago counts e^(−s/window), and so does the exposure that it is compared with.

`learning` says how they are used.
"""

from __future__ import annotations

import math

__all__ = ["Arrivals", "Count", "Ends"]


class Count:
    """Events against an exposure that grows at `speed` (1 for time itself, the number of running jobs for time in service)."""

    FIELDS: tuple[str, ...] = ("at", "speed", "count", "exposure", "exposure2")
    __slots__ = FIELDS

    def __init__(self, t: float, speed: float) -> None:
        self.at, self.speed = t, speed
        self.count = self.exposure = self.exposure2 = 0.0

    def advance(self, t: float, window: float) -> float:
        """Advances the time and forgets; a clock that steps back is taken to stand still. Returns the factor of forgetting."""
        gap = (t - self.at) / window
        if gap <= 0:
            return 1.0
        f = math.exp(-gap)
        # ∫ e^(−s/w) ds over the gap; expm1 keeps the digits of short gaps
        self.exposure = self.exposure * f - self.speed * window * math.expm1(-gap)
        self.exposure2 = self.exposure2 * f * f - self.speed * (window / 2) * math.expm1(-2 * gap)
        self.count *= f
        self.at = t
        return f

    def effective(self, dispersion: float) -> tuple[float, float]:
        """The effective number of jobs, and the effective exposure: their quotient is the rate."""
        worth = self.exposure / (self.exposure2 * dispersion) if self.exposure2 > 0 else 0.0
        return self.count * worth, self.exposure * worth


_MOST_BURSTS = 1000  # bursts remembered per type: enough for jobs that may still be withdrawn


class Arrivals(Count):
    """Arrivals of a type, and their bursts. `recent` has the last bursts of several jobs: [first time, last time, jobs]."""

    FIELDS = (*Count.FIELDS, "squares", "bursts", "burst", "until")
    __slots__ = ("began", "burst", "bursts", "recent", "squares", "until")

    def __init__(self, t: float) -> None:
        super().__init__(t, 1.0)
        self.squares = self.bursts = 0.0  # Σ e^(−2s/w) over jobs, and Σ n² e^(−2s/w) over bursts of n
        self.burst, self.began, self.until = 0.0, t, -math.inf  # of the last burst: its jobs, its beginning, its end
        self.recent: list[list[float]] = []

    def advance(self, t: float, window: float) -> float:
        """Lets time pass, and forgets."""
        f = super().advance(t, window)
        self.squares *= f * f
        self.bursts *= f * f
        return f

    def add(self, t: float, jobs: int, window: float, burst_s: float) -> None:
        """Counts `jobs` arrivals; with arrivals less than `burst_s` ago they form one burst."""
        self.advance(t, window)
        if self.at > self.until:
            self.burst, self.began, self.until = 0.0, self.at, self.at + burst_s
        self.bursts += jobs * (2 * self.burst + jobs)  # (b + n)² − b²
        self.burst += jobs
        self.count += jobs
        self.squares += jobs
        if self.burst > 1:
            if not self.recent or self.recent[-1][1] != self.until:
                self.recent.append([self.began, self.until, 0.0])
                del self.recent[:-_MOST_BURSTS]
            self.recent[-1][2] = self.burst

    def withdraw(self, t: float, arrived: float, window: float) -> None:
        """Removes a job that arrived at `arrived`, from its burst as well, as if it had never arrived."""
        self.advance(t, window)
        weight = math.exp(-max(self.at - arrived, 0.0) / window)
        mates = 0.0  # the others of its burst
        for burst in reversed(self.recent):
            if burst[1] < arrived:
                break
            if burst[0] <= arrived and burst[2] > 0:
                mates = burst[2] = burst[2] - 1
                if burst[1] == self.until:
                    self.burst = mates
                break
        self.count = max(self.count - weight, 0.0)
        self.squares = max(self.squares - weight**2, 0.0)
        self.bursts = max(self.bursts - (2 * mates + 1) * weight**2, 0.0)  # (b + 1)² − b²

    def dispersion(self) -> float:
        """Mean jobs per burst, weighted by jobs: a burst counts as one observation."""
        return max(self.bursts / self.squares, 1.0) if self.squares > 0 else 1.0


class Ends(Count):
    """Ends of a type, and the variation of their sizes."""

    FIELDS = (*Count.FIELDS, "sizes", "sizes2", "logs", "above", "above2")
    __slots__ = ("above", "above2", "logs", "sizes", "sizes2")

    def __init__(self, t: float) -> None:
        super().__init__(t, 0.0)
        self.sizes = self.sizes2 = self.logs = self.above = self.above2 = 0.0

    def advance(self, t: float, window: float) -> float:
        """Lets time pass, and forgets."""
        f = super().advance(t, window)
        self.sizes *= f
        self.sizes2 *= f
        self.logs *= f
        self.above *= f
        self.above2 *= f
        return f

    def add(self, t: float, size: float, window: float) -> None:
        """Counts the end of a job of this size."""
        self.advance(t, window)
        self.count += 1
        self.sizes += size
        self.sizes2 += size * size
        log = math.log(max(size, 1e-9))
        self.logs += log
        over = log - self.logs / self.count
        if over > 0:
            self.above += 1
            self.above2 += over * over

    def dispersion(self, planned: float) -> float:
        """cv² of the sizes: the largest of the planned one, the observed one, 1, and a lognormal one with the spread above the median.

        A small sample of heavy-tailed sizes has none of the largest ones and shows too little variation; its logarithms show the tail.
        Logarithms below the median are left out: they would make exponential sizes look four times as variable as they are.
        """
        seen = self.sizes2 * self.count / self.sizes**2 - 1 if self.sizes > 0 else 0.0
        tail = math.expm1(min(self.above2 / self.above, 20.0)) if self.above > 0 else 0.0
        return max(seen, tail, planned, 1.0)
