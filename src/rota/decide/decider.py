"""From a policy to its decision function and what the function needs on a system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.capacity import integer_units
from rota.decide.rule import Description, Rule
from rota.decide.state import State
from rota.errors import Infeasible
from rota.model import System
from rota.policy import Custom, Policy, record_of, records

__all__ = ["Decider", "built_in", "decider_of", "describe", "new_state", "rule_of", "suits"]


class Decider(NamedTuple):
    """A decision function, its constants, and how many numbers it keeps."""

    name: str
    decide: Callable[[Any, Any], float]
    data: Any
    memory: int
    counters: int


def decider_of(system: System, policy: Policy) -> Decider:
    """How a policy decides on a system; raises `Infeasible` where it does not exist."""
    name = record_of(policy).name
    if isinstance(policy, Custom):
        return Decider(name, policy.decide, policy.data, policy.memory, policy.counters)
    rule = rule_of(policy)
    rule.check(system)
    return Decider(name, rule.decide, rule.constants(system, policy), *rule.keeps(len(system.names)))


def suits(system: System, policy: Policy) -> bool:
    """Whether a policy exists on a system."""
    try:
        rule_of(policy).check(system)
    except Infeasible:
        return False
    return True


def describe(policy: Policy, state: State) -> Description:
    """What a policy says about a state."""
    return rule_of(policy).describe(state)


def built_in() -> set[Callable[[Any, Any], float]]:
    """The decision functions of all policies in the registry."""
    return {record.load_rule().decide for record in records()}


def rule_of(policy: Policy) -> Rule:
    """How a policy decides, for any system."""
    return Rule(policy.decide) if isinstance(policy, Custom) else record_of(policy).load_rule()


def new_state(system: System, decider: Decider, random: NDArray[np.uint64]) -> State:
    """The state of an empty server, without places for jobs yet: the arrays (jobs,) have length 0."""
    units = integer_units(system)
    K, R = units.demand.shape
    none = np.full(K, -1, dtype=np.int64)
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
        oldest=none.copy(),
        first_waiting=none.copy(),
        newest=none.copy(),
        newer=no_jobs,
        older=no_jobs,
        sequence=no_jobs,
        finish=no_times,
        estimate=no_times,
        memory=np.zeros(max(decider.memory, 1)),
        counters=np.zeros(max(decider.counters, 1), dtype=np.int64),
        random=random,
        residual=np.zeros(R, dtype=np.int64),
        next_up=np.zeros(K, dtype=np.int64),
        chosen=np.zeros(max(K, R), dtype=np.int64),
        keys=no_times,
        places=no_jobs,
        data=decider.data,
    )
