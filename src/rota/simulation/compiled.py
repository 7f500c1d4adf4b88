"""The engine with a policy's decision function put in, compiled, and cached on disk for the built-in ones.

The engine calls a global function `decide`. A copy of it with other globals calls another policy, directly and inlined, which a function
passed as an argument would not be; and numba can cache it under a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numba as nb

from rota.decide.msr import msr, msr_backfill
from rota.decide.queue_order import easy, fcfs, first_fit_policy, server_filling
from rota.decide.weights import max_weight, randomized_timers
from rota.kernel import kernel
from rota.simulation.engine import engine

__all__ = ["runner_of"]

_BUILT_IN = (fcfs, first_fit_policy, easy, server_filling, max_weight, randomized_timers, msr, msr_backfill)


@cache
def runner_of(decide: Callable[..., float], compiled: bool | None = None) -> Callable[..., int]:
    """The engine for a decision function: compiled (if `compiled` is None: where numba can), or plain Python (False)."""
    if compiled is False:
        plain: Callable[..., int] = _copy(decide, "engine_plain")
        return plain
    if decide in _BUILT_IN:
        return kernel(_copy(decide, f"engine_{decide.__name__}"))  # type: ignore[no-any-return]
    function = decide if isinstance(decide, nb.core.dispatcher.Dispatcher) else nb.njit(decide)
    return nb.njit(_copy(function, "engine_custom"))  # type: ignore[no-any-return]


def _copy(decide: Callable[..., float], name: str) -> Any:
    copy = FunctionType(engine.__code__, {**engine.__globals__, "decide": decide}, name)
    copy.__qualname__ = name
    copy.__module__ = engine.__module__
    return copy
