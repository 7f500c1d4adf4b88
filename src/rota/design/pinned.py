"""Pinned servers: how many servers of each kind should hold which schedule for good?

With k_i slots for type i and f_i(k) = C(k, a_i) a_i/(k − a_i) waiting jobs of it on average (`rota.analysis.pinned`),

    min Σ_i f_i(k_i)   s.t.   k = Σ_c Σ_s m_cs s,   Σ_s m_cs ≤ n_c,   m whole                         over all schedules s of each kind c

f_i is convex and falls. The relaxation, m ≥ 0 not whole, is solved by cutting planes (f_i as the largest of its chords between whole
numbers) and column generation: prices y_i ≥ 0 of slots give a knapsack per kind. For any y ≥ 0 and z_c ≥ max_u y·u over the schedules u of
kind c,

    Σ_i min_k (f_i(k) + y_i k)  −  Σ_c n_c z_c                                                                        (Lagrange)

is a lower bound for all pinned servers, with any schedules. Then an integer program chooses among the schedules that were found, and a
local search moves single servers between them. Where the maximal schedules of every kind are few, all of them are taken in, and the bound
of the integer program counts too. `PinnedDesign.gap` is what is left between the answer and the bound.

Where a type runs at different speeds, it has a queue per speed. How much goes to each is taken from the load of the fleet
(`FleetLoad.split`) and kept; the bound is then for that split.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from rota.analysis import mean_waiting
from rota.arrays import Array, Int
from rota.capacity import FleetLoad, list_schedules
from rota.capacity.fleet_search import KindPricing
from rota.capacity.integer import minimize_whole
from rota.design.fleet_load import checked_fleet_load
from rota.errors import Infeasible, TooManySchedules
from rota.model import Fleet
from rota.policy import Pinned

__all__ = ["PinnedDesign", "PinnedSearch", "design_pinned", "find_pinned"]

_ROUNDS = 200  # of the relaxation, at most
_NARROW = 1e-4  # a gap of the relaxation that is narrow enough
_LISTED = 200  # maximal schedules of a kind that are all taken in
_INTEGER_ROUNDS = 20  # of the integer program, each with the chords that the last one lacked
_MISSING = 1e6  # what a slot costs that is needed for stability, in the programs


@dataclass(frozen=True)
class PinnedDesign:
    """Pinned servers, and how good they are: `waiting` jobs on average, and `lower_bound` on that for all pinned servers (of that split).

    `gap` = (offered + waiting) / (offered + lower_bound) − 1: how much longer the mean response time may be than the least.
    """

    policy: Pinned
    waiting: float
    lower_bound: float
    gap: float
    time_s: float


def design_pinned(fleet: Fleet, *, load: FleetLoad | None = None, time_limit_s: float = 10.0) -> Pinned:
    """Pinned servers of small mean response time: how many servers of each kind hold which schedule. Sizes are taken as exponential.

    Raises `Unstable` if the load of the fleet is not below 1, and `Infeasible` if pinned servers were not found although it is: where
    servers are few, some have to turn between schedules. `rota.design.find_pinned` also says how far from the best it may be.
    """
    return find_pinned(fleet, load=load, time_limit_s=time_limit_s).policy


def find_pinned(fleet: Fleet, *, load: FleetLoad | None = None, time_limit_s: float = 10.0) -> PinnedDesign:
    """`design_pinned` with a proved gap."""
    began = time.perf_counter()
    best = checked_fleet_load(fleet, load, time_limit_s)
    search = PinnedSearch(fleet, best, began + time_limit_s)
    search.relax()
    counts = search.whole_numbers()
    waiting = search.cost(counts)
    if not np.isfinite(waiting):
        raise Infeasible(
            f"no pinned servers were found that serve all types, although the load is {best.load:.4g}: so few servers have to turn between "
            "schedules. Add servers, or let some of them turn (rota.design_partly_pinned)"
        )
    offered = float(search.offered.sum())
    lower = min(max(search.lower, 0.0), waiting)
    gap = (offered + waiting) / (offered + lower) - 1
    return PinnedDesign(search.pinned(counts), waiting, lower, gap, time.perf_counter() - began)


class PinnedSearch:
    """The state of the search: queues (one per type and speed), schedules of kinds as slots of the queues (n, Q).

    `count` (C,): the servers that may be pinned, all if not given. `split` (C, K): the part of each type that goes to the pinned servers of
    each kind; it is that of the load if not given, and may sum to less than 1.
    """

    def __init__(self, fleet: Fleet, load: FleetLoad, deadline: float, *, count: Int | None = None, split: Array | None = None) -> None:
        self.fleet, self.deadline = fleet, deadline
        self.count = fleet.count if count is None else count
        self.split = load.split if split is None else split
        self.active = np.flatnonzero(fleet.arrival_rate > 0).astype(np.int64)
        runs = fleet.runs
        self.pricing = {c: KindPricing(fleet, c, self.active) for c in range(len(fleet.kinds)) if runs[c, self.active].any()}
        place: dict[tuple[int, float], int] = {}
        self.queue_of = {}  # of a kind: the queue of each of its arriving types
        offered: list[float] = []
        for c, pricing in self.pricing.items():
            queues = []
            for i in self.active[pricing.types]:
                speed = float(fleet.speed[c, i])
                if (int(i), speed) not in place:
                    place[int(i), speed] = len(offered)
                    offered.append(0.0)
                q = place[int(i), speed]
                offered[q] += float(fleet.offered_work[i] * self.split[c, i]) / speed
                queues.append(q)
            self.queue_of[c] = np.array(queues)
        self.offered: Array = np.array(offered)
        self.least = np.where(self.offered > 0, np.floor(self.offered) + 1, 0).astype(np.int64)  # slots without which it is not stable
        self.kind: list[int] = []
        self.schedules: list[Int] = []
        self.slots: list[Int] = []
        self._seen: set[tuple[int, bytes]] = set()
        self.chords: list[set[int]] = [set() for _ in offered]
        self.lower = -np.inf
        for c, row in zip(load.kind.tolist(), load.candidates, strict=True):
            if c in self.pricing:
                self.add(c, row[np.flatnonzero(runs[c])][self.pricing[c].own])
        self.complete = True  # whether every schedule that matters is in `schedules`
        for c, pricing in self.pricing.items():
            for alone in np.diag(pricing.most):
                self.add(c, alone)
            try:
                for row in list_schedules(pricing.system, maximal=True, limit=_LISTED):
                    self.add(c, row[pricing.own])
            except TooManySchedules:
                self.complete = False

    def add(self, c: int, schedule: Int) -> bool:
        """A schedule of a kind; False if it was there."""
        key = (c, schedule.tobytes())
        if key in self._seen:
            return False
        self._seen.add(key)
        slots = np.zeros(len(self.offered), dtype=np.int64)
        np.add.at(slots, self.queue_of[c], schedule)
        self.kind.append(c)
        self.schedules.append(np.array(schedule, dtype=np.int64))
        self.slots.append(slots)
        return True

    def pinned(self, counts: Int) -> Pinned:
        """The policy in which `counts[j]` servers hold the schedule j."""
        used = np.flatnonzero(counts)
        rows = np.zeros((len(used), len(self.fleet.names)), dtype=np.int64)
        for at, j in enumerate(used):
            rows[at, self.active[self.pricing[self.kind[j]].types]] = self.schedules[j]
        order = sorted(range(len(used)), key=lambda at: (self.kind[used[at]], rows[at].tolist()))
        return Pinned([self.kind[used[at]] for at in order], rows[order], counts[used[order]], self.split)

    def waiting(self, q: int, k: int) -> float:
        """f_q(k)."""
        return mean_waiting(k, float(self.offered[q]))

    def cost(self, counts: Int) -> float:
        """Σ f_q of whole numbers of servers."""
        k = counts @ np.array(self.slots)
        return float(sum(self.waiting(q, int(n)) for q, n in enumerate(k)))

    # ---------------------------------------------------------------------------------------------------- the relaxation

    def _program(self) -> tuple[Array, Array, Array]:
        """c, A and b of min c·x s.t. A x ≤ b, x = (m, k, φ, missing slots). The rows: slots of each queue, servers of each kind, chords."""
        J, Q, C = len(self.kind), len(self.offered), len(self.fleet.kinds)
        columns = J + 3 * Q
        cost = np.concatenate([np.zeros(J + Q), np.ones(Q), np.full(Q, _MISSING)])
        slots = np.zeros((Q, columns))
        slots[:, :J] = -np.array(self.slots).T
        slots[:, J : J + Q] = np.eye(Q)
        slots[:, J + 2 * Q :] = -np.eye(Q)
        servers = np.zeros((C, columns))
        servers[self.kind, np.arange(J)] = 1.0
        rows, right = [], []
        for q, chords in enumerate(self.chords):
            for t in chords:  # φ ≥ f(t) + (f(t + 1) − f(t)) (k − t)
                low, high = self.waiting(q, t), self.waiting(q, t + 1)
                row = np.zeros(columns)
                row[J + q], row[J + Q + q] = high - low, -1.0
                rows.append(row)
                right.append((high - low) * t - low)
        table = np.vstack([slots, servers, np.array(rows).reshape(len(rows), columns)])
        return cost, table, np.concatenate([np.zeros(Q), self.count, right])

    def relax(self) -> None:
        """Chords and schedules until the bound is near, nothing is left to add, or half of the time is over."""
        half = time.perf_counter() + (self.deadline - time.perf_counter()) / 2
        for _ in range(_ROUNDS):
            cost, table, right = self._program()
            J, Q = len(self.kind), len(self.offered)
            bounds = [(0, None)] * J + [(float(least), None) for least in self.least] + [(0, None)] * (2 * Q)
            answer = linprog(cost, A_ub=table, b_ub=right, bounds=bounds, method="highs")
            if answer.status != 0:  # by rounding: what was found so far is used
                return
            k = answer.x[J : J + Q]
            y = np.maximum(-np.array(answer.ineqlin.marginals[:Q]), 0.0)
            added = self._add_chords(k)
            bound = self._dual_value(y)
            for c, pricing in self.pricing.items():
                value = np.zeros(len(self.active))
                value[pricing.types] = y[self.queue_of[c]] / pricing.speed  # the pricing counts work, and slots are counted here
                found = pricing.best(value, _NARROW, max(half - time.perf_counter(), 0.01))
                bound -= float(self.count[c]) * found.bound
                added |= self.add(c, found.schedule)
            self.lower = max(self.lower, bound)
            now = float(sum(self._between(q, float(n)) for q, n in enumerate(k)))
            if not added or now - self.lower <= _NARROW * (float(self.offered.sum()) + now) or time.perf_counter() > half:
                return

    def _add_chords(self, k: Array) -> bool:
        """The chords of f at the present numbers of slots; False if all were there."""
        added = False
        for q, least in enumerate(self.least):
            t = max(int(np.floor(k[q] + 1e-9)), int(least))
            if least > 0 and t not in self.chords[q]:
                self.chords[q].add(t)
                added = True
        return added

    def _between(self, q: int, k: float) -> float:
        """f_q at a number that need not be whole, by its chord."""
        t = max(int(np.floor(k + 1e-9)), int(self.least[q]))
        low, high = self.waiting(q, t), self.waiting(q, t + 1)
        return low + (high - low) * (k - t)

    def _dual_value(self, y: Array) -> float:
        """Σ_q min_k (f_q(k) + y_q k) over whole k that are stable: as f is convex, the first k from which on one more does not pay."""
        total = 0.0
        for q, least in enumerate(self.least):
            if least == 0:
                continue
            low, width = int(least), 1
            while self.waiting(q, low + width - 1) - self.waiting(q, low + width) > y[q] and width < 2**40:
                width *= 2
            high = low + width
            while low < high:  # the first k with f(k) − f(k + 1) ≤ y
                middle = (low + high) // 2
                if self.waiting(q, middle) - self.waiting(q, middle + 1) > y[q]:
                    low = middle + 1
                else:
                    high = middle
            total += self.waiting(q, low) + float(y[q]) * low
        return total

    # ---------------------------------------------------------------------------------------------------- whole numbers

    def whole_numbers(self) -> Int:
        """How many servers hold each schedule: the integer program over the schedules found, then single servers moved while that helps."""
        best = np.zeros(len(self.kind), dtype=np.int64)
        for _ in range(_INTEGER_ROUNDS):
            left = self.deadline - time.perf_counter()
            if left <= 0.05:
                break
            cost, table, right = self._program()
            J, Q = len(self.kind), len(self.offered)
            low = np.concatenate([np.zeros(J), self.least, np.zeros(2 * Q)])
            whole = np.concatenate([np.ones(J), np.zeros(3 * Q)])
            answer = minimize_whole(cost, table, right, low, whole, gap=1e-6, seconds=left / 2)
            if answer.x is None:
                break
            if self.complete:  # chords are below f
                self.lower = max(self.lower, answer.lower_bound)
            counts = np.round(answer.x[:J]).astype(np.int64)
            if self.cost(counts) < self.cost(best) or not best.any():
                best = counts
            if not self._add_chords((counts @ np.array(self.slots)).astype(np.float64)):
                break
        return self._moved(best)

    def _moved(self, counts: Int) -> Int:
        """Servers that hold nothing get the schedule that helps most; then single servers move to another schedule of their kind."""
        slots, kinds = np.array(self.slots), np.array(self.kind)
        value = self.cost(counts)
        for _ in range(_ROUNDS):
            if time.perf_counter() > self.deadline:
                break
            best, change = value, None
            idle = self.count - np.bincount(kinds, weights=counts, minlength=len(self.fleet.kinds)).astype(np.int64)
            k = counts @ slots
            now = np.array([self.waiting(q, int(n)) for q, n in enumerate(k)])
            for j in range(len(counts)):
                sources = [-1] if idle[kinds[j]] > 0 else [s for s in np.flatnonzero(counts) if kinds[s] == kinds[j] and s != j]
                for s in sources if time.perf_counter() <= self.deadline else ():
                    step = slots[j] - (slots[s] if s >= 0 else 0)
                    moved = np.flatnonzero(step).tolist()
                    found = float(np.delete(now, moved).sum()) + sum((self.waiting(q, int(k[q] + step[q])) for q in moved), 0.0)
                    if found < best * (1 - 1e-12) or (np.isinf(best) and np.isfinite(found)):
                        best, change = found, (s, j)
            if change is None:
                break
            s, j = change
            counts = counts.copy()
            counts[j] += 1
            if s >= 0:
                counts[s] -= 1
            value = best
        return counts
