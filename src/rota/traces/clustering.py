"""Few types for many demands: which k types lose the least capacity when every job is given one that encloses its demand?

Demand i is a point dᵢ (in parts of the capacity) with weight wᵢ, the time that its jobs run. A type is a corner c; a job may take it if
d ≤ c in every resource. The capacity lost is Σᵢ wᵢ Σᵣ (cᵣ − dᵢᵣ), and as Σ wᵢ dᵢ is given, the task is

    minimise Σᵢ wᵢ min { |c| : c ≥ dᵢ },    |c| = Σᵣ cᵣ the price of a corner, over k corners.

**One resource.** The best groups are intervals of the sorted demands: F_m(j) = min over i of F_{m−1}(i) + c_j (W_j − W_i), where W_j is the
weight of the first j. The best i does not fall with j, so halving finds a whole row of F in O(n log n): exact.

**Several resources.** We know no fast exact method, so we search. The start is groups merged two by two, always the pair that costs least.
Then moves, until none helps:

- shrink: each job takes the cheapest corner, each corner the maximum of its jobs;
- line: one coordinate of one corner goes to its best value, all else fixed (exact, by one sorted sweep);
- regroup: two groups become one, and a group is cut in two along a resource;
- kick: a regrouping at random (always the same one), to leave a local optimum.

Demands are first gathered in at most `COARSE` cells; the last moves run on all demands, so that what the cells lose is won back. A second
start is the k demands of most weight, so that the answer is never worse than theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem

__all__ = ["Clustering", "choose_types", "sums"]

COARSE = 1000  # cells of the first, coarse search
_SWEEPS = 60  # most rounds of moves; a few are usual
_KICKS = 10  # tries to leave a local optimum
_UNIONS = 12  # pairs of groups that a regrouping tries, the cheapest ones


@dataclass(frozen=True, eq=False)
class Clustering:
    """k types and the type of every demand. `lost` = Σ wᵢ Σᵣ (cᵣ − dᵢᵣ) / capacityᵣ."""

    types: Array  # (k, R)
    member: Int  # (n,)
    lost: float


def choose_types(demand: Array, weight: Array, k: int, capacity: Array | None = None) -> Clustering:
    """At most k types that enclose all demands (n, R) and lose little capacity; for one resource the least possible.

    Without a capacity the largest demand of each resource stands for it.
    """
    demand, weight = np.asarray(demand, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if k < 1:
        raise BadSpec([Problem("clusters", "must be at least 1", k)])
    if demand.ndim != 2 or len(demand) == 0 or len(weight) != len(demand) or not (np.isfinite(demand).all() and (demand >= 0).all()):
        raise BadSpec([Problem("demand", "needs one row of finite demands, not negative, per weight", demand.shape)])
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise BadSpec([Problem("weight", "must be finite and not negative")])
    scale = np.asarray(capacity, dtype=np.float64) if capacity is not None else demand.max(axis=0)
    points = demand / np.where(scale > 0, scale, 1.0)
    useful = np.flatnonzero(np.ptp(points, axis=0) > 0)  # a resource of which all demands are equal makes no difference
    useful = useful if len(useful) else np.array([0])
    distinct, inverse = np.unique(points[:, useful], axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    total = sums(inverse, weight)
    if k >= len(distinct):
        member = np.arange(len(distinct))
    elif len(useful) == 1:
        member = _intervals(distinct[:, 0], total, k)
    else:
        member = _search(distinct, total, k)
    _, member = np.unique(member[inverse], return_inverse=True)
    types = _corners(demand, member)
    lost = float(weight @ (_corners(points, member)[member] - points).sum(axis=1))
    return Clustering(types, member.astype(np.int64), lost)


def sums(member: Int, weight: Array) -> Array:
    """The weight of each group."""
    total: Array = np.bincount(member, weight).astype(np.float64)
    return total


def _corners(points: Array, member: Int) -> Array:
    """The component-wise maximum of each group (groups are 0 … k−1, none empty)."""
    order = np.argsort(member, kind="stable")
    starts = np.flatnonzero(np.diff(member[order], prepend=-1))
    return np.maximum.reduceat(points[order], starts, axis=0)


# ---------------------------------------------------------------------------------------------------------------- one resource


def _intervals(value: Array, weight: Array, k: int) -> Int:
    """The groups of sorted, distinct values that lose least: exact."""
    upto = np.concatenate([[0.0], np.cumsum(weight)])
    choice = _partition(value, upto, k)
    ends = np.empty(k, dtype=np.int64)
    at = len(value)
    for m in range(k - 1, -1, -1):
        ends[m] = at
        at = choice[m, at]
    return np.searchsorted(ends, np.arange(len(value)), side="right")


@nb.njit(cache=True)
def _partition(value: Array, upto: Array, k: int) -> Int:
    """choice[m, j]: where the last of m + 1 groups begins if they hold the first j values (k ≤ n)."""
    n = len(value)
    choice = np.zeros((k, n + 1), dtype=np.int64)
    before = np.full(n + 1, np.inf)
    before[0] = 0.0
    stack = np.empty((128, 4), dtype=np.int64)  # halving goes no deeper than the bits of n, with two entries each
    for m in range(k):
        row = np.full(n + 1, np.inf)
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = m + 1, n, m, n - 1  # columns low … high, their best cut within left … right
        depth = 1
        while depth > 0:
            depth -= 1
            low, high, left, right = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            j = (low + high) // 2
            best = left
            for i in range(left, min(right, j - 1) + 1):
                cost = before[i] + value[j - 1] * (upto[j] - upto[i])
                if cost < row[j]:
                    row[j], best = cost, i
            choice[m, j] = best
            if low < j:
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = low, j - 1, left, best
                depth += 1
            if j < high:
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j + 1, high, best, right
                depth += 1
        before = row
    return choice


# ---------------------------------------------------------------------------------------------------------------- several resources


def _search(points: Array, weight: Array, k: int) -> Int:
    """The group of every point, the best that was found from both starts."""
    cell = _coarsen(points, max(COARSE, 2 * k))
    coarse, coarse_weight = _corners(points, cell), sums(cell, weight)
    starts = (_agglomerate(coarse, coarse_weight, k), _heaviest(coarse, coarse_weight, k))
    found = [_improve(coarse, coarse_weight, start, k) for start in starts]
    found.append(_kicked(coarse, coarse_weight, min(found, key=lambda corners: _cost(coarse, coarse_weight, corners)), k))
    if len(coarse) < len(points):
        found.append(_heaviest(points, weight, k))
    best = min(found, key=lambda corners: _cost(points, weight, corners))
    if len(coarse) < len(points):
        best = _improve(points, weight, best, k, regroup=False, gain=1e-4)
    return _assign(points, best)[0]


def _coarsen(points: Array, most: int) -> Int:
    """The cell of each point in a relative grid, as fine as `most` cells allow; cells are numbered without gaps."""
    if len(points) <= most:
        return np.arange(len(points))
    logs = np.log(np.where(points > 0, points, 1.0))
    step = 1e-3
    while True:
        index = np.ceil(logs / np.log1p(step)).astype(np.int64)
        index -= index.min(axis=0) - 1
        index[points == 0] = 0
        cell = np.zeros(len(points), dtype=np.int64)
        for column in index.T:  # renumbered after each resource, so that the numbers stay small
            cells, cell = np.unique(cell * (column.max() + 1) + column, return_inverse=True)
        if len(cells) <= most:
            return cell.astype(np.int64)
        step *= 1.5


def _agglomerate(points: Array, weight: Array, k: int) -> Array:
    """k corners from merging, each time, the two groups whose union costs least."""
    corner, mass, price = points.copy(), weight.copy(), points.sum(axis=1)
    n = len(points)
    alive = np.ones(n, dtype=bool)

    def increase(i: int) -> Array:
        rise: Array = (mass[i] + mass) * np.maximum(corner[i], corner).sum(axis=1) - mass[i] * price[i] - mass * price
        rise[~alive] = np.inf
        rise[i] = np.inf
        return rise

    cost, partner = np.empty(n), np.empty(n, dtype=np.int64)
    for i in range(n):
        rise = increase(i)
        partner[i], cost[i] = rise.argmin(), rise.min()
    for _ in range(n - k):
        i = int(cost.argmin())
        j = int(partner[i])
        corner[i] = np.maximum(corner[i], corner[j])
        price[i] = corner[i].sum()
        mass[i] += mass[j]
        alive[j], cost[j] = False, np.inf
        for a in np.flatnonzero(alive & ((partner == i) | (partner == j))):
            rise = increase(int(a))
            partner[a], cost[a] = rise.argmin(), rise.min()
        rise = increase(i)
        closer = rise < cost
        closer[~alive] = False
        cost[closer], partner[closer] = rise[closer], i
        partner[i], cost[i] = rise.argmin(), rise.min()
    return corner[alive]


def _heaviest(points: Array, weight: Array, k: int) -> Array:
    """The k points of most weight; if they do not enclose all, the last gives way to the maximum of all."""
    corners = points[np.argsort(-weight, kind="stable")[:k]]
    if np.isinf(_assign(points, corners)[1]).any():
        corners = np.vstack([corners[: k - 1], points.max(axis=0)])
    return corners


def _improve(points: Array, weight: Array, corners: Array, k: int, regroup: bool = True, gain: float = 1e-9) -> Array:
    """Moves until a round of them lowers the cost by less than this part."""
    best, least = corners, _cost(points, weight, corners)
    for _ in range(_SWEEPS):
        corners = _line_moves(points, weight, _refill(points, weight, best, k))
        if regroup and _cost(points, weight, corners) >= least * (1 - gain):
            corners = _regroup(points, weight, best, k)
        cost = _cost(points, weight, corners)
        if cost >= least * (1 - gain):
            return corners if cost < least else best
        best, least = corners, cost
    return best


def _assign(points: Array, corners: Array) -> tuple[Int, Array]:
    """The cheapest corner that encloses each point, and its price (infinite if none does)."""
    price = corners.sum(axis=1)
    order = np.argsort(price, kind="stable")
    place = _first_enclosing(points, corners[order])
    return np.append(order, 0)[place], np.append(price[order], np.inf)[place]


@nb.njit(cache=True)
def _first_enclosing(points: Array, corners: Array) -> Int:
    """The place of the first corner that encloses each point; their number if none does."""
    n, k, resources = len(points), len(corners), points.shape[1]
    place = np.full(n, k)
    for i in range(n):
        for a in range(k):
            inside = True
            for r in range(resources):
                if points[i, r] > corners[a, r]:
                    inside = False
                    break
            if inside:
                place[i] = a
                break
    return place


def _cost(points: Array, weight: Array, corners: Array) -> float:
    return float(weight @ _assign(points, corners)[1])


def _groups(points: Array, corners: Array) -> tuple[Array, Int]:
    """The corners that have points, each shrunk to the maximum of them; and the group of every point."""
    _, member = np.unique(_assign(points, corners)[0], return_inverse=True)
    return _corners(points, member), member


def _refill(points: Array, weight: Array, corners: Array, k: int) -> Array:
    """The corners shrunk, and brought up to k by cutting the groups where it saves most."""
    while True:
        corners, member = _groups(points, corners)
        if len(corners) >= k:
            return corners
        cuts = [_best_cut(points[member == a], weight[member == a]) for a in range(len(corners))]
        saving, corner = max(cuts, key=lambda cut: cut[0])
        if saving <= 0:
            return corners
        corners = np.vstack([corners, corner])


def _line_moves(points: Array, weight: Array, corners: Array) -> Array:
    """Every coordinate of every corner, one after the other, at its best value."""
    corners = corners.copy()
    for a in range(len(corners)):
        for r in range(points.shape[1]):
            others = np.delete(corners, a, axis=0)
            corners[a, r] = _best_value(points, weight, corners[a], r, _assign(points, others)[1])
    return corners


def _best_value(points: Array, weight: Array, corner: Array, r: int, elsewhere: Array) -> float:
    """Where coordinate r of a corner serves best, if the price of the other corners is `elsewhere`.

    At value v the corner costs p + v and takes the points with dᵣ ≤ v whose price elsewhere is more: a point enters at dᵣ and leaves at
    elsewhere − p. It saves Σ wᵢ (elsewhereᵢ − p − v), a sum over the points inside; the best v is a dᵣ, since in between the saving falls.
    """
    rest = np.delete(corner, r)
    fits = (np.delete(points, r, axis=1) <= rest).all(axis=1)
    p, value, away, w = rest.sum(), points[fits, r], elsewhere[fits], weight[fits]
    must = np.isinf(away)
    least = value[must].max(initial=0.0)  # no other corner takes these
    ever = ~must & (away - p > np.maximum(value, least))
    enters, leaves, w_in = np.maximum(value[ever], least), away[ever] - p, w[ever]
    tries = np.unique(np.append(enters, least) if must.any() else enters)
    if len(tries) == 0:
        return float(corner[r])
    inside, worth = np.zeros(len(tries)), np.zeros(len(tries))
    for place, sign in ((np.searchsorted(tries, enters), 1.0), (np.searchsorted(tries, leaves), -1.0)):
        here = place < len(tries)
        inside += sign * np.bincount(place[here], w_in[here], len(tries))
        worth += sign * np.bincount(place[here], (w_in * (leaves + p))[here], len(tries))
    saving = np.cumsum(worth) - (p + tries) * np.cumsum(inside) - (p + tries) * w[must].sum()
    return float(tries[saving.argmax()])


def _kicked(points: Array, weight: Array, corners: Array, k: int) -> Array:
    """A union and a new corner, both at random, then moves again: the best of several tries, each from the best so far."""
    rng = np.random.default_rng(0)
    best, least = corners, _cost(points, weight, corners)
    for _ in range(_KICKS if len(corners) > 1 else 0):
        a, b = rng.choice(len(best), 2, replace=False)
        i, j = rng.integers(len(points), size=2)
        fewer = np.delete(best, [a, b], axis=0)
        corners = np.vstack([fewer, np.maximum(best[a], best[b]), np.maximum(points[i], points[j])])
        corners = _improve(points, weight, corners, k)
        if (cost := _cost(points, weight, corners)) < least:
            best, least = corners, cost
    return best


def _regroup(points: Array, weight: Array, corners: Array, k: int) -> Array:
    """The first regrouping that helps: one of the cheapest unions, then the best cut, then one round of line moves."""
    corners, member = _groups(points, corners)
    least = _cost(points, weight, corners)
    mass, price = sums(member, weight), corners.sum(axis=1)
    union = np.maximum(corners[:, None], corners[None])
    rise = (mass[:, None] + mass) * union.sum(axis=2) - (mass * price)[:, None] - mass * price
    rise[np.tril_indices(len(corners))] = np.inf
    for pair in np.argsort(rise, axis=None)[:_UNIONS]:
        a, b = np.unravel_index(pair, rise.shape)
        if a >= b:
            break
        fewer = np.vstack([np.delete(corners, [a, b], axis=0), union[a, b]])
        other = _line_moves(points, weight, _refill(points, weight, fewer, k))
        if _cost(points, weight, other) < least * (1 - 1e-9):
            return other
    return corners


def _best_cut(points: Array, weight: Array) -> tuple[float, Array]:
    """The corner that, given to the points which are small in one resource, saves most; what it saves comes first."""
    best, corner = 0.0, points.max(axis=0)
    price = corner.sum()
    for r in range(points.shape[1]):
        order = np.argsort(points[:, r], kind="stable")
        grown = np.maximum.accumulate(points[order], axis=0)
        saving = np.cumsum(weight[order]) * (price - grown.sum(axis=1))
        at = int(saving.argmax())
        if saving[at] > best:
            best, corner = float(saving[at]), grown[at]
    return best, corner
