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

from rota.arrays import Int
from rota.decide import State
from rota.decide.msr import msr, msr_backfill
from rota.decide.queue_order import easy, fcfs, first_fit_policy, server_filling
from rota.decide.weights import max_weight, randomized_timers
from rota.errors import Infeasible
from rota.kernel import kernel
from rota.simulation.engine import engine

__all__ = ["runner_of"]

_BUILT_IN = (fcfs, first_fit_policy, easy, server_filling, max_weight, randomized_timers, msr, msr_backfill)


@cache
def runner_of(decide: Callable[..., float], compiled: bool | None = None) -> Callable[..., int]:
    """The engine for a decision function: compiled (if `compiled` is None: where numba can), or plain Python (False)."""
    if decide in _BUILT_IN:
        plain: Callable[..., int] = _copy(decide, f"engine_{decide.__name__}")
        return plain if compiled is False else kernel(plain)
    if compiled is False:
        return _copy(_guarded(decide), "engine_plain")  # type: ignore[no-any-return]
    function = decide if isinstance(decide, nb.core.dispatcher.Dispatcher) else nb.njit(decide)
    return _Compiled(decide, nb.njit(_copy(nb.njit(_guarded(function)), "engine_custom")), compiled is None)


class _Compiled:
    """An engine that is compiled at the first call; if numba cannot, and that is allowed, plain Python from then on."""

    def __init__(self, decide: Callable[..., float], engine: Callable[..., int], may_be_plain: bool) -> None:
        self._decide, self._engine, self._may_be_plain = decide, engine, may_be_plain

    def __call__(self, *arguments: Any) -> int:
        try:
            return self._engine(*arguments)
        except (nb.core.errors.NumbaError, nb.core.errors.UnsupportedBytecodeError):  # raised before anything has run
            if not self._may_be_plain:
                raise
            self._engine, self._may_be_plain = runner_of(self._decide, False), False
            return self._engine(*arguments)


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """A decision function of a user, with what it decides checked: the engine trusts the built-in ones."""

    def decide(state: State, target: Int) -> float:
        again = function(state, target)
        for i in range(target.shape[0]):
            if target[i] < 0:
                raise Infeasible("the decision function asked for a negative number of jobs")
        for r in range(state.capacity.shape[0]):
            used = 0
            for i in range(target.shape[0]):
                used += min(target[i], state.system[i]) * state.demand[i, r]
            if used > state.capacity[r]:
                raise Infeasible("the decision function asked for more jobs than fit the server")
        if not again > state.clock[0]:
            raise Infeasible("the decision function asked to be called again at a time that is not later than now")
        return again

    return decide


def _copy(decide: Callable[..., float], name: str) -> Any:
    copy = FunctionType(engine.__code__, {**engine.__globals__, "decide": decide}, name)
    copy.__qualname__ = name
    copy.__module__ = engine.__module__
    return copy
