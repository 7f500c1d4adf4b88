"""A policy that is added as the page says: its record and its rule. Of the waiting jobs that fit, those of the last type start first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rota.decide import COMPLETION, Rule, State, fits_one
from rota.decide.state import KIND, TYPE, copy_waiting, take_next
from rota.kernel import kernel
from rota.model import System
from rota.policy import EASY, Policy, Record


@dataclass(frozen=True)
class LastTypeFirst(Policy):
    """Of the waiting jobs that fit, those of the last type start first. Never preempts."""


RECORD = Record(
    name="last-type-first",
    policy=LastTypeFirst,
    rule="toy_policy:LAST_TYPE_FIRST_RULE",
    title="the last type first",
    preemption="none",
    throughput_optimal=False,
    colour="#123456",
    mark="cross",
    plan=25,
)


@kernel
def last_type_first(state: State, target: np.ndarray) -> float:
    """Whenever something changes, jobs of the last type start while they fit, then those of the type before it."""
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    copy_waiting(state)
    K = target.shape[0]
    for k in range(K):
        i = K - 1 - k
        while state.next_up[i] >= 0 and fits_one(state.demand, state.residual, i):
            take_next(state, target, i)
    return np.inf


LAST_TYPE_FIRST_RULE = Rule(last_type_first)


def design_toy(name: str, system: System, **options: object) -> Policy:
    """A designer that always gives the same policy."""
    return EASY()
