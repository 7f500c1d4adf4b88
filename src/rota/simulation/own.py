"""A decision function of a user: its decisions are checked, while the engine trusts the built-in ones.

In plain Python every mistake is seen when it is made. In compiled code the type that comes back is known before anything runs; whether an
index is within its array is checked only on request (`bounds`), because it takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from types import CellType, FunctionType
from typing import Any

import numba as nb

from rota.arrays import Int
from rota.decide import State
from rota.errors import Infeasible
from rota.kernel_cache import named_globals

__all__ = ["bounds_checked", "check_return_type", "guarded", "out_of_bounds", "watched"]

_Decide = Callable[..., Any]
_RULE = "it must return the time at which it wants to be called again, numpy.inf for never"


def guarded(function: _Decide) -> _Decide:
    """The function with its decisions checked, for plain Python and to be compiled."""

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
        if again != again:
            raise Infeasible("the decision function returned nan: it must return a time later than now, numpy.inf for never")
        if not again > state.clock[0]:
            raise Infeasible("the decision function asked to be called again at a time that is not later than now")
        return float(again)

    return decide


# ------------------------------------------------------------------------------------------------------------------ plain Python


def watched(function: _Decide) -> _Decide:
    """A function in plain Python, with what it returns and the indexes it uses checked."""

    def decide(state: State, target: Int) -> float:
        try:
            again = function(state, target)
        except IndexError as error:
            raise out_of_bounds(function, f": {error}") from error
        if not isinstance(again, Real) or isinstance(again, bool):
            raise Infeasible(f"the decision function {_name(function)} returned {again!r}: {_RULE}")
        return again  # type: ignore[return-value]

    return decide


def out_of_bounds(function: _Decide, more: str = "") -> Infeasible:
    """The error for an index that is not within its array."""
    return Infeasible(
        f"the decision function {_name(function)} used an index out of bounds{more}. The K types are numbered from 0 to K − 1, "
        "and −1 is no job; with rota.Custom(…, compiled=False) the traceback shows the line"
    )


def _name(function: _Decide) -> str:
    return repr(getattr(function, "__name__", "decide"))


# ------------------------------------------------------------------------------------------------------------------ compiled


def check_return_type(function: _Decide, state: Any, target: Int) -> None:
    """Raises if a function that numba can compile returns anything but a number."""
    ask: Any = nb.njit(lambda state, target: function(state, target))
    type_of: Any = nb.typeof
    types = (type_of(state), type_of(target))
    ask.compile(types)
    returned = ask.overloads[types].signature.return_type
    if isinstance(returned, nb.types.Optional):
        raise Infeasible(f"the decision function {_name(function)} returns None on some of its paths: {_RULE}")
    if not isinstance(returned, nb.types.Float | nb.types.Integer):
        raise Infeasible(f"the decision function {_name(function)} returns {_in_words(returned)}: {_RULE}")


def _in_words(type: Any) -> str:
    return "None" if isinstance(type, nb.types.NoneType) else f"a value of type {type}"


def bounds_checked(function: _Decide, done: dict[int, Any] | None = None) -> Any:
    """A compiled copy of a function that checks array bounds, in itself and in the compiled functions that it calls."""
    done = {} if done is None else done
    plain: Any = getattr(function, "py_func", function)
    if id(plain) in done:
        return done[id(plain)]

    def checked(value: Any) -> Any:
        return bounds_checked(value, done) if isinstance(value, nb.core.dispatcher.Dispatcher) else value

    space = dict(plain.__globals__)
    cells: Any = plain.__closure__ and tuple(CellType() for _ in plain.__closure__)
    copy = FunctionType(plain.__code__, space, plain.__name__, plain.__defaults__, cells)
    done[id(plain)] = compiled = nb.njit(boundscheck=True)(copy)  # stored before its callees are visited: functions may call each other
    for name, value in named_globals(plain).items():
        space[name] = checked(value)
    for cell, given in zip(cells or (), plain.__closure__ or (), strict=True):
        cell.cell_contents = checked(given.cell_contents)
    return compiled
