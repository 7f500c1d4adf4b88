"""From a policy to its decision function and what the function needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.capacity import Units, integer_units, list_schedules
from rota.capacity.packing import workspace
from rota.decide.backfill import backfill_full, backfill_none, backfill_setup
from rota.decide.msr import MSRData, msr
from rota.decide.queue_order import easy, fcfs, first_fit_policy, server_filling
from rota.decide.state import State
from rota.decide.weights import MaxWeightData, TimersData, max_weight, randomized_timers, tie_breaker
from rota.errors import BadSpec, Infeasible, Problem, TooManySchedules
from rota.model import System
from rota.policy import EASY, FCFS, MSR, Custom, FirstFit, MaxWeight, Policy, RandomizedTimers, ServerFilling
from rota.process import ModulatingProcess, build_process

__all__ = ["Brain", "brain_of", "new_state", "policy_name", "preempts"]

_BACKFILL = {"full": backfill_full, "none": backfill_none, "setup": backfill_setup}
_SHORT_LIST = 300  # maximal schedules up to which MaxWeight goes through the list


class Brain(NamedTuple):
    """A decision function, its constants, and how many numbers it keeps."""

    name: str
    decide: Callable[[Any, Any], float]
    data: Any
    memory: int
    counters: int


def brain_of(system: System, policy: Policy) -> Brain:
    """The brain of a policy on a system."""
    K, name = len(system.names), policy_name(policy)
    match policy:
        case FCFS():
            return Brain(name, fcfs, 0, 1, 1)
        case FirstFit():
            return Brain(name, first_fit_policy, 0, 1, 1)
        case EASY():
            return Brain(name, easy, 0, 1, 1)
        case ServerFilling():
            _check_server_filling(system)
            return Brain(name, server_filling, 0, 1, 1)
        case MaxWeight():
            return Brain(name, max_weight, _max_weight_data(system, policy), 1, 1)
        case RandomizedTimers():
            return Brain(name, randomized_timers, TimersData(policy.rate, policy.power, policy.floor), K + 2, K)
        case MSR():
            decide = _BACKFILL[policy.preemption] if policy.backfill else msr
            return Brain(name, decide, _msr_data(build_process(system, policy), policy), 2, 1 + K)
        case Custom():
            return Brain(name, policy.decide, policy.data, policy.memory, policy.counters)


def new_state(system: System, brain: Brain, random: NDArray[np.uint64]) -> State:
    """The state of an empty server, without room for jobs yet: the arrays (jobs,) have length 0."""
    units = integer_units(system)
    K, R = units.demand.shape
    nobody = np.full(K, -1, dtype=np.int64)
    no_jobs, no_times = np.empty(0, dtype=np.int64), np.empty(0)
    return State(
        clock=np.zeros(1),
        event=np.zeros(2, dtype=np.int64),
        mode=np.zeros(2, dtype=np.int64),
        scope=np.zeros(1, dtype=np.int64),
        system=np.zeros(K, dtype=np.int64),
        running=np.zeros(K, dtype=np.int64),
        free=units.capacity.copy(),
        demand=units.demand.copy(),
        capacity=units.capacity.copy(),
        service_rate=np.array(system.service_rate),
        oldest=nobody.copy(),
        first_waiting=nobody.copy(),
        newest=nobody.copy(),
        newer=no_jobs,
        older=no_jobs,
        sequence=no_jobs,
        finish=no_times,
        estimate=no_times,
        memory=np.zeros(max(brain.memory, 1)),
        counters=np.zeros(max(brain.counters, 1), dtype=np.int64),
        random=random,
        room=np.zeros(R, dtype=np.int64),
        next_up=np.zeros(K, dtype=np.int64),
        chosen=np.zeros(max(K, R), dtype=np.int64),
        keys=no_times,
        places=no_jobs,
        data=brain.data,
    )


def policy_name(policy: Policy) -> str:
    """The short name of a policy."""
    if isinstance(policy, MSR):
        return {"full": "pMSR", "none": "nMSR", "setup": "sMSR"}[policy.preemption] + ("+backfill" if policy.backfill else "")
    if isinstance(policy, Custom):
        return policy.name
    if isinstance(policy, MaxWeight):
        return "max-weight" if policy.preemption == "full" else "max-weight-np"
    names = {FCFS: "fcfs", FirstFit: "first-fit", EASY: "easy", ServerFilling: "server-filling", RandomizedTimers: "randomized-timers"}
    if type(policy) not in names:
        rule = f"must be a policy: rota.MSR, rota.Custom, rota.MaxWeight, {', '.join(f'rota.{kind.__name__}' for kind in names)}"
        raise BadSpec([Problem("policy", rule, policy)])
    return names[type(policy)]


def preempts(policy: Policy) -> bool:
    """Whether a policy may stop a running job."""
    if isinstance(policy, MSR | MaxWeight):
        return policy.preemption != "none"
    return isinstance(policy, ServerFilling | Custom)


def _check_server_filling(system: System) -> None:
    units = integer_units(system)
    numbers = np.append(units.demand[:, 0], units.capacity[0])
    if units.demand.shape[1] != 1 or (numbers & (numbers - 1)).any():
        raise Infeasible("ServerFilling needs one resource, and demands and capacity that are powers of two of one unit")


def _max_weight_data(system: System, policy: MaxWeight) -> MaxWeightData:
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


def _msr_data(process: ModulatingProcess, policy: MSR) -> MSRData:
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
        skip=policy.empty_slots == "skip",
        setup_rate=policy.setup_rate or 0.0,
    )


def _goals(process: ModulatingProcess) -> Int:
    """The working state that each state leads to: its own, or, through whatever moves, the first one met."""
    goal: Int = np.where(process.working, np.arange(len(process)), -1)
    while (goal < 0).any():
        known = goal[process.target] >= 0
        new = process.source[known][goal[process.source[known]] < 0]
        if not len(new):
            raise Infeasible("the process has states from which no working state is reached")
        goal[process.source[known]] = np.where(goal[process.source[known]] < 0, goal[process.target[known]], goal[process.source[known]])
    return goal
