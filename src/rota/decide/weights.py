"""Policies that weigh schedules by queue lengths: MaxWeight, Stalling MaxWeight, Randomized-Timers."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import Units, integer_units, largest_counts, list_schedules
from rota.capacity.packing import Workspace, search_best, workspace
from rota.decide.rule import Description, Rule
from rota.decide.state import (
    ARRIVAL,
    CHANGE,
    COMPLETION,
    KIND,
    START,
    TIMER,
    TYPE,
    State,
    copy_waiting,
    exponential,
    fits_one,
    take_next,
    uniform,
)
from rota.errors import TooManySchedules
from rota.kernel import kernel
from rota.model import System
from rota.policy import MaxWeight, RandomizedTimers, StallingMaxWeight
from rota.views import by_reference

__all__ = [
    "GRAIN",
    "MAX_WEIGHT_RULE",
    "NODES",
    "STALLING_RULE",
    "TIMERS_RULE",
    "MaxWeightData",
    "StallingData",
    "TimersData",
    "max_weight_data",
    "tie_breaker",
]

UNPROVED = 0  # counter of both MaxWeights: decisions that were not proved best
STALLED, SLOTS = 1, 2  # counters of Stalling MaxWeight: 1 while it starts nothing, else 0; then the slots of each type
_SHORT_LIST = 300  # maximal schedules up to which MaxWeight goes through the list
NODES = 50_000  # of the branch and bound; beyond, the best schedule found so far is taken, and counted as not proved
GRAIN = 0.9  # queue lengths are whole numbers


@by_reference
class MaxWeightData(NamedTuple):
    """`schedules` (n, K): the maximal schedules where they are few, else empty;
    `prices` (m, R): resource prices that the branch and bound may choose from.
    """

    schedules: Int
    prices: Array
    preemptive: bool
    tie: Array
    weight: Array  # (K,) scratch
    waiting: Int  # (K,) scratch: jobs to choose from
    space: Workspace


def tie_breaker(K: int) -> Array:
    """Small additions to the weights, 10⁻⁶ e^(−i/K) for type i = 1 … K, so that schedules of equal weight do not tie.

    Powers of e to different fractions are linearly independent over the whole numbers (Lindemann and Weierstrass), so no two sums tie.
    """
    return np.asarray(1e-6 * np.exp(-np.arange(1, K + 1) / K))


@kernel
def max_weight(state: State, target: Int) -> float:
    """MaxWeight: the schedule u ≤ Q of largest Σ u_i Q_i; without preemption, the best addition to what runs.

    `counters[UNPROVED]` are the decisions that were not proved best. MaxWeight drives the types to equal value per unit of resource,
    which is where such proofs are hardest.
    """
    K = target.shape[0]
    data = state.data
    if not data.preemptive and state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    if _all_fit(state, target):
        return np.inf
    for i in range(K):
        data.weight[i] = state.system[i] + data.tie[i]
    if data.preemptive and data.schedules.shape[0] > 0:
        best, chosen = -1.0, 0
        for s in range(data.schedules.shape[0]):
            value = 0.0
            for i in range(K):
                value += min(data.schedules[s, i], state.system[i]) * data.weight[i]
            if value > best:
                best, chosen = value, s
        for i in range(K):
            target[i] = min(data.schedules[chosen, i], state.system[i])
        return np.inf
    known = 0.0
    for i in range(K):
        if data.preemptive:  # the previous best without the jobs that left is usually good, and the search only needs to improve on it
            target[i] = min(target[i], state.system[i])
            known += target[i] * data.weight[i]
        data.waiting[i] = state.system[i] - (0 if data.preemptive else state.running[i])
    available = state.capacity if data.preemptive else state.free
    found, proved = search_best(state.demand, available, data.weight, data.waiting, data.prices, known, NODES, GRAIN, data.space)
    state.counters[UNPROVED] += int(not proved)
    if found > known:
        for i in range(K):
            target[i] = data.space.best[i] + (0 if data.preemptive else target[i])
    return np.inf


@kernel
def _all_fit(state: State, target: Int) -> bool:
    """Whether all jobs fit together, without preemption into what is free beside the running ones: then all run."""
    K, R = state.demand.shape
    available = state.capacity if state.data.preemptive else state.free
    for r in range(R):
        used = 0.0  # exact up to the capacity (`rota.capacity.units`), and no sum is too large
        for i in range(K):
            used += float(state.system[i] - (0 if state.data.preemptive else state.running[i])) * state.demand[i, r]
        if used > available[r]:
            return False
    for i in range(K):
        target[i] = state.system[i]
    return True


def max_weight_data(system: System, policy: MaxWeight) -> MaxWeightData:
    """What the search for the heaviest schedule needs."""
    units: Units = integer_units(system)
    K = len(system.names)
    schedules: Int = np.zeros((0, K), dtype=np.int64)
    with suppress(TooManySchedules):
        schedules = list_schedules(system, maximal=True, limit=_SHORT_LIST)
    # Prices for the branch and bound to choose from: by what the arriving work needs, each resource alone, all alike.
    pressure: Array = system.offered_work @ units.demand / units.capacity
    mixed = pressure / max(float(pressure.max()), 1e-300)
    prices = (np.vstack([mixed, np.eye(len(mixed)), np.ones(len(mixed))]) + 1e-3) / units.capacity
    space = workspace(*units.demand.shape)
    return MaxWeightData(schedules, prices, policy.preemption == "full", tie_breaker(K), np.zeros(K), np.zeros(K, dtype=np.int64), space)


def _describe_max_weight(state: State) -> Description:
    return Description(unproved=int(state.counters[UNPROVED]))


MAX_WEIGHT_RULE = Rule(max_weight, constants=max_weight_data, describe=_describe_max_weight)


# ---------------------------------------------------------------------------------------------------------------- stalling


@by_reference
class StallingData(NamedTuple):
    """`schedules`, `prices`, `tie`, `weight` and `space` as in `MaxWeightData`; `most` (K,): jobs of each type that fit alone."""

    schedules: Int
    prices: Array
    tie: Array
    weight: Array  # (K,) scratch
    space: Workspace
    most: Int
    share: float


@kernel
def _heaviest(state: State) -> float:
    """Leaves the schedule of largest Σ u_i Q_i, whether or not there are jobs for all its slots, in `space.best`; returns its weight."""
    data = state.data
    best = 0.0
    if data.schedules.shape[0] == 0:
        best, proved = search_best(state.demand, state.capacity, data.weight, data.most, data.prices, 0.0, NODES, GRAIN, data.space)
        state.counters[UNPROVED] += int(not proved)
        return best
    for s in range(data.schedules.shape[0]):
        value = 0.0
        for i in range(data.weight.shape[0]):
            value += data.schedules[s, i] * data.weight[i]
        if value > best:
            best = value
            for i in range(data.weight.shape[0]):
                data.space.best[i] = data.schedules[s, i]
    return best


@kernel
def stalling_max_weight(state: State, target: Int) -> float:
    """Stalling MaxWeight (Psychas and Ghaderi 2017): jobs start in the slots of a schedule while its weight is `share` of the best one's.

    Once it is not, the server is stalled: nothing starts until no job runs; then the best schedule is taken. It begins stalled.
    """
    K = target.shape[0]
    slots = state.counters[SLOTS:]
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    if state.event[KIND] == START:
        state.counters[STALLED] = 1
    running, weight = 0, 0.0
    for i in range(K):
        state.data.weight[i] = state.system[i] + state.data.tie[i]
        running += target[i]
        weight += slots[i] * state.data.weight[i]
    if state.counters[STALLED] == 0 or running == 0:
        best = _heaviest(state)
        if weight < state.data.share * best:
            state.counters[STALLED] = 1
        if state.counters[STALLED] == 1 and running == 0:
            state.counters[STALLED] = 0
            for i in range(K):
                slots[i] = state.data.space.best[i]
    if state.counters[STALLED] == 1:
        return np.inf
    copy_waiting(state)
    for i in range(K):
        while target[i] < slots[i] and state.next_up[i] >= 0 and fits_one(state.demand, state.residual, i):
            take_next(state, target, i)
    return np.inf


def _stalling_data(system: System, policy: StallingMaxWeight) -> StallingData:
    data = max_weight_data(system, MaxWeight())
    most: Int = np.asarray(largest_counts(system), dtype=np.int64)
    return StallingData(data.schedules, data.prices, data.tie, data.weight, data.space, most, policy.share)


def _stalling_keeps(types: int) -> tuple[int, int]:
    return 1, SLOTS + types


STALLING_RULE = Rule(stalling_max_weight, constants=_stalling_data, keeps=_stalling_keeps, describe=_describe_max_weight)


# ---------------------------------------------------------------------------------------------------------------- timers


@by_reference
class TimersData(NamedTuple):
    """Parameters of Randomized-Timers: clock rate r per type, f(x) = log(1+x)^power, and the floor 1e-4·f(max Q) as a factor."""

    rate: float
    power: float
    floor: float


@kernel
def _timers_weight(state: State, i: int) -> float:
    longest = 0
    for k in range(state.system.shape[0]):
        longest = max(longest, state.system[k])
    own = np.log(1.0 + state.system[i]) ** state.data.power
    return float(max(own, state.data.floor * np.log(1.0 + longest) ** state.data.power))


@kernel
def randomized_timers(state: State, target: Int) -> float:
    """Randomized-Timers (Ghaderi 2016; Psychas and Ghaderi 2018): slots are taken at random ticks and given back at random departures.

    Each type has a clock of rate r: at a tick a slot of the type is tried and, where it fits, held, by a waiting job or by a dummy. A
    dummy completes like a job of its type. When a slot's job or dummy is done, the slot is kept with probability 1 − e^(−w), w =
    max(f(Q_i), floor·f(max Q)).
    An arrival takes a dummy's slot of its type. `counters[i]`: slots held.
    """
    K = target.shape[0]
    slots = state.counters
    dummies = state.memory  # the first K: rates at which the dummies of each type ring; then the sum of all rates, and the next ring
    total_rate, next_ring = K, K + 1
    kind, i = state.event[KIND], state.event[TYPE]
    if kind == START:
        for k in range(K):
            slots[k] = state.running[k]  # none in the simulator; a live server may change its plan
    elif kind == COMPLETION:
        if uniform(state.random) < np.exp(-_timers_weight(state, i)):
            slots[i] -= 1
    elif kind == TIMER:
        total = K * state.data.rate
        for k in range(K):
            dummies[k] = (slots[k] - target[k]) * state.service_rate[k]
            total += dummies[k]
        draw = uniform(state.random) * total
        i = 0
        ticks = draw < K * state.data.rate
        if ticks:
            i = min(int(draw / state.data.rate), K - 1)
        else:
            draw -= K * state.data.rate
            while i < K - 1 and draw >= dummies[i]:
                draw -= dummies[i]
                i += 1
        if ticks:
            fits = True
            for r in range(state.capacity.shape[0]):
                used = state.demand[i, r]
                for k in range(K):
                    used += slots[k] * state.demand[k, r]
                if used > state.capacity[r]:
                    fits = False
            if fits:
                slots[i] += 1
        elif slots[i] > target[i] and uniform(state.random) < np.exp(-_timers_weight(state, i)):
            slots[i] -= 1
    if kind in (START, CHANGE):
        for k in range(K):
            target[k] = min(state.system[k], slots[k])
    else:
        target[i] = min(state.system[i], slots[i])
        state.scope[0] = i
    rate = K * state.data.rate
    for k in range(K):
        rate += (slots[k] - target[k]) * state.service_rate[k]
    if kind in (ARRIVAL, CHANGE) and state.memory[total_rate] == rate:
        return float(state.memory[next_ring])  # the time of the next ring is unchanged
    state.memory[total_rate] = rate
    state.memory[next_ring] = state.clock[0] + exponential(state.random, rate)
    return float(state.memory[next_ring])


def _timers_data(system: System, policy: RandomizedTimers) -> TimersData:
    return TimersData(policy.rate, policy.power, policy.floor)


def _timers_keep(types: int) -> tuple[int, int]:
    return types + 2, types


TIMERS_RULE = Rule(randomized_timers, constants=_timers_data, keeps=_timers_keep)
