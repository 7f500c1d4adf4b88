"""Policies as files: versioned JSON that a person can read and edit. `rota.policy.codec` defines what it holds."""

from __future__ import annotations

import json
from pathlib import Path

from rota.arguments import checked_path, write_text
from rota.errors import BadSpec, Problem
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.registry import Policy

__all__ = ["policy_from_json", "policy_to_json", "read_policy", "save_policy", "text_of"]


def policy_to_json(policy: Policy) -> str:
    """The file's text."""
    return json.dumps(policy_to_dict(policy), indent=2, ensure_ascii=False) + "\n"


def policy_from_json(text: str, source: str | None = None) -> Policy:
    """Reads a policy; raises `BadSpec` with every problem of the text."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSpec([Problem("file", f"is not JSON: {error}")], source) from None
    return policy_from_dict(content, source)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Writes a policy to a file."""
    write_text(path, policy_to_json(policy))


def read_policy(path: str | Path) -> Policy:
    """Reads a policy from its file."""
    return policy_from_json(text_of(path), str(path))


def text_of(path: str | Path) -> str:
    """The text of a file; raises `BadSpec` if it cannot be read."""
    try:
        return checked_path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be read: {error.strerror or error}")], str(path)) from None
    except UnicodeDecodeError as error:
        raise BadSpec([Problem("file", f"is not UTF-8 text: {error.reason} at byte {error.start}")], str(path)) from None
