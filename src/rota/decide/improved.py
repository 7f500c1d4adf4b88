"""Improved rotas: at every event, the state of least relative value among those that hold the running jobs.

With h(q, s) = Σ_i h_i(q_i, s) of the base (`rota.analysis.relative`), running jobs r and slots u(s) of state s,

    s* = argmin { h(q, s) : u_i(s) ≥ r_i for all i },      then min(q_i, u_i(s*)) jobs of each type run

With full preemption the minimum is over all states, and what the schedule leaves free is filled from the queue by jobs that give way, which
lets no job end later. Otherwise the state may have no slot for any job present. Then the base turns by its own clock until the next
arrival or departure.

The relative values are those of Poisson arrivals of the same rates, whatever the arrivals of the system are: no phase of a burst is seen.

Only differences between states matter, so beyond the table of a type its values go on in a straight line: the quadratic part is the same
for all states.

With setups c_i of type i under way, each of which holds the resources of a job, a state s that models k(s) setups can be reached if it
covers those under way and those of the jobs that have to stop,

    c'_i = c_i + max(r_i − u_i(s), 0),      Σ_i c'_i ≤ k(s),      u(s) + c' fits the server

Setups are begun for jobs that stop, not for empty slots. When one ends, the state is chosen anew.

With backfilling there are also the states of ways into the base (`rota.process.ways`), schedules that it never enters by itself. From one
of them only states of no more excess are chosen, so that a way once begun does not become longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.analysis.relative import relative_values
from rota.arrays import Array, Int
from rota.decide.backfill import SETUPS, end_setup, serve_preemptive, setups_under_way
from rota.decide.msr import PLACE, RATE, follow, next_ring, own_rate, process_data
from rota.decide.rule import Description, Rule
from rota.decide.state import COMPLETION, KIND, SWITCHES, SWITCHING, TIMER, TYPE, State
from rota.kernel import kernel
from rota.model import System
from rota.policy.improved import Improved
from rota.process import Ways, build_process, with_ways
from rota.views import by_reference

__all__ = ["FULL_RULE", "NONE_RULE", "SETUP_RULE", "states_of"]

ANY, HOLDING, BY_SETUPS = 0, 1, 2  # which states can be reached: all, those that hold the running jobs, those that cover the setups
_WITH_WAYS = 200  # states with ways into the base, at most,
_WORK = 3e8  # and no more than this many N³ of all levels, about a second of work
_TIE = 1e-9  # a state must be better by this part to replace the one in use


@by_reference
class ImprovedData(NamedTuple):
    """The base as in `MSRData`, and its relative values: those of type i with q jobs begin at first[i] + q N."""

    schedules: Int  # (N, K)
    working: NDArray[np.bool_]  # (N,)
    start: Int  # (N+1,)
    target: Int  # (M,)
    rate: Array  # (M,)
    trigger: Int  # (M,)
    skip: bool
    excess: Int  # (N,) of ways into the base; 0 for its own states
    setups: Int  # (N,) setups that a state models
    setup_rate: float
    values: Array  # tables of all types, one after the other, levels in rows of N
    first: Int  # (K,)
    last: Int  # (K,) the last level of each table
    slope: Array  # (K, N) beyond it


@kernel
def improved_full(state: State, target: Int) -> float:
    """With full preemption: the state of least relative value, and gaps filled from the queue."""
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    _choose(state, target, ANY)
    serve_preemptive(state, target)
    return np.inf


@kernel
def improved_none(state: State, target: Int) -> float:
    """Without preemption: the state of least relative value that holds the running jobs."""
    if state.event[KIND] == TIMER:
        follow(state, target)
    else:
        if state.event[KIND] == COMPLETION:
            _end_job(state, target)
        _choose(state, target, HOLDING)
        _put_follows(state, False)
    state.mode[SWITCHING] = 0 if state.data.working[state.counters[PLACE]] else 1
    return _serve(state, target)


@kernel
def improved_setup(state: State, target: Int) -> float:
    """With setups: the state of least relative value that covers the setups under way and those of the jobs that stop for it."""
    data = state.data
    if state.event[KIND] == TIMER and setups_under_way(state) == 0:
        follow(state, target)
    else:
        if state.event[KIND] == COMPLETION:
            _end_job(state, target)
        elif state.event[KIND] == TIMER:
            end_setup(state)
        _choose(state, target, BY_SETUPS)
        _put_follows(state, False)
        for k in range(target.shape[0]):
            state.counters[SETUPS + k] += max(target[k] - data.schedules[state.counters[PLACE], k], 0)
    setups = setups_under_way(state)
    state.mode[SWITCHING] = 1 if setups > 0 else 0
    if setups == 0:
        return _serve(state, target)
    for k in range(target.shape[0]):
        target[k] = min(state.system[k], data.schedules[state.counters[PLACE], k])
    return next_ring(state, setups * data.setup_rate)


@kernel
def _end_job(state: State, target: Int) -> None:
    """A job is done; on a way into the base, the way is one slot shorter."""
    target[state.event[TYPE]] -= 1
    if state.data.excess[state.counters[PLACE]] > 0:
        follow(state, target)


@kernel
def _serve(state: State, target: Int) -> float:
    """The jobs that have a slot run; if jobs are present and none has one, the base turns by its own clock from now on."""
    present, run = 0, 0
    for k in range(target.shape[0]):
        target[k] = min(state.system[k], state.data.schedules[state.counters[PLACE], k])
        present += state.system[k]
        run += target[k]
    if state.event[KIND] != TIMER or not _follows(state):
        _put_follows(state, present > 0 and run == 0)
    if not _follows(state):
        state.memory[RATE] = -1.0  # so that the next time is drawn anew
        return np.inf
    return next_ring(state, own_rate(state, target))


@kernel
def _follows(state: State) -> bool:
    """Whether the base turns by its own clock; the last counter says."""
    return bool(state.counters[state.counters.shape[0] - 1] == 1)


@kernel
def _put_follows(state: State, follows: bool) -> None:
    state.counters[state.counters.shape[0] - 1] = 1 if follows else 0


@kernel
def _choose(state: State, target: Int, which: int) -> None:
    """Goes to the state of least relative value of those that can be reached; among equals, stays."""
    N, K = state.data.schedules.shape
    place, excess = state.counters[PLACE], state.data.excess
    best, least, size = place, 0.0, 0.0
    for k in range(K):
        value = _value(state, k, place)
        least += value
        size += abs(value)
    least -= _TIE * size
    for s in range(N):
        if s == place or (which == HOLDING and not _holds(state, target, s)):
            continue
        if 0 < excess[place] < excess[s]:  # on a way into the base, it does not become longer
            continue
        total = 0.0
        for k in range(K):
            total += _value(state, k, s)
        if total < least and (which != BY_SETUPS or _covers(state, target, s)):
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
def _covers(state: State, target: Int, s: int) -> bool:
    """Whether state s models as many setups as there would be, and its slots and what those hold fit the server together."""
    slots = state.data.schedules
    K, R = state.demand.shape
    setups = 0
    for k in range(K):
        state.chosen[k] = state.counters[SETUPS + k] + max(target[k] - slots[s, k], 0)
        setups += state.chosen[k]
    if setups > state.data.setups[s]:
        return False
    for r in range(R):
        used = 0
        for k in range(K):
            used += (slots[s, k] + state.chosen[k]) * state.demand[k, r]
        if used > state.capacity[r]:
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


def states_of(system: System, policy: Improved) -> Ways:
    """The states of the base, with backfilling also ways into it."""
    process = build_process(system, policy.base)
    levels = max(int(process.schedules.max(axis=0).sum()), 1)
    return with_ways(system, process, min(_WITH_WAYS, int((_WORK / levels) ** (1 / 3))) if policy.backfill else 0)


def improved_data(system: System, policy: Improved) -> ImprovedData:
    """The tables of relative values of the base."""
    ways = states_of(system, policy)
    process = ways.process
    found = relative_values(system.with_poisson_arrivals(), policy.base, process=process)
    base = process_data(process, skip=False, setup_rate=policy.base.setup_rate)
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
        skip=base.skip,
        excess=ways.excess,
        setups=np.asarray((process.held - process.schedules).sum(axis=1)),
        setup_rate=base.setup_rate,
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
    return 2, 2 + types  # as an MSR, and whether the base turns by its own clock


FULL_RULE = Rule(improved_full, constants=improved_data, keeps=_keeps, describe=describe_improved)
NONE_RULE = Rule(improved_none, constants=improved_data, keeps=_keeps, describe=describe_improved)
SETUP_RULE = Rule(improved_setup, constants=improved_data, keeps=_keeps, describe=describe_improved)
