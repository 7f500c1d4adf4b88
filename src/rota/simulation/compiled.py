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

from rota.decide import built_in
from rota.kernel import compiled as compiled_function
from rota.simulation.engine import engine
from rota.simulation.own import bounds_checked, check_return_type, guarded, out_of_bounds, watched

__all__ = ["runner_of"]

_njit: Any = nb.njit


@cache
def runner_of(decide: Callable[..., float], compiled: bool | None = None, bounds: bool = False) -> Callable[..., int]:
    """The engine for a decision function: compiled (if `compiled` is None: where numba can), or plain Python (False).

    With `bounds` a compiled function of a user checks array bounds.
    """
    if decide in built_in():
        plain: Callable[..., int] = _copy(decide, f"engine_{decide.__name__}")
        return plain if compiled is False else compiled_engine(plain)
    if compiled is False or (compiled is None and not isinstance(decide, FunctionType | nb.core.dispatcher.Dispatcher)):
        return _copy(guarded(watched(decide)), "engine_plain")  # type: ignore[no-any-return]
    return _Compiled(decide, bounds, compiled is None)


def compiled_engine(plain: Callable[..., int]) -> Callable[..., int]:
    """As `rota.kernel.kernel`, and while it runs other threads of Python may run too: several simulations at once use all cores."""
    return compiled_function(plain, _nrt=False, forceinline=True, nogil=True)


class _Compiled:
    """An engine that is compiled at the first call; if numba cannot, and that is allowed, plain Python from then on."""

    def __init__(self, decide: Callable[..., float], bounds: bool, may_be_plain: bool) -> None:
        self._decide, self._may_be_plain = decide, may_be_plain
        ready = isinstance(decide, nb.core.dispatcher.Dispatcher)
        self._function = bounds_checked(decide) if bounds else decide if ready else _njit(decide)
        self._engine: Any = None

    def __call__(self, *arguments: Any) -> int:
        try:
            if self._engine is None:
                check_return_type(self._function, arguments[0], arguments[1])
                self._engine = _njit(_copy(_njit(guarded(self._function)), "engine_custom"))
            return int(self._engine(*arguments))
        except (nb.core.errors.NumbaError, nb.core.errors.UnsupportedBytecodeError):  # raised before anything has run
            if not self._may_be_plain:
                raise
        except IndexError as error:
            raise out_of_bounds(self._decide) from error
        self._engine, self._may_be_plain = runner_of(self._decide, False), False
        return int(self._engine(*arguments))


def _copy(decide: Callable[..., float], name: str) -> Any:
    copy = FunctionType(engine.__code__, {**engine.__globals__, "decide": decide}, name)
    copy.__qualname__ = name
    copy.__module__ = engine.__module__
    return copy
