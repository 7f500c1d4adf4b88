"""Policies that go by what jobs need of the server, as plain data: Most Servers First, cμ/m, Adaptive Quickswap, Balanced Splitting.

None of them stops a running job.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.arguments import whole
from rota.policy.registry import Policy, Record, register

__all__ = ["BalancedSplitting", "CMuM", "MostServersFirst", "Quickswap"]


@dataclass(frozen=True)
class MostServersFirst(Policy):
    """Of the waiting jobs that fit, the one of largest dominant share of the server starts, then the next. Never preempts."""


register(
    Record(
        name="most-servers-first",
        policy=MostServersFirst,
        rule="rota.decide.server_needs:MOST_SERVERS_FIRST_RULE",
        title="Most Servers First",
        preemption="none",
        throughput_optimal=False,
        colour="#8484A5",
        mark="triangle-up",
        looks_at="order of arrival",
        stability_note="for one resource, jobs of one unit or all of it",
    )
)


@dataclass(frozen=True)
class CMuM(Policy):
    """Of the waiting jobs that fit, the one of largest service rate per dominant share starts, then the next. Never preempts."""


register(
    Record(
        name="c-mu-m",
        policy=CMuM,
        rule="rota.decide.server_needs:C_MU_M_RULE",
        title="the cμ/m rule",
        preemption="none",
        throughput_optimal=False,
        colour="#25066C",
        mark="square",
        looks_at="order of arrival",
        stability_note="not proved",
    )
)


@dataclass(frozen=True)
class Quickswap(Policy):
    """Most Servers First, but it drains for the largest waiting type when no running one has a job waiting. Never preempts.

    With a `threshold`, only when at most so many jobs run: on jobs of one unit or the whole server this is MSFQ.
    """

    threshold: int | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            object.__setattr__(self, "threshold", whole("threshold", self.threshold, 0))


register(
    Record(
        name="quickswap",
        policy=Quickswap,
        rule="rota.decide.server_needs:QUICKSWAP_RULE",
        title="Adaptive Quickswap",
        preemption="none",
        throughput_optimal=False,
        colour="#513B0D",
        mark="diamond",
        looks_at="lengths",
        stability_note="not proved",
    )
)


@dataclass(frozen=True)
class BalancedSplitting(Policy):
    """Each type has places of its own, as many as its part of the load; what is left helps in order of arrival. Never preempts."""


register(
    Record(
        name="balanced-splitting",
        policy=BalancedSplitting,
        rule="rota.decide.server_needs:BALANCED_SPLITTING_RULE",
        title="Balanced Splitting",
        preemption="none",
        throughput_optimal=False,
        colour="#5C123A",
        mark="circle",
        looks_at="order of arrival",
        stability_note="not proved",
    )
)
