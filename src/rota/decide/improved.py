"""Improved rotas: at every event, the state of least relative value among those that hold the running jobs.

With h(q, s) = Σ_i h_i(q_i, s) of the base (`rota.analysis.relative`), running jobs r and slots u(s) of state s,

    s* = argmin { h(q, s) : u_i(s) ≥ r_i for all i },      then min(q_i, u_i(s*)) jobs of each type run

With full preemption the minimum is over all states, and what the schedule leaves free is filled from the queue by jobs that give way, which
lets no job end later. Without preemption the state may have no slot for any job present. Then the base turns by its own clock until the
next arrival or departure.

The relative values are those of Poisson arrivals of the same rates, whatever the arrivals of the system are: no phase of a burst is seen.

Only differences between states matter, so beyond the table of a type its values go on in a straight line: the quadratic part is the same
for all states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.analysis.relative import relative_values
from rota.arrays import Array, Int
from rota.decide.backfill import serve_preemptive
from rota.decide.msr import PLACE, RATE, follow, msr_data, next_ring, own_rate
from rota.decide.rule import Description, Rule
from rota.decide.state import COMPLETION, KIND, SWITCHES, TIMER, TYPE, State
from rota.kernel import kernel
from rota.model import System
from rota.policy.improved import Improved

__all__ = ["FULL_RULE", "NONE_RULE"]

FOLLOWS = 1  # counter: 1 while the base turns by its own clock
_TIE = 1e-9  # a state must be better by this part to replace the one in use


class ImprovedData(NamedTuple):
    """The base as in `MSRData`, and its relative values: those of type i with q jobs begin at first[i] + q N."""

    schedules: Int  # (N, K)
    working: NDArray[np.bool_]  # (N,)
    start: Int  # (N+1,)
    target: Int  # (M,)
    rate: Array  # (M,)
    trigger: Int  # (M,)
    skip: bool
    values: Array  # tables of all types, one after the other, levels in rows of N
    first: Int  # (K,)
    last: Int  # (K,) the last level of each table
    slope: Array  # (K, N) beyond it


@kernel
def improved_full(state: State, target: Int) -> float:
    """With full preemption: the state of least relative value, and gaps filled from the queue."""
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    _choose(state, target, True)
    serve_preemptive(state, target)
    return np.inf


@kernel
def improved_none(state: State, target: Int) -> float:
    """Without preemption: the state of least relative value that holds the running jobs."""
    if state.event[KIND] == TIMER:
        follow(state, target)
    else:
        if state.event[KIND] == COMPLETION:
            target[state.event[TYPE]] -= 1
        _choose(state, target, False)
    present, run = 0, 0
    for k in range(target.shape[0]):
        target[k] = min(state.system[k], state.data.schedules[state.counters[PLACE], k])
        present += state.system[k]
        run += target[k]
    if state.event[KIND] != TIMER:
        state.counters[FOLLOWS] = 1 if present > 0 and run == 0 else 0
    if state.counters[FOLLOWS] == 0:
        state.memory[RATE] = -1.0  # so that the next time is drawn anew
        return np.inf
    return next_ring(state, own_rate(state, target))


@kernel
def _choose(state: State, target: Int, preempts: bool) -> None:
    """Goes to the state of least relative value; among equals, stays."""
    N, K = state.data.schedules.shape
    place = state.counters[PLACE]
    best, least, size = place, 0.0, 0.0
    for k in range(K):
        value = _value(state, k, place)
        least += value
        size += abs(value)
    least -= _TIE * size
    for s in range(N):
        if s == place or not (preempts or _holds(state, target, s)):
            continue
        total = 0.0
        for k in range(K):
            total += _value(state, k, s)
        if total < least:
            best, least = s, total
    if best != place:
        state.counters[PLACE] = best
        state.mode[SWITCHES] += 1


@kernel
def _holds(state: State, target: Int, s: int) -> bool:
    """Whether state s has slots for all running jobs."""
    for k in range(target.shape[0]):  # noqa: SIM110 (numba has no all())
        if state.data.schedules[s, k] < target[k]:
            return False
    return True


@kernel
def _value(state: State, k: int, s: int) -> float:
    """h_k(q_k, s), up to what is the same for all states."""
    data = state.data
    N = data.schedules.shape[0]
    q, last = state.system[k], data.last[k]
    if q <= last:
        return float(data.values[data.first[k] + q * N + s])
    return float(data.values[data.first[k] + last * N + s] + (q - last) * data.slope[k, s])


def improved_data(system: System, policy: Improved) -> ImprovedData:
    """The tables of relative values of the base."""
    found = relative_values(system.with_poisson_arrivals(), policy.base)
    base = msr_data(system, policy.base)
    tables = []
    for values in found.types:
        levels = np.arange(len(values.table))[:, None]
        tables.append(values.table - values.x * levels * levels)  # without what is the same for all states
    sizes = np.array([table.size for table in tables])
    return ImprovedData(
        schedules=base.schedules,
        working=base.working,
        start=base.start,
        target=base.target,
        rate=base.rate,
        trigger=base.trigger,
        skip=False,
        values=np.concatenate([table.ravel() for table in tables]),
        first=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        last=np.array([len(table) - 1 for table in tables], dtype=np.int64),
        slope=np.array([values.y for values in found.types]),
    )


def describe_improved(state: State) -> Description:
    """The schedule that it has."""
    rows = [tuple(int(count) for count in row) for row in state.data.schedules]
    return Description(slots=rows[int(state.counters[PLACE])], schedules=tuple(dict.fromkeys(rows)))


def _keeps(types: int) -> tuple[int, int]:
    return 2, 2


FULL_RULE = Rule(improved_full, constants=improved_data, keeps=_keeps, describe=describe_improved)
NONE_RULE = Rule(improved_none, constants=improved_data, keeps=_keeps, describe=describe_improved)
