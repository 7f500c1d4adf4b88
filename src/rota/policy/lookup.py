"""A policy by what people write: its name, its file, or the place of a function of their own. All verbs use this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rota.errors import BadSpec, Problem
from rota.imported import is_place
from rota.model import System
from rota.policy.custom import custom_at
from rota.policy.designed import DESIGNED_NAMES, design_named
from rota.policy.files import read_policy
from rota.policy.registry import POLICY_NAMES, Policy

__all__ = ["as_policies", "as_policy", "policy_list"]


def as_policy(policy: Policy | str | Path, system: System | None = None, *, place: str = "policy") -> Policy:
    """A policy, or the one of this name, in this file, or your own at `module:name`.

    With a `system`, also the name of one to be designed, which is designed for it then. `place` is its name in error messages.
    """
    if isinstance(policy, str) and policy in POLICY_NAMES:
        return POLICY_NAMES[policy]
    if isinstance(policy, str) and policy in DESIGNED_NAMES and system is not None:
        return design_named(policy, system)
    if isinstance(policy, str | Path):
        if is_place(policy) and not Path(policy).exists():
            return custom_at(str(policy))
        if not str(policy).endswith(".json") and not Path(policy).exists():
            more = () if system is None else DESIGNED_NAMES
            rule = f"must be one of {', '.join([*POLICY_NAMES, *more])}, a policy file, or your own as module:function"
            raise BadSpec([Problem(place, rule, str(policy))])
        return read_policy(policy)
    if not isinstance(policy, Policy):
        rule = "must be a policy or its name; a decision function goes into rota.Custom(function)"
        raise BadSpec([Problem(place, rule, policy)])
    return policy


def as_policies(policies: Sequence[Policy | str | Path], system: System | None = None) -> list[Policy]:
    """Policies, or those that these names and files stand for: one at least."""
    return [as_policy(policy, system) for policy in policy_list(policies)]


def policy_list(policies: Sequence[Policy | str | Path]) -> list[Policy | str | Path]:
    """A list of policies, names and files, checked to be one and not to be empty."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise BadSpec([Problem("policies", 'must be a list, as ["first-fit", "max-weight"]', policies)])
    given = list(policies)
    if not given:
        raise BadSpec([Problem("policies", "must not be empty")])
    return given
