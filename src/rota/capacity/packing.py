"""Compiled search for valuable schedules: max ⟨v, u⟩ over u ∈ 𝒮, in whole units.

Two kernels. `greedy_schedules` makes many good schedules at once and proves nothing; `best_schedule` is an exact branch and bound. Both
work with resource prices p ≥ 0: v_i / (p·D_i) is the value that type i gets out of what it uses, and with q = max of that over the types
left,

    value of any completion ≤ value so far + q · p·residual                                             (surrogate bound)

which together with the same bound on each single resource prunes the search. The prices of the linear relaxation make it tight.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from rota.arrays import Array, Int

__all__ = ["best_schedule", "greedy_schedules", "make_maximal"]


@nb.njit(cache=True)
def _most(demand: Int, residual: Int, i: int) -> int:
    """How many jobs of type i fit into what is left."""
    most = 1 << 62
    for r in range(residual.shape[0]):
        if demand[i, r] > 0:
            most = min(most, int(residual[r] // demand[i, r]))
    return most


@nb.njit(cache=True)
def _take(demand: Int, residual: Int, i: int, count: int) -> None:
    for r in range(residual.shape[0]):
        residual[r] -= count * demand[i, r]


@nb.njit(cache=True)
def greedy_schedules(demand: Int, capacity: Int, value: Array, price: Array, noise: Array, share: Array) -> Int:
    """One maximal schedule per row of `noise` (n, K): fill in the order of value per price, disturbed by the noise, then improve.

    The first pass takes a part (`share`, in [0, 1]) of what fits of each type, the second all that still fits. Improvement: one or two
    jobs of a type give way to jobs of another as long as that gains value; room that this leaves is filled at last.
    """
    n, K = noise.shape
    schedules = np.zeros((n, K), dtype=np.int64)
    merit = np.empty(K)
    for t in range(n):
        schedule, residual = schedules[t], capacity.copy()
        for i in range(K):
            cost = 0.0
            for r in range(capacity.shape[0]):
                cost += price[r] * demand[i, r]
            merit[i] = (1.0 + noise[t, i]) * value[i] / max(cost, 1e-300)
        order = np.argsort(-merit)
        for i in order:
            count = int(share[t, i] * _most(demand, residual, i))
            schedule[i] += count
            _take(demand, residual, i, count)
        for i in order:
            count = _most(demand, residual, i)
            schedule[i] += count
            _take(demand, residual, i, count)
        _exchange(demand, residual, value, schedule)
        schedules[t] = make_maximal(demand, capacity, schedule, merit)
    return schedules


@nb.njit(cache=True)
def _exchange(demand: Int, residual: Int, value: Array, schedule: Int) -> None:
    """Local search: `out` jobs of type i against as many of type j as then fit, while the value grows."""
    K = schedule.shape[0]
    improved = True
    while improved:
        improved = False
        for i in range(K):
            for out in range(1, 3):
                if schedule[i] < out:
                    break
                _take(demand, residual, i, -out)
                best, best_count, best_gain = -1, 0, 1e-9 * abs(value[i])
                for j in range(K):
                    if j != i:
                        count = _most(demand, residual, j)
                        gain = count * value[j] - out * value[i]
                        if gain > best_gain:
                            best, best_count, best_gain = j, count, gain
                if best >= 0:
                    schedule[i] -= out
                    schedule[best] += best_count
                    _take(demand, residual, best, best_count)
                    improved = True
                else:
                    _take(demand, residual, i, out)


@nb.njit(cache=True)
def best_schedule(
    demand: Int, capacity: Int, value: Array, most: Int, price: Array, floor: float, node_limit: int
) -> tuple[float, Int, bool]:
    """The schedule u ≤ `most` of highest value above `floor`: (value, schedule, finished).

    If none is better than `floor`, the value is `floor` and the schedule zero. `finished` is False when the node limit ended the search;
    the schedule is then good but not proved best.
    """
    K, R = demand.shape
    cost = np.zeros(K)
    for i in range(K):
        for r in range(R):
            cost[i] += price[r] * demand[i, r]
    ratio = np.zeros(K)
    for i in range(K):
        if value[i] > 0.0 and most[i] > 0:
            ratio[i] = value[i] / cost[i] if cost[i] > 0.0 else np.inf
    order = np.argsort(-ratio)
    n = 0
    while n < K and ratio[order[n]] > 0.0:
        n += 1

    # q[l]: best value per price among types l, l+1, …; single[l, r]: the same for one resource (inf where a type needs none of it)
    q = np.zeros(n + 1)
    single = np.zeros((n + 1, R))
    for level in range(n - 1, -1, -1):
        i = order[level]
        q[level] = ratio[i]
        for r in range(R):
            alone = value[i] / demand[i, r] if demand[i, r] > 0 else np.inf
            single[level, r] = max(single[level + 1, r], alone)

    residual = np.empty((n + 1, R), dtype=np.int64)
    residual[0] = capacity
    gained = np.zeros(n + 1)
    count = np.zeros(n + 1, dtype=np.int64)
    best_value, best = floor, np.zeros(K, dtype=np.int64)
    nodes = 0
    level = 0
    fresh = True  # entering a level from above, as opposed to coming back to it
    while level >= 0:
        nodes += 1
        if nodes > node_limit:
            return best_value, best, False
        if level == n:
            if gained[n] > best_value:
                best_value = gained[n]
                best[:] = 0
                for at in range(n):
                    best[order[at]] = count[at]
            level -= 1
            fresh = False
            continue
        i = order[level]
        if fresh:
            count[level] = min(most[i], _most(demand, residual[level], i))
        else:
            count[level] -= 1
        if count[level] < 0:
            level -= 1
            fresh = False
            continue
        priced = 0.0
        for r in range(R):
            residual[level + 1, r] = residual[level, r] - count[level] * demand[i, r]
            priced += price[r] * residual[level + 1, r]
        gained[level + 1] = gained[level] + count[level] * value[i]
        bound = q[level + 1] * priced if level + 1 < n else 0.0
        for r in range(R):
            if single[level + 1, r] < np.inf:
                bound = min(bound, single[level + 1, r] * residual[level + 1, r])
        if gained[level + 1] + bound > best_value * (1.0 + 1e-13):
            level += 1
            fresh = True
        elif q[level + 1] * priced + gained[level + 1] <= best_value * (1.0 + 1e-13):
            level -= 1  # the surrogate bound only falls with the count: fewer jobs of this type cannot help either
            fresh = False
        else:
            fresh = False
    return best_value, best, True


@nb.njit(cache=True)
def make_maximal(demand: Int, capacity: Int, schedule: Int, merit: Array) -> Int:
    """Adds jobs, the type of highest merit first, until nothing fits any more."""
    full = schedule.copy()
    residual = capacity.copy()
    for i in range(full.shape[0]):
        _take(demand, residual, i, full[i])
    for i in np.argsort(-merit):
        count = _most(demand, residual, i)
        full[i] += count
        _take(demand, residual, i, count)
    return full
