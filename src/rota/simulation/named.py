"""Policies by name."""

from __future__ import annotations

from rota.errors import BadSpec, Problem
from rota.policy import EASY, FCFS, FirstFit, MaxWeight, Policy, RandomizedTimers, ServerFilling

__all__ = ["POLICY_NAMES", "as_policy"]

POLICY_NAMES: dict[str, Policy] = {
    "fcfs": FCFS(),
    "first-fit": FirstFit(),
    "easy": EASY(),
    "server-filling": ServerFilling(),
    "max-weight": MaxWeight(),
    "max-weight-np": MaxWeight(preemption="none"),
    "randomized-timers": RandomizedTimers(),
}


def as_policy(policy: Policy | str) -> Policy:
    """A policy, or the one with this name."""
    if not isinstance(policy, str):
        return policy
    if policy not in POLICY_NAMES:
        raise BadSpec([Problem("policy", f"must be one of {', '.join(POLICY_NAMES)}, or a policy of its own", policy)])
    return POLICY_NAMES[policy]
