"""Policies that weigh schedules by queue lengths, as plain data: MaxWeight, Stalling MaxWeight, Randomized-Timers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rota.arguments import is_real
from rota.errors import BadSpec, Problem
from rota.policy.registry import Policy, Record, register

__all__ = ["MaxWeight", "RandomizedTimers", "StallingMaxWeight"]


@dataclass(frozen=True)
class MaxWeight(Policy):
    """The schedule of largest Σ u_i Q_i with u ≤ Q, at every arrival and departure; without preemption, the best addition to what runs."""

    preemption: Literal["full", "none"] = "full"

    def __post_init__(self) -> None:
        if self.preemption not in ("full", "none"):
            raise BadSpec([Problem("preemption", 'must be "full" or "none"', self.preemption)])


register(
    Record(
        name="max-weight",
        policy=MaxWeight,
        rule="rota.decide.weights:MAX_WEIGHT_RULE",
        title="MaxWeight",
        preemption="full",
        throughput_optimal=True,
        colour="#77AB9B",
        mark="cross",
        where={"preemption": "full"},
        plan=50,
        looks_at="lengths",
    )
)
register(
    Record(
        name="max-weight-np",
        policy=MaxWeight,
        rule="rota.decide.weights:MAX_WEIGHT_RULE",
        title="MaxWeight without preemption",
        preemption="none",
        throughput_optimal=False,
        colour="#A7C28C",
        mark="triangle-down",
        where={"preemption": "none"},
        kind="max-weight",
        plan=40,
        looks_at="lengths",
    )
)


@dataclass(frozen=True)
class StallingMaxWeight(Policy):
    """Fills the slots of one schedule until it weighs less than `share` of the best; then waits until none runs. Never preempts."""

    share: float = 0.9

    def __post_init__(self) -> None:
        if not (is_real(self.share) and 0 < self.share < 1):
            raise BadSpec([Problem("share", "must be above 0 and below 1", self.share)])


register(
    Record(
        name="stalling-max-weight",
        policy=StallingMaxWeight,
        rule="rota.decide.weights:STALLING_RULE",
        title="Stalling MaxWeight",
        preemption="none",
        throughput_optimal=False,
        colour="#040018",
        mark="cross",
        looks_at="lengths",
        stability_note="up to a share of the load",
    )
)


@dataclass(frozen=True)
class RandomizedTimers(Policy):
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


register(
    Record(
        name="randomized-timers",
        policy=RandomizedTimers,
        rule="rota.decide.weights:TIMERS_RULE",
        title="Randomized-Timers",
        preemption="none",
        throughput_optimal=True,
        colour="#4838BF",
        mark="circle",
        draws=True,
        looks_at="lengths",
        stability_note="with very long queues",
    )
)
