"""The order of a loop: a short closed tour through a few schedules, given what each move costs (which may depend on its direction)."""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.kernel import compiled

__all__ = ["short_tour"]

_EXACT = 13  # schedules up to which the shortest tour is found by dynamic programming


def short_tour(cost: Array) -> Int:
    """An order of the n places of a closed tour, beginning with 0: the shortest for few places, a good one for many."""
    n = len(cost)
    if n < 3:
        return np.arange(n, dtype=np.int64)
    return _shortest(cost) if n <= _EXACT else _improved(cost, _nearest(cost))


@compiled
def _shortest(cost: Array) -> Int:
    """Held and Karp (1962): the best way from 0 through a set of places to one of them, sets by growing size."""
    n = cost.shape[0]
    length = np.full((1 << n, n), np.inf)  # by the set, as bits, and the place where the way ends
    before = np.zeros((1 << n, n), dtype=np.int64)
    for k in range(1, n):
        length[1 << k, k] = cost[0, k]
    for visited in range(2, 1 << n, 2):  # place 0 is never a member
        for k in range(1, n):
            rest = visited & ~(1 << k)
            if rest == visited or rest == 0:
                continue
            for j in range(1, n):
                found = length[rest, j] + cost[j, k]
                if found < length[visited, k]:
                    length[visited, k], before[visited, k] = found, j
    visited = (1 << n) - 2
    order = np.zeros(n, dtype=np.int64)
    order[n - 1] = 1 + np.argmin(length[visited, 1:] + cost[1:, 0])
    for at in range(n - 1, 1, -1):
        order[at - 1] = before[visited, order[at]]
        visited &= ~(1 << order[at])
    return order


@compiled
def _nearest(cost: Array) -> Int:
    """Always on to the nearest place that is left."""
    n = cost.shape[0]
    order = np.arange(n)
    for at in range(1, n - 1):
        nearest = at
        for k in range(at + 1, n):
            if cost[order[at - 1], order[k]] < cost[order[at - 1], order[nearest]]:
                nearest = k
        order[at], order[nearest] = order[nearest], order[at]
    return order


@compiled
def _improved(cost: Array, order: Int) -> Int:
    """Reverses parts of the tour, and moves single places, as long as that shortens it."""
    n = len(order)
    length = _length(cost, order)
    improved = True
    while improved:
        improved = False
        for a in range(1, n - 1):
            for b in range(a + 1, n):
                for move in range(2):
                    tried = order.copy()
                    if move:
                        tried[a:b] = order[a + 1 : b + 1]
                        tried[b] = order[a]
                    else:
                        tried[a : b + 1] = order[a : b + 1][::-1]
                    found = _length(cost, tried)
                    if found < length * (1 - 1e-9):
                        order, length, improved = tried, found, True
    return order


@compiled
def _length(cost: Array, order: Int) -> float:
    total = 0.0
    for at in range(len(order)):
        total += cost[order[at - 1], order[at]]
    return total
