"""Policies and workloads by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from rota.decide import policy_name
from rota.errors import BadSpec, Problem
from rota.imported import import_object, is_place
from rota.model import System, Workload
from rota.policy import EASY, FCFS, MSR, Custom, FirstFit, MaxWeight, Policy, RandomizedTimers, ServerFilling
from rota.policy.importable import custom_at

__all__ = ["POLICY_NAMES", "as_policies", "as_policy", "as_workload", "draws"]

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
    """A policy, or the one with this name, or your own at `module:name`."""
    if isinstance(policy, str):
        if is_place(policy):
            return custom_at(policy)
        if policy not in POLICY_NAMES:
            raise BadSpec([Problem("policy", f"must be one of {', '.join(POLICY_NAMES)}, or your own as module:function", policy)])
        return POLICY_NAMES[policy]
    known: tuple[type, ...] = get_args(Policy)
    if not isinstance(policy, known):
        rule = "must be a policy or its name; a decision function goes into rota.Custom(function)"
        raise BadSpec([Problem("policy", rule, policy)])
    return policy


def as_policies(policies: Sequence[Policy | str]) -> list[Policy]:
    """Policies, or those with these names: one at least."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise BadSpec([Problem("policies", 'must be a list, as ["first-fit", "max-weight"]', policies)])
    chosen = [as_policy(policy) for policy in policies]
    if not chosen:
        raise BadSpec([Problem("policies", "must not be empty")])
    return chosen


def draws(policy: Policy) -> bool:
    """Whether a policy may draw random numbers of its own: its runs on the same jobs differ by their seeds."""
    return isinstance(policy, MSR | RandomizedTimers | Custom)


def as_workload(workload: Workload | str | Path, system: System | None = None) -> Workload:
    """A workload; or a trace or log read from its file, or your own at `module:name`. One that has a `check` must fit the system."""
    found: Any = workload
    if is_place(workload) and not Path(str(workload)).exists():
        found = import_object(str(workload), "workload")
        found = found() if isinstance(found, type) else found
    elif isinstance(workload, str | Path):
        from rota.traces import read_trace

        found = read_trace(workload)
    if not callable(getattr(found, "chunks", None)):
        rule = "must give jobs by a method chunks(system, seed), as a trace, rota.Jobs and arrival processes of your own do"
        raise BadSpec([Problem("workload", rule, workload)])
    if system is not None and hasattr(found, "check"):
        found.check(system)
    return found  # type: ignore[no-any-return]
