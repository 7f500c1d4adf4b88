"""Improved rotas, as plain data: an MSR that looks at the queues at every arrival and departure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rota.errors import BadSpec, Problem
from rota.model import Preemption
from rota.policy.codec import Codec, policy_from_dict, policy_to_dict
from rota.policy.designed import register_designed
from rota.policy.msr import MSR
from rota.policy.registry import Policy, Record, register

__all__ = ["Improved"]


@dataclass(frozen=True)
class Improved(Policy):
    """One step of policy improvement on a rota: at every event the state of the least relative value that holds all running jobs.

    The mean response time, with Poisson arrivals and exponential sizes, is at most the exact one of `base`.
    """

    base: MSR

    def __post_init__(self) -> None:
        if not isinstance(self.base, MSR):
            raise BadSpec([Problem("base", "must be a rota.MSR", self.base)])
        problems = []
        if self.base.preemption == "setup":
            problems.append(Problem("base", 'must have preemption "full" or "none"', self.base.preemption))
        if self.base.backfill:
            problems.append(Problem("base", "must not backfill: the improvement is of its exact values"))
        if problems:
            raise BadSpec(problems)

    @property
    def preemption(self) -> Preemption:
        """That of the base."""
        return self.base.preemption


def _write(policy: Improved) -> dict[str, Any]:
    return {"base": policy_to_dict(policy.base)}


def _read(kind: type[Policy], given: dict[str, Any]) -> Policy:
    problems = [Problem(name, "is not a known key") for name in given if name != "base"]
    if "base" not in given:
        problems.append(Problem("base", "is missing"))
    if problems:
        raise BadSpec(problems)
    base = policy_from_dict(given["base"])
    if not isinstance(base, MSR):
        raise BadSpec([Problem("base", "must be a rota.MSR", base)])
    return Improved(base)


IMPROVED_CODEC = Codec(write=_write, read=_read)


def _register(preemption: Preemption, name: str, title: str, colour: str, mark: str, plan: int) -> None:
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
            where={"preemption": preemption},
            kind="improved",
            codec="rota.policy.improved:IMPROVED_CODEC",
            designed=True,
            draws=preemption == "none",
            plan=plan,
            looks_at="lengths",  # with full preemption gaps are filled in the order of arrival
            stability_note="as its base",
        )
    )
    register_designed(name, _DESIGNER)


_DESIGNER = "rota.design.named:design_improved_named"
_register("full", "improved pMSR", "the improved rota", "#13199C", "square", 72)
_register("none", "improved nMSR", "the improved rota without preemption", "#871EFF", "diamond", 92)
register_designed("improved", _DESIGNER)  # which of them, the system says
