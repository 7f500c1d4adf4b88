"""How fast to switch: the choice of α (Sections "Choosing a pMSR Policy" to "Choosing an sMSR Policy").

pMSR   faster is better; as α → ∞ type i sees the mean rate μ_i E[min(q, u_i)] at q jobs, a birth–death queue. The rule: the smallest α
whose        E[T] is within `loss` of that limit.
nMSR, sMSR   too slow makes queues grow while the other types are served, too fast wastes time on switching: α* minimises E[T], exactly or
by        the prediction or a bound. With the bounds, E[T](chosen α) / min_α E[T] ≤ upper bound at the choice / min_α lower bound:
`guarantee`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numba as nb
import numpy as np
from scipy.optimize import minimize_scalar

from rota.analysis import Analysis
from rota.arrays import Array, Int
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import System
from rota.policy import MSR
from rota.process import TIMER, ModulatingProcess, build_process
from rota.process.build import check_policy

__all__ = ["SwitchingRate", "Yardstick", "choose_switching_rate", "fast_switching_limit", "measure"]

Yardstick = Literal["exact", "prediction", "upper", "lower"]

_GRID = 33
_FASTEST = 10.0  # times the fastest completion or setup of the process
_USEFUL = 1.0  # a rate that is only known to be within a factor of two of the best is not known to be good
_EXACT_STATES = 400  # up to so many states the exact value is the default yardstick


@dataclass(frozen=True)
class SwitchingRate:
    """A choice of α: the policy with it, the E[T] it was chosen by, and how far it can be from the best α at most (relative).

    `guarantee` 0.1 means: within 10 % of the best; above 1 it is not `useful`, and `explain` says so. It is over all α for preemption
    "full"; else over those up to ten times the fastest completion or setup of the process, beyond which working states are hardly ever
    seen. `limit`: for preemption "full", E[T] as α → ∞.
    """

    policy: MSR
    rate: float
    mean_response_time: float
    by: Yardstick
    guarantee: float
    limit: float | None = None

    @property
    def useful(self) -> bool:
        """Whether the guarantee says anything: within a factor of two of the best."""
        return self.guarantee <= _USEFUL

    def explain(self) -> str:
        """How good the choice is, in words."""
        if self.limit is not None:
            return f"The mean response time is within {self.guarantee:.1%} of that of ever faster switching."
        if self.by == "exact":
            return "The switching rate is the best one."
        yardstick = self.by if self.by == "prediction" else f"{self.by} bound"
        if self.useful:
            return f"The switching rate, chosen by the {yardstick}, is within {self.guarantee:.1%} of the best one: the bounds prove it."
        return (
            f"The switching rate was chosen by the {yardstick}. The bounds prove nothing useful about it: they leave room for one that is "
            f"better by a factor of {1 + self.guarantee:.3g}. Simulate it beside others."
        )


def measure(analysis: Analysis, by: Yardstick) -> float:
    """E[T] by this yardstick; infinite if unstable."""
    if not analysis.stable:
        return np.inf
    return analysis.little(getattr(analysis, by))


def _least(analysis: Analysis) -> float:
    """A lower bound on E[T]: there are never fewer jobs than busy slots, λ_i/μ_i on average, where the bound of the theorem says less."""
    return analysis.little(np.maximum(analysis.lower, analysis.system.offered_work))


def choose_switching_rate(system: System, policy: MSR, *, by: Yardstick | None = None, loss: float = 0.01) -> SwitchingRate:
    """The policy with the best switching rate; sizes are taken as exponential. `policy.switching_rate` is ignored."""
    check_policy(system, policy)
    if by is not None and by not in get_args(Yardstick):
        raise BadSpec([Problem("by", f"must be one of {', '.join(get_args(Yardstick))}", by)])
    at = _Rates(system, policy)
    if by is None:
        by = "exact" if len(at.process) <= _EXACT_STATES else "prediction"
    if len(policy.weights) == 1:
        value = measure(at(1.0), by)
        return SwitchingRate(policy, policy.switching_rate, value, by, 0.0)
    return _fast_enough(at, by, loss) if policy.preemption == "full" else _best(at, by)


class _Rates:
    """The analysis of one policy at any switching rate; only the timers of the process change."""

    def __init__(self, system: System, policy: MSR) -> None:
        self.system, self.policy = system, policy
        self.process: ModulatingProcess = build_process(system, policy.replace(switching_rate=1.0))

    def __call__(self, rate: float) -> Analysis:
        return Analysis(self.system, None, self.process.with_timers(rate), sizes="exponential")

    def chosen(self, rate: float) -> MSR:
        return self.policy.replace(switching_rate=rate)


def _fast_enough(at: _Rates, by: Yardstick, loss: float) -> SwitchingRate:
    at(1.0).require_stable()
    limit = at(1.0).little(fast_switching_limit(at.system, at.policy))
    # Queues feel the clock when it ticks as often as jobs end: start there and double.
    rate = float(at.system.service_rate.max())
    while at(rate).mean_response_time > (1 + loss) * limit:
        rate *= 2
        if rate > 1e12 * at.system.service_rate.max():
            raise Infeasible(f"no switching rate comes within {loss:.3g} of the limit")
    value = measure(at(rate), by)
    return SwitchingRate(at.chosen(rate), rate, value, by, at(rate).mean_response_time / limit - 1, limit)


def _best(at: _Rates, by: Yardstick) -> SwitchingRate:
    low, high = _range(at)
    grid = np.geomspace(low, high, _GRID)
    cheap: Yardstick = "prediction" if by == "exact" else by
    rough = np.array([measure(at(rate), cheap) for rate in grid])
    if not np.isfinite(rough).any():
        raise Unstable(_too_slow(at))
    k, before = int(np.argmin(rough)), np.inf
    while True:
        around = float(np.log(grid[max(k - 2, 0)])), float(np.log(grid[min(k + 2, _GRID - 1)]))
        rate, value = minimize_on_log_scale(lambda rate: measure(at(rate), by), *around)
        nearest = int(np.abs(np.log(grid / rate)).argmin())
        if abs(nearest - k) < 2 or not value < before:  # else it falls further beyond the edge of where the cheap yardstick is least
            break
        k, before = nearest, value
    _, least = minimize_on_log_scale(lambda rate: _least(at(rate)), *around)
    least = min(least, min(_least(at(rate)) for rate in grid))
    guarantee = 1e-6 if by == "exact" else measure(at(rate), "upper") / least - 1
    return SwitchingRate(at.chosen(rate), rate, value, by, guarantee)


def _range(at: _Rates) -> tuple[float, float]:
    """From far too slow to the edge of stability, or to far too fast: there working states are hardly ever seen."""
    high = _FASTEST * float(at.process.rate[at.process.trigger != TIMER].max())
    if not at(high).stable:
        low = high
        while not at(low).stable:
            low /= 4
            if low < 1e-15 * high:
                raise Unstable(_too_slow(at))
        for _ in range(60):
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if at(middle).stable else (low, middle)
        high = low
    return high * 1e-6, high


def _too_slow(at: _Rates) -> str:
    analysis = at(1e-12)
    i = int(np.argmax(analysis.load))
    return f"load {analysis.load[i]:.4g} of type {at.system.names[i]!r} is not below 1 at any switching rate"


def minimize_on_log_scale(value: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The minimum of a function of a positive number between e^low and e^high."""
    found = minimize_scalar(lambda x: value(float(np.exp(x))), bounds=(low, high), method="bounded", options={"xatol": 1e-5})
    return float(np.exp(found.x)), float(found.fun)


def fast_switching_limit(system: System, policy: MSR) -> Array:
    """E[Q_i] of a pMSR as α → ∞ (K,): a birth–death queue with death rate μ_i Σ_s π_s min(q, W_si) at q jobs."""
    queues = np.zeros(len(system.names))
    for i, (lam, mu) in enumerate(zip(system.arrival_rate, system.service_rate, strict=True)):
        if lam > 0:
            queues[i] = _birth_and_death(lam, mu, policy.weights, policy.candidates[:, i])
    return queues


@nb.njit(cache=True)
def _birth_and_death(lam: float, mu: float, weights: Array, slots: Int) -> float:
    """E[Q] of a queue with death rate d_q = μ Σ_s π_s min(q, u_s) at q jobs, d_q = d_β from β = max u_s on.

    With room for q jobs only, let B_q be the probability of q jobs and L_q their mean number (Erlang's recursion, in which every term is
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
