"""The exact search for the best schedules where jobs are large: max ⟨v, u⟩ over u ∈ 𝒮, in whole units, with bounds from tables.

Where only some jobs fit at once, a schedule is a short list of jobs, and a search that adds one job after the other meets few of them if it
knows a good bound. Jobs that may be cut give a bad one. Here bounds come from dynamic programs with whole jobs, which see two columns of
demands at a time,

    T_j(a, b) = max Σ v_i u_i   s.t.   Σ u_i A_i ≤ a,   Σ u_i B_i ≤ b,   u whole,   u_i = 0 for i < j        (a relaxation)

where a column is a resource, or the sum of all resources weighed by their prices p (the surrogate), or nothing. A column too long for a
table is measured in steps, demands and what is left both rounded down: what fits still does. For one or two resources that are short
enough the table is the answer itself.

Types are in order of value per price, best first, and so are the jobs of a list, so that each schedule is met once; tables are kept for
some starts j. A type that needs no less than another one of no less value is left out: the other one can take its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.capacity.packing import copy_into
from rota.kernel import compiled

__all__ = ["Found", "search_tables"]

_ENTRIES = 100_000  # that the dynamic programs of one search compute per type,
_ALL_ENTRIES = 40_000_000  # and for all types: about a hundredth of a second
_STARTS = 20  # j for which tables are kept
_FINE = 2**20  # the surrogate measures a resource in at most this many steps,
_TOTAL = 2**30  # and all of the dearest one counts this much, so that sums stay small
_SEEN = 4  # resources that are seen beside the surrogate, the dearest ones
_LONGEST = 250  # jobs in a list
_SAME = 1e-12  # values that differ by less are the same, relative


class Found(NamedTuple):
    """`bound` ≥ ⟨v, u⟩ for all schedules u, and good `schedules` (n, K). If `finished`, the best of all is among them and attains the
    bound (to within rounding).
    """

    bound: float
    schedules: Int
    finished: bool


class _Bounds(NamedTuple):
    """The tables of all views and starts, one after the other, and how to find an entry."""

    views: Int  # (V, 2) the columns of each view
    step: Int  # (V, 2) in which they are measured
    size: Int  # (V, 2) and how many of these there are
    tables: Array
    place: Int  # (V,) where the tables of a view begin
    which: Int  # (n,) the last start that is not after a type


def search_tables(
    demand: Int, capacity: Int, value: Array, price: Array, good: float = np.inf, spread: float = 0.0, node_limit: int = 1 << 62
) -> Found:
    """The schedule of highest value, and others of more than `good`: for each type the best one in which it is the first in order, unless
    that is worse than the best one by more than the part `spread` of what this exceeds `good` by.

    Resource prices (R,) must be positive. After `node_limit` nodes the search ends unfinished.
    """
    kept = np.flatnonzero((value > 0) & ~_dominated(demand, value))
    kept = kept[np.argsort(-value[kept] / (demand[kept] @ price), kind="stable")]
    n = len(kept)
    if n == 0:
        return Found(0.0, np.zeros((1, len(value)), dtype=np.int64), True)
    columns, residual = _with_surrogate(demand[kept], capacity, price)
    views = _views(price * capacity)
    step = _steps(residual, views, n)
    size = residual[views] // step  # (V, 2)
    starts = np.unique(np.linspace(0, n, _STARTS, endpoint=False).astype(np.int64))
    worth = np.ascontiguousarray(value[kept])
    tables, place = _fill_tables(columns, worth, views, step, size, starts)
    root = min(tables[place[v] + (size[v, 0] + 1) * (size[v, 1] + 1) - 1] for v in range(len(views)))
    which = np.searchsorted(starts, np.arange(n), side="right") - 1
    bounds = _Bounds(views, step, size, tables, place, which)
    best, lists, finished = _search(columns, residual, worth, bounds, float(good), float(spread), node_limit)
    schedules = np.zeros((len(lists), len(value)), dtype=np.int64)
    schedules[:, kept] = lists
    return Found(float(best if finished else root) * (1 + 2 * _SAME), schedules, finished)


def _with_surrogate(demand: Int, capacity: Int, price: Array) -> tuple[Int, Int]:
    """The columns that a table can see, with their capacities: the resources, the surrogate, and one that nothing needs."""
    coarse = -(-capacity // _FINE)
    share = price * capacity
    weight = np.floor(share / share.max() * _TOTAL / (capacity // coarse)).astype(np.int64)
    columns = np.column_stack([demand, (demand // coarse) @ weight, np.zeros(len(demand), dtype=np.int64)])
    return np.ascontiguousarray(columns), np.concatenate([capacity, [(capacity // coarse) @ weight, 0]])


def _views(share: Array) -> Int:
    """Which pairs of columns (V, 2) are tabled, by what the resources are worth."""
    R = len(share)
    surrogate, nothing = R, R + 1
    if R == 1:
        return np.array([[0, nothing]])
    if R == 2:
        return np.array([[surrogate, nothing], [0, 1]])
    return np.array([[surrogate, nothing], *([surrogate, r] for r in np.argsort(-share, kind="stable")[:_SEEN])])


def _steps(residual: Int, views: Int, n: int) -> Int:
    """The steps (V, 2) in which the columns of a view are measured, so that filling all tables takes a limited number of entries."""
    entries = min(_ENTRIES, _ALL_ENTRIES // n) // len(views)
    step = np.ones((len(views), 2), dtype=np.int64)
    for v, (a, b) in enumerate(views):
        short = min(int(residual[a]), int(residual[b]), int(np.sqrt(entries)))
        long = max(entries // (short + 1), 1)
        for k, column in enumerate((a, b)):
            most = long if residual[column] > short else short
            step[v, k] = -(-int(residual[column]) // max(most, 1)) if residual[column] > most else 1
    return step


@compiled
def _dominated(demand: Int, value: Array) -> NDArray[np.bool_]:
    """Types (K,) in whose place another one fits that is worth no less; of two equal ones, the second."""
    K, R = demand.shape
    found = np.zeros(K, dtype=np.bool_)
    for i in range(K):
        for j in range(K):
            if i == j or value[j] < value[i]:
                continue
            no_more, equal = True, value[j] == value[i]
            for r in range(R):
                no_more = no_more and demand[j, r] <= demand[i, r]
                equal = equal and demand[j, r] == demand[i, r]
            if no_more and (not equal or j < i):
                found[i] = True
                break
    return found


@compiled
def _fill_tables(columns: Int, value: Array, views: Int, step: Int, size: Int, starts: Int) -> tuple[Array, Int]:
    """T of every view for every start, one after the other, and the place of each view's first."""
    place = np.zeros(len(views) + 1, dtype=np.int64)
    for v in range(len(views)):
        place[v + 1] = place[v] + len(starts) * (size[v, 0] + 1) * (size[v, 1] + 1)
    tables = np.empty(place[-1])
    for v in range(len(views)):
        rows, across = size[v, 0] + 1, size[v, 1] + 1
        table = np.zeros((rows, across))
        at = len(starts) - 1
        for i in range(len(value) - 1, -1, -1):
            a, b = columns[i, views[v, 0]] // step[v, 0], columns[i, views[v, 1]] // step[v, 1]
            if a == 0 and b == 0:  # any number of them fit
                table.fill(np.inf)
            for x in range(a, rows):
                for z in range(b, across):  # upwards, so that a type may come several times
                    table[x, z] = max(table[x, z], table[x - a, z - b] + value[i])
            if starts[at] == i:
                first = place[v] + at * rows * across
                copy_into(tables[first : first + rows * across], table.ravel())
                at -= 1
    return tables, place


@compiled
def _bound(bounds: _Bounds, i: int, residual: Int) -> float:
    """The least of what the tables say about the value of jobs of types from i on in what is left."""
    views, step, size = bounds.views, bounds.step, bounds.size
    least = np.inf
    for v in range(len(views)):
        across = size[v, 1] + 1
        first = bounds.place[v] + bounds.which[i] * (size[v, 0] + 1) * across
        least = min(least, bounds.tables[first + residual[views[v, 0]] // step[v, 0] * across + residual[views[v, 1]] // step[v, 1]])
    return least


@compiled
def _search(
    columns: Int, capacity: Int, value: Array, bounds: _Bounds, good: float, spread: float, node_limit: int
) -> tuple[float, Int, bool]:
    """Depth first over lists of jobs: the highest value, good lists of jobs as counts, and whether all were searched."""
    n, C = columns.shape
    which = bounds.which
    residual = np.zeros((_LONGEST + 1, C), dtype=np.int64)
    gained = np.zeros(_LONGEST + 1)
    pick = np.zeros(_LONGEST + 1, dtype=np.int64)  # the type of each job of the list; the last one is being tried
    lists = np.zeros((n, n), dtype=np.int64)  # the best one of each first type,
    worth = np.zeros(n)  # and its value
    copy_into(residual[0], capacity)
    best, first = 0.0, 0
    depth, nodes = 0, 0
    entered = True  # this depth, just now
    finished = False
    while depth >= 0 and nodes < node_limit:
        nodes += 1
        i = pick[depth]
        limit = max(worth[min(pick[0], n - 1)], best - spread * max(best - good, 0.0)) * (1.0 + _SAME)
        done = i == n
        if not done and (entered or which[i] != which[i - 1]):  # does a list that goes on with types from i on exceed the limit?
            done = gained[depth] + _bound(bounds, i, residual[depth]) <= limit
        entered = False
        if done:
            depth -= 1
            if depth >= 0:
                pick[depth] += 1
            finished = depth < 0
            continue
        fits = True
        for c in range(C):
            residual[depth + 1, c] = residual[depth, c] - columns[i, c]
            fits = fits and residual[depth + 1, c] >= 0
        if fits:
            total = gained[depth] + value[i]
            if total > limit:
                worth[pick[0]] = total
                if total > best:
                    best, first = total, pick[0]
                for k in range(n):
                    lists[pick[0], k] = 0
                for k in range(depth + 1):
                    lists[pick[0], pick[k]] += 1
                limit = max(total, best - spread * max(best - good, 0.0)) * (1.0 + _SAME)
            if total + _bound(bounds, i, residual[depth + 1]) > limit:
                if depth + 1 == _LONGEST:
                    break
                depth += 1
                gained[depth], pick[depth], entered = total, i, True
                continue
        pick[depth] += 1
    chosen = worth > good
    chosen[first] = True
    return best, lists[chosen], finished
