"""Column generation for the load: the linear program over all schedules, by a master program that knows some of them.

    ρ = min Σ_s w_s   s.t.   Σ_s w_s u_s ≥ x,   w ≥ 0,   over all schedules u_s,           x = λ⊘μ

The master gives type prices y; a schedule u with y·u > 1 improves it. If none exists, y·u ≤ 1 for all of them proves optimality. For any
y ≥ 0 and any z ≥ max y·u,

    y·x / z  ≤  ρ                                                                                       (Farley's bound)

so every bound on the knapsack, even one from its linear relaxation, proves a lower bound on the load.

Many types: halves first. The load of all types is at most the sum of the loads of two halves of them, each served in its own part of the
time. If both halves ask for the resources in the same proportions, little is lost; where jobs are small, nothing: each half fills the
bottleneck. So the types are split into two such halves, and each is solved on its own, if need be by its halves too. The master of all
types begins with the schedules that they use, and with their bases of the simplex method.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.capacity.pricing import Pricing
from rota.capacity.solver import MANY, Master

__all__ = ["Generation"]

_SMOOTHING = (0.9, 0.5, 0.0)  # how far towards the best proved prices each attempt searches
_KEEP = 20  # schedules of one search that enter the master at most
_IMPROVES = 1e-10  # a schedule enters the master if y·u > 1 + this
_ROUNDING = 1e-12  # weights below this part of their sum are the solver's rounding,
_SELDOM = 1e-9  # and so is this part of a type's work
_WHOLE = 100  # types up to which there are no halves
_HALF_GAP = 1e-4  # no half is solved to a smaller gap than this,
_HALF_TIME = (0.45, 0.8)  # nor for more than this part of the time that is left: the first, and then the second


class Generation:
    """The state of the column generation for types that all arrive.

    `upper` is attained by the schedules `candidates` (n ≤ K, K) with `weights` (n,), which sum to 1. `lower` is proved by the prices
    `proved` (K,): y·u ≤ 1 for every schedule.
    """

    def __init__(self, work: Array, demand: Int, capacity: Int, most: Int, *, thorough: bool = True) -> None:
        """`work` (K,) per type; `demand` (K, R), `capacity` (R,) and how many jobs fit alone, `most` (K,), in whole units.

        If not `thorough`, the generation ends where only the integer program could go on.
        """
        self.work = work
        self._thorough = thorough
        self.pricing = Pricing(demand, capacity, most)
        self.master = Master(work, most)
        self.iterations = self.exact_solves = 0
        self.upper = np.inf
        # All jobs divisible: one resource r alone gives the feasible prices y = D_r / P_r, hence ρ ≥ Σ_i x_i D_ir / P_r. (In whole units,
        # where P is rounded down: never below the fluid load in the user's numbers.)
        fluid = work @ demand / capacity
        r = int(np.argmax(fluid))
        self.lower = float(fluid[r])
        self.proved: Array = demand[:, r] / capacity[r]
        self._halved = len(work) <= _WHOLE
        self._solved = 0  # schedules in the master when it was solved last
        for alone in np.diag(most):  # each type alone, in their order: a first feasible answer
            self.master.add(alone)

    def is_proved(self, gap: float) -> bool:
        """Whether the load is known to that gap."""
        return self.upper <= self.lower * (1 + gap)

    def solve_master(self) -> None:
        """The best mix of the schedules known, and the prices of the types at it."""
        raw, self.prices = self.master.solve()
        self.iterations += 1
        self._solved = len(self.master)
        raw[raw < _ROUNDING * raw.sum()] = 0.0
        # A type that arrives so rarely that the solver's tolerance takes it as served is served alone: that costs almost nothing.
        used = np.flatnonzero(raw)
        missing = self.work - raw[used] @ self.master.schedules(used)
        rare = np.flatnonzero(missing > _SELDOM * self.work)
        raw[rare] += missing[rare] / self.pricing.most[rare]
        used = np.flatnonzero(raw)
        candidates, weights = _fewest(self.master.schedules(used), raw[used], self.work)
        # Scaled by the worst covered type, the weights cover the work in spite of rounding.
        total = float(weights.sum() * (self.work / (weights @ candidates)).max())
        if total < self.upper:
            self.upper, self.candidates, self.weights = total, candidates, weights / weights.sum()

    def run(self, gap: float, deadline: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Improves until the gap is proved, nothing can be improved, it is `enough`, or at the `deadline` (of `time.perf_counter()`)."""
        while True:
            self.solve_master()
            if enough() or self.is_proved(gap) or time.perf_counter() >= deadline or not self._improve(gap, deadline):
                return

    def finish(self) -> None:
        """After an interrupt: takes account of schedules that have come in since the master was solved."""
        if len(self.master) > self._solved:
            self.solve_master()

    def compile(self) -> None:
        """Runs every search once."""
        self.solve_master()
        self._greedy(0.0)
        self._exact(0.0, 0.0, np.inf)
        self.pricing.compile()

    def _improve(self, gap: float, deadline: float) -> bool:
        """Brings schedules into the master or proves the gap; False if nothing can be improved any more."""
        if not self._halved:
            self._halved = True
            self._begin_with_halves(gap, deadline)
            return True
        deadline = deadline if self._thorough else -np.inf
        if len(self.work) > MANY and self.pricing.quick:
            return any(self._greedy(smoothing) or self._exact(smoothing, gap, deadline) for smoothing in _SMOOTHING)
        return any(self._greedy(smoothing) for smoothing in _SMOOTHING) or any(
            self._exact(smoothing, gap, deadline) for smoothing in _SMOOTHING
        )

    def _prove(self, y: Array, bound: float) -> None:
        """Farley's bound: y / bound are feasible dual prices."""
        lower = float(y @ self.work) / bound
        if lower > self.lower:
            self.lower, self.proved = lower, y / bound

    def _add_improving(self, schedules: Int) -> bool:
        """Puts the schedules that improve the master into it, the best first."""
        value = schedules @ self.prices
        added = 0
        for j in np.argsort(-value, kind="stable"):
            if value[j] <= 1 + _IMPROVES or added == _KEEP:
                break
            added += self.master.add(schedules[j])
        return added > 0

    def _greedy(self, smoothing: float) -> bool:
        """Many schedules at smoothed prices, and a bound by the relaxed knapsack; False if none improves the master."""
        y = self._smoothed(smoothing)
        bound, price = self.pricing.relax(y)
        self._prove(y, bound)
        return self._add_improving(self.pricing.greedy(y, price))

    def _exact(self, smoothing: float, gap: float, deadline: float) -> bool:
        """The best schedules at smoothed prices, with a proof; False if none improves the master, and the gap is not proved."""
        y = self._smoothed(smoothing)
        bound, schedules = self.pricing.best(y, gap, deadline - time.perf_counter())
        self.exact_solves += 1
        self._prove(y, bound)
        return self._add_improving(schedules) or self.is_proved(gap)

    def _smoothed(self, smoothing: float) -> Array:
        """Prices between the best proved ones and those of the master."""
        return smoothing * self.proved + (1 - smoothing) * self.prices

    def _begin_with_halves(self, gap: float, deadline: float) -> None:
        """Solves both halves of the types, and begins with the schedules they use."""
        basic: list[int] = []
        free: list[int] = []
        for part, share in zip(_split(self.work[:, None] * self.pricing.demand / self.pricing.capacity), _HALF_TIME, strict=True):
            half = Generation(self.work[part], self.pricing.demand[part], self.pricing.capacity, self.pricing.most[part], thorough=False)
            now = time.perf_counter()
            try:
                half.run(max(gap, _HALF_GAP), now + share * (deadline - now))
            finally:  # after Ctrl-C too
                if half.iterations:
                    half.finish()
                    self.exact_solves += half.exact_solves
                    used, exceeded = half.master.basis()
                    schedules = np.zeros((len(used), len(self.work)), dtype=np.int64)
                    schedules[:, part] = half.master.schedules(used)
                    basic += [self.master.place(schedule) for schedule in schedules]
                    free += part[exceeded].tolist()
        self.master.begin(basic, free)


def _split(asked: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two halves of the types (K,) that ask for the resources in much the same proportions. `asked` (K, R): what each type asks for.

    The largest first, two at a time, one for each half: so that the difference of the halves is as small as possible.
    """
    order = np.argsort(-asked.sum(axis=1), kind="stable")
    first, second = list(order[-1:] if len(order) % 2 else []), []
    difference = asked[first].sum(axis=0)
    for i, j in order[: len(order) // 2 * 2].reshape(-1, 2):
        change = asked[i] - asked[j]
        if np.abs(difference + change).sum() > np.abs(difference - change).sum():
            i, j, change = j, i, -change
        first.append(i)
        second.append(j)
        difference = difference + change
    return np.sort(np.array(first)), np.sort(np.array(second))


def _fewest(candidates: Int, weights: Array, work: Array) -> tuple[Int, Array]:
    """A mix of at most K of the schedules that serves the types as much in no more time (Carathéodory): there is a change of the weights
    that leaves what is served, and it is followed until a weight is 0.
    """
    while len(weights) > len(work):
        served = weights[:, None] * candidates / work
        change = np.linalg.svd(served.T)[2][-1]  # relative: of the weights times 1 + change
        change = change if weights @ change <= 0 else -change
        weights = weights * (1 - change / change.min())
        keep = np.arange(len(weights)) != np.argmin(change)
        candidates, weights = candidates[keep], np.maximum(weights[keep], 0.0)
    return candidates, weights
