"""The order of a loop: a short closed tour through a few schedules, given what each move costs (which may depend on its direction)."""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int

__all__ = ["short_tour"]

_EXACT = 9  # schedules up to which the shortest tour is found by dynamic programming


def short_tour(cost: Array) -> Int:
    """An order of the n places of a closed tour, beginning with 0: the shortest for few places, a good one for many."""
    n = len(cost)
    if n < 3:
        return np.arange(n, dtype=np.int64)
    return np.array(_shortest(cost) if n <= _EXACT else _improved(cost, _nearest(cost)), dtype=np.int64)


def _shortest(cost: Array) -> list[int]:
    """Held and Karp (1962): the best way from 0 through a set of places to one of them, sets by growing size."""
    n = len(cost)
    best: dict[tuple[int, int], tuple[float, int]] = {(1 << k, k): (float(cost[0, k]), 0) for k in range(1, n)}
    for visited in range(2, 1 << n, 2):  # place 0 is never a member
        members = [k for k in range(1, n) if visited >> k & 1]
        if len(members) < 2:
            continue
        for k in members:
            before = visited & ~(1 << k)
            best[visited, k] = min((best[before, j][0] + float(cost[j, k]), j) for j in members if j != k)
    everything = (1 << n) - 2
    last = min(range(1, n), key=lambda k: best[everything, k][0] + float(cost[k, 0]))
    order, visited = [last], everything
    while len(order) < n - 1:
        before = best[visited, order[-1]][1]
        visited &= ~(1 << order[-1])
        order.append(before)
    return [0, *reversed(order)]


def _nearest(cost: Array) -> list[int]:
    """Always on to the nearest place that is left."""
    order, left = [0], set(range(1, len(cost)))
    while left:
        nearest = min(left, key=lambda k: (float(cost[order[-1], k]), k))
        order.append(nearest)
        left.remove(nearest)
    return order


def _improved(cost: Array, order: list[int]) -> list[int]:
    """Reverses parts of the tour, and moves single places, as long as that shortens it."""
    length = _length(cost, order)
    improved = True
    while improved:
        improved = False
        n = len(order)
        for a in range(1, n - 1):
            for b in range(a + 1, n):
                moved = order[:a] + order[a + 1 : b + 1] + [order[a]] + order[b + 1 :]
                for tried in (order[:a] + order[a : b + 1][::-1] + order[b + 1 :], moved):
                    found = _length(cost, tried)
                    if found < length * (1 - 1e-9):
                        order, length, improved = tried, found, True
    return order


def _length(cost: Array, order: list[int]) -> float:
    return float(cost[order, np.roll(order, -1)].sum())
