"""Policies that follow the order of arrival: FCFS, First-Fit, ServerFilling, EASY backfilling."""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import integer_units
from rota.decide.rule import Rule
from rota.decide.state import (
    ALL,
    ARRIVAL,
    CHANGE,
    COMPLETION,
    KIND,
    NONE,
    TYPE,
    State,
    copy_waiting,
    first_fit,
    fits_one,
    oldest_next,
    take_next,
)
from rota.errors import Infeasible
from rota.kernel import kernel
from rota.model import System

__all__ = ["EASY_RULE", "FCFS_RULE", "FIRST_FIT_RULE", "SERVER_FILLING_RULE"]

BLOCKED = 0  # counter of FCFS and EASY: 1 while a job waits, else 0
WAITING = 0  # counter of First-Fit: jobs that wait
# Memory of EASY: when a job that may not start has to be looked at again though none has ended; the units left free; and how far ahead the
# head job will probably fit.
UNTIL, LEFT, SPAN = 0, 1, 2


@kernel
def fcfs(state: State, target: Int) -> float:
    """First come, first served: the oldest waiting job starts as long as it fits; the first that does not stops all behind it."""
    kind, i = state.event[KIND], state.event[TYPE]
    if kind == ARRIVAL:
        if state.counters[BLOCKED] == 1 or not fits_one(state.demand, state.free, i):
            state.counters[BLOCKED] = 1  # no job overtakes one that waits
            state.scope[0] = NONE
        else:
            target[i] += 1
            state.scope[0] = i
        return np.inf
    if kind == COMPLETION:
        target[i] -= 1
        state.scope[0] = i
        if state.counters[BLOCKED] == 0:
            return np.inf
    state.scope[0] = ALL
    state.counters[BLOCKED] = int(_start_in_order(state, target) >= 0)
    return np.inf


@kernel
def _start_in_order(state: State, target: Int) -> int:
    """Starts the oldest waiting jobs while they fit; returns the type of the first that does not, −1 if none is left waiting."""
    copy_waiting(state)
    while True:
        head = oldest_next(state, False)
        if head < 0 or not fits_one(state.demand, state.residual, head):
            return head
        take_next(state, target, head)


FCFS_RULE = Rule(fcfs)


@kernel
def first_fit_policy(state: State, target: Int) -> float:
    """First-Fit: whenever something changes, the oldest waiting job that fits starts, then the next, until none fits."""
    kind, i = state.event[KIND], state.event[TYPE]
    if kind == ARRIVAL:
        # None of the older waiting jobs fits, or it would run: only the new one can, if no other of its type waits.
        if state.system[i] - state.running[i] > 1 or not fits_one(state.demand, state.free, i):
            state.counters[WAITING] += 1
            state.scope[0] = NONE
        else:
            target[i] += 1
            state.scope[0] = i
        return np.inf
    if kind == COMPLETION:
        target[i] -= 1
        if state.counters[WAITING] == 0:
            state.scope[0] = i
            return np.inf
    if kind == CHANGE:
        state.counters[WAITING] = 0
        for k in range(target.shape[0]):
            state.counters[WAITING] += state.system[k] - state.running[k]
    copy_waiting(state)
    state.counters[WAITING] -= first_fit(state, target)
    return np.inf


FIRST_FIT_RULE = Rule(first_fit_policy)


@kernel
def server_filling(state: State, target: Int) -> float:
    """ServerFilling: of the oldest jobs that together fill the server, the largest first, and of equal ones the oldest.

    One resource, demands and capacity powers of two.
    """
    K = target.shape[0]
    for i in range(K):
        state.next_up[i], state.chosen[i] = state.oldest[i], 0
    need = 0
    while need < state.capacity[0]:
        head = oldest_next(state, False)
        if head < 0:
            break
        state.chosen[head] += 1
        need += state.demand[head, 0]
        state.next_up[head] = state.newer[state.next_up[head]]
    left = state.capacity[0]
    for i in range(K):
        state.next_up[i], target[i] = state.oldest[i] if state.chosen[i] > 0 else -1, 0
    while True:
        best = -1
        for i in range(K):
            job, need = state.next_up[i], state.demand[i, 0]
            if job < 0 or need > left:
                continue
            if (
                best < 0
                or need > state.demand[best, 0]
                or (need == state.demand[best, 0] and state.sequence[job] < state.sequence[state.next_up[best]])
            ):
                best = i
        if best < 0:
            return np.inf
        left -= state.demand[best, 0]
        target[best] += 1
        state.next_up[best] = state.newer[state.next_up[best]] if target[best] < state.chosen[best] else -1


def _check_server_filling(system: System) -> None:
    units = integer_units(system)
    numbers = np.append(units.demand[:, 0], units.capacity[0])
    if units.demand.shape[1] != 1 or (numbers & (numbers - 1)).any():
        raise Infeasible("ServerFilling needs one resource, and demands and capacity that are powers of two of one unit")


SERVER_FILLING_RULE = Rule(server_filling, check=_check_server_filling, exact_capacity=True)


@kernel
def easy(state: State, target: Int) -> float:
    """EASY backfilling: the oldest waiting job has a reservation; others start only if they do not delay it by the estimates.

    Within a type first come, first served. The reservation is for the earliest time at which, going by the estimates of the running jobs,
    the head job fits; a job may start if it fits now and either ends before that time or leaves enough for the head job.
    """
    kind, i, now = state.event[KIND], state.event[TYPE], state.clock[0]
    if kind == COMPLETION:
        target[i] -= 1
        if state.counters[BLOCKED] == 0:
            state.scope[0] = i
            return np.inf
    if kind == ARRIVAL:
        starts = _is_next(state, i)
        if state.counters[BLOCKED] == 0:
            state.counters[BLOCKED], state.scope[0] = int(not starts), i
            state.memory[UNTIL], state.memory[LEFT] = np.inf, _units_left(state.free)
            target[i] += int(starts)
            return np.inf
        if not starts and now < state.memory[UNTIL] and _units_left(state.free) == state.memory[LEFT]:
            state.scope[0] = NONE  # as little is free as before, so no other starts either
            return np.inf
    head = _start_in_order(state, target)
    state.counters[BLOCKED] = int(head >= 0)
    state.memory[UNTIL] = np.inf
    if head >= 0:
        state.next_up[head] = -1
        if oldest_next(state, True) >= 0:
            _start_behind(state, target, head)
    state.memory[LEFT] = _units_left(state.residual)
    return np.inf


@kernel
def _is_next(state: State, i: int) -> bool:
    """Whether the job of type i that arrived is the first of its type to wait, and fits."""
    return state.system[i] - state.running[i] == 1 and fits_one(state.demand, state.free, i)


@kernel
def _units_left(free: Int) -> int:
    total = 0
    for r in range(free.shape[0]):
        total += free[r]
    return total


@kernel
def _start_behind(state: State, target: Int, head: int) -> None:
    """Starts jobs behind the head job, of type `head`, the oldest first: those that fit and do not delay it."""
    K, R = state.demand.shape
    now = state.clock[0]

    # The reservation: running jobs, those just started included, end in the order of their estimates until the head job fits. Those that
    # end late are left out at first.
    spare = state.chosen[:R]
    latest, reservation = now + state.memory[SPAN], now
    while True:
        n = 0
        for i in range(K):
            job = state.oldest[i]
            for place in range(target[i]):
                end = state.finish[job] if place < state.running[i] else now + state.estimate[job]
                state.keys[n], state.places[n] = max(end, now), i
                n += int(end <= latest)
                job = state.newer[job]
        _heapify(state.keys, state.places, n)
        for r in range(R):
            spare[r] = state.residual[r]
        while n > 0 and (state.keys[0] <= reservation or not fits_one(state.demand, spare, head)):
            reservation = state.keys[0]
            for r in range(R):
                spare[r] += state.demand[state.places[0], r]
            n -= 1
            state.keys[0], state.places[0] = state.keys[n], state.places[n]
            _sink(state.keys, state.places, n, 0)
        if latest == np.inf or fits_one(state.demand, spare, head):
            break
        latest, reservation = np.inf, now
    state.memory[SPAN] = 2.0 * (reservation - now)
    for r in range(R):
        spare[r] -= state.demand[head, r]

    # A type whose next job may not start has no other that may. None that ends later may start before the reservation if no job ends.
    while True:
        best = oldest_next(state, True)
        if best < 0:
            return
        harmless = now + state.estimate[state.next_up[best]] <= reservation
        if harmless or fits_one(state.demand, spare, best):
            if not harmless:
                for r in range(R):
                    spare[r] -= state.demand[best, r]
            take_next(state, target, best)
        else:
            state.next_up[best] = -1
            state.memory[UNTIL] = reservation


@kernel
def _sink(keys: Array, values: Int, n: int, place: int) -> None:
    """Lets the entry at a place of a heap (smallest key first) sink to where it belongs."""
    while True:
        child = 2 * place + 1
        if child >= n:
            return
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= keys[place]:
            return
        keys[place], keys[child] = keys[child], keys[place]
        values[place], values[child] = values[child], values[place]
        place = child


@kernel
def _heapify(keys: Array, values: Int, n: int) -> None:
    for place in range(n // 2 - 1, -1, -1):
        _sink(keys, values, n, place)


def _easy_keeps(types: int) -> tuple[int, int]:
    return 3, 1


EASY_RULE = Rule(easy, keeps=_easy_keeps)
