"""The MSR policies: the modulating process as a state machine with a clock. `rota.decide.backfill` has those that fill gaps from the queue.

It keeps the state of the process and the time of the next event of its own (a "ring"): a timer, a setup, or a slot without a job that rings
in its place ("virtual completion"). These are exponential, so a new time is drawn whenever the rate changes. Completions of real jobs
come as events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.decide.rule import Description, Rule
from rota.decide.state import (
    ALL,
    ARRIVAL,
    CHANGE,
    COMPLETION,
    KIND,
    NONE,
    START,
    SWITCHES,
    SWITCHING,
    TIMER,
    TYPE,
    State,
    exponential,
    uniform,
)
from rota.errors import Infeasible
from rota.kernel import kernel
from rota.model import System
from rota.policy import MSR
from rota.process import ModulatingProcess, build_process
from rota.views import by_reference

__all__ = [
    "MSR_RULE",
    "NEXT",
    "PLACE",
    "MSRData",
    "describe_msr",
    "follow",
    "go",
    "msr_data",
    "msr_keeps",
    "next_ring",
    "own_rate",
    "process_data",
]

PLACE = 0  # counter: the state of the process
RATE, NEXT = 0, 1  # memory: the rate of own rings, the time of the next


@by_reference
class MSRData(NamedTuple):
    """The modulating process in compressed rows: the moves of state s are those from start[s] to start[s+1]."""

    schedules: Int  # (N, K)
    working: NDArray[np.bool_]  # (N,)
    goal: Int  # (N,) the working state that a switching state leads to
    start: Int  # (N+1,)
    target: Int  # (M,)
    rate: Array  # (M,)
    trigger: Int  # (M,) −1 timer, −2 setup, i ≥ 0 completion of type i
    skip: bool  # slots without a job are released at once
    setup_rate: float  # γ, with setups


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
    if state.data.working[state.counters[PLACE]]:
        state.mode[SWITCHES] += 1
    state.counters[PLACE] = state.data.target[move]
    state.mode[SWITCHING] = 0 if state.data.working[state.counters[PLACE]] else 1


@kernel
def follow(state: State, target: Int) -> bool:
    """Lets the event move the process; True if it did."""
    data, s = state.data, state.counters[PLACE]
    first, last = data.start[s], data.start[s + 1]
    if state.event[KIND] == TIMER:
        draw = uniform(state.random) * state.memory[RATE]
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
    if state.event[KIND] == COMPLETION:
        i = state.event[TYPE]
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
        s = state.counters[PLACE]
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
    s = state.counters[PLACE]
    rate = 0.0
    for move in range(state.data.start[s], state.data.start[s + 1]):
        rate += ring_rate(state, target, move, s)
    return rate


@kernel
def next_ring(state: State, rate: float) -> float:
    """The time of the next own ring, drawn again if its rate has changed."""
    if rate != state.memory[RATE] or state.event[KIND] == TIMER or state.event[KIND] == START:
        state.memory[RATE] = rate
        state.memory[NEXT] = state.clock[0] + exponential(state.random, rate) if rate > 0.0 else np.inf
    return float(state.memory[NEXT])


@kernel
def msr(state: State, target: Int) -> float:
    """pMSR, nMSR, sMSR: min(Q_i, slots of the state) jobs of each type."""
    K = target.shape[0]
    kind, i = state.event[KIND], state.event[TYPE]
    data = state.data
    if kind == ARRIVAL:
        if target[i] < data.schedules[state.counters[PLACE], i]:
            target[i] += 1
            state.scope[0] = i
            return next_ring(state, own_rate(state, target))
        state.scope[0] = NONE
        return float(state.memory[NEXT])
    if kind == COMPLETION:
        target[i] = min(state.system[i], data.schedules[state.counters[PLACE], i])
    moved = kind in (START, CHANGE) or follow(state, target)
    if moved or kind == COMPLETION:
        state.scope[0] = i
    if data.skip:
        # A job that goes on holds its slot; a slot that opened for a waiting job is taken by it.
        while True:
            for k in range(K):
                target[k] = min(state.system[k], data.schedules[state.counters[PLACE], k])
            if not _skip_empty(state, target):
                break
            moved = True
    if moved:
        for k in range(K):
            target[k] = min(state.system[k], data.schedules[state.counters[PLACE], k])
        state.scope[0] = ALL
    return next_ring(state, own_rate(state, target))


# ---------------------------------------------------------------------------------------------------------------- constants


def msr_data(system: System, policy: MSR) -> MSRData:
    """The modulating process of a policy."""
    return process_data(build_process(system, policy), skip=policy.empty_slots == "skip", setup_rate=policy.setup_rate)


def process_data(process: ModulatingProcess, *, skip: bool, setup_rate: float | None) -> MSRData:
    """A modulating process in compressed rows."""
    order = np.argsort(process.source, kind="stable")
    start = np.zeros(len(process) + 1, dtype=np.int64)
    np.add.at(start, process.source + 1, 1)
    return MSRData(
        schedules=np.ascontiguousarray(process.schedules),
        working=np.ascontiguousarray(process.working),
        goal=_goals(process),
        start=np.cumsum(start),
        target=np.ascontiguousarray(process.target[order]),
        rate=np.ascontiguousarray(process.rate[order]),
        trigger=np.ascontiguousarray(process.trigger[order]),
        skip=skip,
        setup_rate=setup_rate or 0.0,
    )


def _goals(process: ModulatingProcess) -> Int:
    """The working state that each state leads to: its own, or the first one reached by any moves."""
    goal: Int = np.where(process.working, np.arange(len(process)), -1)
    while (goal < 0).any():
        known = goal[process.target] >= 0
        new = process.source[known][goal[process.source[known]] < 0]
        if not len(new):
            raise Infeasible("the process has states from which no working state is reached")
        goal[process.source[known]] = np.where(goal[process.source[known]] < 0, goal[process.target[known]], goal[process.source[known]])
    return goal


def msr_keeps(types: int) -> tuple[int, int]:
    """Rate and time of own rings; the state of the process and, with backfilling, setups of each type."""
    return 2, 1 + types


def describe_msr(state: State) -> Description:
    """The schedule that the process has, and the one that it goes to."""
    data, s = state.data, int(state.counters[PLACE])
    goal = None if data.working[s] else _row(data.schedules[data.goal[s]])
    return Description(slots=_row(data.schedules[s]), goal=goal, schedules=tuple(_row(row) for row in data.schedules[data.working]))


def _row(schedule: Int) -> tuple[int, ...]:
    return tuple(int(count) for count in schedule)


MSR_RULE = Rule(msr, constants=msr_data, keeps=msr_keeps, describe=describe_msr)
