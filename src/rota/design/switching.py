"""How fast to switch: the choice of α (Sections "Choosing a pMSR Policy" to "Choosing an sMSR Policy").

pMSR   faster is better; as α → ∞ type i sees the mean rate μ_i E[min(q, u_i)] at q jobs, a birth–death queue. The rule: the smallest α
whose        E[T] is within `loss` of that limit.
nMSR, sMSR   too slow makes queues grow while the other types are served, too fast wastes time on switching: α* minimises E[T], exactly or
by        the prediction or a bound. With the bounds, E[T](chosen α) / min_α E[T] ≤ upper bound at the choice / min_α lower bound:
`guarantee`.

E[T] is exact where that is estimated to fit the time limit; otherwise, and where exact values do not converge, the prediction decides.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numba as nb
import numpy as np
from scipy.optimize import minimize_scalar

from rota.analysis import Analysis
from rota.analysis.means import require_poisson
from rota.arrays import Array, Int
from rota.design.deadline import Deadline, OutOfTime
from rota.errors import BadSpec, Infeasible, NotConverged, Problem, Unstable
from rota.model import System
from rota.policy import MSR
from rota.process import TIMER, ModulatingProcess, build_process
from rota.process.build import check_policy
from rota.threads import one_thread

__all__ = ["SwitchingRate", "Yardstick", "choose_switching_rate", "fast_switching_limit", "measure"]

Yardstick = Literal["exact", "prediction", "upper", "lower"]

_GRID = 33
_FASTEST = 10.0  # times the fastest completion or setup of the process
_USEFUL = 1.0  # a larger guarantee (more than a factor of two from the best) says nothing useful
_SEARCH = 25  # exact values that the choice of a rate takes, about
_PATIENCE_S = 30.0  # the time they may take where no time limit is given
_ALWAYS_S = 1.0  # what is estimated to take less is always done
_LIGHT = 100_000  # states times types of a loop whose prediction is a matter of milliseconds
_FEW = 1000  # slots of a type that stand for more where exact values take too long


@dataclass(frozen=True)
class SwitchingRate:
    """A choice of α: the policy with it, the E[T] it was chosen by, and how far it can be from the best α at most (relative).

    `guarantee` 0.1 means: within 10 % of the best; above 1 it is not `useful`, and `explain` says so. It is over all α for preemption
    "full"; else over those up to ten times the fastest completion or setup of the process, beyond which working states are hardly ever
    seen; infinite if nothing is proved. `limit`: for preemption "full", E[T] as α → ∞. `remark` says why the yardstick is not the exact
    E[T] where that was wanted; empty otherwise.
    """

    policy: MSR
    rate: float
    mean_response_time: float
    by: Yardstick
    guarantee: float
    limit: float | None = None
    remark: str = ""

    @property
    def useful(self) -> bool:
        """Whether the guarantee says anything: within a factor of two of the best."""
        return self.guarantee <= _USEFUL

    def explain(self) -> str:
        """How good the choice is, in words."""
        if self.limit is not None:
            return f"The mean response time is within {self.guarantee:.1%} of that of ever faster switching."
        if self.by == "exact" and np.isinf(self.guarantee):
            return "The switching rate is that for Poisson arrivals of the same rates."
        if self.by == "exact":
            return "The switching rate is the best one."
        yardstick = self.by if self.by == "prediction" else f"{self.by} bound"
        if self.useful:
            return f"The switching rate, chosen by the {yardstick}, is within {self.guarantee:.1%} of the best one: the bounds prove it."
        return (
            f"The switching rate was chosen by the {yardstick}. The bounds prove nothing useful about it: they allow for one that is "
            f"better by a factor of {1 + self.guarantee:.3g}. Simulate it beside others."
        )


def measure(analysis: Analysis, by: Yardstick) -> float:
    """E[T] by this yardstick; infinite if unstable."""
    if not analysis.stable:
        return np.inf
    return analysis.little(analysis.exact_means if by == "exact" else getattr(analysis, by))


def choose_switching_rate(
    system: System, policy: MSR, *, by: Yardstick | None = None, loss: float = 0.01, time_limit_s: float | None = None
) -> SwitchingRate:
    """The policy with the best switching rate; sizes are taken as exponential. `policy.switching_rate` is ignored.

    `by` None means: the exact E[T] if that is estimated to fit `time_limit_s` (or half a minute), otherwise the prediction. When the time
    is over, the best rate by the prediction found so far is the answer, and `remark` says so. What takes less than a second is done anyway.
    With preemption "full" the rate is that for Poisson arrivals of the same rates, whatever the arrivals are; `remark` says that too.
    """
    if time_limit_s is not None and not time_limit_s >= 0:
        raise BadSpec([Problem("time_limit_s", "must not be negative", time_limit_s)])
    return choose_within(Deadline.after(time_limit_s), system, policy, by, loss)


@one_thread()
def choose_within(deadline: Deadline, system: System, policy: MSR, by: Yardstick | None = None, loss: float = 0.01) -> SwitchingRate:
    """`choose_switching_rate` with a time limit that began before."""
    check_policy(system, policy)
    if by is not None and by not in get_args(Yardstick):
        raise BadSpec([Problem("by", f"must be one of {', '.join(get_args(Yardstick))}", by)])
    _require_stable_when_slow(system, policy)
    if system.bursty and policy.preemption == "full":
        found = choose_within(deadline, system.with_poisson_arrivals(), policy, by, loss)
        value = measure(Analysis(system, None, build_process(system, found.policy), sizes="exponential"), found.by)
        remark = f"the arrivals of {system.bursty[0]!r} are not Poisson: the switching rate is that for Poisson arrivals of the same rates"
        return replace(found, mean_response_time=value, guarantee=np.inf, limit=None, remark=remark)
    at = Rates(system, policy, deadline)
    start = at(1.0)
    exact_s = _SEARCH * start.exact_time_s
    if exact_s <= _ALWAYS_S:
        at.deadline = Deadline.after(None)
    if len(policy.weights) == 1:
        start.require_stable()
    wanted: Yardstick = by or "exact"
    needed = by is None or (by != "exact" and policy.preemption == "full")  # exact values are computed if they are asked for
    if needed and exact_s > max(min(_PATIENCE_S, deadline.budget_s), _ALWAYS_S):
        size = f"{len(at.process):,} states, up to {int(at.process.schedules.max()):,} jobs of a type at once"
        return at.by_prediction(loss, f"exact values of this process ({size}) take too long")
    try:
        return at.search(wanted, loss)
    except OutOfTime:
        return at.by_prediction(loss, f"exact values took longer than the time limit of {deadline.budget_s:g} s")
    except NotConverged as problem:
        if by is not None:
            raise NotConverged(f"{problem}: choose the switching rate by the prediction or a bound") from None
        return at.by_prediction(loss, f"exact values did not converge ({problem})")


def _require_stable_when_slow(system: System, policy: MSR) -> None:
    """Raises where no switching rate is slow enough: switching only takes time from the working states, which have the weights given."""
    served = policy.weights @ policy.candidates
    arrives = system.arrival_rate > 0
    if (arrives & (served == 0)).any():
        i = int(np.argmax(arrives & (served == 0)))
        raise Unstable(f"type {system.names[i]!r} arrives but is in no schedule of the policy")
    load = np.divide(system.offered_work, served, out=np.zeros(len(served)), where=arrives)
    i = int(np.argmax(load))
    if load[i] >= 1 and policy.preemption != "full" and len(policy.weights) > 1:
        raise Unstable(_too_slow(system, i, load[i]))


def _too_slow(system: System, i: int, load: float) -> str:
    return f"load {load:.4g} of type {system.names[i]!r} is not below 1 at any switching rate"


class Rates:
    """The analysis of one policy at any switching rate; only the timers of the process change."""

    def __init__(self, system: System, policy: MSR, deadline: Deadline) -> None:
        self.system, self.policy, self.deadline = system, policy, deadline
        self.process: ModulatingProcess = build_process(system, policy.replace(switching_rate=1.0))
        self._analyses = lru_cache(maxsize=2 * _GRID)(self._analysis)

    def __call__(self, rate: float) -> Analysis:
        return self._analyses(rate)

    def _analysis(self, rate: float) -> Analysis:
        return Analysis(self.system, None, self.process.with_timers(rate), sizes="exponential")

    def reduced(self, system: System, schedules: Int) -> Rates:
        """The same process with other arrival rates and other numbers of slots."""
        other = copy(self)
        other.system, other.process = system, replace(self.process, schedules=schedules, held=schedules.copy())
        other._analyses = lru_cache(maxsize=2 * _GRID)(other._analysis)
        return other

    def value(self, rate: float, by: Yardstick) -> float:
        """E[T] by this yardstick, as long as there is time."""
        self.deadline.check()
        return measure(self(rate), by)

    def least(self, rate: float) -> float:
        """A lower bound on E[T]: there are never fewer jobs than busy slots, λ_i/μ_i on average, where that of the theorem says less."""
        self.deadline.check()
        analysis = self(rate)
        return analysis.little(np.maximum(analysis.lower, analysis.system.offered_work))

    def chosen(self, rate: float) -> MSR:
        return self.policy.replace(switching_rate=rate)

    def search(self, by: Yardstick, loss: float) -> SwitchingRate:
        if len(self.policy.weights) == 1:
            return SwitchingRate(self.policy, self.policy.switching_rate, self.value(1.0, by), by, 0.0)
        return _fast_enough(self, by, loss) if self.policy.preemption == "full" else _best(self, by)

    def by_prediction(self, loss: float, remark: str) -> SwitchingRate:
        """The choice by the prediction, with the reason. For a loop that is not huge it takes no noticeable time, so no clock ends it."""
        if self.process.loop is not None and self.process.schedules.size <= _LIGHT:
            self.deadline = Deadline.after(None)
        if self.policy.preemption == "full" and len(self.policy.weights) > 1:
            try:
                found = _fast_enough_in_small(self, loss)
            except NotConverged:
                found = _predicted_fast_enough(self, loss)
        elif len(self.policy.weights) == 1:
            found = SwitchingRate(self.policy, self.policy.switching_rate, measure(self(1.0), "prediction"), "prediction", 0.0)
        else:
            found = _best(self, "prediction")
        return replace(found, remark=f"{remark}: the prediction decided")


def _fast_enough(at: Rates, by: Yardstick, loss: float) -> SwitchingRate:
    at(1.0).require_stable()
    limit = at(1.0).little(fast_switching_limit(at.system, at.policy))
    rate = _first_within(at, lambda rate: at.value(rate, "exact"), limit, loss)
    value = measure(at(rate), by)
    return SwitchingRate(at.chosen(rate), rate, value, by, at(rate).mean_response_time / limit - 1, limit)


def _fast_enough_in_small(at: Rates, loss: float) -> SwitchingRate:
    """`_fast_enough` on the same rota with a part of each type's slots and arrivals, where exact values take little time.

    Types are independent given the process, and with many slots E[Q_i] grows in proportion to them (a fluid limit), so what is lost against
    the limit α → ∞ hardly depends on how many there are. That proves nothing: `guarantee` is infinite.
    """
    at(1.0).require_stable()
    slots = at.process.schedules
    part = np.minimum(_FEW / np.maximum(slots.max(axis=0), 1), 1.0)
    few = np.ceil(slots * part).astype(np.int64)
    before, after = at.process.mean_schedule, at.process.stationary @ few
    arrivals = at.system.arrival_rate * np.divide(after, before, out=np.zeros(len(before)), where=before > 0)  # so that loads stay
    small = at.reduced(at.system.replace(arrival_rate=arrivals), few)
    policy = at.policy.replace(candidates=few[np.argsort(at.process.candidate)])
    per_type = fast_switching_limit(small.system, policy)
    weight = np.divide(before, after, out=np.zeros(len(before)), where=after > 0)

    def value(rate: float) -> float:
        return float(small(rate).exact @ weight)

    rate = _first_within(at, value, float(per_type @ weight), loss)
    limit = at(1.0).little(fast_switching_limit(at.system, at.policy))
    estimate = limit * value(rate) / float(per_type @ weight)
    return SwitchingRate(at.chosen(rate), rate, estimate, "prediction", np.inf, limit)


def _predicted_fast_enough(at: Rates, loss: float) -> SwitchingRate:
    """The first rate whose prediction is within the loss of the prediction for ever faster switching. That proves nothing either."""
    limit = at(1.0).little(fast_switching_limit(at.system, at.policy))
    fastest = measure(at(1e9 * float(at.system.service_rate.max())), "prediction")
    rate = _first_within(at, lambda rate: measure(at(rate), "prediction"), fastest, loss)
    return SwitchingRate(at.chosen(rate), rate, measure(at(rate), "prediction"), "prediction", np.inf, limit)


def _first_within(at: Rates, value: Callable[[float], float], limit: float, loss: float) -> float:
    # The switching rate matters to queues once it is as high as the rate at which jobs end: start there and double.
    rate = float(at.system.service_rate.max())
    while value(rate) > (1 + loss) * limit:
        rate *= 2
        if rate > 1e12 * at.system.service_rate.max():
            raise Infeasible(f"no switching rate comes within {loss:.3g} of the limit")
    return rate


def _best(at: Rates, by: Yardstick) -> SwitchingRate:
    low, high = _range(at)
    grid = np.geomspace(low, high, _GRID)
    cheap: Yardstick = "prediction" if by == "exact" else by
    rough = _scanned(at, grid, cheap)
    if not np.isfinite(rough).any():
        raise Unstable(_unstable_at_any_rate(at))
    k, before = int(np.argmin(rough)), np.inf
    rate, value = float(grid[k]), float(rough[k])
    try:
        while True:
            around = float(np.log(grid[max(k - 2, 0)])), float(np.log(grid[min(k + 2, _GRID - 1)]))
            rate, value = minimize_on_log_scale(lambda rate: at.value(rate, by), *around)
            nearest = int(np.abs(np.log(grid / rate)).argmin())
            if abs(nearest - k) < 2 or not value < before:  # else it falls further beyond the edge of where the cheap yardstick is least
                break
            k, before = nearest, value
        if by == "exact":
            return SwitchingRate(at.chosen(rate), rate, value, by, 1e-6)
        least = min(minimize_on_log_scale(at.least, *around)[1], *(at.least(float(rate)) for rate in grid))
    except OutOfTime:
        if by == "exact":
            raise
        return SwitchingRate(at.chosen(rate), rate, value, by, np.inf, remark="the time limit ended the search")
    return SwitchingRate(at.chosen(rate), rate, value, by, measure(at(rate), "upper") / least - 1)


def _scanned(at: Rates, grid: Array, by: Yardstick) -> Array:
    """E[T] at the rates of the grid, every fourth one first; infinite at those not evaluated when the time was over."""
    rough = np.full(len(grid), np.inf)
    first = np.arange(len(grid)) % 4 == 0
    for k in [*np.flatnonzero(first), *np.flatnonzero(~first)]:
        if not first[k] and at.deadline.left_s < 0 and np.isfinite(rough).any():
            break
        rough[k] = measure(at(float(grid[k])), by)
    return rough


def _range(at: Rates) -> tuple[float, float]:
    """From far too slow to the edge of stability, or to far too fast: there working states are hardly ever seen."""
    high = _FASTEST * float(at.process.rate[at.process.trigger != TIMER].max())
    if not at(high).stable:
        low = high
        while not at(low).stable:
            low /= 4
            if low < 1e-15 * high:
                raise Unstable(_unstable_at_any_rate(at))
        for _ in range(60):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if at(middle).stable else (low, middle)
        high = low
    return high * 1e-6, high


def _unstable_at_any_rate(at: Rates) -> str:
    load = at(1e-12).load
    i = int(np.argmax(load))
    return _too_slow(at.system, i, load[i])


def minimize_on_log_scale(value: Callable[[float], float], low: float, high: float, within: float = 1e-5) -> tuple[float, float]:
    """The minimum of a function of a positive number between e^low and e^high, to a relative accuracy `within` of that number."""
    found = minimize_scalar(lambda x: value(float(np.exp(x))), bounds=(low, high), method="bounded", options={"xatol": within})
    return float(np.exp(found.x)), float(found.fun)


def fast_switching_limit(system: System, policy: MSR) -> Array:
    """E[Q_i] of a pMSR as α → ∞ (K,): a birth–death queue with death rate μ_i Σ_s π_s min(q, W_si) at q jobs."""
    require_poisson(system)
    queues = np.zeros(len(system.names))
    for i, (lam, mu) in enumerate(zip(system.arrival_rate, system.service_rate, strict=True)):
        if lam > 0:
            queues[i] = _birth_and_death(lam, mu, policy.weights, policy.candidates[:, i])
    return queues


@nb.njit(cache=True)
def _birth_and_death(lam: float, mu: float, weights: Array, slots: Int) -> float:
    """E[Q] of a queue with death rate d_q = μ Σ_s π_s min(q, u_s) at q jobs, d_q = d_β from β = max u_s on.

    With space for q jobs only, let B_q be the probability of q jobs and L_q their mean number (Erlang's recursion, in which every term is
    positive and at most q, however many jobs there are):

        B_q = λ B_{q−1} / (d_q + λ B_{q−1}),   L_q = (1 − B_q) L_{q−1} + q B_q,   B_0 = 1, L_0 = 0

    From level β on the law is geometric with ratio r = λ/d_β.
    """
    beta = slots.max()
    blocked, mean, death = 1.0, 0.0, 0.0
    for q in range(1, beta + 1):
        death = 0.0
        for s in range(len(slots)):
            death += mu * weights[s] * min(q, slots[s])
        blocked = lam * blocked / (death + lam * blocked)
        mean += blocked * (q - mean)
    if lam >= death:
        return np.inf
    r = lam / death
    more = r / (1.0 - r)
    return float((mean + blocked * more * (beta + 1.0 / (1.0 - r))) / (1.0 + blocked * more))
