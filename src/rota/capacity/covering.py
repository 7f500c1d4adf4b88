"""The covering program: schedules close to a point that together cover it.

Let x (K,) be a point in Conv(𝒮), such as the offered work λ⊘μ divided by a load t < 1, and c (K,) what it costs to have one job of a type
too many or too few. Which mix of schedules that serves x lies nearest to it?

    d* = min Σ_s π_s d_s   s.t.   Σ_s π_s s ≥ x,   Σ_s π_s = 1,   π ≥ 0,   over all schedules s ∈ 𝒮,      d_s = Σ_i c_i |s_i − x_i|

Two schedules of the mix are at most d_s + d_s' apart (triangle inequality), so a policy that moves between them changes few jobs.

Column generation. The master program over some schedules gives prices y ≥ 0 of the types; a schedule with d_s − y·s below its dual price of
Σ π = 1 improves it. For any y ≥ 0, as Σ π = 1 and y·(Σ π_s s − x) ≥ 0,

    d*  ≥  y·x + min_s (d_s − y·s)                                                                      (Lagrange)

so every search for a schedule proves a bound, whether it ended or not (then by its own bound).

Pricing. d_s − y·s is a sum of convex functions, one per type, with a bend at x_i. Seen from the base ⌊x⌋, which fits as x does, with
φ = x − ⌊x⌋ the first job more gains y_i − c_i (1 − 2φ_i), each further one y_i − c_i, and each one less loses y_i + c_i: an integer program
with three variables per type (`rota.capacity.solver.NearKnapsack`), of which a small server has so few solutions that all are compared
(`NearTable`). Whatever the size of the server, only jobs near x move. It runs only when a local search from many starts
(`_near_schedules`), some milliseconds, finds no schedule that improves the master.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rota.arrays import Array, Int
from rota.capacity.load import Load, system_load
from rota.capacity.packing import copy_into
from rota.capacity.schedules import fits, largest_counts
from rota.capacity.solver import CoverMaster, NearKnapsack, NearTable
from rota.capacity.units import integer_units
from rota.errors import BadSpec, Infeasible, Problem
from rota.kernel import compiled
from rota.model import System
from rota.model.system import check_system

__all__ = ["Cover", "cover"]

_ROUNDING = 1e-9  # weights below this are the solver's rounding
_WHOLE = 1e-9  # what is so near to a whole number is one
_SMOOTHING = 0.5  # how far towards the prices of the best bound schedules are searched for
_TRIALS = 40  # roundings of the target to start from, and local searches for further schedules
_KEEP = 20  # of which at most this many enter the master
_SWEEPS = 2  # of exchanges in a local search
_LISTED = 1 << 15  # sets of jobs, also of those that do not fit: if there are no more, schedules are found in a list
_IMPROVES = 1e-9  # by how much a schedule must improve it, as a part of what the dearest job costs


@dataclass(frozen=True)
class Cover:
    """Schedules near a point that together cover it: `weights` @ `candidates` ≥ `target`.

    `candidates` (n ≤ K + 1, K), in lexicographic order, run the part `weights` (n,) of the time. `distance`: their mean distance from
    `target`, `Σ_s π_s Σ_i cost_i |s_i − target_i|`. No mix of schedules that covers the target has less than `distance` − `gap`.
    """

    candidates: Int
    weights: Array
    distance: float
    gap: float
    target: Array
    cost: Array
    iterations: int
    columns: int
    time_s: float


def cover(
    system: System,
    target: ArrayLike,
    cost: ArrayLike | None = None,
    *,
    load: Load | None = None,
    known: Int | None = None,
    gap: float = 1e-4,
    time_limit_s: float | None = None,
) -> Cover:
    """The mix of schedules that covers `target` (K,) with the least mean distance from it; distances are weighed by `cost` (K,), or all 1.

    Types of target 0 are left out. `load`: of the same mix of schedules, if known; it must serve the target. `known` (n, K): further
    schedules to start from. Stops when `gap`, relative to the distance, is proved, or when `time_limit_s` is over; `Cover.gap` is what was
    proved by then, as a distance. Raises `Infeasible` if no mix covers the target.
    """
    _compile()
    began = time.perf_counter()
    check_system(system)
    x, c = _checked(system, target, cost)
    if not (np.isfinite(gap) and gap >= 0):
        raise BadSpec([Problem("gap", "must be finite and not negative", gap)])
    if time_limit_s is not None and not time_limit_s >= 0:
        raise BadSpec([Problem("time_limit_s", "must not be negative", time_limit_s)])
    active = x > 0
    K = len(x)
    if not active.any():
        return _answer(np.zeros((1, K), dtype=np.int64), np.ones(1), x, c, 0.0, 0, 0, began)
    start = [_covering(system, x, load)]
    if known is not None:
        start.append(np.asarray(known, dtype=np.int64).reshape(-1, K)[np.atleast_1d(fits(system, known))])
    search = _Search(system, x[active], c[active], active)
    search.add_all(np.vstack(start)[:, active])
    search.add_all(search.roundings())
    while True:
        search.solve_master()
        left = None if time_limit_s is None else time_limit_s - (time.perf_counter() - began)
        if search.upper - search.lower <= gap * search.upper + _ROUNDING or (left is not None and left <= 0):
            break
        if not search.price(gap, left):
            break
    candidates = np.zeros((len(search.weights), K), dtype=np.int64)
    candidates[:, active] = search.candidates
    bound = search.lower * search.unit
    return _answer(candidates, search.weights, x, c, bound, search.iterations, len(search.schedules), began)


@cache
def _compile() -> None:
    """Compiles the kernels before the clock starts."""
    search = _Search(System([2.0], [[1.0]], [1.0], [1.0]), np.array([1.5]), np.ones(1), np.array([True]))
    search.add_all(np.array([[1], [2]]))
    search.solve_master()
    search.price(0.0, None)


def _answer(candidates: Int, weights: Array, x: Array, c: Array, bound: float, iterations: int, columns: int, began: float) -> Cover:
    order = np.lexsort(candidates.T[::-1])
    candidates, weights = candidates[order], weights[order] / weights.sum()
    distance = float(weights @ (np.abs(candidates - x) @ c))
    for array in (candidates, weights, x, c):
        array.flags.writeable = False
    gap = max(distance - max(bound, 0.0), 0.0)
    return Cover(candidates, weights, distance, gap, x, c, iterations, columns, time.perf_counter() - began)


def _checked(system: System, target: ArrayLike, cost: ArrayLike | None) -> tuple[Array, Array]:
    K = len(system.names)
    x: Array = np.array(target, dtype=np.float64)
    c: Array = np.ones(K) if cost is None else np.array(cost, dtype=np.float64)
    problems = []
    if x.shape != (K,) or not (np.isfinite(x).all() and (x >= 0).all()):
        problems.append(Problem("target", f"needs {K} numbers of at least 0, one per type", x.tolist()))
    if c.shape != (K,) or not (np.isfinite(c).all() and (c > 0).all()):
        problems.append(Problem("cost", f"needs {K} positive numbers, one per type", c.tolist()))
    if problems:
        raise BadSpec(problems)
    near = np.round(x)
    return np.where(np.abs(x - near) <= _WHOLE * np.maximum(near, 1.0), near, x), c


def _covering(system: System, x: Array, load: Load | None) -> Int:
    """Schedules of which a mix covers x."""
    best = load or system_load(system.replace(arrival_rate=x * system.service_rate))
    served = best.weights @ best.candidates
    worst = float(np.divide(x, served, out=np.where(x > 0, np.inf, 0.0), where=served > 0).max())
    if worst > 1 + _WHOLE:
        raise Infeasible(f"no mix of schedules covers the target: scale it by at most {1 / worst:.6g}")
    return np.where(x > 0, best.candidates, 0)


class _Search:
    """The state of the column generation, for the types of positive target."""

    def __init__(self, system: System, x: Array, c: Array, active: NDArray[np.bool_]) -> None:
        units = integer_units(system)
        self.demand, self.capacity = np.ascontiguousarray(units.demand[active]), units.capacity
        self.most = largest_counts(system)[active]
        self.x, self.unit = x, float(c.max())
        self.c = c / self.unit  # the dearest type costs 1
        self.base = np.floor(x).astype(np.int64)
        self.part = x - self.base
        self.master = CoverMaster(self.part)
        few = (self.most + 1.0).prod() <= _LISTED
        self.knapsack = (NearTable if few else NearKnapsack)(self.demand, self.capacity, self.base, self.most)
        self.schedules: list[Int] = []
        self._seen: set[bytes] = set()
        self.upper, self.lower, self.iterations = np.inf, -np.inf, 0
        self.best_prices: Array | None = None
        self.rng = np.random.default_rng(0)

    def add_all(self, schedules: Int) -> int:
        """Puts schedules into the master; returns how many were new."""
        distances = np.abs(schedules - self.x) @ self.c
        before = len(self.schedules)
        for schedule, distance in zip(np.asarray(schedules, dtype=np.int64), distances, strict=True):
            key = schedule.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                self.schedules.append(schedule.copy())
                self.master.add(schedule - self.base, float(distance))
        return len(self.schedules) - before

    def roundings(self) -> Int:
        """The base, and it with one job more of as many types as fit, in different orders, those with the largest part first."""
        rng = np.random.default_rng(0)
        K = len(self.x)
        found = [self.base]
        for trial in range(_TRIALS):
            schedule, residual = self.base.copy(), self.capacity - self.base @ self.demand
            for i in np.argsort(-(self.part + (rng.random(K) if trial else 0.0)), kind="stable"):
                if self.part[i] > 0 and (self.demand[i] <= residual).all():
                    schedule[i] += 1
                    residual = residual - self.demand[i]
            found.append(schedule)
        return np.array(found)

    def solve_master(self) -> None:
        self.iterations += 1
        weights, self.prices = self.master.solve()
        used = np.flatnonzero(weights > _ROUNDING)
        self.candidates, self.weights = np.array([self.schedules[j] for j in used]), weights[used] / weights[used].sum()
        self.upper = float(self.weights @ (np.abs(self.candidates - self.x) @ self.c))

    def price(self, gap: float, seconds: float | None) -> bool:
        """Looks for schedules at smoothed prices, then at those of the master; False if there is none that is new."""
        smoothed = self.prices if self.best_prices is None else _SMOOTHING * self.best_prices + (1 - _SMOOTHING) * self.prices
        if self._local(smoothed) or self._local(self.prices):
            return True
        for y in (smoothed, self.prices):
            bound, schedule = self.knapsack.solve(*self._values(y), gap * self.upper / 4, seconds)
            # y·x + min (d_s − y·s) = y·part + c·part − max of the gains over the base
            lower = float((y + self.c) @ self.part) - bound
            if lower > self.lower:
                self.lower, self.best_prices = lower, y
            if self.add_all(schedule[None, :]) or self.upper - self.lower <= gap * self.upper:
                return True
        return False

    def _values(self, y: Array) -> tuple[Array, Array, Array]:
        """What the first job above the base, each further one and each one below it are worth."""
        return y - self.c * (1 - 2 * self.part), y - self.c, y + self.c

    def _local(self, y: Array) -> bool:
        """Puts schedules that local searches at prices y find into the master, if they improve it; False if none does."""
        K, R = self.demand.shape
        weight = self.rng.exponential(1.0, (_TRIALS, R)) / self.capacity
        noise = self.rng.uniform(-1, 1, (_TRIALS, K)) * 10.0 ** self.rng.uniform(-3, 0, (_TRIALS, 1))
        weight[0], noise[0] = 1 / self.capacity, 0.0
        found = np.unique(_near_schedules(self.demand, self.capacity, self.base, *self._values(y), weight, noise), axis=0)
        value = self._reduced(found)
        best = np.argsort(value, kind="stable")[:_KEEP]
        # All schedules that the master uses have the same value, its dual price of Σ π = 1.
        return self.add_all(found[best[value[best] < self._reduced(self.candidates).min() - _IMPROVES]]) > 0

    def _reduced(self, schedules: Int) -> Array:
        """d_s − y·(s − base) at the prices of the master."""
        values: Array = np.abs(schedules - self.x) @ self.c - (schedules - self.base) @ self.prices
        return values


@compiled
def _near_schedules(demand: Int, capacity: Int, base: Int, first: Array, further: Array, below: Array, weight: Array, noise: Array) -> Int:
    """One schedule per row of `noise` (n, K): filled from the base by worth per resource, as disturbed by the noise, the resources weighed
    by `weight` (n, R); then a job gives way to others as long as that gains.
    """
    n, K = noise.shape
    found = np.empty((n, K), dtype=np.int64)
    cost = np.empty(K)
    for t in range(n):
        for i in range(K):
            cost[i] = 0.0
            for r in range(len(capacity)):
                cost[i] += weight[t, r] * demand[i, r]
            cost[i] *= 1.0 + 0.99 * noise[t, i]
        u, residual = base.copy(), capacity.copy()
        for i in range(K):
            for r in range(len(capacity)):
                residual[r] -= base[i] * demand[i, r]
        _fill(u, residual, demand, base, first, further, below, cost, -1)
        improved, sweeps = True, 0
        while improved and sweeps < _SWEEPS:
            improved, sweeps = False, sweeps + 1
            for i in range(K):
                if u[i] == 0:
                    continue
                tried, left = u.copy(), residual.copy()
                lost = further[i] if u[i] > base[i] + 1 else first[i] if u[i] == base[i] + 1 else below[i]
                tried[i] -= 1
                for r in range(len(capacity)):
                    left[r] += demand[i, r]
                if _fill(tried, left, demand, base, first, further, below, cost, i) > lost + _IMPROVES:
                    u, residual, improved = tried, left, True
        copy_into(found[t], u)
    return found


@compiled
def _fill(u: Int, residual: Int, demand: Int, base: Int, first: Array, further: Array, below: Array, cost: Array, without: int) -> float:
    """Adds jobs of positive worth while they fit, those of most worth per cost first; returns what they are worth."""
    gained = 0.0
    while True:
        best, most = -1, 0.0
        for i in range(len(u)):
            worth = below[i] if u[i] < base[i] else first[i] if u[i] == base[i] else further[i]
            if i == without or worth <= most * cost[i]:
                continue
            fits_in = True
            for r in range(len(residual)):
                fits_in = fits_in and demand[i, r] <= residual[r]
            if fits_in:
                best, most = i, worth / cost[i]
        if best < 0:
            return gained
        gained += below[best] if u[best] < base[best] else first[best] if u[best] == base[best] else further[best]
        u[best] += 1
        for r in range(len(residual)):
            residual[r] -= demand[best, r]
