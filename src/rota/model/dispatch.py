"""Which server of a fleet an arriving job goes to: the rules, each described once. Names, checks, help and docs derive from the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np

from rota.arguments import is_real
from rota.errors import BadSpec, Problem

__all__ = ["DISPATCH_RULES", "CustomDispatch", "Dispatch", "DispatchRecord", "DispatchRule", "checked_dispatch", "make_dispatch"]

DispatchRule = Literal["random", "round-robin", "jsq", "power-of-d", "best-fit", "least-wait", "pull", "pinned"]
_CHOICES = 2  # servers that power-of-d compares, if nothing else is said


@dataclass(frozen=True)
class DispatchRecord:
    """Everything about a rule of one name: in words, its compiled function as "module:name", and what it needs."""

    name: str
    title: str
    function: str
    draws: bool = False  # random numbers
    looks: bool = True  # at the servers: only then may what it sees be old
    central: bool = False  # jobs wait in one queue, and servers take them
    needs: str = ""  # what else there must be, in words

    def load(self) -> Any:
        """Its rule, a `rota.simulation.fleet.rules.Rule`."""
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)


_HOME = "rota.simulation.fleet.rules"
DISPATCH_RULES = {
    record.name: record
    for record in (
        DispatchRecord(
            "random",
            "a kind at random by the split of the load, and any of its servers",
            f"{_HOME}:RANDOM",
            draws=True,
            looks=False,
        ),
        DispatchRecord("round-robin", "the servers one after the other, each type for itself", f"{_HOME}:ROUND_ROBIN", looks=False),
        DispatchRecord("jsq", "the server with the fewest jobs of the type for its speed, then the fewest jobs", f"{_HOME}:JSQ"),
        DispatchRecord("power-of-d", "of d servers drawn at random the one that jsq prefers", f"{_HOME}:POWER_OF_D", draws=True),
        DispatchRecord("best-fit", "where the job fits at once, the server with the least left over; else as jsq", f"{_HOME}:BEST_FIT"),
        DispatchRecord("least-wait", "the server where the job is expected to end first", f"{_HOME}:LEAST_WAIT"),
        DispatchRecord("pull", "one queue for all servers: a server takes the oldest job that fits", f"{_HOME}:PULL", central=True),
        DispatchRecord(
            "pinned",
            "one queue for the slots that pinned servers hold",
            f"{_HOME}:PINNED",
            draws=True,
            central=True,
            needs="pinned servers",
        ),
    )
}


@dataclass(frozen=True)
class Dispatch:
    """Which server an arriving job goes to. `d`: how many servers the rule "power-of-d" compares; None for the other rules.

    `staleness`: the dispatcher looks at the servers only every so many units of time; 0: it always knows. `cost`: how long a job is on its
    way to its server.
    """

    rule: str
    d: int | None = None
    staleness: float = 0.0
    cost: float = 0.0

    @property
    def record(self) -> DispatchRecord:
        """What is known about the rule."""
        return DISPATCH_RULES[self.rule]

    @property
    def label(self) -> str:
        """The rule and what differs from its usual form."""
        d = "" if self.d is None or self.d == _CHOICES else f" {self.d}"
        return f"{self.rule}{d}{self._more}"

    @property
    def _more(self) -> str:
        stale = f", staleness {self.staleness:g}" if self.staleness else ""
        return stale + (f", cost {self.cost:g}" if self.cost else "")

    def load(self) -> Any:
        """Its rule, a `rota.simulation.fleet.rules.Rule`."""
        return self.record.load()

    def replace(self, **changes: Any) -> Dispatch:
        """A copy with some fields changed, checked."""
        changed = checked_dispatch(replace(self, **changes))
        assert changed is not None
        return changed


@dataclass(frozen=True)
class CustomDispatch(Dispatch):
    """A rule of your own: a function of the state of the fleet that returns the number of a server, or its place as "module:function".

    See `rota.simulation.fleet.FleetState` for what it sees. It is compiled by numba.
    """

    rule: str = "custom"
    function: Callable[[Any], float] | None = None

    def __init__(
        self, function: Callable[[Any], float] | str, name: str | None = None, *, staleness: float = 0.0, cost: float = 0.0
    ) -> None:
        found = _imported(function) if isinstance(function, str) else function
        if not callable(found) or isinstance(found, type):
            raise BadSpec([Problem("dispatch", "must be a function of one argument, the state of the fleet, or module:function", function)])
        fields = {"rule": name or getattr(found, "__name__", "custom"), "d": None, "staleness": staleness, "cost": cost, "function": found}
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        _check_times(self)

    @property
    def record(self) -> DispatchRecord:
        """A record outside the list: the rule may do anything."""
        return DispatchRecord(self.rule, self.rule, "", draws=True)

    def load(self) -> Any:
        """Its rule."""
        rules = import_module(_HOME)
        return rules.Rule(self.function, own=True)

    def replace(self, **changes: Any) -> CustomDispatch:
        """A copy with some fields changed."""
        assert self.function is not None
        fields: dict[str, Any] = {"name": self.rule, "staleness": self.staleness, "cost": self.cost, **changes}
        return CustomDispatch(self.function, **fields)


def _imported(place: str) -> Any:
    from rota.imported import import_object

    return import_object(place, "dispatch")


def checked_dispatch(dispatch: object) -> Dispatch | None:
    """What says which server a job goes to, or the name of its rule, or your own as module:function; anything else is refused."""
    if dispatch is None or isinstance(dispatch, CustomDispatch):
        return dispatch
    if isinstance(dispatch, str) and ":" in dispatch:
        return CustomDispatch(dispatch)
    if isinstance(dispatch, Dispatch):
        return make_dispatch(dispatch.rule, dispatch.d, dispatch.staleness, dispatch.cost)
    return make_dispatch(dispatch)


def make_dispatch(rule: object, d: object = None, staleness: object = 0.0, cost: object = 0.0) -> Dispatch:
    """A dispatch rule by its name; raises `BadSpec` if there is none of this name."""
    if rule not in get_args(DispatchRule):
        known = ", ".join(f'"{name}"' for name in get_args(DispatchRule))
        raise BadSpec([Problem("dispatch.rule", f"must be one of {known}", rule)])
    if d is not None and rule != "power-of-d":
        raise BadSpec([Problem("dispatch.d", 'goes with rule = "power-of-d", and only with it', d)])
    if rule == "power-of-d":
        d = _CHOICES if d is None else d
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
            raise BadSpec([Problem("dispatch.d", "must be a whole number of at least 1", d)])
        d = int(d)
    made = Dispatch(str(rule), d, staleness, cost)  # type: ignore[arg-type]  # checked next
    _check_times(made)
    return replace(made, staleness=float(made.staleness), cost=float(made.cost))


def _check_times(made: Dispatch) -> None:
    """Raises unless staleness and cost are times that go with the rule."""
    problems = []
    for name, value in (("staleness", made.staleness), ("cost", made.cost)):
        if not (is_real(value) and value >= 0):
            problems.append(Problem(f"dispatch.{name}", "must be a time, not negative and finite", value))
        elif value > 0 and made.record.central:
            rule = "goes with rules that send jobs to servers: here a job waits in one queue until a server takes it"
            problems.append(Problem(f"dispatch.{name}", rule, value))
        elif value > 0 and name == "staleness" and not made.record.looks:
            problems.append(Problem("dispatch.staleness", f"goes with rules that look at the servers, and {made.rule!r} does not", value))
    if problems:
        raise BadSpec(problems)
