"""Policies that go by what jobs need of the server: Most Servers First, cμ/m, Adaptive Quickswap, Balanced Splitting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import integer_units
from rota.capacity.units import simplest_fraction
from rota.decide.rule import Rule
from rota.decide.state import ARRIVAL, COMPLETION, KIND, NONE, TYPE, State, copy_waiting, fits_one, oldest_next, take_next
from rota.errors import Infeasible
from rota.kernel import kernel
from rota.model import System
from rota.policy import BalancedSplitting, Policy, Quickswap
from rota.views import by_reference

__all__ = [
    "BALANCED_SPLITTING_RULE",
    "C_MU_M_RULE",
    "MOST_SERVERS_FIRST_RULE",
    "QUICKSWAP_RULE",
    "IndexData",
    "QuickswapData",
    "SplittingData",
    "dominant_shares",
    "reserved_places",
]

DRAINING = 0  # counter of Quickswap: 1 while it drains, else 0


@by_reference
class IndexData(NamedTuple):
    """`rank` (K,): 0 for the types that start first; types of equal index have equal ranks, and start in order of arrival."""

    rank: Int


def dominant_shares(system: System) -> list[Fraction]:
    """The largest part of a resource that a job of each type holds: max_r D_ir / P_r."""
    capacity = [simplest_fraction(float(x)) for x in system.capacity]
    return [max(simplest_fraction(float(x)) / have for x, have in zip(row, capacity, strict=True)) for row in system.demand]


def _ranks(index: Sequence[Fraction]) -> Int:
    """The place of each type among the different values of an index, the largest first."""
    places = {value: place for place, value in enumerate(sorted(set(index), reverse=True))}
    return np.array([places[value] for value in index], dtype=np.int64)


@kernel
def _first_by_rank(state: State, rank: Int, fitting: bool) -> int:
    """The type of least rank with a job next up, of equal ones the older job (`fitting`: that fits the residual); −1 if there is none."""
    best = -1
    for i in range(rank.shape[0]):
        job = state.next_up[i]
        if job < 0 or (fitting and not fits_one(state.demand, state.residual, i)):
            continue
        if best < 0 or rank[i] < rank[best] or (rank[i] == rank[best] and state.sequence[job] < state.sequence[state.next_up[best]]):
            best = i
    return best


@kernel
def _start_by_rank(state: State, target: Int, rank: Int) -> None:
    """Jobs that are next up start where they fit the residual, those of least rank first."""
    while True:
        i = _first_by_rank(state, rank, True)
        if i < 0:
            return
        take_next(state, target, i)


@kernel
def by_index(state: State, target: Int) -> float:
    """Whenever something changes, the waiting job of largest index that fits starts, then the next, until none fits."""
    kind, i = state.event[KIND], state.event[TYPE]
    if kind == ARRIVAL and not fits_one(state.demand, state.free, i):
        state.scope[0] = NONE  # none of those that waited before fits either, or it would run
        return np.inf
    if kind == COMPLETION:
        target[i] -= 1
    copy_waiting(state)
    _start_by_rank(state, target, state.data.rank)
    return np.inf


def _by_share(system: System, policy: Policy) -> IndexData:
    return IndexData(_ranks(dominant_shares(system)))


def _by_rate_per_share(system: System, policy: Policy) -> IndexData:
    """μ_i over the dominant share: how fast a job frees what it holds."""
    shares = dominant_shares(system)
    return IndexData(_ranks([simplest_fraction(float(mu)) / share for mu, share in zip(system.service_rate, shares, strict=True)]))


MOST_SERVERS_FIRST_RULE = Rule(by_index, constants=_by_share)
C_MU_M_RULE = Rule(by_index, constants=_by_rate_per_share)


# ---------------------------------------------------------------------------------------------------------------- Quickswap


@by_reference
class QuickswapData(NamedTuple):
    """`rank` (K,) as in `IndexData`; `threshold`: the largest number of running jobs at which it begins to drain, −1 if any."""

    rank: Int
    threshold: int


@kernel
def quickswap(state: State, target: Int) -> float:
    """Adaptive Quickswap (Chen et al. 2025): fills as Most Servers First; while it drains, only the largest waiting type may start.

    Which type that is may change while it drains. Once its first job fits, all types may start again.
    """
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    copy_waiting(state)
    if state.counters[DRAINING] == 1:
        largest = _first_by_rank(state, state.data.rank, False)
        if largest >= 0 and not fits_one(state.demand, state.residual, largest):
            return np.inf
    _start_by_rank(state, target, state.data.rank)
    state.counters[DRAINING] = int(_is_to_drain(state, target, state.data.threshold))
    return np.inf


@kernel
def _is_to_drain(state: State, target: Int, threshold: int) -> bool:
    """Whether a type waits of which no job runs, and no job waits of the types that run (and few enough jobs run)."""
    running, passed_over = 0, False
    for i in range(target.shape[0]):
        waits = state.next_up[i] >= 0
        if target[i] > 0 and waits:
            return False
        running += target[i]
        passed_over = passed_over or waits
    return passed_over and (threshold < 0 or running <= threshold)


def _quickswap_data(system: System, policy: Quickswap) -> QuickswapData:
    return QuickswapData(_ranks(dominant_shares(system)), -1 if policy.threshold is None else policy.threshold)


QUICKSWAP_RULE = Rule(quickswap, constants=_quickswap_data)


# ---------------------------------------------------------------------------------------------------------------- Balanced Splitting


@by_reference
class SplittingData(NamedTuple):
    """`reserved` (K,): places that only jobs of a type may take."""

    reserved: Int


def reserved_places(system: System) -> Int:
    """a_i = ⌊(λ_i/μ_i) / ρ⌋, ρ = max_r Σ_i (λ_i/μ_i) D_ir / P_r: at ρ = 1 each type would need all of its places.

    They fit together, as Σ_i a_i D_ir ≤ Σ_i (λ_i/μ_i) D_ir / ρ ≤ P_r. A quotient that rounding put just below a whole number counts as it.
    """
    work = system.offered_work
    used: Array = work @ system.demand / system.capacity
    places: Int = np.floor(work / max(float(used.max()), 1e-300) * (1 + 1e-12)).astype(np.int64)
    return places


@kernel
def balanced_splitting(state: State, target: Int) -> float:
    """Balanced Splitting (Anselmi and Doncel 2024): waiting jobs take the places of their type; the rest of the server helps as FCFS.

    Units are alike, so of the running jobs of a type as many as it has places count as in these, and only those beyond as helped.
    """
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    copy_waiting(state)
    reserved = state.data.reserved
    for i in range(target.shape[0]):
        while target[i] < reserved[i] and state.next_up[i] >= 0 and fits_one(state.demand, state.residual, i):
            take_next(state, target, i)
    for i in range(target.shape[0]):  # what is left is the helpers' after the free places
        for r in range(state.residual.shape[0]):
            state.residual[r] -= max(reserved[i] - target[i], 0) * state.demand[i, r]
    while True:
        head = oldest_next(state, False)
        if head < 0 or not fits_one(state.demand, state.residual, head):
            return np.inf
        take_next(state, target, head)


def _check_splitting(system: System) -> None:
    places = reserved_places(system)
    units = integer_units(system)
    helpers = units.capacity - places @ units.demand
    for name, count, need in zip(system.names, places, units.demand, strict=True):
        if count == 0 and (need > helpers).any():
            raise Infeasible(f"Balanced Splitting leaves no place for {name}: its part of the load is too small, and what is left is too")


def _splitting_data(system: System, policy: BalancedSplitting) -> SplittingData:
    return SplittingData(reserved_places(system))


BALANCED_SPLITTING_RULE = Rule(balanced_splitting, check=_check_splitting, constants=_splitting_data)
