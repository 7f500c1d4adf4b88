"""Designs for arrivals that are not Poisson.

Candidates and weights are chosen for Poisson arrivals of the same rates: what must be served on average does not depend on how it
arrives. How fast to switch does: in a burst many jobs of one type wait, and slower switching serves them with less time lost. So the
switching rate is chosen again, on the exact E[T] with the bursts, where that takes a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.analysis import analyze
from rota.design.deadline import Deadline
from rota.design.fairness import ResponseLimits
from rota.design.switching import choose_within
from rota.errors import Infeasible, NotConverged
from rota.model import System

if TYPE_CHECKING:
    from rota.design.design import Design

__all__ = ["POISSON_PART", "adapted"]

POISSON_PART = 0.75  # of the time of a design, for the one with Poisson arrivals
_VALUES = 60  # exact values that the choice of a rate takes, at most
_ALWAYS_S = 2.0  # what is estimated to take less is always done
_DIGITS = 1e-6  # a limit holds if it is exceeded by no more than this part


def adapted(system: System, design: Design, *, keep_rate: bool, limits: Mapping[str, float] | None, time_limit_s: float) -> Design:
    """A design for Poisson arrivals, adapted to those of the system. Raises `Infeasible` where it does not keep the limits with them."""
    policy, choice = design.policy, None
    answer = analyze(system, policy, sizes="exponential")
    what = "the candidates, weights and switching rate"
    turns = len(policy.weights) > 1 and policy.preemption != "full" and not keep_rate
    if turns and _VALUES * answer.exact_time_s <= max(time_limit_s, _ALWAYS_S):
        with suppress(NotConverged):
            choice = choose_within(Deadline.after(None), system, policy, "exact")
            policy, what = choice.policy, "the candidates and weights"
    design = replace(design, policy=policy, choice=choice if design.objective == "load" else None)
    _require_limits(system, design, limits)
    arrivals = f"the arrivals of {', '.join(repr(name) for name in system.bursty)} are not Poisson"
    remark = f"{arrivals}: {what} are those for Poisson arrivals of the same rates"
    return replace(design, remarks=(*design.remarks, remark))


def _require_limits(system: System, design: Design, limits: Mapping[str, float] | None) -> None:
    """Raises unless the limits hold, by exact values with the arrivals of the system."""
    if not limits:
        return
    answer = analyze(system, design.policy, sizes="exponential")
    if not answer.has_exact:
        raise Infeasible(
            "limits on response times need exact values where arrivals are not Poisson, and those of this rota take too long: "
            "leave the limits out and simulate"
        )
    wanted = ResponseLimits.of(system.with_poisson_arrivals(), limits)
    replace(wanted, limits=wanted.limits * (1 + _DIGITS)).require(answer.exact)
