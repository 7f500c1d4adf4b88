"""Policies as files: versioned JSON that a person can read and edit. `rota.policy.codec` defines what it holds."""

from __future__ import annotations

import json
from pathlib import Path

from rota.arguments import parse_json, read_text, write_text
from rota.errors import BadSpec, Problem
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.designed import DESIGNED_NAMES
from rota.policy.registry import POLICY_NAMES, Policy

__all__ = ["policy_from_json", "policy_to_json", "read_policy", "save_policy"]


def policy_to_json(policy: Policy) -> str:
    """The file's text."""
    return json.dumps(policy_to_dict(policy), indent=2, ensure_ascii=False) + "\n"


def policy_from_json(text: str, source: str | None = None) -> Policy:
    """Reads a policy; raises `BadSpec` with every problem of the text."""
    return policy_from_dict(parse_json(text, source), source)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Writes a policy to a file."""
    write_text(path, policy_to_json(policy))


def read_policy(path: str | Path) -> Policy:
    """Reads a policy from its file."""
    if str(path) in {*POLICY_NAMES, *DESIGNED_NAMES} and not Path(path).exists():
        rule = "is the name of a policy, and here its file is needed, which rota design, rota tune and rota plan write with --output"
        raise BadSpec([Problem("policy", rule, str(path))])
    return policy_from_json(read_text(path), str(path))
