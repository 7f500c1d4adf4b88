"""Policies that follow the order of arrival, as plain data: FCFS, First-Fit, EASY backfilling, ServerFilling."""

from __future__ import annotations

from dataclasses import dataclass

from rota.policy.registry import Policy, Record, register

__all__ = ["EASY", "FCFS", "FirstFit", "ServerFilling"]


@dataclass(frozen=True)
class FCFS(Policy):
    """First come, first served: the first waiting job that does not fit stops all behind it. Never preempts."""


register(
    Record(
        name="fcfs",
        policy=FCFS,
        rule="rota.decide.queue_order:FCFS_RULE",
        title="first come, first served",
        preemption="none",
        throughput_optimal=False,
        colour="#000000",
        mark="circle",
        plan=10,
        looks_at="order of arrival",
    )
)


@dataclass(frozen=True)
class FirstFit(Policy):
    """The oldest waiting job that fits starts (backfilling without reservations). Never preempts."""


register(
    Record(
        name="first-fit",
        policy=FirstFit,
        rule="rota.decide.queue_order:FIRST_FIT_RULE",
        title="First-Fit",
        preemption="none",
        throughput_optimal=False,
        colour="#E69F00",
        mark="square",
        plan=20,
        looks_at="order of arrival",
    )
)


@dataclass(frozen=True)
class EASY(Policy):
    """Backfilling with a reservation for the oldest waiting job, by estimated sizes, as HPC sites run it. Never preempts."""


register(
    Record(
        name="easy",
        policy=EASY,
        rule="rota.decide.queue_order:EASY_RULE",
        title="EASY backfilling",
        preemption="none",
        throughput_optimal=False,
        colour="#6D5005",
        mark="triangle-up",
        plan=30,
        looks_at="order of arrival",
        needs_sizes="estimates",
    )
)


@dataclass(frozen=True)
class ServerFilling(Policy):
    """Of the oldest jobs that together fill the server, the largest first. One resource, powers of two. Preempts."""


register(
    Record(
        name="server-filling",
        policy=ServerFilling,
        rule="rota.decide.queue_order:SERVER_FILLING_RULE",
        title="ServerFilling",
        preemption="full",
        throughput_optimal=True,
        colour="#9E4869",
        mark="diamond",
        plan=60,
        looks_at="order of arrival",
        stability_note="for one resource and powers of two",
    )
)
