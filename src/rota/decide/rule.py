"""How a policy decides: its decision function, and what that needs on a system. The policy's record (`rota.policy.registry`) names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rota.decide.state import State
from rota.display import jobs_together
from rota.model import System

__all__ = ["Description", "Rule"]


@dataclass(frozen=True)
class Description:
    """What a policy says about a state, for people: nothing, or which schedule it has.

    `slots` (K,) are places per type now, None under a policy without places; `goal` (K,) the schedule that it switches to, None while it
    does not switch; `schedules` those that it goes round. `unproved` counts decisions that may not be the best.
    """

    slots: tuple[int, ...] | None = None
    goal: tuple[int, ...] | None = None
    schedules: tuple[tuple[int, ...], ...] = ()
    unproved: int = 0

    def phase(self, names: Sequence[str]) -> str:
        """What it does now, in words; "" if it has no schedule."""
        if self.slots is None:
            return ""
        return jobs_together(self.slots, names) if self.goal is None else f"switching to {jobs_together(self.goal, names)}"

    def with_place_for(self, i: int) -> list[tuple[int, ...]]:
        """The schedules that have a place for type i, each once."""
        return list(dict.fromkeys(schedule for schedule in self.schedules if schedule[i] > 0))


def _suits_all(system: System) -> None:
    pass


def _no_constants(system: System, policy: Any) -> Any:
    return 0


def _one_each(types: int) -> tuple[int, int]:
    return 1, 1


def _nothing(state: State) -> Description:
    return Description()


@dataclass(frozen=True, eq=False)
class Rule:
    """A decision function `decide(state, target)`, compiled by `rota.kernel`, and what goes with it.

    `check(system)` raises `Infeasible` where the policy does not exist. `constants(system, policy)` become `state.data`. `keeps(types)` are
    the numbers of floats (`state.memory`) and integers (`state.counters`) that it keeps between calls. `exact_capacity`: it fills the
    capacity in the units of its types to the last one, so that the live scheduler may not count in finer ones.
    """

    decide: Callable[[Any, Any], float]
    check: Callable[[System], None] = _suits_all
    constants: Callable[[System, Any], Any] = _no_constants
    keeps: Callable[[int], tuple[int, int]] = _one_each
    describe: Callable[[State], Description] = _nothing
    exact_capacity: bool = False
