"""Improved rotas, as plain data: an MSR that looks at the queues at every arrival and departure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rota.errors import BadSpec, Problem
from rota.model import Preemption
from rota.policy.codec import Codec, policy_from_dict, policy_to_dict
from rota.policy.designed import register_designed
from rota.policy.msr import MSR
from rota.policy.registry import Policy, Record, register

__all__ = ["Improved"]


@dataclass(frozen=True)
class Improved(Policy):
    """One step of policy improvement on a rota: at every event the state of the least relative value that can be reached.

    Without preemption that is one that holds all running jobs; with setups, one that covers the setups of the jobs that stop. `backfill`:
    the other schedules of the server are states too, each on the way to a candidate of the base.
    The mean response time, with Poisson arrivals and exponential sizes, is at most the exact one of `base`.
    """

    base: MSR
    backfill: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, MSR):
            raise BadSpec([Problem("base", "must be a rota.MSR", self.base)])
        problems = []
        if self.base.backfill:
            problems.append(Problem("base", "must not backfill: the improvement is of its exact values"))
        if not isinstance(self.backfill, bool | np.bool_):
            problems.append(Problem("backfill", "must be True or False", self.backfill))
        elif self.backfill and self.base.preemption == "full":
            problems.append(Problem("backfill", "goes without full preemption, with which gaps are always filled", self.backfill))
        if problems:
            raise BadSpec(problems)

    @property
    def preemption(self) -> Preemption:
        """That of the base."""
        return self.base.preemption


def _write(policy: Improved) -> dict[str, Any]:
    fields: dict[str, Any] = {"base": policy_to_dict(policy.base)}
    return fields | ({"backfill": True} if policy.backfill else {})


def _read(kind: type[Policy], given: dict[str, Any]) -> Policy:
    problems = [Problem(name, "is not a known key") for name in given if name not in ("base", "backfill")]
    if "base" not in given:
        problems.append(Problem("base", "is missing"))
    if problems:
        raise BadSpec(problems)
    base = policy_from_dict(given["base"])
    if not isinstance(base, MSR):
        raise BadSpec([Problem("base", "must be a rota.MSR", base)])
    return Improved(base, given.get("backfill", False))


IMPROVED_CODEC = Codec(write=_write, read=_read)


_DESIGNER = "rota.design.named:design_improved_named"


def _register(
    preemption: Preemption, name: str, title: str, colour: str, mark: str, *, backfill: bool = False, plan: int | None = None
) -> None:
    register(
        Record(
            name=name,
            policy=Improved,
            rule=f"rota.decide.improved:{preemption.upper()}_RULE",
            title=title,
            preemption=preemption,
            throughput_optimal=True,
            colour=colour,
            mark=mark,
            where={"preemption": preemption, "backfill": backfill},
            kind="improved",
            codec="rota.policy.improved:IMPROVED_CODEC",
            designed=True,
            draws=preemption != "full",
            plan=plan,
            looks_at="lengths",  # with full preemption gaps are filled in the order of arrival
            stability_note="as its base",
        )
    )
    register_designed(name, _DESIGNER)


_register("full", "improved pMSR", "the improved rota", "#13199C", "square", plan=72)
_register("none", "improved nMSR", "the improved rota without preemption", "#360C00", "square")
_register(
    "none", "improved nMSR+backfill", "the improved rota with backfilling, without preemption", "#871EFF", "circle", backfill=True, plan=92
)
_register("setup", "improved sMSR", "the improved rota with setups", "#2C0A5A", "triangle-up")
_register(
    "setup", "improved sMSR+backfill", "the improved rota with backfilling and setups", "#210030", "triangle-down", backfill=True, plan=82
)
register_designed("improved", _DESIGNER)  # which of them, the system says
