"""Compiled search for valuable schedules: max ⟨v, u⟩ over u ∈ 𝒮, in whole units.

Two kernels. `greedy_schedules` makes many good schedules at once and proves nothing; `best_schedule` is an exact branch and bound. Both
work with resource prices p ≥ 0. They turn the resources into one: v_i / (p·D_i) is the value that type i gets out of what it uses, and

    value of any completion ≤ value so far + value of a fractional filling of p·residual                  (surrogate bound)

which together with a bound on each single resource prunes the search. The prices of the linear relaxation make it tight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.kernel import compiled, kernel, large_kernel
from rota.views import by_reference

__all__ = ["Workspace", "best_schedule", "copy_into", "greedy_schedules", "make_maximal", "search_best", "workspace"]

_ROUNDS = 1000  # of exchanges: where a billion jobs fit, exchanging one at a time would never end
_GLANCE = 100  # nodes after which choosing among prices pays off
_PATIENCE = 1000  # nodes after which computing better prices pays off


@compiled
def _most(demand: Int, residual: Int, i: int) -> int:
    """How many jobs of type i fit into what is left."""
    most = 1 << 62
    for r in range(residual.shape[0]):
        if demand[i, r] > 0:
            most = min(most, int(residual[r] // demand[i, r]))
    return most


@compiled
def _take(demand: Int, residual: Int, i: int, count: int) -> None:
    for r in range(residual.shape[0]):
        residual[r] -= count * demand[i, r]


@compiled
def copy_into(row: Int | Array, values: Int | Array) -> None:
    """Writes values into a row. An assignment of arrays would compile a message for rows of other lengths, which takes two seconds."""
    for i in range(row.shape[0]):
        row[i] = values[i]


@compiled
def greedy_schedules(demand: Int, capacity: Int, value: Array, price: Array, noise: Array, share: Array) -> Int:
    """One maximal schedule per row of `noise` (n, K): fill in the order of value per price, disturbed by the noise, then improve.

    The first pass takes a part (`share`, in [0, 1]) of what fits of each type, the second all that still fits. Improvement: one or two
    jobs of a type give way to jobs of another as long as that gains value; what this leaves free is filled at the end.
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
        copy_into(schedules[t], make_maximal(demand, capacity, schedule, merit))
    return schedules


@compiled
def _exchange(demand: Int, residual: Int, value: Array, schedule: Int) -> None:
    """Local search: `out` jobs of type i against as many of type j as then fit, while the value grows, for a limited number of rounds."""
    K = schedule.shape[0]
    improved = True
    rounds = 0
    while improved and rounds < _ROUNDS:
        rounds += 1
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


@by_reference
class Workspace(NamedTuple):
    """The arrays of a branch and bound, so that the search itself allocates nothing."""

    price: Array  # (R,)
    order: Int  # (K,)
    ratio: Array  # (K,)
    cost: Array  # (K,)
    single: Array  # (K+1, R)
    residual: Int  # (K+1, R)
    gained: Array  # (K+1,)
    taken: Int  # (K+1,)
    best: Int  # (K,) out: the schedule
    chosen: Int  # (1,) which of several prices were the best at the last choice


def workspace(K: int, R: int) -> Workspace:
    """The arrays of a search over K types and R resources."""
    return Workspace(
        price=np.zeros(R),
        order=np.zeros(K, dtype=np.int64),
        ratio=np.zeros(K),
        cost=np.zeros(K),
        single=np.zeros((K + 1, R)),
        residual=np.zeros((K + 1, R), dtype=np.int64),
        gained=np.zeros(K + 1),
        taken=np.zeros(K + 1, dtype=np.int64),
        best=np.zeros(K, dtype=np.int64),
        chosen=np.zeros(1, dtype=np.int64),
    )


def best_schedule(
    demand: Int, capacity: Int, value: Array, most: Int, price: Array, floor: float, node_limit: int
) -> tuple[float, Int, bool]:
    """The schedule u ≤ `most` of highest value above `floor`: (value, schedule, finished).

    If none is better than `floor`, the value is `floor` and the schedule zero. `finished` is False when the node limit ended the search;
    the schedule is then good but not proved best. Every price must be positive.
    """
    space = workspace(*demand.shape)
    found, finished = search_best(demand, capacity, value, most, price[None, :], floor, node_limit, 0.0, space)
    return float(found), space.best, bool(finished)


@kernel
def _fractional(space: Workspace, value: Array, most: Int, level: int, n: int, priced: float) -> float:
    """The surrogate bound: fill p·residual with the types from `level` on, best first, jobs divisible (Dantzig 1957)."""
    total = 0.0
    for at in range(level, n):
        i = space.order[at]
        whole = space.cost[i] * most[i]
        if whole > priced:
            return float(total + space.ratio[i] * priced)
        total += value[i] * most[i]
        priced -= whole
    return total


@kernel
def _ranked(demand: Int, capacity: Int, value: Array, most: Int, space: Workspace, best_known: float) -> tuple[float, int]:
    """Puts the types that matter in order of value per price (`space.price`), best first; returns the bound at the root, and how many.

    `best_known` is a bound that was reached with other prices: if the new one is not lower, the order does not matter.
    """
    K, R = demand.shape
    order, ratio, cost, price = space.order, space.ratio, space.cost, space.price
    n = 0
    for i in range(K):  # insertion sort: K is small
        if value[i] <= 0.0 or most[i] <= 0:
            continue
        cost[i] = 0.0
        for r in range(R):
            cost[i] += price[r] * demand[i, r]
        ratio[i] = value[i] / cost[i]
        place = n
        while place > 0 and ratio[order[place - 1]] < ratio[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
        n += 1
    priced = 0.0
    for r in range(R):
        priced += price[r] * capacity[r]
    return min(_fractional(space, value, most, 0, n, priced), best_known), n


@large_kernel
def search_best(
    demand: Int, capacity: Int, value: Array, most: Int, prices: Array, floor: float, node_limit: int, grain: float, space: Workspace
) -> tuple[float, bool]:
    """`best_schedule` without allocation, and with a choice of price vectors (m, R): the schedule is left in `space.best`.

    Returns its value and whether the search was finished. The search begins with the prices that were chosen last (`space.chosen`). If it
    takes long, it starts anew with those that give the tightest bound at the root. If that takes long too, the prices themselves are
    improved, corners of the relaxation are rounded, and it starts again with what was found. From then on schedules that are better by
    less than `grain` are not looked for: where values are whole numbers except for a small part that breaks ties, a grain just below 1
    leaves the answer exact, with ties broken by the search.
    """
    found, finished, tightest = floor, False, np.inf
    limit = min(node_limit, _GLANCE)
    for stage in range(3):
        if stage == 1:
            tightest = _choose_price(demand, capacity, value, most, prices, space)
            found, limit = floor, min(node_limit, _PATIENCE)
        if stage == 2:
            _improve_price(demand, capacity, value, most, tightest, space)
            found = _round_corners(demand, capacity, value, most, found, space)
            limit = node_limit - _PATIENCE
        else:
            for r in range(demand.shape[1]):
                space.price[r] = prices[space.chosen[0], r]
            for i in range(demand.shape[0]):
                space.best[i] = 0
        found, finished = _branch(demand, capacity, value, most, found, grain if stage == 2 else 0.0, limit, space)
        if finished or limit == node_limit:
            break
    return found, finished


@kernel
def _choose_price(demand: Int, capacity: Int, value: Array, most: Int, prices: Array, space: Workspace) -> float:
    """Notes which of the prices give the tightest bound at the root, and returns it."""
    tightest = np.inf
    for k in range(prices.shape[0]):
        for r in range(prices.shape[1]):
            space.price[r] = prices[k, r]
        bound, _ = _ranked(demand, capacity, value, most, space, np.inf)
        if bound < tightest:
            space.chosen[0], tightest = k, bound
    return float(tightest)


@kernel
def _improve_price(demand: Int, capacity: Int, value: Array, most: Int, tightest: float, space: Workspace) -> None:
    """Lowers the bound at the root by changing one price after the other, in smaller and smaller steps (only their ratios matter)."""
    price = space.price
    step = 1.0
    while step > 1e-3:
        improved = False
        for r in range(price.shape[0]):
            for way in range(2):
                before = price[r]
                price[r] = before * (1.0 + step) if way == 0 else before / (1.0 + step)
                bound, _ = _ranked(demand, capacity, value, most, space, tightest)
                if bound < tightest:
                    tightest = bound
                    improved = True
                else:
                    price[r] = before
        if not improved:
            step *= 0.5


@large_kernel
def _round_corners(demand: Int, capacity: Int, value: Array, most: Int, best_value: float, space: Workspace) -> float:
    """Good schedules near the corners of the relaxation: two types that use up the two dearest resources, rounded, the rest filled in.

    Returns the best value known then; a schedule that has it is in `space.best`.
    """
    K, R = demand.shape
    if R < 2:
        return best_value
    first, second = -1, -1
    for r in range(R):
        worth = space.price[r] * capacity[r]
        if first < 0 or worth > space.price[first] * capacity[first]:
            first, second = r, first
        elif second < 0 or worth > space.price[second] * capacity[second]:
            second = r
    _, n = _ranked(demand, capacity, value, most, space, np.inf)
    count, residual = space.taken, space.residual
    for a in range(K):
        for b in range(K):
            across = demand[a, first] * demand[b, second] - demand[a, second] * demand[b, first]
            if a == b or across == 0 or min(most[a], most[b]) <= 0 or min(value[a], value[b]) <= 0.0:
                continue
            corner = (capacity[first] * demand[b, second] - capacity[second] * demand[b, first]) // across
            for start in range(corner - 2, corner + 4):
                for r in range(R):
                    residual[0, r] = capacity[r]
                for k in range(K):
                    count[k] = 0
                gain = 0.0
                for turn in range(n + 2):
                    k = a if turn == 0 else (b if turn == 1 else space.order[turn - 2])
                    left = most[k] - count[k] if turn > 0 else max(min(start, most[k]), 0)
                    for r in range(R):
                        if demand[k, r] > 0:
                            left = min(left, residual[0, r] // demand[k, r])
                    count[k] += left
                    gain += left * value[k]
                    for r in range(R):
                        residual[0, r] -= left * demand[k, r]
                if gain > best_value:
                    best_value = gain
                    for k in range(K):
                        space.best[k] = count[k]
    return best_value


@large_kernel
def _branch(
    demand: Int, capacity: Int, value: Array, most: Int, floor: float, grain: float, node_limit: int, space: Workspace
) -> tuple[float, bool]:
    """The branch and bound with the prices in `space.price`: (value, finished); `space.best` changes where something better is found."""
    K, R = demand.shape
    order, single, price = space.order, space.single, space.price
    residual, gained, count, best = space.residual, space.gained, space.taken, space.best
    _, n = _ranked(demand, capacity, value, most, space, np.inf)

    # single[l, r]: best value per unit of resource r among types l, l+1, … (inf where a type needs none of it)
    for r in range(R):
        single[n, r] = 0.0
    for level in range(n - 1, -1, -1):
        i = order[level]
        for r in range(R):
            alone = value[i] / demand[i, r] if demand[i, r] > 0 else np.inf
            single[level, r] = max(single[level + 1, r], alone)

    for r in range(R):
        residual[0, r] = capacity[r]
    gained[0] = 0.0
    best_value = floor
    nodes = 0
    level = 0
    fresh = True  # entering a level from above, as opposed to coming back to it
    while level >= 0:
        nodes += 1
        if nodes > node_limit:
            return best_value, False
        if level == n:
            if gained[n] > best_value:
                best_value = gained[n]
                for i in range(K):
                    best[i] = 0
                for at in range(n):
                    best[order[at]] = count[at]
            level -= 1
            fresh = False
            continue
        i = order[level]
        if fresh:
            left = most[i]
            for r in range(R):
                if float(left) * demand[i, r] > residual[level, r]:  # mostly all fit, and a division takes long
                    left = residual[level, r] // demand[i, r]
            count[level] = left
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
        surrogate = _fractional(space, value, most, level + 1, n, priced)
        bound = surrogate
        for r in range(R):
            if single[level + 1, r] < np.inf:
                bound = min(bound, single[level + 1, r] * residual[level + 1, r])
        if gained[level + 1] + bound > best_value * (1.0 + 1e-13) + grain:
            level += 1
            fresh = True
        elif gained[level + 1] + surrogate <= best_value * (1.0 + 1e-13) + grain:
            level -= 1  # the surrogate bound only falls with the count: fewer jobs of this type cannot help either
            fresh = False
        else:
            fresh = False
    return best_value, True


@compiled
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
