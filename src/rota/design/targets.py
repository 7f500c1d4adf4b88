"""How many slots each type should have on average, and what one more slot is worth.

With x slots a type waits about as in an M/M/x queue (Erlang C, continued to x that is not whole), a = λ/μ being its offered work:

    q(x) = a + C(x, a) a/(x − a),    a < x,      decreasing and convex

Every mix of schedules keeps y·x ≤ 1 for the prices y of the system load, and y·a = ρ. At a level τ between ρ and 1 there are two targets:

    in proportion      x = a τ/ρ                                    every type has the load ρ/τ
    by marginal value  min Σ q_i(x_i)  s.t.  y·x = τ                −q_i'(x_i) = ν y_i: types with few slots get more spare ones

The mix itself is found by `rota.capacity.cover`. What the schedules leave of the server is spent by the same marginal values, slot by slot.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincc, gammaln

from rota.arrays import Array, Int
from rota.capacity import Load, Units, integer_units
from rota.capacity.load import attain, system_load
from rota.errors import Infeasible
from rota.model import System

__all__ = ["Marginals", "Target", "best_single_schedule", "rounded_up", "spend_each", "spend_together"]

_STEPS = 60  # of a bisection
_POINTS = 400  # at which slopes are known
_SMALL_PRICE = 0.05  # what a type costs at least, as a part of its largest share of a resource
_LOAD_S = 0.3  # the load of a target need not be proved, only attained
_KNOWN = 500  # schedules that are kept to start from
_EDGE = 0.999  # the load of a target that was rounded up stays below this


@dataclass(frozen=True)
class Target:
    """Mean slots (K,), and the load of a system that offers so much work: at most 1."""

    slots: Array
    load: Load


class Marginals:
    """What slots are worth to the types of a system, and what they cost of it."""

    def __init__(self, system: System, best: Load) -> None:
        self.system, self.best = system, best
        self.units: Units = integer_units(system)
        self.work = system.offered_work
        self.arrives = self.work > 0
        share = (self.units.demand / self.units.capacity).max(axis=1)
        # A type that needs nothing scarce still needs something.
        self.price: Array = np.maximum(best.type_price, _SMALL_PRICE * share)
        self._known = best.candidates  # and the schedules of the targets so far: those of the next one are near them

    def queue(self, slots: Array) -> Array:
        """q(x) (K,); infinite where x ≤ a, 0 for types that do not arrive."""
        a = np.where(self.arrives, self.work, 1.0)
        x = np.where(slots > a, slots, a + 1.0)
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            blocking = np.exp(-(gammaln(x + 1) + np.log(gammaincc(x + 1, a)) + a - x * np.log(a)))
        waits = blocking / (1 - a / x * (1 - blocking))
        queue = np.where(slots > a, a + waits * a / (x - a), np.inf)
        return np.where(self.arrives, queue, 0.0)

    def gain(self, slots: Array, more: float = 1.0) -> Array:
        """By how much q falls with `more` slots (K,); a type without enough slots gains without limit."""
        now, then = self.queue(slots), self.queue(slots + more)
        return np.where(np.isinf(now), 1e300, np.where(np.isinf(now), 0.0, now) - np.where(np.isinf(then), 0.0, then))

    def proportional(self, level: float) -> Target:
        """x = a τ/ρ."""
        factor = level / self.best.load
        return Target(self.work * factor, self.best.scaled(factor))

    def marginal(self, level: float) -> Target:
        """The least Σ q_i(x_i) with y·x = τ, by bisection for ν; nearer to a where no mix of schedules has as much."""
        budget = float(self.price @ self.work) * level / self.best.load
        low, high = -40.0, 60.0  # the logarithm of ν
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.price @ self._slots(middle) > budget else (low, middle)
        x = self._slots(high)
        target = self.target(x)
        if target.load.load <= 1:
            return target
        far = self.load_of(x, np.inf).load
        # The load is a convex function of the work: between a, of load ρ, and x this point has load τ at most.
        part = (level - self.best.load) / (far - self.best.load)
        return self.target(self.work + min(part, 1.0) * (x - self.work))

    @cached_property
    def _slopes(self) -> tuple[Array, Array]:
        """Slots above a, in parts of √a, and the logarithm of −q' there (m, K)."""
        above = np.geomspace(1e-4, 1e3, _POINTS)
        root = np.sqrt(np.where(self.arrives, self.work, 1.0))
        here = self.work + above[:, None] * root
        step = 1e-3 * above[:, None] * root
        slope = (self.queue(here) - self.queue(here + step)) / step
        return above, np.log(np.maximum(slope, 1e-300))

    def _slots(self, log_worth: float) -> Array:
        """x with −q_i'(x_i) = ν y_i."""
        above, slope = self._slopes
        wanted = log_worth + np.log(self.price)
        parts = [np.interp(-wanted[i], -slope[:, i], above) for i in range(len(wanted))]
        return np.where(self.arrives, self.work + np.array(parts) * np.sqrt(self.work), 0.0)

    def target(self, slots: Array, enough: float = 1.0) -> Target:
        """A target, with the load of a system that offers so much work. One above `enough` may be larger than need be."""
        return Target(slots, self.load_of(slots, enough))

    def load_of(self, slots: Array, enough: float) -> Load:
        """A mix of schedules that serves these slots, of load at most `enough` if one was found; `enough` infinite: the least load."""
        system = self.system.replace(arrival_rate=slots * self.system.service_rate)
        if np.isinf(enough):
            found = system_load(system, gap=1e-4, time_limit_s=_LOAD_S)
        else:
            found = attain(system, enough, known=self._known, time_limit_s=_LOAD_S)
        both = np.vstack([found.candidates, self._known])
        self._known = both[np.sort(np.unique(both, axis=0, return_index=True)[1])[:_KNOWN]]  # each once, the newest first
        return found

    def least_load(self, slots: Array) -> float:
        """A lower bound on the load of so many slots: all jobs divisible, and y·x, as y·s ≤ 1 for every schedule s."""
        fluid = slots @ self.units.demand / self.units.capacity
        return max(float(fluid.max()), float(self.best.type_price @ slots))


def rounded_up(marginals: Marginals, target: Target) -> Target:
    """The target with whole numbers for as many types as a mix of schedules can give them, the cheapest first: they need not switch."""
    up = np.ceil(target.slots)
    order = np.argsort(marginals.price * (up - target.slots), kind="stable")
    best, low, high = target, 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        chosen: Array = target.slots.copy()
        chosen[order[:middle]] = up[order[:middle]]
        tried = marginals.target(chosen, _EDGE) if marginals.least_load(chosen) <= _EDGE else None
        if tried is not None and tried.load.load <= _EDGE:
            best, low = tried, middle
        else:
            high = middle - 1
    return best


def best_single_schedule(marginals: Marginals) -> Int:
    """One schedule that serves every type: the fewest slots that do, and the rest of the server by marginal value.

    Raises `Infeasible` where no schedule has a slot more than its work for every type.
    """
    least = np.where(marginals.arrives, np.floor(marginals.work) + 1, 0).astype(np.int64)
    if (least @ marginals.units.demand > marginals.units.capacity).any():
        raise Infeasible("no single schedule serves every type: the rota must turn")
    return _exchanged(marginals, _filled(marginals, least[None, :], np.ones(1))[0], least)


def spend_together(marginals: Marginals, candidates: Int, weights: Array) -> Int:
    """The same further slots for all candidates, as long as they fit into every one: what all have never switches."""
    return _filled(marginals, candidates, weights)


def spend_each(marginals: Marginals, candidates: Int, weights: Array) -> Int:
    """What is left in each candidate, spent alone; slots that not all have must be drained at some switch."""
    filled = _filled(marginals, candidates, weights)
    for s in np.argsort(-weights):
        others = weights @ filled - weights[s] * filled[s]
        filled[s] = _filled(marginals, filled[s][None, :], weights[[s]], others)[0]
    return filled


def _filled(marginals: Marginals, candidates: Int, weights: Array, others: Array | float = 0.0) -> Int:
    """Adds slots to all rows at once while they fit into each: always where a slot gains most per price."""
    filled = candidates.copy()
    residual = marginals.units.capacity - filled @ marginals.units.demand
    part = float(weights.sum())
    mean = weights @ filled + others
    demand = marginals.units.demand
    gains = marginals.gain(mean, part) / marginals.price
    heap = [(-float(gains[i]), int(i)) for i in np.flatnonzero(marginals.arrives)]
    heapq.heapify(heap)
    while heap:
        negative, i = heapq.heappop(heap)
        if negative >= 0 or (demand[i] > residual).any():
            continue
        filled[:, i] += 1
        residual = residual - demand[i]
        mean[i] += part
        heapq.heappush(heap, (-float(marginals.gain(mean, part)[i] / marginals.price[i]), i))
    return filled


def _exchanged(marginals: Marginals, schedule: Int, least: Int) -> Int:
    """Takes a slot from one type and fills again, as long as the queues get shorter."""
    best = float(marginals.queue(schedule.astype(np.float64)).sum())
    improved = True
    while improved:
        improved = False
        for i in np.flatnonzero(schedule > least):
            fewer = schedule.copy()
            fewer[i] -= 1
            tried = _refilled_without(marginals, fewer, int(i))
            value = float(marginals.queue(tried.astype(np.float64)).sum())
            if value < best * (1 - 1e-9):
                schedule, best, improved = tried, value, True
    return schedule


def _refilled_without(marginals: Marginals, schedule: Int, i: int) -> Int:
    """Fills what is left with other types than i first."""
    demand = marginals.units.demand
    residual = marginals.units.capacity - schedule @ demand
    gains = marginals.gain(schedule.astype(np.float64)) / marginals.price
    order = [int(j) for j in np.argsort(-gains) if j != i and marginals.arrives[j] and (demand[j] <= residual).all()]
    if order:
        schedule = schedule.copy()
        schedule[order[0]] += 1
    filled: Int = _filled(marginals, schedule[None, :], np.ones(1))[0]
    return filled
