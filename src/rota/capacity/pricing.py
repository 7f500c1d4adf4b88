"""Pricing: schedules that are worth much at given prices y of the types, and upper bounds on max y·u over all schedules u.

The searches, from quick to thorough:

- `relax`: jobs may be cut (a linear program): a bound, and prices of the resources for the searches below;
- `greedy`: many good schedules at once, without a bound (`rota.capacity.packing`);
- `best`: the best one, with a proof. First a short branch and bound over counts: with few types, or a good relaxed bound, it is enough.
  Then lists of jobs, with bounds from tables (`rota.capacity.tables`), for large jobs. Only where these take too many steps, a longer
  branch and bound if types are few, and at last the integer program (`rota.capacity.solver`).
"""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.capacity.packing import best_schedule, greedy_schedules
from rota.capacity.solver import MANY, Knapsack
from rota.capacity.tables import search_tables

__all__ = ["Pricing"]

_TRIALS = 60  # greedy schedules per attempt
_SHORT = 1000  # nodes of the short branch and bound,
_LISTS = 30_000_000  # of the search with tables (about half a second),
_LONG = 300_000  # and of the longer branch and bound
_SPREAD = 0.6  # schedules that exceed 1 by at least 1 - this part of what the best one does are worth having too
_ROUNDING = 1e-12


class Pricing:
    """The schedules of one server: `demand` (K, R), `capacity` (R,), and how many jobs of each type fit alone, `most` (K,), in whole units.

    `quick`: whether every exact search until now ended before the last resorts.
    """

    def __init__(self, demand: Int, capacity: Int, most: Int) -> None:
        self.demand = np.ascontiguousarray(demand)
        self.capacity = np.ascontiguousarray(capacity)
        self.most = most
        self.knapsack = Knapsack(self.demand, self.capacity, most)
        self.quick = True
        self._rng = np.random.default_rng(0)

    def relax(self, y: Array) -> tuple[float, Array]:
        """An upper bound on max y·u, and the resource prices that prove it."""
        return self.knapsack.relax(y)

    def greedy(self, y: Array, price: Array) -> Int:
        """Many maximal schedules that are worth much at prices y; `price` (R,): of the resources."""
        K = len(y)
        # Small to large noise: amplitudes 10^-3 … 1; the first trial is the plain greedy one.
        noise = self._rng.uniform(-1, 1, (_TRIALS, K)) * 10.0 ** self._rng.uniform(-3, 0, (_TRIALS, 1))
        share = self._rng.random((_TRIALS, K))
        noise[0], share[0] = 0.0, 1.0
        return greedy_schedules(self.demand, self.capacity, y, self._positive(price), noise, share)

    def best(self, y: Array, gap: float, seconds: float) -> tuple[float, Int]:
        """An upper bound on max y·u, and schedules (n, K): the best one is among them, and attains the bound, unless time runs out.

        The integer program ends at a relative `gap` / 4, or after `seconds` (not at all if 0, never if inf).
        """
        bound, relaxed = self.relax(y)
        price = self._positive(relaxed)
        value, schedule, finished = best_schedule(self.demand, self.capacity, y, self.most, price, 0.0, _SHORT)
        if finished:
            return min(bound, value * (1 + _ROUNDING)), schedule[None, :]
        listed = search_tables(self.demand, self.capacity, y, price, 1.0, _SPREAD, _LISTS)
        bound = min(bound, listed.bound)
        if listed.finished:
            return bound, listed.schedules
        self.quick = False
        if len(y) <= MANY:
            value, schedule, finished = best_schedule(self.demand, self.capacity, y, self.most, price, 0.0, _LONG)
        schedules = np.vstack([schedule, listed.schedules])
        if finished or seconds <= 0:
            return min(bound, value * (1 + _ROUNDING)) if finished else bound, schedules
        proved, found = self.knapsack.solve(y, gap / 4, None if seconds == np.inf else seconds)
        return min(bound, proved), np.vstack([found, schedules])

    def compile(self) -> None:
        """Runs the search that small systems do not need."""
        search_tables(self.demand, self.capacity, np.ones(len(self.most)), np.ones(len(self.capacity)), 1.0, _SPREAD, _LISTS)

    def _positive(self, price: Array) -> Array:
        """Prices that are positive for every resource, as the kernels require."""
        share = price * self.capacity
        positive: Array = (share + 1e-6 * share.max()) / self.capacity
        return positive
