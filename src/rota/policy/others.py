"""The policies that MSR is compared with, as plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rota.arguments import is_real, whole
from rota.display import html_lines, html_title
from rota.errors import BadSpec, Problem

__all__ = ["EASY", "FCFS", "Custom", "FirstFit", "MaxWeight", "RandomizedTimers", "ServerFilling"]


class _Shown:
    """In a notebook a policy says what it does."""

    def _repr_html_(self) -> str:
        about = (type(self).__doc__ or "").partition("\n")[0]
        return html_title(repr(self).removesuffix("()")) + html_lines(about)


@dataclass(frozen=True)
class FCFS(_Shown):
    """First come, first served: the first waiting job that does not fit stops all behind it. Never preempts."""


@dataclass(frozen=True)
class FirstFit(_Shown):
    """The oldest waiting job that fits starts (backfilling without reservations). Never preempts."""


@dataclass(frozen=True)
class EASY(_Shown):
    """Backfilling with a reservation for the oldest waiting job, by estimated sizes, as HPC sites run it. Never preempts."""


@dataclass(frozen=True)
class ServerFilling(_Shown):
    """Of the oldest jobs that together fill the server, the largest first. One resource, powers of two. Preempts."""


@dataclass(frozen=True)
class MaxWeight(_Shown):
    """The schedule of largest Σ u_i Q_i with u ≤ Q, at every arrival and departure; without preemption, the best addition to what runs."""

    preemption: Literal["full", "none"] = "full"

    def __post_init__(self) -> None:
        if self.preemption not in ("full", "none"):
            raise BadSpec([Problem("preemption", 'must be "full" or "none"', self.preemption)])


@dataclass(frozen=True)
class RandomizedTimers(_Shown):
    """Slots taken at random ticks and given back at random departures. Never preempts.

    `rate` r of each type's clock; weight f(x) = log(1 + x)^power, at least `floor`·f(longest queue).
    """

    rate: float = 0.01
    power: float = 0.7
    floor: float = 1e-4

    def __post_init__(self) -> None:
        problems = [
            Problem(name, "must be positive and finite", value)
            for name, value in (("rate", self.rate), ("power", self.power), ("floor", self.floor))
            if not (is_real(value) and value > 0)
        ]
        if problems:
            raise BadSpec(problems)


@dataclass(frozen=True)
class Custom:
    """A policy of your own: `decide(state, target) -> time of the next question`, see `rota.decide`.

    `data` reaches the function as `state.data`; `memory` and `counters` are the numbers of floats and integers it may keep between calls.
    With `compiled=None` the function is compiled if numba can, and runs as plain Python otherwise. Compiled code looks at the bounds of
    arrays only if `rota.simulate(…, check=True)` asks for it.
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
    except ValueError:  # it does not say what it takes
        return True
    return True
