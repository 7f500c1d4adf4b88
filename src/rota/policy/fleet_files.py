"""Policies of a fleet as plain dicts and files: `Pinned`, `Split` and `PartlyPinned`. Arrays are lists, a rota is the dict of its own.

{"rota_policy": 1, "policy": "pinned", "kind": [0, 1], "candidates": [[4, 0], [2, 3]], "servers": [3, 2], "split": [[0.5, 0.2], [0.5, 0.8]]}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rota.arguments import parse_json, read_text, write_text
from rota.errors import BadSpec, Problem, version_problem
from rota.policy.codec import POLICY_VERSION, policy_from_dict, policy_to_dict
from rota.policy.msr import MSR
from rota.policy.partly_pinned import PartlyPinned
from rota.policy.pinned import Pinned
from rota.policy.split import Split

__all__ = ["FleetDesign", "fleet_design_at", "fleet_policy_from_dict", "fleet_policy_to_dict", "read_fleet_policy", "save_fleet_policy"]

FleetDesign = Pinned | Split | PartlyPinned
_FIELDS = {
    "pinned": ("kind", "candidates", "servers", "split"),
    "split": ("policies", "split"),
    "partly-pinned": ("pinned", "turning", "policies", "split"),
}


def fleet_policy_to_dict(policy: FleetDesign) -> dict[str, Any]:
    """A policy of a fleet as JSON values."""
    head = {"rota_policy": POLICY_VERSION}
    if isinstance(policy, Pinned):
        return {**head, "policy": "pinned", **{name: getattr(policy, name).tolist() for name in _FIELDS["pinned"]}}
    if not isinstance(policy, Split | PartlyPinned):
        raise BadSpec([Problem("policy", "must be a rota.Pinned, rota.Split or rota.PartlyPinned", policy)])
    shared = {"policies": [None if rota is None else policy_to_dict(rota) for rota in policy.policies], "split": policy.split.tolist()}
    if isinstance(policy, Split):
        return {**head, "policy": "split", **shared}
    pinned = {name: getattr(policy.pinned, name).tolist() for name in _FIELDS["pinned"]}
    return {**head, "policy": "partly-pinned", "pinned": pinned, "turning": policy.turning.tolist(), **shared}


def fleet_policy_from_dict(content: object, source: str | None = None) -> FleetDesign:
    """The policy that `fleet_policy_to_dict` wrote; raises `BadSpec` with what is wrong. `source` is the file that it comes from."""
    if not isinstance(content, dict) or "rota_policy" not in content:
        raise BadSpec([Problem("file", 'is not a policy of Rota: it needs "rota_policy": 1')], source)
    if wrong := version_problem("rota_policy", content["rota_policy"], POLICY_VERSION, "design it anew"):
        raise BadSpec([wrong], source)
    kind = content.get("policy")
    if kind not in _FIELDS:
        raise BadSpec([Problem("policy", f"must be one of {', '.join(_FIELDS)}: a policy of a fleet", kind)], source)
    given = {name: value for name, value in content.items() if name not in ("rota_policy", "policy")}
    try:
        return _made(kind, given)
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None


def _made(kind: str, given: dict[str, Any]) -> FleetDesign:
    problems = [Problem(name, "is missing") for name in _FIELDS[kind] if name not in given]
    problems += [Problem(name, "is not a known key") for name in given if name not in _FIELDS[kind]]
    if problems:
        raise BadSpec(problems)
    if kind == "pinned":
        if not given["kind"]:  # no servers: the number of types is that of `split`
            given = {**given, "candidates": [[0] * len(row) for row in given["split"][:1]]}
            return Pinned([], Pinned([0], given["candidates"], [0], given["split"]).candidates[:0], [], given["split"])
        return Pinned(**given)
    rotas = given["policies"]
    if not isinstance(rotas, list):
        raise BadSpec([Problem("policies", "must be a list with a rota, or null, for each kind of server", rotas)])
    policies = [None if rota is None else policy_from_dict(rota) for rota in rotas]
    others = [rota for rota in policies if not (rota is None or isinstance(rota, MSR))]
    if others:
        raise BadSpec([Problem("policies", "must be rotas", type(others[0]).__name__)])
    if kind == "split":
        return Split(policies, given["split"])  # type: ignore[arg-type]  # rotas, as was checked above
    if not isinstance(given["pinned"], dict):
        raise BadSpec([Problem("pinned", "must be a table", given["pinned"])])
    pinned = _made("pinned", given["pinned"])
    return PartlyPinned(pinned, given["turning"], policies, given["split"])  # type: ignore[arg-type]  # as above


def save_fleet_policy(policy: FleetDesign, path: str | Path) -> None:
    """Writes a policy of a fleet to a file."""
    write_text(path, json.dumps(fleet_policy_to_dict(policy), indent=2, ensure_ascii=False) + "\n")


def fleet_design_at(path: str | Path) -> FleetDesign | None:
    """The policy of a fleet at a path; None if that is something else."""
    if not str(path).endswith(".json") or not Path(path).is_file():
        return None
    raw = parse_json(read_text(path), str(path))
    return fleet_policy_from_dict(raw, str(path)) if isinstance(raw, dict) and raw.get("policy") in _FIELDS else None


def read_fleet_policy(path: str | Path) -> FleetDesign:
    """Reads a policy of a fleet from its file."""
    return fleet_policy_from_dict(parse_json(read_text(path), str(path)), str(path))
