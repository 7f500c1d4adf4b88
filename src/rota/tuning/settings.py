"""The settings of queue-driven rotas that a race begins with, and those next to a good one.

Thresholds in v are relative to the weight of the work that arrives, v₀ = Σ c_i max(x_i, 1)², x = λ⊘μ, so that they mean the same on
servers of all sizes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import Load, cover, list_schedules
from rota.decide.adaptive import weight_of_work
from rota.errors import Infeasible, TooManySchedules
from rota.model import System
from rota.policy import Adaptive

__all__ = ["corners", "first_settings", "goal_sets", "neighbours"]

_MAXIMAL = 60  # maximal schedules up to which all of them are goals
_LEVELS = (0.5, 0.9)  # of the way from the load to 1: how large a part of the server covers the work
_THRESHOLDS: tuple[dict[str, Any], ...] = (  # waive and free as multiples of v₀
    {"hold": 8.0},
    {"hold": 3.0},
    {"hold": 0.5},
    {"hold": 20.0, "full": 0.9},
    {"hold": 8.0, "full": 0.9, "waive": 0.5},
    {"hold": 8.0, "full": 0.7, "waive": 0.5},
    {"hold": 3.0, "full": 0.9, "waive": 0.5},
    {"hold": 3.0, "full": 0.9, "waive": 5.0},
    {"hold": 8.0, "full": 0.5, "waive": 5.0},
    {"hold": 20.0, "full": 0.8, "waive": 0.5, "cap": 1.5},
    {"hold": 3.0, "free": 2.0},
    {"hold": 3.0, "free": 10.0},
    {"hold": 3.0, "slack": 0.3},
    {"hold": 3.0, "slack": 1.0},
    {"hold": 8.0, "slack": 3.0},
)
_BY_ARRIVAL: tuple[dict[str, Any], ...] = (
    {"hold": 8.0, "full": 0.9, "waive": 0.5, "order": "arrival"},
    {"hold": 20.0, "full": 0.8, "waive": 0.5, "cap": 1.5, "order": "arrival"},
    {"hold": 8.0, "full": 0.9, "waive": 5.0, "order": "arrival"},
    {"hold": 8.0, "full": 2.0, "waive": 5.0, "order": "arrival"},
    {"hold": 3.0, "full": 4.0, "waive": 20.0, "order": "arrival"},
)
_STEPS = (0.5, 2.0)


def goal_sets(load: Load) -> list[Int]:
    """Sets of schedules that carry the load: those of the least load, close ones at some levels, all maximal ones where they are few."""
    system = load.system
    found = [np.unique(load.candidates, axis=0)]
    for level in _LEVELS:
        with suppress(Infeasible):
            near = cover(system, system.offered_work / (load.load + level * (1 - load.load)), 1 / system.service_rate, load=load, gap=1e-2)
            found.append(near.candidates[near.candidates.any(axis=1)])
    with suppress(TooManySchedules):
        found.append(list_schedules(system, maximal=True, limit=_MAXIMAL))
    different = {goals.tobytes(): goals for goals in found if len(goals)}
    return list(different.values())


def first_settings(system: System, sets: list[Int]) -> list[Adaptive]:
    """First-Fit; MaxWeight without preemption and all thresholds on all sets of goals, types alike or weighed by their service rates."""
    chosen = corners(system, sets[0])[1:]
    for importance in _importances(system):
        v = weight_of_work(system, importance)
        given: dict[str, Any] = {"importance": importance, "names": system.names}
        chosen.append(Adaptive(sets[0], free=np.inf, **given))
        for goals in sets:
            for one in (*_THRESHOLDS, *(_BY_ARRIVAL if (importance == 1).all() else ())):
                scaled = {name: value * v if name in ("waive", "free") else value for name, value in one.items()}
                chosen.append(Adaptive(goals, **scaled, **given))
    return chosen


def corners(system: System, goals: Int) -> list[Adaptive]:
    """The settings that are MaxWeight without preemption and First-Fit."""
    return [Adaptive(goals, free=np.inf, names=system.names), Adaptive(goals, full=np.inf, order="arrival", names=system.names)]


def neighbours(policy: Adaptive) -> list[Adaptive]:
    """Settings next to one: each threshold, and the importance of each type, half and twice as large."""
    chosen = []
    for name, value in policy.settings.items():
        if 0 < value < np.inf and np.isfinite([policy.free, policy.full]).all():
            chosen += [policy.replace(**{name: step * value}) for step in _STEPS]
    if len(policy.importance) > 1:
        for i in range(len(policy.importance)):
            for step in _STEPS:
                scaled = policy.importance.copy()
                scaled[i] *= step
                chosen.append(policy.replace(importance=scaled))
    return [other for other in chosen if other != policy]


def _importances(system: System) -> list[Array]:
    """All alike, by the service rates, and half-way: short jobs first is better for the mean, and may starve long ones."""
    rates = system.service_rate / np.exp(np.log(system.service_rate).mean())
    alike = np.ones(len(rates))
    return [alike] if np.allclose(rates, 1.0) else [alike, np.sqrt(rates), rates]
