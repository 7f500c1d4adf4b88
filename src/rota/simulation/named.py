"""Policies by name."""

from __future__ import annotations

from rota.decide import policy_name
from rota.errors import BadSpec, Problem
from rota.policy import EASY, FCFS, FirstFit, MaxWeight, Policy, RandomizedTimers, ServerFilling

__all__ = ["POLICY_NAMES", "as_policy"]

_WITHOUT_A_FILE: tuple[Policy, ...] = (
    FCFS(),
    FirstFit(),
    EASY(),
    ServerFilling(),
    MaxWeight(),
    MaxWeight(preemption="none"),
    RandomizedTimers(),
)
POLICY_NAMES: dict[str, Policy] = {policy_name(policy): policy for policy in _WITHOUT_A_FILE}


def as_policy(policy: Policy | str) -> Policy:
    """A policy, or the one with this name."""
    if not isinstance(policy, str):
        return policy
    if policy not in POLICY_NAMES:
        raise BadSpec([Problem("policy", f"must be one of {', '.join(POLICY_NAMES)}, or a policy of its own", policy)])
    return POLICY_NAMES[policy]
