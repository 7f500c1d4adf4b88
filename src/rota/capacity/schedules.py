"""Which schedules fit: 𝒮 = { u ∈ ℤ₊^K : u·D ≤ P }.

A schedule is maximal when no job of any type can be added. Enumeration runs in lexicographic order in compiled blocks; a limit that is
passed is an error, never a silent cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rota.arrays import Array, Int
from rota.capacity.packing import _most, _take, copy_into
from rota.capacity.units import integer_units
from rota.errors import BadSpec, Problem, TooManySchedules
from rota.kernel import compiled
from rota.model import System

__all__ = [
    "LISTED",
    "CountEstimate",
    "estimate_count",
    "fits",
    "is_maximal",
    "iterate_schedules",
    "largest_counts",
    "list_schedules",
]


BLOCK = 65_536
LISTED = 20_000  # maximal schedules that a larger computation lists at most
_COUNTABLE = 1_000_000  # up to here counting is as quick as estimating


class CountEstimate(NamedTuple):
    """How many schedules there are: an unbiased estimate, its standard error, and the largest number there could be."""

    schedules: float
    standard_error: float
    at_most: float


def fits(system: System, schedule: ArrayLike) -> bool | NDArray[np.bool_]:
    """Whether a schedule (K,), or each row of many (n, K), is a possible schedule."""
    counts = _counts(system, schedule)
    units = integer_units(system)
    # Beyond the largest count of a type the product below could overflow, and the answer is known.
    within = (counts <= largest_counts(system)).all(axis=-1)
    used = np.minimum(counts, largest_counts(system)) @ units.demand
    good: NDArray[np.bool_] = np.asarray((counts >= 0).all(axis=-1) & within & (used <= units.capacity).all(axis=-1))
    return bool(good) if counts.ndim == 1 else good


def is_maximal(system: System, schedule: ArrayLike) -> bool | NDArray[np.bool_]:
    """Whether a possible schedule (or each row of many) cannot take one more job of any type."""
    counts = _counts(system, schedule)
    units = integer_units(system)
    left = units.capacity - counts @ units.demand
    fits_more = (left[..., None, :] >= units.demand).all(axis=-1).any(axis=-1)
    good: NDArray[np.bool_] = np.asarray(fits(system, counts) & ~fits_more)
    return bool(good) if counts.ndim == 1 else good


def largest_counts(system: System) -> Int:
    """How many jobs of each type fit alone (K,)."""
    units = integer_units(system)
    alone = units.capacity // np.maximum(units.demand, 1)
    return np.asarray(np.where(units.demand > 0, alone, np.iinfo(np.int64).max).min(axis=1), dtype=np.int64)


def iterate_schedules(system: System, *, maximal: bool = False, block: int = BLOCK) -> Iterator[Int]:
    """All possible (or all maximal) schedules in lexicographic order, in blocks (n ≤ block, K): any number of them in bounded memory."""
    if block < 1:
        raise BadSpec([Problem("block", "must be at least 1", block)])
    units = integer_units(system)
    K, R = units.demand.shape
    count = np.zeros(K, dtype=np.int64)
    residual = np.empty((K + 1, R), dtype=np.int64)
    residual[:] = units.capacity
    more = True
    first = True
    while more:
        out = np.empty((block, K), dtype=np.int64)
        filled, more = _fill_block(units.demand, count, residual, maximal, first, out)
        first = False
        if filled:
            yield out[:filled]


def list_schedules(system: System, *, maximal: bool = False, limit: int = 1_000_000) -> Int:
    """All possible (or all maximal) schedules, (n, K), in lexicographic order. More than `limit` raise `TooManySchedules`."""
    if limit < 1:
        raise BadSpec([Problem("limit", "must be at least 1", limit)])
    blocks, total = [], 0
    for block in iterate_schedules(system, maximal=maximal, block=min(BLOCK, limit + 1)):
        total += len(block)
        if total > limit:
            raise TooManySchedules(limit, max(estimate_count(system, maximal=maximal).schedules, total))
        blocks.append(block)
    return np.concatenate(blocks)


def estimate_count(system: System, *, maximal: bool = False, probes: int = 20_000, seed: int = 0) -> CountEstimate:
    """Estimates the number of schedules without enumerating them (Knuth 1975); counts them where they are few.

    A probe walks from type to type, takes a count uniformly among those that fit, and multiplies the numbers of choices: on average that
    product is the number of leaves. For maximal schedules the last count is the largest one, and probes that leave space count zero.
    """
    units = integer_units(system)
    at_most = float(np.prod(largest_counts(system).astype(np.float64) + 1))
    if at_most <= _COUNTABLE:
        return CountEstimate(float(sum(map(len, iterate_schedules(system, maximal=maximal)))), 0.0, at_most)
    order = np.argsort(largest_counts(system), kind="stable")  # few choices first: less variance
    products = _probe(units.demand[order], units.capacity, maximal, np.random.default_rng(seed).random((probes, len(order))))
    return CountEstimate(float(products.mean()), float(products.std() / np.sqrt(probes)), at_most)


def _counts(system: System, schedule: ArrayLike) -> Int:
    given = np.asarray(schedule)
    K = len(system.names)
    if given.ndim not in (1, 2) or given.shape[-1] != K:
        raise BadSpec([Problem("schedule", f"needs {K} counts, one per type", given.shape)])
    with np.errstate(invalid="ignore"):  # NaN and the like: found by the comparison
        counts = given.astype(np.int64)
    if (counts != given).any():
        raise BadSpec([Problem("schedule", "needs whole numbers", given.tolist())])
    return counts


# ------------------------------------------------------------------------------------------------------------ compiled


@compiled
def _advance(demand: Int, count: Int, residual: Int, last: int) -> bool:
    """Moves the counts of types 0…last to the next in lexicographic order; residual[i+1] is what types 0…i leave."""
    K, R = demand.shape
    for i in range(last, -1, -1):
        fits_more = True
        for r in range(R):
            if residual[i + 1, r] < demand[i, r]:
                fits_more = False
                break
        if fits_more:
            count[i] += 1
            _take(demand, residual[i + 1], i, 1)
            for j in range(i + 1, K):
                count[j] = 0
                copy_into(residual[j + 1], residual[j])
            return True
    return False


@compiled
def _room_left(demand: Int, residual: Int) -> bool:
    for i in range(demand.shape[0]):  # noqa: SIM110 (numba has no any())
        if _most(demand, residual, i) > 0:
            return True
    return False


@compiled
def _fill_block(demand: Int, count: Int, residual: Int, maximal: bool, first: bool, out: Int) -> tuple[int, bool]:
    """Writes the next schedules into `out`; returns how many and whether there may be more. `count` and `residual` keep the place."""
    K = count.shape[0]
    last = K - 2 if maximal else K - 1  # the last count of a maximal schedule is given by the others
    filled = 0
    while filled < out.shape[0]:
        if not first and not _advance(demand, count, residual, last):
            return filled, False
        first = False
        if maximal:
            count[K - 1] = _most(demand, residual[K - 1], K - 1)
            copy_into(residual[K], residual[K - 1])
            _take(demand, residual[K], K - 1, count[K - 1])
            if _room_left(demand, residual[K]):
                continue
        copy_into(out[filled], count)
        filled += 1
    return filled, True


@compiled
def _probe(demand: Int, capacity: Int, maximal: bool, draws: Array) -> Array:
    probes, K = draws.shape
    products = np.ones(probes)
    for t in range(probes):
        residual = capacity.copy()
        for i in range(K):
            most = _most(demand, residual, i)
            if maximal and i == K - 1:
                count = most
            else:
                count = min(int(draws[t, i] * (most + 1)), most)
                products[t] *= most + 1
            _take(demand, residual, i, count)
        if maximal and _room_left(demand, residual):
            products[t] = 0.0
    return products
