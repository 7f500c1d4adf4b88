"""Sentences on a design: how close its schedules are, what the paper's design gives, how good the switching rate is, whether to preempt."""

from __future__ import annotations

import math

import numpy as np

from rota.analysis import Analysis
from rota.design.balanced import balanced_beside
from rota.design.design import Design, break_even_setup_rate
from rota.design.switching import SwitchingRate, choose_switching_rate
from rota.policy import MSR

__all__ = ["explain_design"]

_BREAK_EVEN = 400  # exact values that the break-even setup rate takes, about


def explain_design(design: Design, analysis: Analysis, time_limit_s: float = 30.0) -> tuple[str, ...]:
    """Sentences about a design, given the analysis of its policy; those that would take too long to find are left out."""
    policy = design.policy
    found = [_about_the_distance(policy)] if design.objective in ("close", "p95") else []
    if design.objective != "load" and (balanced := balanced_beside(analysis.system, policy)) is not None:
        found.append(f"The paper's design (balanced loads) has a mean response time of {balanced.words()}.")
    if len(policy.weights) < 2:  # nothing to switch to
        return tuple(found)
    if design.choice is not None and design.choice.policy is policy and policy.preemption != "full":  # not tuned since
        found.append(_about_the_rate(design.choice, analysis, time_limit_s))
    compared = design.objective not in ("close", "p95") and policy.preemption == "setup"  # the break-even rate is that of balanced loads
    if compared and analysis.has_exact and _BREAK_EVEN * analysis.exact_time_s <= time_limit_s:
        found.append(_about_setups(break_even_setup_rate(analysis.system)))
    return tuple(found)


def _about_the_distance(policy: MSR) -> str:
    """How far the schedules of a rota are from each other."""
    W = policy.candidates
    if len(W) == 1:
        return "Run these counts always: nothing ever switches."
    moves = np.maximum(W - np.roll(W, -1, axis=0), 0).sum(axis=1)
    always, slots = int(W.min(axis=0).sum()), W.sum(axis=1)
    most = f"at most {int(moves.max())} job{'s' if moves.max() > 1 else ''}"
    switch = f"waits for {most} to end" if policy.preemption == "none" else f"stops {most}"
    if not always:
        return f"The {len(W)} schedules have no slots in common; a switch {switch}."
    return (
        f"The {len(W)} schedules have {always} of {int(slots.min())} to {int(slots.max())} slots in common, which never change; "
        f"a switch {switch}."
    )


def _about_the_rate(choice: SwitchingRate, analysis: Analysis, time_limit_s: float) -> str:
    """How good the choice of the switching rate is."""
    if choice.by != "exact":
        return choice.explain()
    predicted = choose_switching_rate(analysis.system, choice.policy, by="prediction", time_limit_s=time_limit_s)
    other = f"{choice.explain()} The prediction would choose {predicted.rate:.6g}; the bounds prove "
    if not predicted.useful:
        return other + "nothing useful about that one."
    return other + f"that to be within {predicted.guarantee:.1%} of the best."


def _about_setups(break_even: float) -> str:
    """Whether to preempt."""
    if math.isinf(break_even):
        return "Preempting does not pay, however fast the setups."
    if break_even == 0:
        return "Preempting pays, however slow the setups."
    return f"Preempting pays if the setup rate is above {break_even:.4g} (setups shorter than {1 / break_even:.4g}), not otherwise."
