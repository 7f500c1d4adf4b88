"""Policies as plain dicts, with a version: what their files hold, and what a plan holds. Each kind has a codec for its own fields.

{"rota_policy": 1, "policy": "first-fit"}
{"rota_policy": 1, "policy": "max-weight", "preemption": "none"}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from rota.errors import BadSpec, Problem, version_problem
from rota.policy.registry import Policy, Record, record_of, records

__all__ = ["PLAIN", "POLICY_VERSION", "Codec", "policy_from_dict", "policy_to_dict"]

POLICY_VERSION = 1


class Codec(NamedTuple):
    """How the fields of a kind of policy are written, and read by a class; reading raises `BadSpec` with every problem."""

    write: Callable[[Any], dict[str, Any]]
    read: Callable[[type[Policy], dict[str, Any]], Policy]


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """A policy as JSON values. Types are called by their names, or type1, type2, … where the policy has none."""
    record = record_of(policy)
    if not record.rule:
        raise BadSpec([Problem("policy", "is a function of your own, which cannot be written down", type(policy).__name__)])
    return {"rota_policy": POLICY_VERSION, "policy": record.file_kind, **record.load_codec().write(policy)}


def policy_from_dict(content: object, source: str | None = None) -> Policy:
    """The policy that `policy_to_dict` wrote; raises `BadSpec` with every problem. `source` is the file that it comes from."""
    raw = content
    if isinstance(raw, dict) and "rota_plan" in raw and isinstance(raw.get("policy"), dict):
        raw = raw["policy"]  # a plan holds its policy
    if isinstance(raw, dict) and "rota_fleet_plan" in raw:
        raise BadSpec([Problem("file", "is the plan of a fleet, and this takes a policy of one server")], source)
    if not isinstance(raw, dict) or "rota_policy" not in raw:
        raise BadSpec([Problem("file", 'is not a policy of Rota: it needs "rota_policy": 1')], source)
    if wrong := version_problem("rota_policy", raw["rota_policy"], POLICY_VERSION, "rota design FILE -o POLICY.json makes a new one"):
        raise BadSpec([wrong], source)
    kinds: dict[str, Record] = {}
    for record in records():
        kinds.setdefault(record.file_kind, record)
    if "policy" not in raw:
        raise BadSpec([Problem("policy", "is missing")], source)
    kind = raw["policy"]
    if kind in ("pinned", "split", "partly-pinned"):
        raise BadSpec([Problem("policy", "is that of a fleet: read it with rota.read_fleet_policy", kind)], source)
    if not (isinstance(kind, str) and kind in kinds):
        raise BadSpec([Problem("policy", f"must be one of {', '.join(kinds)}", kind)], source)
    given = {name: value for name, value in raw.items() if name not in ("rota_policy", "policy")}
    try:
        return kinds[kind].load_codec().read(kinds[kind].policy, given)  # type: ignore[no-any-return]
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None


# ---------------------------------------------------------------------------------------------------- policies of a few parameters


def _read(kind: type[Policy], given: dict[str, Any]) -> Policy:
    known = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]  # all policies are dataclasses
    problems = [Problem(name, "is not a known key") for name in given if name not in known]
    problems += [
        Problem(name, "must be a number", value)
        for name, value in given.items()
        if known.get(name) == "float" and (isinstance(value, bool) or not isinstance(value, int | float))
    ]
    if problems:
        raise BadSpec(problems)
    return kind(**given)


PLAIN = Codec(write=asdict, read=_read)  # name and value of each field
