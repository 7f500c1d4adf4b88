"""The MSR policies: the modulating process as a clockwork, with and without backfilling.

The clockwork holds the state of the process and the time of its next ring of its own: a timer, a setup, or a slot without a job that rings
in its place ("virtual completion"). These are exponential, so a ring is drawn anew whenever its rate changes. Completions of real jobs
come as events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.decide.state import (
    ARRIVAL,
    CHANGE,
    COMPLETION,
    NONE,
    START,
    TIMER,
    State,
    exponential,
    first_fit,
    oldest_next,
    take_next,
    uniform,
    youngest_running,
)
from rota.kernel import kernel

__all__ = ["MSRData", "msr", "msr_backfill"]


class MSRData(NamedTuple):
    """The modulating process in compressed rows: the moves of state s are those from start[s] to start[s+1]."""

    schedules: Int  # (N, K)
    in_setup: Int  # (N, K) jobs that hold resources for a setup
    working: NDArray[np.bool_]  # (N,)
    goal: Int  # (N,) the working state that a switching state leads to
    start: Int  # (N+1,)
    target: Int  # (M,)
    rate: Array  # (M,)
    trigger: Int  # (M,) −1 timer, −2 setup, i ≥ 0 completion of type i
    skip: bool  # slots without a job are given up at once
    preemptive: bool


# counters: 0 state of the process; memory: 0 rate of own rings, 1 time of the next


@kernel
def _ring_rate(state: State, target: Int, move: int, s: int) -> float:
    """The rate at which a move happens without an event: timers and setups, and slots that hold no job."""
    data = state.data
    i = data.trigger[move]
    if i < 0:
        return float(data.rate[move])
    slots = data.schedules[s, i]
    if data.skip or slots == 0:
        return 0.0
    return float(data.rate[move] * max(slots - target[i], 0) / slots)


@kernel
def _go(state: State, move: int) -> None:
    if state.data.working[state.counters[0]]:
        state.mode[1] += 1
    state.counters[0] = state.data.target[move]
    state.mode[0] = 0 if state.data.working[state.counters[0]] else 1


@kernel
def _move(state: State, target: Int) -> bool:
    """Lets the event move the process; True if it did."""
    data, s = state.data, state.counters[0]
    first, last = data.start[s], data.start[s + 1]
    if state.event[0] == TIMER:
        draw = uniform(state.random) * state.memory[0]
        chosen = -1
        for move in range(first, last):
            rate = _ring_rate(state, target, move, s)
            if rate > 0.0:
                chosen = move
                draw -= rate
                if draw < 0.0:
                    break
        if chosen < 0:
            return False
        _go(state, chosen)
        return True
    if state.event[0] == COMPLETION:
        i = state.event[1]
        total = 0.0
        for move in range(first, last):
            if data.trigger[move] == i:
                total += data.rate[move]
        if total > 0.0:
            draw = uniform(state.random) * total if last - first > 1 else 0.0
            for move in range(first, last):
                if data.trigger[move] == i:
                    draw -= data.rate[move]
                    if draw < 0.0:
                        _go(state, move)
                        return True
    return False


@kernel
def _skip_empty(state: State, counts: Int) -> bool:
    """Moves on while a slot that is to be drained holds no job (`counts`: jobs of each type that hold one)."""
    moved = False
    data = state.data
    while True:
        s = state.counters[0]
        chosen = -1
        for move in range(data.start[s], data.start[s + 1]):
            i = data.trigger[move]
            if i >= 0 and counts[i] < data.schedules[s, i]:
                chosen = move
                break
        if chosen < 0:
            return moved
        _go(state, chosen)
        moved = True


@kernel
def _next_ring(state: State, target: Int) -> float:
    """The time of the next own ring, drawn anew if its rate has changed."""
    s = state.counters[0]
    rate = 0.0
    for move in range(state.data.start[s], state.data.start[s + 1]):
        rate += _ring_rate(state, target, move, s)
    if rate != state.memory[0] or state.event[0] == TIMER or state.event[0] == START:
        state.memory[0] = rate
        state.memory[1] = state.clock[0] + exponential(state.random, rate) if rate > 0.0 else np.inf
    return float(state.memory[1])


@kernel
def msr(state: State, target: Int) -> float:
    """pMSR, nMSR, sMSR: min(Q_i, slots of the state) jobs of each type."""
    K = target.shape[0]
    kind, i = state.event[0], state.event[1]
    data = state.data
    if kind == ARRIVAL:
        if target[i] < data.schedules[state.counters[0], i]:
            target[i] += 1
            state.scope[0] = i
            return _next_ring(state, target)
        state.scope[0] = NONE
        return float(state.memory[1])
    if kind == COMPLETION:
        target[i] = min(state.system[i], data.schedules[state.counters[0], i])
    moved = kind in (START, CHANGE) or _move(state, target)
    if moved or kind == COMPLETION:
        state.scope[0] = i
    if data.skip:
        # A job that goes on holds its slot; a slot that opened for a waiting job is taken by it.
        while True:
            for k in range(K):
                target[k] = min(state.system[k], data.schedules[state.counters[0], k])
            if not _skip_empty(state, target):
                break
            moved = True
    if moved:
        for k in range(K):
            target[k] = min(state.system[k], data.schedules[state.counters[0], k])
        state.scope[0] = -1
    return _next_ring(state, target)


@kernel
def msr_backfill(state: State, target: Int) -> float:
    """MSR with backfilling: room that the schedule leaves is filled First-Fit from the queue.

    With preemption, backfilled jobs give way, the youngest first, as soon as the schedule needs their room, and nothing is backfilled
    during setups. Without, they run to their end, and the schedule's own jobs start when there is room. A switch then ends when all
    running jobs fit together with the jobs present that have a slot in the schedule ahead; until then only these start, and slots are
    drained as without backfilling.
    """
    K, R = state.demand.shape
    data = state.data
    kind, i = state.event[0], state.event[1]
    if kind == COMPLETION:
        target[i] -= 1
    if kind == TIMER or (kind == COMPLETION and data.preemptive):
        _move(state, target)
    if not data.preemptive:
        if _fits_beside_goal(state, target):
            state.counters[0] = data.goal[state.counters[0]]
            state.mode[0] = 0
        else:
            _drain(state, target)

    s = state.counters[0]
    extra = state.chosen
    for r in range(R):
        state.room[r] = state.capacity[r]
    for k in range(K):
        if data.preemptive:
            own = min(state.system[k], data.schedules[s, k])
            extra[k] = max(state.running[k] - own, 0)
            target[k] = own + extra[k]
        holding = target[k] + data.in_setup[s, k]
        for r in range(R):
            state.room[r] -= holding * state.demand[k, r]
    if data.preemptive:
        for k in range(K):
            state.next_up[k] = youngest_running(state, k) if extra[k] > 0 else -1
        while _overfull(state):
            _give_way(state, target, extra)
    else:
        _fill_slots(state, target, s)
    if data.working[s]:
        for k in range(K):
            state.next_up[k] = _after(state, k, target[k])
        first_fit(state, target)
    elif not data.preemptive:
        _fill_slots(state, target, data.goal[s])  # their types are not drained, so they do not hold up the switch
    return _next_ring(state, target)


@kernel
def _fits_beside_goal(state: State, target: Int) -> bool:
    """Whether the jobs that run fit together with those present that have a slot in the schedule that the process goes to."""
    K, R = state.demand.shape
    data, s = state.data, state.counters[0]
    ahead = data.goal[s]
    if ahead == s:
        return False
    for r in range(R):
        used = 0
        for k in range(K):
            used += max(target[k], min(state.system[k], data.schedules[ahead, k])) * state.demand[k, r]
        if used > state.capacity[r]:
            return False
    return True


@kernel
def _fill_slots(state: State, target: Int, s: int) -> None:
    """Starts jobs that have a slot in the schedule of state s, oldest first, as far as there is room."""
    slots = state.data.schedules
    for k in range(target.shape[0]):
        state.next_up[k] = _after(state, k, target[k]) if target[k] < slots[s, k] else -1
    while True:
        k = oldest_next(state, True)
        if k < 0:
            return
        take_next(state, target, k)
        if target[k] >= slots[s, k]:
            state.next_up[k] = -1


@kernel
def _overfull(state: State) -> bool:
    for r in range(state.room.shape[0]):  # noqa: SIM110 (numba has no any())
        if state.room[r] < 0:
            return True
    return False


@kernel
def _after(state: State, k: int, count: int) -> int:
    """The next job of type k once `count` of them run; none if some of them give way now."""
    if count < state.running[k]:
        return -1
    job = state.first_waiting[k]
    for _ in range(count - state.running[k]):
        job = state.newer[job]
    return int(job)


@kernel
def _give_way(state: State, target: Int, extra: Int) -> None:
    """Takes back the youngest backfilled job; `next_up` is the youngest of each type."""
    youngest = -1
    for k in range(target.shape[0]):
        if extra[k] > 0 and (youngest < 0 or state.sequence[state.next_up[k]] > state.sequence[state.next_up[youngest]]):
            youngest = k
    state.next_up[youngest] = state.older[state.next_up[youngest]]
    target[youngest] -= 1
    extra[youngest] -= 1
    for r in range(state.room.shape[0]):
        state.room[r] += state.demand[youngest, r]


@kernel
def _drain(state: State, target: Int) -> None:
    """Without preemption: a state that waits for type i to shrink is left as soon as fewer jobs of it run than it has slots."""
    data = state.data
    while True:
        s = state.counters[0]
        chosen = -1
        for move in range(data.start[s], data.start[s + 1]):
            i = data.trigger[move]
            if i >= 0 and target[i] < data.schedules[s, i] and (data.skip or (state.event[0] == COMPLETION and state.event[1] == i)):
                chosen = move
                break
        if chosen < 0:
            return
        _go(state, chosen)
        if not data.skip:
            return  # one completion, one slot
