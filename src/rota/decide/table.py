"""Decisions looked up in a table: see `rota.policy.Tabulated`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Int
from rota.capacity import fits
from rota.decide.rule import Rule
from rota.decide.state import State
from rota.errors import Infeasible
from rota.kernel import kernel
from rota.model import System
from rota.policy import Tabulated
from rota.views import by_reference

__all__ = ["TABLE_RULE", "TableData"]


@by_reference
class TableData(NamedTuple):
    """The table, and how to find a place in it."""

    schedules: Int  # (S, K)
    truncation: Int  # (K,)
    stride: Int  # (K,) the place of q is Σ stride_i q_i
    choice: NDArray[np.signedinteger[Any]]
    most: Int  # (K,) jobs of a type in a schedule
    running_stride: Int  # (K,) the place of u in `number` is Σ running_stride_i u_i
    number: Int  # of a schedule by its counts, −1 for none
    preemptive: bool


@kernel
def from_table(state: State, target: Int) -> float:
    """The schedule in the table for the jobs present, at its edge where there are more; without preemption, for those that run too.

    Where jobs run that no schedule of the table has, as after a change of plan, they run on and none starts.
    """
    data, K = state.data, target.shape[0]
    at = 0
    for i in range(K):
        at += data.stride[i] * min(state.system[i], data.truncation[i])
    if not data.preemptive:
        place = 0
        for i in range(K):
            target[i] = state.running[i]
        for i in range(K):
            if state.running[i] > data.most[i]:
                return np.inf
            place += data.running_stride[i] * state.running[i]
        if data.number[place] < 0:
            return np.inf
        at = at * data.schedules.shape[0] + data.number[place]
    for i in range(K):
        target[i] = data.schedules[data.choice[at], i]
    return np.inf


def _table_data(system: System, policy: Tabulated) -> TableData:
    K = policy.schedules.shape[1]
    if len(system.names) != K:
        raise Infeasible(f"the table is for {K} types, and the system has {len(system.names)}")
    if not np.all(fits(system, policy.schedules)):
        raise Infeasible("the table has schedules that do not fit this server: it was made for another one")
    stride = np.append(np.cumprod((policy.truncation + 1)[::-1])[::-1][1:], 1)
    largest = policy.schedules.max(axis=0)
    running_stride = np.append(np.cumprod((largest + 1)[::-1])[::-1][1:], 1)
    number = np.full(int(np.prod(largest + 1)), -1, dtype=np.int64)
    number[policy.schedules @ running_stride] = np.arange(len(policy.schedules))
    return TableData(
        schedules=policy.schedules,
        truncation=policy.truncation,
        stride=stride,
        choice=policy.choice,
        most=largest,
        running_stride=running_stride,
        number=number,
        preemptive=policy.preemption == "full",
    )


TABLE_RULE = Rule(from_table, constants=_table_data)
