"""The compiled engine, and the decision function of a policy behind it.

The engine is compiled once and serves every policy: it calls the decision function by its address, which is in the view of the state
(`rota.views`). Only the decision function is compiled for each policy, which takes a second or two; the call costs a few percent of the
time of a simulation. In plain Python the engine calls a global function `decide`, and a copy of it with other globals calls another policy.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numba as nb
import numpy as np

from rota.arrays import Int
from rota.decide import State, built_in, rule_of
from rota.errors import Infeasible
from rota.kernel import compiled as compiled_function
from rota.kernel import kernel
from rota.kernel_cache import is_kept
from rota.policy import Custom, Policy
from rota.simulation.engine import engine
from rota.simulation.own import bounds_checked, check_return_type, guarded, out_of_bounds, watched
from rota.simulation.server import Server
from rota.simulation.tally import Tally
from rota.views import View, Views, call_code

__all__ = ["asked_directly", "put_decision", "runner_of", "shared_engine", "will_compile", "with_globals"]

_njit: Any = nb.njit
_FLOATS, _NUMBERS = nb.types.Array(nb.types.float64, 1, "C"), nb.types.Array(nb.types.int64, 1, "C")
_CHUNK = (_FLOATS, _NUMBERS, _FLOATS, _FLOATS)  # of jobs: when they come, their types, sizes and estimates
_FLAGS = (nb.types.boolean,) * 3


def runner_of(decide: Callable[..., float], compiled: bool | None = None, bounds: bool = False) -> Callable[..., int]:
    """The engine for a decision function: compiled (if `compiled` is None: where numba can), or plain Python (False).

    With `bounds` a compiled function of a user checks array bounds.
    """
    if decide in built_in():
        return _Plain(decide) if compiled is False else _Compiled(decide)
    if compiled is False or (compiled is None and not isinstance(decide, FunctionType | nb.core.dispatcher.Dispatcher)):
        return _Plain(guarded(watched(decide)))
    return _own(decide, bounds, compiled is None)


def will_compile(runner: Callable[..., int]) -> bool:
    """Whether the first call waits for the compiler: neither this process nor the cache on disk has all that it runs."""
    return isinstance(runner, _Compiled | _Own) and runner.will_compile()


def asked_directly(decide: Callable[..., float]) -> Callable[[State, Int], float]:
    """A decision function to be called from Python. One of Rota is the machine code that the engine calls, if the types are the same."""
    return _Asked(decide) if decide in built_in() else decide


class _Asked:
    """A decision function of Rota, for one state: it keeps the view while the arrays stay the same."""

    def __init__(self, decide: Callable[..., float]) -> None:
        self._ask, self._views = _asking(decide), Views()

    def __call__(self, state: State, target: Int) -> float:
        return float(self._ask(self._views.of(state, target=target)))


class _Plain:
    """The engine in plain Python for a decision function."""

    def __init__(self, decide: Callable[..., float]) -> None:
        self._engine = with_globals(engine, "engine_plain", decide=decide)

    def __call__(self, state: State, target: Int, *arguments: Any) -> int:
        return int(self._engine(_WithTarget(*state, target), *arguments))


_namedtuple: Any = namedtuple  # mypy wants the names of its fields as text
_WithTarget = _namedtuple("_WithTarget", (*State._fields, "target"))


class _Compiled:
    """The compiled engine for a decision function of Rota, for one run: it keeps the views while the arrays stay the same."""

    def __init__(self, decide: Callable[..., float]) -> None:
        self._ask, self._views = _asking(decide), Views()

    def __call__(self, state: State, target: Int, server: Server, tally: Tally, *arguments: Any) -> int:
        return _run(self._ask, self._views, target, state, server, tally, *arguments)

    def will_compile(self) -> bool:
        """Whether the first call waits for the compiler."""
        return any(not function.signatures and not is_kept(function) for function in (shared_engine(), self._ask))


class _Own:
    """The compiled engine for a decision function of a user; if numba cannot compile that, and it is allowed, plain Python."""

    def __init__(self, decide: Callable[..., float], bounds: bool, may_be_plain: bool) -> None:
        self._decide, self._may_be_plain = decide, may_be_plain
        ready = isinstance(decide, nb.core.dispatcher.Dispatcher)
        self._function = bounds_checked(decide) if bounds else decide if ready else _njit(decide)
        self._ask: Any = None
        self._plain: Any = None

    def __call__(self, state: State, target: Int, server: Server, tally: Tally, *arguments: Any) -> int:
        if self._plain is not None:
            return int(self._plain(state, target, server, tally, *arguments))
        try:
            views = Views(negative=True)
            if self._ask is None:
                check_return_type(self._function, views.of(state, target=target), target)
                self._ask = _njit(with_globals(_ask, "ask_own", decide=_njit(guarded(self._function))))
            return _run(self._ask, views, target, state, server, tally, *arguments)
        except (nb.core.errors.NumbaError, nb.core.errors.UnsupportedBytecodeError):  # raised before anything has run
            if not self._may_be_plain:
                raise
        except IndexError as error:
            raise out_of_bounds(self._decide) from error
        self._plain = runner_of(self._decide, False)
        return int(self._plain(state, target, server, tally, *arguments))

    def will_compile(self) -> bool:
        """Whether the first call waits for the compiler."""
        return self._ask is None and self._plain is None


def put_decision(view: View, policy: Policy | None, bounds: bool) -> None:
    """Puts the decision function of a policy into the view of a state, for an engine that is compiled; None: it is never asked."""
    if not isinstance(policy, Custom):
        view.set_code(_asking(never if policy is None else rule_of(policy).decide))
        return
    decide = policy.decide
    if policy.compiled is False or not isinstance(decide, FunctionType | nb.core.dispatcher.Dispatcher):
        raise Infeasible(f"servers of a fleet need policies that numba compiles, and {policy.name!r} is to run as plain Python")
    own = View(view.record, negative=True, **view.more)
    try:
        own.set_code(_own_asking(decide, bounds))
    except nb.core.errors.NumbaError as error:
        raise Infeasible(f"numba cannot compile the decision function of {policy.name!r}: {error}") from error
    view.words[0] = own.words[0]
    view.inner.append(own)


@kernel
def never(state: Any, target: Int) -> float:
    """Stands for the policy of a server that gets no jobs."""
    return np.inf


@cache
def _own_asking(decide: Any, bounds: bool) -> Any:
    ready = isinstance(decide, nb.core.dispatcher.Dispatcher)
    function = bounds_checked(decide) if bounds else decide if ready else _njit(decide)
    return _njit(with_globals(_ask, "ask_own", decide=_njit(guarded(function))))


@cache
def _own(decide: Callable[..., float], bounds: bool, may_be_plain: bool) -> _Own:
    return _Own(decide, bounds, may_be_plain)


@cache
def _asking(decide: Callable[..., float]) -> Any:
    """A decision function of Rota as the engine calls it, compiled at its first call."""
    return compiled_function(with_globals(_ask, f"ask_{decide.__name__}", decide=decide), _nrt=False)


def _run(ask: Any, views: Views, target: Int, state: State, server: Server, tally: Tally, *arguments: Any) -> int:
    """Runs the compiled engine, with a decision function that is compiled for the view of this state."""
    view = views.of(state, target=target)
    view.set_code(ask)
    shorter, of_server, of_tally = view.without("data"), views.of(server), views.of(tally)
    enter = _entered(shorter.type, of_server.type, of_tally.type)
    return int(enter(shorter, of_server, of_tally, *arguments))


@cache
def _entered(*types: Any) -> Callable[..., int]:
    """The machine code of the engine for views of these types. Numba would look at the types of all arguments at each call."""
    function, signature = shared_engine(), (*types, *_CHUNK, *_FLAGS)
    function.compile(signature)
    return function.overloads[signature].entry_point  # type: ignore[no-any-return]


@cache
def shared_engine() -> Any:
    """The engine, compiled at its first call. While it runs other threads of Python may run too: several simulations use all cores."""
    return compiled_function(with_globals(engine, "engine_compiled", decide=_decide_by_address), _nrt=False)


@kernel
def _decide_by_address(state: Any, target: Int) -> float:
    """Asks the policy: its function finds the target in the view of the state."""
    return float(call_code(state))


def _ask(state: Any) -> float:
    """A decision function as the engine calls it."""
    return decide(state, state.target)  # type: ignore[name-defined, no-any-return]  # noqa: F821 (`with_globals` puts it in)


def with_globals(function: Any, name: str, **names: Any) -> Any:
    """A copy of a function with other globals and another name, under which numba can keep it on disk."""
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, name)
    copy.__qualname__ = name
    copy.__module__ = function.__module__
    return copy
