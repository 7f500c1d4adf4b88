"""Column generation for the load of a fleet: one master program (`rota.capacity.fleet_master`), and a knapsack per kind of server.

For any prices y ≥ 0 of the types and any z_c ≥ max_u y·(v_c ⊙ u) over the schedules u of kind c,

    y·(λ⊘μ) / Σ_c n_c z_c  ≤  ρ                                                            (Farley's bound, with a term per kind)

so the bounds of all knapsacks together, even those of their relaxations, prove a lower bound on the load. Search, smoothing and pricing are
those of one server (`rota.capacity.load`), at the values y ⊙ v_c of the kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity.fleet_master import FleetMaster, divisible_load
from rota.capacity.load import _require_representable
from rota.capacity.packing import best_schedule, greedy_schedules
from rota.capacity.schedules import largest_counts
from rota.capacity.solver import Knapsack
from rota.capacity.units import integer_units
from rota.model import Fleet

__all__ = ["FleetSearch", "KindPricing", "deadline"]

_SMOOTHING = (0.9, 0.5, 0.0)  # how far towards the best proved prices each greedy attempt searches
_EXACT_SMOOTHING = (0.3, 0.0)  # the same for exact searches, which cost more and find one schedule per kind
_TRIALS = 40  # greedy schedules per kind and attempt
_KEEP = 10  # of which at most this many enter the master
_SHORT, _LONG = 200_000, 20_000_000  # nodes of the branch and bound, about 0.01 and 0.4 seconds; then comes the integer program
_IMPROVES = 1e-10  # a schedule enters the master if its kind is worth more by this part of the fleet
_TIGHT = 1e-6  # a gap that is wider than this is not proved to be narrower than it must be
_ROUNDING = 1e-12  # weights below this part of their sum are the solver's rounding,
_SELDOM = 1e-9  # and so is this part of a type's work


class Found(NamedTuple):
    """An upper bound on the value of a schedule, and one of the highest value that was found; whether the search came to its end."""

    bound: float
    schedule: Int
    finished: bool


class KindPricing:
    """The schedules of one kind of server: which are worth most at given prices of the types."""

    def __init__(self, fleet: Fleet, c: int, active: Int) -> None:
        """`active`: the types that arrive. `types` (k,): the positions, among these, of those that can run here."""
        self.system = fleet.server(c)
        self.units = integer_units(self.system)
        _require_representable(self.system, self.units)
        here = np.flatnonzero(fleet.runs[c])  # the types of the system
        arriving = np.isin(here, active)
        self.types = np.searchsorted(active, here[arriving])
        self.own = np.flatnonzero(arriving)  # their positions in the system
        self.speed: Array = fleet.speed[c, here[arriving]]
        self.demand = np.ascontiguousarray(self.units.demand[arriving])
        self.capacity = np.ascontiguousarray(self.units.capacity)
        self.most = largest_counts(self.system)[arriving]
        self.knapsack = Knapsack(self.demand, self.capacity, self.most)

    def served(self, schedules: Int, K: int) -> Array:
        """The work per unit of time that schedules (n, k) do for the K arriving types: v ⊙ s (n, K)."""
        work = np.zeros((len(schedules), K))
        work[:, self.types] = schedules * self.speed
        return work

    def value(self, y: Array) -> Array:
        """What a job of each type in service is worth here, at prices y (K,) of work: (k,)."""
        value: Array = y[self.types] * self.speed
        return value

    def bound(self, y: Array) -> float:
        """An upper bound on the value of a schedule, by the relaxed knapsack."""
        value = self.value(y)
        return self.knapsack.relax(value)[0] if value.any() else 0.0

    def good(self, y: Array, known: float, noise: Array, share: Array) -> tuple[float, Int]:
        """An upper bound on the value of a schedule, and good ones (n, k), of the types that can come into one worth more than `known`."""
        value = self.value(y)
        nothing = np.zeros((0, len(value)), dtype=np.int64)
        if not value.any():
            return 0.0, nothing
        bound, price = self.knapsack.relax(value)
        use = np.flatnonzero(self._most_worth(value, price, bound - known))
        if not len(use):
            return bound, nothing
        here = [np.ascontiguousarray(table[:, self.types[use]]) for table in (noise, share)]
        found = greedy_schedules(self.demand[use], self.capacity, value[use], self._positive(price), *here)
        schedules = np.zeros((len(found), len(value)), dtype=np.int64)
        schedules[:, use] = found
        return bound, schedules

    def _most_worth(self, value: Array, price: Array, margin: float) -> Int:
        """How many jobs of each type a schedule can hold that is worth more than b − margin, where b = p·P is the relaxed bound.

        With the resource prices p, every schedule u has  v·u = p·(D u) − (D p − v)·u ≤ b − (D p − v)·u,  so one that is worth more than
        b − margin has  (D p − v)_i u_i < margin  for every type i: most types cannot come into it at all.
        """
        if margin <= 0:
            return np.zeros(len(value), dtype=np.int64)
        loss = np.maximum(self.demand @ price - value, _ROUNDING * value)  # at least what rounding leaves uncertain
        jobs = np.where(value > 0, margin / np.where(value > 0, loss, 1.0) * (1 + 1e-9), 0.0)
        most: Int = np.floor(np.minimum(self.most, jobs)).astype(np.int64)
        return most

    def best(self, y: Array, gap: float, seconds: float) -> Found:
        """The best schedule: branch and bound, then the integer program if that takes too long."""
        found = self.branch(y, 0.0, _LONG)
        if found.finished:
            return found
        other = self.solve(y, gap, seconds)
        value = self.value(y)
        better = other.schedule if value @ other.schedule > value @ found.schedule else found.schedule
        return Found(min(found.bound, other.bound), better, True)

    def branch(self, y: Array, known: float, nodes: int) -> Found:
        """Branch and bound for a schedule of the highest value above `known`, with at most that many nodes.

        Schedules worth up to `known` are not looked for, and the bound is not below it: that makes a proof much quicker.
        """
        value = self.value(y)
        nothing = np.zeros(len(value), dtype=np.int64)
        if not value.any():
            return Found(0.0, nothing, True)
        bound, price = self.knapsack.relax(value)
        if bound <= known:
            return Found(bound, nothing, True)
        most = self._most_worth(value, price, bound - known)
        found, schedule, finished = best_schedule(
            self.demand, self.capacity, value / bound, most, self._positive(price), known / bound, nodes
        )
        return Found(min(bound, found * bound * (1 + 1e-12)) if finished else bound, schedule, finished)

    def solve(self, y: Array, gap: float, seconds: float) -> Found:
        """The best schedule by the integer program, to a quarter of the `gap` or until time is over."""
        value = self.value(y)
        bound = self.knapsack.relax(value)[0]  # the integer program works where values are near 1
        proved, schedule = self.knapsack.solve(value / bound, gap / 4, None if seconds == np.inf else seconds)
        return Found(min(bound, proved * bound), schedule, True)

    def _positive(self, price: Array) -> Array:
        """Prices that are positive for every resource, as the kernels require."""
        share = price * self.capacity
        most = float(share.max())
        positive: Array = (share + 1e-6 * (most if most > 0 else 1.0)) / self.capacity
        return positive


class FleetSearch:
    """The state of the column generation, for the types that do arrive. `kinds`: a `KindPricing` where one of them can run, else None."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.active = np.flatnonzero(fleet.offered_work > 0).astype(np.int64)
        self.work: Array = fleet.offered_work[self.active]
        runs = fleet.runs[:, self.active]
        self.kinds = [KindPricing(fleet, c, self.active) if runs[c].any() else None for c in range(len(fleet.kinds))]
        self.iterations = self.exact_solves = 0
        self.upper, self.lower = np.inf, 0.0
        self.fluid = 0.0
        if not len(self.work):
            return
        most = np.zeros((len(self.kinds), len(self.work)))
        for c, kind in self._priced():
            most[c, kind.types] = kind.most * kind.speed
        self.alone = most
        self.master = FleetMaster(self.work, fleet.count, most)
        for c, kind in self._priced():  # each type alone, on every kind: a first feasible answer
            for schedule in np.diag(kind.most):
                self._add(c, kind, schedule)
        self.rng = np.random.default_rng(0)
        needed = fleet.demand[self.active]
        total = np.maximum(fleet.count[:, None] * fleet.capacity, 1e-300)[:, None, :]
        use = np.where(runs[:, :, None], needed / total * (self.work / fleet.speed[:, self.active])[:, :, None], 0.0)
        self.fluid, prices = divisible_load(use, runs)
        self.proved: Array = np.zeros(len(self.work))
        self.server_price: Array = np.zeros(len(self.kinds))
        self.prove(prices / self.work, self.relaxed(prices / self.work))

    def _priced(self) -> list[tuple[int, KindPricing]]:
        return [(c, kind) for c, kind in enumerate(self.kinds) if kind is not None]

    def _add(self, c: int, kind: KindPricing, schedule: Int) -> bool:
        return self.master.add(c, schedule, kind.served(schedule[None, :], len(self.work))[0])

    # ---------------------------------------------------------------------------------------------------- upper bound

    def solve_master(self) -> None:
        """The best mix of the schedules found so far."""
        self.iterations += 1
        raw, self.prices, self.worth = self.master.solve()
        places = np.array(self.master.kinds, dtype=np.int64)
        raw[raw < _ROUNDING * raw.sum()] = 0.0
        served = self.served(raw)
        # A type that arrives so rarely that the solver's tolerance takes it as served is served alone: that costs almost nothing.
        for i in np.flatnonzero(self.work - served > _SELDOM * self.work):
            c = int(np.argmax(self.fleet.count * self.alone[:, i]))
            raw[self._alone(c, int(i))] += (self.work[i] - served[i]) / self.alone[c, i]
        used = np.flatnonzero(raw)
        weights = raw[used]
        # Σ_s π_cs ≤ n_c for every kind; scaled by the worst covered type, they cover the work in spite of rounding.
        busy = np.bincount(places[used], weights=weights, minlength=len(self.kinds)) / self.fleet.count
        weights = weights / busy.max()
        full = np.zeros(len(raw))
        full[used] = weights
        total = float((self.work / self.served(full)).max())
        if total < self.upper:
            self.upper, self.used, self.weights = total, used, weights

    def served(self, weights: Array) -> Array:
        """Σ_cs weight_cs v_c ⊙ s (K,)."""
        total = np.zeros(len(self.work))
        for j in np.flatnonzero(weights):
            kind = self.kinds[self.master.kinds[j]]
            assert kind is not None  # a kind without types has no schedule
            total[kind.types] += weights[j] * self.master.schedules[j] * kind.speed
        return total

    def _alone(self, c: int, i: int) -> int:
        """The position in the master of the schedule with type i alone on kind c: the first ones, kind by kind."""
        before = sum(len(kind.types) for b, kind in self._priced() if b < c)
        kind = self.kinds[c]
        assert kind is not None
        return before + int(np.searchsorted(kind.types, i))

    # ---------------------------------------------------------------------------------------------------- lower bound

    def prove(self, y: Array, z: Array) -> None:
        """Farley's bound: y and z, divided by Σ_c n_c z_c, are feasible prices."""
        total = float(self.fleet.count @ z)
        if total > 0 and float(y @ self.work) / total > self.lower:
            self.lower, self.proved, self.server_price = float(y @ self.work) / total, y / total, z / total

    def relaxed(self, y: Array) -> Array:
        """Upper bounds on the value of a schedule of each kind (C,)."""
        return np.array([0.0 if kind is None else kind.bound(y) for kind in self.kinds])

    # ---------------------------------------------------------------------------------------------------- schedules

    def _add_improving(self, c: int, kind: KindPricing, schedules: Int) -> bool:
        """Puts the schedules that improve the master into it, the best first."""
        gain = self.fleet.count[c] * (schedules @ kind.value(self.prices) - self.worth[c])
        added = 0
        for j in np.argsort(-gain, kind="stable"):
            if gain[j] <= _IMPROVES or added == _KEEP:
                break
            added += self._add(c, kind, schedules[j])
        return added > 0

    def greedy(self) -> bool:
        """Many schedules of every kind at smoothed prices; every attempt also proves a bound by the relaxed knapsacks."""
        K = len(self.work)
        for smoothing in _SMOOTHING:
            y, known = self._smoothed(smoothing)
            z, added = np.zeros(len(self.kinds)), False
            for c, kind in self._priced():
                # Small to large noise: amplitudes 10^-3 … 1; the first trial is the plain greedy one.
                noise = self.rng.uniform(-1, 1, (_TRIALS, K)) * 10.0 ** self.rng.uniform(-3, 0, (_TRIALS, 1))
                share = self.rng.random((_TRIALS, K))
                noise[0], share[0] = 0.0, 1.0
                z[c], schedules = kind.good(y, float(known[c]), noise, share)
                added |= self._add_improving(c, kind, schedules)
            self.prove(y, z)
            if added:
                return True
        return False

    def _smoothed(self, smoothing: float) -> tuple[Array, Array]:
        """Prices of the types between the best proved ones and the master's, and the same mix of what servers are worth at both.

        If the master has the best schedules already, a server is worth at most that at these prices: only schedules worth more are looked
        for.
        """
        y = smoothing * self.proved + (1 - smoothing) * self.prices
        return y, smoothing * self.server_price + (1 - smoothing) * self.worth

    def exact(self, gap: float, left: Callable[[], float]) -> bool:
        """The best schedule of every kind at smoothed prices, with a proof; False if none can improve the master any more.

        A few kinds take most of the time. So all kinds are searched for a short time first, and those where that was not enough are
        searched for longer only if no other kind improves the master. `left`: the seconds that remain. When time is over, the bound of
        a kind is that of its relaxation.
        """
        slack = gap / 4 if gap > _TIGHT else 0.0
        for smoothing in _EXACT_SMOOTHING:
            y, known = self._smoothed(smoothing)
            known = known * (1 + slack)
            z, added, hard = np.zeros(len(self.kinds)), False, self._priced()
            for nodes in (_SHORT, _LONG, 0):
                kinds, hard = hard, []
                for c, kind in kinds:
                    if left() <= 0:
                        z[c] = z[c] or kind.bound(y)
                        continue
                    found = kind.branch(y, float(known[c]), nodes) if nodes else kind.solve(y, gap, left())
                    self.exact_solves += 1
                    z[c] = found.bound
                    added |= self._add_improving(c, kind, found.schedule[None, :])
                    if not found.finished:
                        hard.append((c, kind))
                self.prove(y, z)
                if added or self.upper <= self.lower * (1 + gap) or left() <= 0:
                    return True
                if not hard:
                    break
        return False


def deadline(time_limit_s: float | None, began: float) -> Callable[[], float]:
    """The seconds that remain of a time limit, whenever it is called; inf if there is none."""
    return lambda: np.inf if time_limit_s is None else time_limit_s - (time.perf_counter() - began)
