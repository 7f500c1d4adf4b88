"""What the scheduler learns: the arrival rate and the mean size of each type, and whether they still agree with the plan.

Arrivals and ends are both counts against an exposure, and are treated alike (`counting`):

    arrivals    per second of time               rate λ
    ends        per second of time in service    rate μ, and mean size 1/μ

*Why time in service.* The mean of the jobs that have ended is too low at first, since the short ones end first. Ends over time in service,
that of running jobs included, is the likelihood estimate for exponential sizes under this censoring, and tends to 1/E[S] for every law of
sizes (in the long run each job brings its size and one end). For sizes that vary less than exponential ones it begins a little high, by
about half a size over the time seen; that errs on the side of more load.

*Forgetting.* What happened s seconds ago counts e^(−s/window). If Y is such a count, x the exposure weighted in the same way and v the
exposure weighted by the square, then Y has mean λx and variance λv: as much as a Poisson count of mean λx²/v. So n = Y·x/v is the effective
number of jobs, in the long run twice those that arrive in a window. Dependent events count less: arrivals in one burst (an array, a
loop that submits) by the size-weighted mean burst, ends by the squared coefficient of variation of the sizes.

*Estimates* are drawn to the plan as if it were `PRIOR` jobs (a Gamma law as prior), so that there is one from the start and a rare type
never has rate 0, which no rota would serve.

*Drift* must be significant and material. Significant: the signed root of the deviance of n from what the plan expects, which is normal
far into the tails, passes z. A normal process that forgets in this way passes z about z·φ(z) times per window, so z is chosen such that all
types, rates and sizes, up and down, together give one false alarm in `WINDOWS_PER_FALSE_ALARM` windows, however often one looks. Material:
the work of the type, rate times mean size, changes by more than a quarter, and the load by more than `LEAST_LOAD`.

There is one window and no shorter one beside it: what comes back every day is not drift, and a window of a day or more does not see it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rota.display import rough_duration
from rota.errors import BadSpec, Problem
from rota.live.planning.counting import Arrivals, Ends

__all__ = ["Drift", "Estimate", "Learner"]

DAY_S = 86_400.0
PRIOR = 2.0  # the weight of the plan, in jobs
LEAST_JOBS = 20.0  # effective jobs, seen or expected, before a drift is reported
LEAST_CHANGE = 0.25  # relative change of the type's work (a decrease: by the same factor)
LEAST_LOAD = 0.02  # change of the load; or of the share of all work if the load of a slot is unknown
WINDOWS_PER_FALSE_ALARM = 1000.0
_BURST = 0.05  # arrivals within so many mean gaps (of the plan) of the first one are one burst


@dataclass(frozen=True)
class Estimate:
    """What was learnt by time `t`; one entry per type, in seconds. Errors are relative standard errors."""

    t: float
    arrival_rate: tuple[float, ...]
    mean_size_s: tuple[float, ...]
    jobs: tuple[float, ...]  # arrivals in the window, the older ones counting less
    ends: tuple[float, ...]
    arrival_error: tuple[float, ...]
    size_error: tuple[float, ...]
    span_s: float  # the time covered: the window, or less at the beginning
    load: float | None  # a lower bound on the system load, exact while the plan's bottleneck stays the same; None if slots have no price
    load_error: float | None  # its standard error

    @property
    def overload(self) -> str:
        """A warning if the load is not below 1, with a confidence of 95 %; '' otherwise."""
        if self.load is None or self.load_error is None or self.load - 1.645 * self.load_error < 1:
            return ""
        return f"the load is {self.load:.3g} ± {1.96 * self.load_error:.2g}: {self.load - 1:.1%} more work comes than the server can do"

    @property
    def basis(self) -> str:
        """What the load was estimated from. Soon after the start, arrivals are known much better than sizes."""
        seen = f"{sum(self.jobs):,.0f} jobs came and {sum(self.ends):,.0f} ended in the last {rough_duration(self.span_s)}"
        return f"the work that arrives, not what runs now: {seen}, beside {PRIOR:g} of each type as planned"

    @property
    def work(self) -> tuple[float, ...]:
        """Mean number of busy slots that each type needs."""
        return tuple(rate * size for rate, size in zip(self.arrival_rate, self.mean_size_s, strict=True))


@dataclass(frozen=True)
class Drift:
    """Rates or sizes that no longer agree with the plan. `reason` is a text; `z` is the largest deviation, in standard deviations."""

    types: tuple[str, ...]
    reason: str
    z: float


class Learner:
    """Counts arrivals, jobs in service and ends. Times are in seconds, of any clock that does not step back.

    The plan: `arrival_rate` per second, `mean_size` in seconds, where known `size_cv` (1 if exponential) and `slot_load`, what one busy
    slot of a type adds to the load (`Load.type_price`).
    """

    def __init__(
        self,
        names: Sequence[str],
        arrival_rate: Sequence[float],
        mean_size: Sequence[float],
        window_s: float = DAY_S,
        *,
        size_cv: Sequence[float] | None = None,
        slot_load: Sequence[float] | None = None,
        t: float = 0.0,
    ) -> None:
        self.names = tuple(names)
        if not (window_s > 0 and math.isfinite(window_s)):
            raise BadSpec([Problem("window_s", "must be positive and finite", window_s)])
        self.window_s = float(window_s)
        self._arrivals = [Arrivals(t) for _ in self.names]
        self._ends = [Ends(t) for _ in self.names]
        self._resumed, self._paused_s = -math.inf, 0.0  # when a state was restored, and how long nothing was counted before that
        self._z = _threshold(4 * max(len(self.names), 1) * WINDOWS_PER_FALSE_ALARM)
        self.replan(arrival_rate, mean_size, size_cv=size_cv, slot_load=slot_load)

    def replan(
        self,
        arrival_rate: Sequence[float],
        mean_size: Sequence[float],
        *,
        size_cv: Sequence[float] | None = None,
        slot_load: Sequence[float] | None = None,
    ) -> None:
        """Compares with another plan from now on; what was seen is kept."""
        K = len(self.names)
        self.planned_rate = tuple(float(rate) for rate in arrival_rate)
        self.planned_size = tuple(float(size) for size in mean_size)
        self._cv2 = tuple(float(cv) ** 2 for cv in size_cv) if size_cv is not None else (1.0,) * K
        self._slot_load = None if slot_load is None else tuple(float(price) for price in slot_load)
        problems = [
            Problem(field, f"needs {K} entries, one per type", len(values))
            for field, values in [
                ("arrival_rate", self.planned_rate),
                ("mean_size", self.planned_size),
                ("size_cv", self._cv2),
                ("slot_load", self._slot_load or (0.0,) * K),
            ]
            if len(values) != K
        ]
        problems += [Problem("arrival_rate", "must be finite and not negative", x) for x in self.planned_rate if not 0 <= x < math.inf]
        problems += [Problem("mean_size", "must be positive and finite", x) for x in self.planned_size if not 0 < x < math.inf]
        if problems:
            raise BadSpec(problems)
        self._burst_s = tuple(_BURST / rate if rate > 0 else 0.0 for rate in self.planned_rate)

    # ------------------------------------------------------------------------------------------------------ what happens

    def arrived(self, i: int, t: float, jobs: int = 1) -> None:
        """Jobs of type i join the queue (those of an array together)."""
        self._arrivals[i].add(t, jobs, self.window_s, self._burst_s[i])

    def withdrawn(self, i: int, t: float, arrived: float) -> None:
        """A job that arrived at `arrived` was cancelled before it ran: it counts as if it had never arrived."""
        if arrived < self._resumed:  # on the learner's clock, which stood still meanwhile
            arrived = min(arrived + self._paused_s, self._resumed)
        self._arrivals[i].withdraw(t, arrived, self.window_s)

    def serving(self, i: int, t: float, jobs: int) -> None:
        """Sets the number of type-i jobs in service from now on. Call it whenever the number changes (an end changes it, too)."""
        seen = self._ends[i]
        seen.advance(t, self.window_s)
        seen.speed = float(jobs)

    def finished(self, i: int, t: float, size_s: float) -> None:
        """A job of type i ended, successfully or not, after this time in service."""
        self._ends[i].add(t, size_s, self.window_s)

    # ------------------------------------------------------------------------------------------------------ what is known

    def estimate(self, t: float) -> Estimate:
        """Estimates of rates and sizes, drawn a little to the plan."""
        rates, sizes, errors, size_errors = [], [], [], []
        for i, (arrivals, ends) in enumerate(zip(self._arrivals, self._ends, strict=True)):
            arrivals.advance(t, self.window_s)
            ends.advance(t, self.window_s)
            n, x = arrivals.effective(arrivals.dispersion())
            planned = self.planned_rate[i]
            if planned > 0:
                rates.append((n + PRIOR) / (x + PRIOR / planned))
            else:  # a plan without the type says nothing about its rate
                rates.append(n / x if x > 0 else 0.0)
            m, y = ends.effective(ends.dispersion(self._cv2[i]))
            sizes.append((y + PRIOR * self.planned_size[i]) / (m + PRIOR))
            errors.append(1 / math.sqrt(n + PRIOR))
            size_errors.append(1 / math.sqrt(m + PRIOR))
        load = load_error = None
        if self._slot_load is not None:
            parts = [price * rate * size for price, rate, size in zip(self._slot_load, rates, sizes, strict=True)]
            load = sum(parts)
            load_error = math.sqrt(sum(part**2 * (a**2 + s**2) for part, a, s in zip(parts, errors, size_errors, strict=True)))
        return Estimate(
            t=t,
            arrival_rate=tuple(rates),
            mean_size_s=tuple(sizes),
            jobs=tuple(seen.count for seen in self._arrivals),
            ends=tuple(seen.count for seen in self._ends),
            arrival_error=tuple(errors),
            size_error=tuple(size_errors),
            span_s=self._arrivals[0].exposure if self._arrivals else 0.0,
            load=load,
            load_error=load_error,
        )

    def drift(self, estimate: Estimate) -> Drift | None:
        """The types that no longer agree with the plan, if any. It may be called as often as needed."""
        found = []
        for i, name in enumerate(self.names):
            arrivals, ends = self._arrivals[i], self._ends[i]
            n, x = arrivals.effective(arrivals.dispersion())
            m, y = ends.effective(ends.dispersion(self._cv2[i]))
            rate_z = _deviation(n, x * self.planned_rate[i])
            size_z = -_deviation(m, y / self.planned_size[i])  # fewer ends than expected: longer jobs
            # A change that is not significant counts as none: otherwise one significant change would let another one count.
            rate = estimate.arrival_rate[i] if abs(rate_z) > self._z else self.planned_rate[i]
            size = estimate.mean_size_s[i] if abs(size_z) > self._z else self.planned_size[i]
            if self._material(i, rate * size):
                span = f"over the last {rough_duration(estimate.span_s)}"
                texts = []
                if rate != self.planned_rate[i]:
                    texts.append(f"arrives at {_compared(rate, self.planned_rate[i], _per)}, {span} ({estimate.jobs[i]:.0f} jobs)")
                if size != self.planned_size[i]:
                    texts.append(f"takes {_compared(size, self.planned_size[i], rough_duration)}, {span} ({estimate.ends[i]:.0f} ends)")
                found.append((max(abs(rate_z), abs(size_z)), name, f"{name} {' and '.join(texts)}"))
        if not found:
            return None
        found.sort(reverse=True)
        return Drift(tuple(name for _, name, _ in found), "; ".join(text for _, _, text in found), found[0][0])

    def _material(self, i: int, work: float) -> bool:
        planned = [rate * size for rate, size in zip(self.planned_rate, self.planned_size, strict=True)]
        if max(work, planned[i]) <= min(work, planned[i]) * (1 + LEAST_CHANGE):
            return False
        total = sum(planned)
        price = self._slot_load[i] if self._slot_load is not None else (1 / total if total > 0 else math.inf)
        return abs(work - planned[i]) * price > LEAST_LOAD

    # ------------------------------------------------------------------------------------------------------ kept over restarts

    def state(self, t: float) -> dict[str, Any]:
        """What was seen so far, as plain data for JSON, without the plan."""
        for seen in (*self._arrivals, *self._ends):
            seen.advance(t, self.window_s)
        return {
            "version": 1,
            "window_s": self.window_s,
            "types": {
                name: {
                    kind: {field: (None if (x := getattr(seen, field)) == -math.inf else x) for field in seen.FIELDS}
                    for kind, seen in (("arrivals", self._arrivals[i]), ("ends", self._ends[i]))
                }
                | {
                    "bursts": [
                        [self._arrivals[i].at - first, self._arrivals[i].at - last, n] for first, last, n in self._arrivals[i].recent
                    ]
                }
                for i, name in enumerate(self.names)
            },
        }

    def restore(self, state: Mapping[str, Any], t: float, paused_s: float = 0.0) -> None:
        """Restores a `state` at time `t`, which may be of another clock. The time between does not count: no jobs could be submitted.

        `paused_s` is the length of that time, 0 if it is unknown.

        Types are found by name; new ones start empty. Call `serving` next.
        """
        if state.get("version") != 1 or state.get("window_s") != self.window_s:
            return  # another window weights the past differently: start empty
        for i, name in enumerate(self.names):
            saved = state["types"].get(name)
            if saved is None:
                continue
            for seen, values in ((self._arrivals[i], saved["arrivals"]), (self._ends[i], saved["ends"])):
                for field in seen.FIELDS:
                    value = values[field]
                    setattr(seen, field, -math.inf if value is None else float(value))
                seen.at = t
            self._arrivals[i].until = -math.inf
            self._arrivals[i].recent = [[t - first, t - last, n] for first, last, n in saved.get("bursts", ())]
            self._ends[i].speed = 0.0
        self._resumed, self._paused_s = t, paused_s


# ---------------------------------------------------------------------------------------------------------- the arithmetic


def _deviation(n: float, m: float) -> float:
    """How far a Poisson count n lies from its mean m, in standard deviations of a normal law: the signed root of the deviance."""
    if max(n, m) < LEAST_JOBS:
        return 0.0
    if m <= 0:
        return math.inf
    deviance = 2 * ((n * math.log(n / m) if n > 0 else 0.0) - (n - m))
    return math.copysign(math.sqrt(max(deviance, 0.0)), n - m)


def _threshold(times: float) -> float:
    """The z with times · z φ(z) = 1: the level that a normal process with memory passes once in `times` times its memory."""
    z = 4.0
    for _ in range(50):  # z = √(2 ln(times z / √2π)), a contraction
        z = math.sqrt(2 * math.log(max(times * z / math.sqrt(2 * math.pi), 2.0)))
    return z


def _per(rate: float) -> str:
    """A rate in the smallest unit in which it is at least about one."""
    for unit, length in (("second", 1.0), ("minute", 60.0), ("hour", 3_600.0)):
        if rate * length >= 0.3:
            return f"{rate * length:.2g} per {unit}"
    return f"{rate * 86_400:.2g} per day"


def _compared(now: float, planned: float, text: Any) -> str:
    if planned == 0:
        return f"{text(now)}, where the plan has none"
    return f"{text(now)}, {now / planned:.2g} times the plan's {text(planned)}"
