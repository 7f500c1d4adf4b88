"""Policies of your own: a decision function, given as `rota.Custom` or by the place it is imported from, `module:name`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rota.arguments import whole
from rota.display import html_lines, html_title
from rota.errors import BadSpec, Problem
from rota.imported import import_object, place_of
from rota.policy.registry import Policy, Record

__all__ = ["Custom", "custom_at", "place_of_custom"]


@dataclass(frozen=True)
class Custom(Policy):
    """A policy of your own: `decide(state, target) -> time of the next question`, see `rota.decide`.

    `data` reaches the function as `state.data`; `memory` and `counters` are the numbers of floats and integers it may keep between calls.
    With `compiled=None` the function is compiled if numba can, and runs as plain Python otherwise. Compiled code checks array bounds
    only with `rota.simulate(…, check=True)`.
    """

    decide: Callable[[Any, Any], float]
    name: str = "custom"
    data: Any = 0
    memory: int = 8
    counters: int = 8
    compiled: bool | None = None

    def __post_init__(self) -> None:
        problems = (
            [] if _takes_two(self.decide) else [Problem("decide", "must be a function of two arguments, state and target", self.decide)]
        )
        if self.compiled not in (None, True, False):
            problems.append(Problem("compiled", "must be True, False, or None (compiled where possible)", self.compiled))
        if problems:
            raise BadSpec(problems)
        for name in ("memory", "counters"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 0))

    def _record(self) -> Record:
        """A record outside the registry: only the name is known, so the policy may do anything."""
        return Record(
            name=self.name,
            policy=Custom,
            rule="",
            title=self.name,
            preemption="full",
            throughput_optimal=False,
            colour="",
            mark="",
            draws=True,
        )

    def _repr_html_(self) -> str:
        about = (self.decide.__doc__ or "").strip().partition("\n")[0]
        return html_title(f"{self.name}, a policy of your own") + html_lines(about)


def _takes_two(function: object) -> bool:
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True


def custom_at(place: str) -> Custom:
    """The policy at `module:name`, a decision function or a `Custom`."""
    found = import_object(place, "policy")
    if isinstance(found, Custom):
        return found
    if isinstance(found, type) or not callable(found):
        raise BadSpec([Problem("policy", f"must be a decision function or a rota.Custom, and is a {type(found).__name__}", place)])
    return Custom(found, name=place.partition(":")[2])


def place_of_custom(policy: Custom) -> str:
    """Where another process finds a policy: its own `module:name`, or that of its function if the policy is nothing but that function."""
    plain = Custom(policy.decide, name=policy.name)
    alone = policy.data is plain.data and (policy.memory, policy.counters, policy.compiled) == (plain.memory, plain.counters, None)
    place = place_of(policy, policy.decide) or (place_of(policy.decide, policy.decide) if alone else None)
    if place is None:
        rule = (
            "is a function of your own, which a study can only take by name: put it into a file, say mine.py "
            '(with data, as a rota.Custom), and give "mine:name"'
        )
        raise BadSpec([Problem("policies", rule, policy.name)])
    return place
