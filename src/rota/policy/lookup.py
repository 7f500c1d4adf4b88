"""A policy by what people write: its name, its file, or the place of a function of their own. All verbs use this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rota.errors import BadSpec, Problem
from rota.imported import is_place
from rota.policy.custom import custom_at
from rota.policy.files import read_policy
from rota.policy.registry import POLICY_NAMES, Policy

__all__ = ["as_policies", "as_policy"]


def as_policy(policy: Policy | str | Path, *, place: str = "policy", more: Sequence[str] = ()) -> Policy:
    """A policy, or the one of this name, in this file, or your own at `module:name`.

    `place` is its name in error messages; `more` are other names that the caller would have known.
    """
    if isinstance(policy, str) and policy in POLICY_NAMES:
        return POLICY_NAMES[policy]
    if isinstance(policy, str | Path):
        if is_place(policy) and not Path(policy).exists():
            return custom_at(str(policy))
        if not str(policy).endswith(".json") and not Path(policy).exists():
            rule = f"must be one of {', '.join([*POLICY_NAMES, *more])}, a policy file, or your own as module:function"
            raise BadSpec([Problem(place, rule, str(policy))])
        return read_policy(policy)
    if not isinstance(policy, Policy):
        rule = "must be a policy or its name; a decision function goes into rota.Custom(function)"
        raise BadSpec([Problem(place, rule, policy)])
    return policy


def as_policies(policies: Sequence[Policy | str | Path]) -> list[Policy]:
    """Policies, or those that these names and files stand for: one at least."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise BadSpec([Problem("policies", 'must be a list, as ["first-fit", "max-weight"]', policies)])
    chosen = [as_policy(policy) for policy in policies]
    if not chosen:
        raise BadSpec([Problem("policies", "must not be empty")])
    return chosen
