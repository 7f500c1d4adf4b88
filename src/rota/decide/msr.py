"""The MSR policies: the modulating process as a clockwork. `rota.decide.backfill` has those that fill gaps from the queue.

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
    uniform,
)
from rota.kernel import kernel

__all__ = ["MSRData", "follow", "go", "msr", "next_ring", "own_rate", "ring_rate"]


class MSRData(NamedTuple):
    """The modulating process in compressed rows: the moves of state s are those from start[s] to start[s+1]."""

    schedules: Int  # (N, K)
    working: NDArray[np.bool_]  # (N,)
    goal: Int  # (N,) the working state that a switching state leads to
    start: Int  # (N+1,)
    target: Int  # (M,)
    rate: Array  # (M,)
    trigger: Int  # (M,) −1 timer, −2 setup, i ≥ 0 completion of type i
    skip: bool  # slots without a job are given up at once
    setup_rate: float  # γ, with setups


# counters: 0 state of the process; memory: 0 rate of own rings, 1 time of the next


@kernel
def ring_rate(state: State, target: Int, move: int, s: int) -> float:
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
def go(state: State, move: int) -> None:
    """Makes a move of the process."""
    if state.data.working[state.counters[0]]:
        state.mode[1] += 1
    state.counters[0] = state.data.target[move]
    state.mode[0] = 0 if state.data.working[state.counters[0]] else 1


@kernel
def follow(state: State, target: Int) -> bool:
    """Lets the event move the process; True if it did."""
    data, s = state.data, state.counters[0]
    first, last = data.start[s], data.start[s + 1]
    if state.event[0] == TIMER:
        draw = uniform(state.random) * state.memory[0]
        chosen = -1
        for move in range(first, last):
            rate = ring_rate(state, target, move, s)
            if rate > 0.0:
                chosen = move
                draw -= rate
                if draw < 0.0:
                    break
        if chosen < 0:
            return False
        go(state, chosen)
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
                        go(state, move)
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
        go(state, chosen)
        moved = True


@kernel
def own_rate(state: State, target: Int) -> float:
    """The rate at which the process rings by itself."""
    s = state.counters[0]
    rate = 0.0
    for move in range(state.data.start[s], state.data.start[s + 1]):
        rate += ring_rate(state, target, move, s)
    return rate


@kernel
def next_ring(state: State, rate: float) -> float:
    """The time of the next own ring, drawn anew if its rate has changed."""
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
            return next_ring(state, own_rate(state, target))
        state.scope[0] = NONE
        return float(state.memory[1])
    if kind == COMPLETION:
        target[i] = min(state.system[i], data.schedules[state.counters[0], i])
    moved = kind in (START, CHANGE) or follow(state, target)
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
    return next_ring(state, own_rate(state, target))
