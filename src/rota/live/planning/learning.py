"""What the scheduler learns: how often each type arrives and how long its jobs run; and whether that is still what was planned.

Arrivals and ends are both counts against an exposure, and are treated alike (`counting`):

    arrivals    per second of time               rate λ
    ends        per second of time in service    rate μ, and mean size 1/μ

*Why time in service.* The mean of the jobs that have ended is too low at first, since the short ones end first. Ends over time in service,
that of running jobs included, is the likelihood estimate for exponential sizes under this censoring, and tends to 1/E[S] for every law of
sizes (in the long run each job brings its size and one end). For sizes that vary less than exponential ones it begins a little high, by
about half a size over the time seen; that errs on the side of more load.

*Forgetting.* What happened s seconds ago counts e^(−s/window). If Y is such a count, x the exposure weighted in the same way and v the
exposure weighted by the square, then Y has mean λx and variance λv: as much as a Poisson count of mean λx²/v. So n = Y·x/v is the effective
number of jobs, in the long run twice those that arrive in a window. What is not independent counts less: arrivals in one burst (an array,
a loop that submits) by the size-weighted mean burst, ends by the squared coefficient of variation of the sizes.

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
PRIOR = 2.0  # jobs that the plan counts for
LEAST_JOBS = 20.0  # effective jobs, seen or expected, before anything is said
LEAST_CHANGE = 0.25  # of the type's work, relative (down: by the same factor)
LEAST_LOAD = 0.02  # change of the load, or of the share in all work where the load of a slot is not known
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
    span_s: float  # how much time that is: the window, or less at the beginning
    load: float | None  # a lower bound on the system load, exact while the plan's bottleneck stays the same; None if slots have no price
    load_error: float | None  # its standard error

    @property
    def overload(self) -> str:
        """Words for a load that is surely (nineteen times in twenty) not below 1; '' otherwise."""
        if self.load is None or self.load_error is None or self.load - 1.645 * self.load_error < 1:
            return ""
        return f"the load is {self.load:.3g} ± {1.96 * self.load_error:.2g}: {self.load - 1:.1%} more work comes than the server can do"

    @property
    def basis(self) -> str:
        """What the load was estimated from. Short jobs after a fresh start say much about arrivals and little about sizes."""
        seen = f"{sum(self.jobs):,.0f} jobs came and {sum(self.ends):,.0f} ended in the last {rough_duration(self.span_s)}"
        return f"the work that arrives, not what runs now: {seen}, beside {PRIOR:g} of each type as planned"

    @property
    def work(self) -> tuple[float, ...]:
        """Mean number of busy slots that each type needs."""
        return tuple(rate * size for rate, size in zip(self.arrival_rate, self.mean_size_s, strict=True))


@dataclass(frozen=True)
class Drift:
    """Rates or sizes that are no longer the planned ones. `reason` says it in words; `z` is how far the worst is out, in deviations."""

    types: tuple[str, ...]
    reason: str
    z: float


class Learner:
    """Follows arrivals, jobs in service and ends by their times in seconds, by any clock that does not step back.

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
        self._resumed, self._paused_s = -math.inf, 0.0  # when a state was taken up, and how long nobody had counted before
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
        """Another plan to hold what is seen against; what was seen is kept."""
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
        """A job that arrived at `arrived` was cancelled before it ran: as if it had never come."""
        if arrived < self._resumed:  # by the clock that stood still meanwhile
            arrived = min(arrived + self._paused_s, self._resumed)
        self._arrivals[i].withdraw(t, arrived, self.window_s)

    def serving(self, i: int, t: float, jobs: int) -> None:
        """From now on so many jobs of type i are in service. To be called when the number changes (an end changes it, too)."""
        seen = self._ends[i]
        seen.advance(t, self.window_s)
        seen.speed = float(jobs)

    def finished(self, i: int, t: float, size_s: float) -> None:
        """A job of type i ended, well or not, after so much time in service."""
        self._ends[i].add(t, size_s, self.window_s)

    # ------------------------------------------------------------------------------------------------------ what is known

    def estimate(self, t: float) -> Estimate:
        """Rates and sizes as seen, drawn a little to the plan."""
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
        """Which types are no longer as planned, if any; to be asked as often as one likes."""
        found = []
        for i, name in enumerate(self.names):
            arrivals, ends = self._arrivals[i], self._ends[i]
            n, x = arrivals.effective(arrivals.dispersion())
            m, y = ends.effective(ends.dispersion(self._cv2[i]))
            rate_z = _deviation(n, x * self.planned_rate[i])
            size_z = -_deviation(m, y / self.planned_size[i])  # fewer ends than expected: longer jobs
            # What is not significant is taken as planned: else one sure change would let an unsure one count.
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
        """What was seen by now, as plain data for JSON; the plan is not in it."""
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
        """Takes up a `state` at time `t`: the clock may be another one, and the time between does not count, for nobody could submit.

        `paused_s` is how long that was, as far as it is known.

        Types are found by name; new ones begin anew. Say how many jobs are `serving` next.
        """
        if state.get("version") != 1 or state.get("window_s") != self.window_s:
            return  # another window weighs the past differently: begin anew
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
    """The z with times · z φ(z) = 1: the level that a normal process with memory passes once in so many times its memory."""
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
