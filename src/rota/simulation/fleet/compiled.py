"""The compiled engine of fleets, and the functions of a dispatch rule behind it, which it calls by their addresses."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

import numba as nb

from rota.errors import Infeasible
from rota.kernel import compiled, kernel, large_kernel
from rota.simulation.compiled import with_globals
from rota.simulation.fleet.dispatching import queue_of
from rota.simulation.fleet.engine import fleet_engine
from rota.simulation.fleet.rules import Rule
from rota.simulation.fleet.state import TYPE, FleetState
from rota.simulation.own import bounds_checked
from rota.views import View, call_code

__all__ = ["Asked", "choosing", "fleet_engine", "looking_of"]

_njit: Any = nb.njit


def choosing(view: View, rule: Rule, bounds: bool) -> None:
    """Puts the function that chooses a server into the view of the fleet."""
    if not rule.own:
        view.set_code(_kept(rule.choose))
        return
    own = View(view.record, negative=True)
    function: Any = rule.choose
    ready = isinstance(function, nb.core.dispatcher.Dispatcher)
    if not ready and not isinstance(function, FunctionType):
        raise Infeasible("a dispatch rule of your own must be a function that numba can compile")
    try:
        own.set_code(_own(bounds_checked(function) if bounds else function if ready else _njit(function)))
    except nb.core.errors.NumbaError as error:
        name = getattr(function, "__name__", "choose")
        raise Infeasible(f"numba cannot compile the dispatch rule {name!r}: {error}") from error
    view.words[0] = own.words[0]
    view.inner.append(own)


def looking_of(view: View, rule: Rule) -> None:
    """Puts the function that looks at a server into the view of the fleet; one that does nothing if the rule does not look."""
    view.set_code(_kept(rule.look or _nothing))


class Asked:
    """The functions of a dispatch rule, for a state that is kept elsewhere: they read it, and are called from Python."""

    def __init__(self, fleet: FleetState, rule: Rule) -> None:
        self._fleet, self._choose, self._look = fleet, View(fleet), View(fleet)
        self._looks = rule.look is not None
        choosing(self._choose, rule, True)
        looking_of(self._look, rule)

    def choose(self) -> int:
        """The server for a job of type `asked[TYPE]` in the queue `asked[QUEUE]`, or −1."""
        return int(_ask(self._choose))

    def look(self) -> None:
        """Looks at the server `asked[SERVER]`, if the rule looks at servers."""
        if self._looks:
            _ask(self._look)

    def queue_of(self, kind: int) -> int:
        """The queue of a new job of this type."""
        self._fleet.asked[TYPE] = kind
        return int(_queue(self._look))


@large_kernel
def _ask(fleet: Any) -> float:
    return float(call_code(fleet))


@large_kernel
def _queue(fleet: Any) -> float:
    return float(queue_of(fleet, fleet.asked[TYPE]))


@kernel
def _nothing(fleet: Any) -> float:
    return 0.0


@cache
def _kept(function: Any) -> Any:
    """A function of a rule as the engine calls it, compiled at its first call and kept on disk."""
    return compiled(with_globals(_call, f"call_{function.__name__}", rule=function), _nrt=False)


@cache
def _own(function: Any) -> Any:
    return _njit(with_globals(_call_own, "call_own", rule=function))


def _call(fleet: Any) -> float:
    return rule(fleet)  # type: ignore[name-defined, no-any-return]  # noqa: F821 (`with_globals` puts it in)


def _call_own(fleet: Any) -> float:
    """Asks a rule of the user; what it says must be a server that works and on which the type can run, or −1."""
    m = int(rule(fleet))  # type: ignore[name-defined]  # noqa: F821
    if m < -1 or m >= fleet.kind.shape[0]:
        raise ValueError("the dispatch rule named a server that there is not")
    if m >= 0 and (fleet.up[m] == 0 or fleet.local[fleet.kind[m], fleet.asked[0]] < 0):
        raise ValueError("the dispatch rule named a server that has failed, or on which the type cannot run")
    return float(m)
