"""Compiling the search for the optimum ahead, so that its time limit is for the search alone."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rota.capacity import system_load
from rota.errors import NotConverged
from rota.kernel_cache import is_kept
from rota.model import Preemption, System
from rota.optimal import chain, kept, lowering, table_chain, with_preemption, without_preemption
from rota.optimal.continuation import continued, first_values
from rota.optimal.optimal_policy import optimal_policy
from rota.optimal.state_space import state_space

__all__ = ["compile_search"]

_PAIR = System([2], [[1], [2]], [0.3, 0.1], [1.0, 1.0])


def compile_search(preemption: Preemption) -> bool:
    """Compiles what `optimal_policy` runs, "full" or "none", unless it is on disk: by a search that takes a moment. Whether it had to."""
    sweeps: Any = with_preemption if preemption == "full" else without_preemption
    functions: list[Any] = [sweeps.improve, sweeps.backup, table_chain._explore, chain._gauss_seidel]
    if preemption != "full":
        functions += [kept._number, kept._equations, kept.sweep_kept, lowering.lower]
    else:
        functions.append(with_preemption.sweep)
    if all(function.signatures or is_kept(function) for function in functions):
        return False
    with suppress(NotConverged):
        optimal_policy(_PAIR, preemption, accuracy=0.05, time_limit_s=5.0)
    if preemption != "full":  # runs only where the time is over
        space = continued(state_space(_PAIR, [4, 4]), system_load(_PAIR))
        lowering.lower(space, first_values(space, len(space.schedules)), 0.0, True)
    return True
