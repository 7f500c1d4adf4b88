"""Plans of fleets as files: the fleet, what its servers run, and the dispatch rule, in one JSON object that a person can read.

{ "rota_fleet_plan": 1, "fleet": { "servers": { … }, "jobs": { … } }, "load": 0.66, "dispatch": { "rule": "least-wait" },
  "policy": { "by": "kind", "policies": { "small": { "rota_policy": 1, … }, "gpu": { … } } },
  "predicted": { "train": { "mean": 4.2, "p50": 2.9, "p95": 12.1, "p99": 18.6 } } }

`fleet` has the tables of the spec; times are in its unit. Designs of the whole fleet have other forms of `policy`:

{ "by": "pinned", "servers": [ { "kind": "small", "count": 6, "jobs": { "query": 3 } } ], "split": { "small": { "query": 1.0 } } }
{ "by": "split", "policies": { "small": { … }, "gpu": null }, "split": { "small": { "query": 1.0 } } }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rota.arguments import is_real, parse_json, read_text
from rota.arrays import Array
from rota.errors import BadSpec, Problem, version_problem
from rota.model import Dispatch, Fleet
from rota.model.dispatch import make_dispatch
from rota.model.fleet_tables import dispatch_to_dict, fleet_from_dict, fleet_to_dict
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.msr import MSR
from rota.policy.pinned import Pinned
from rota.policy.plan_file import is_predicted, with_names
from rota.policy.registry import Policy
from rota.policy.split import Split

__all__ = [
    "FLEET_PLAN_VERSION",
    "FleetPlanFile",
    "fleet_plan_at",
    "fleet_plan_file_from_json",
    "fleet_plan_file_to_json",
    "read_fleet_plan_file",
]

FLEET_PLAN_VERSION = 1
_RULE_KEYS = ("rule", "d", "staleness", "cost")


@dataclass(frozen=True, eq=False)
class FleetPlanFile:
    """A fleet, what its servers run and which server a job goes to; `predicted` response times by type (mean, p50, p95, p99).

    `policy`: a policy for each kind of server, by name (None if no job runs there), or a design of the whole fleet.
    """

    fleet: Fleet
    policy: Mapping[str, Policy | None] | Pinned | Split
    dispatch: Dispatch
    load: float | None = None
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fleet: Fleet,
        policy: Policy | Mapping[str, Policy | None] | Pinned | Split,
        dispatch: Dispatch,
        load: float | None = None,
        predicted: dict[str, dict[str, float]] | None = None,
    ) -> FleetPlanFile:
        """The file for a policy that all servers run, or for one by kind, or for a design."""
        if isinstance(policy, Policy):
            policy = {kind: policy if fleet.runs[c].any() else None for c, kind in enumerate(fleet.kinds)}
        return cls(fleet, policy, dispatch, load, predicted or {})


def fleet_plan_file_to_json(plan: FleetPlanFile) -> str:
    """The file's text."""
    content: dict[str, Any] = {
        "rota_fleet_plan": FLEET_PLAN_VERSION,
        "fleet": fleet_to_dict(plan.fleet),
        "load": plan.load,
        "dispatch": dispatch_to_dict(plan.dispatch),
        "policy": _policy_to_dict(plan.fleet, plan.policy),
        "predicted": plan.predicted,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def fleet_plan_file_from_json(text: str, source: str | None = None) -> FleetPlanFile:
    """Reads the plan of a fleet; raises `BadSpec` with the problems of the text."""
    raw = parse_json(text, source)
    if not isinstance(raw, dict) or "rota_fleet_plan" not in raw:
        rule = 'is not the plan of a fleet: it needs "rota_fleet_plan": 1 (from: rota plan FLEET.toml)'
        raise BadSpec([Problem("file", rule)], source)
    version = raw["rota_fleet_plan"]
    if wrong := version_problem("rota_fleet_plan", version, FLEET_PLAN_VERSION, "rota plan FLEET.toml makes a new one"):
        raise BadSpec([wrong], source)
    known = {"rota_fleet_plan", "fleet", "load", "dispatch", "policy", "predicted"}
    problems = [Problem(name, "is not a known key") for name in raw if name not in known]
    problems += [Problem(name, "is missing") for name in ("fleet", "dispatch", "policy") if not isinstance(raw.get(name), dict)]
    predicted = raw.get("predicted", {})
    if not is_predicted(predicted):
        problems.append(Problem("predicted", "must be a table of numbers per type"))
    if not (raw.get("load") is None or is_real(raw["load"])):
        problems.append(Problem("load", "must be a number", raw["load"]))
    if not problems:
        problems += [Problem(f"dispatch.{name}", "is not a known key") for name in raw["dispatch"] if name not in _RULE_KEYS]
    if problems:
        raise BadSpec(problems, source)
    try:
        fleet = fleet_from_dict(raw["fleet"])
        dispatch = make_dispatch(**{"rule": None} | raw["dispatch"])
        policy = _policy_from_dict(fleet, raw["policy"])
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None
    return FleetPlanFile(fleet, policy, dispatch, raw.get("load"), predicted)


def read_fleet_plan_file(path: str | Path) -> FleetPlanFile:
    """Reads the plan of a fleet from its file."""
    return fleet_plan_file_from_json(read_text(path), str(path))


def fleet_plan_at(path: str | Path, fleet: Fleet) -> FleetPlanFile | None:
    """The plan of this fleet at a path; None if that is no plan of a fleet. Raises `BadSpec` if it is one of another fleet."""
    if not str(path).endswith(".json") or not Path(path).is_file():
        return None
    text = read_text(path)
    raw = parse_json(text, str(path))
    if not (isinstance(raw, dict) and "rota_fleet_plan" in raw):
        return None
    plan = fleet_plan_file_from_json(text, str(path))
    for what, own, others in (("kinds", fleet.kinds, plan.fleet.kinds), ("job types", fleet.names, plan.fleet.names)):
        if own != others:
            rule = f"is the plan of another fleet: its {what} are {', '.join(others)}, and here they are {', '.join(own)}"
            raise BadSpec([Problem("policy", rule)], str(path))
    return plan


# ------------------------------------------------------------------------------------------------------------ what servers run


def _policy_to_dict(fleet: Fleet, policy: Mapping[str, Policy | None] | Pinned | Split) -> dict[str, Any]:
    if isinstance(policy, Pinned):
        rows = zip(policy.kind.tolist(), policy.servers.tolist(), policy.candidates.tolist(), strict=True)
        held = [{"kind": fleet.kinds[c], "count": n, "jobs": _named(fleet.names, row)} for c, n, row in rows]
        return {"by": "pinned", "servers": held, "split": _split_to_dict(fleet, policy.split)}
    if isinstance(policy, Split):
        rotas = dict(zip(fleet.kinds, policy.policies, strict=True))
        written = {kind: _of_kind(fleet, kind, rota) for kind, rota in rotas.items()}
        return {"by": "split", "policies": written, "split": _split_to_dict(fleet, policy.split)}
    return {"by": "kind", "policies": {kind: _of_kind(fleet, kind, one) for kind, one in policy.items()}}


def _of_kind(fleet: Fleet, kind: str, policy: Policy | None) -> dict[str, Any] | None:
    """The policy of a server of a kind, with the names of the types that can run there."""
    return None if policy is None else policy_to_dict(with_names(policy, fleet.server(kind).names))


def _named(names: tuple[str, ...], values: list[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, values, strict=True) if value}


def _split_to_dict(fleet: Fleet, split: Array) -> dict[str, dict[str, float]]:
    return {kind: _named(fleet.names, row) for kind, row in zip(fleet.kinds, split.tolist(), strict=True)}


def _policy_from_dict(fleet: Fleet, raw: dict[str, Any]) -> Mapping[str, Policy | None] | Pinned | Split:
    keys = {"kind": {"policies"}, "pinned": {"servers", "split"}, "split": {"policies", "split"}}
    by = raw.get("by")
    if by not in keys:
        raise BadSpec([Problem("policy.by", f"must be one of {', '.join(keys)}", by)])
    problems = [Problem(f"policy.{name}", "is not a known key") for name in raw if name not in keys[by] | {"by"}]
    problems += [Problem(f"policy.{name}", "is missing") for name in sorted(keys[by]) if name not in raw]
    if problems:
        raise BadSpec(problems)
    if by == "kind":
        found = _policies(fleet, raw["policies"])
        if lacking := [kind for kind, policy in found.items() if policy is None and fleet.runs[fleet.kinds.index(kind)].any()]:
            raise BadSpec([Problem(f"policy.policies.{kind}", "needs a policy: jobs can run there") for kind in lacking])
        return found
    split = _table(fleet, raw["split"], "policy.split")
    if by == "pinned":
        pinned = _pinned(fleet, raw["servers"], split)
        pinned.check(fleet)
        return pinned
    rotas = _policies(fleet, raw["policies"])
    if strays := [kind for kind, policy in rotas.items() if not (policy is None or isinstance(policy, MSR))]:
        raise BadSpec([Problem(f"policy.policies.{kind}", "must be an MSR policy, or null") for kind in strays])
    return Split([rotas[kind] for kind in fleet.kinds], split)  # type: ignore[misc]  # rotas, as was checked above


def _policies(fleet: Fleet, raw: object) -> dict[str, Policy | None]:
    """The policy of each kind; None for a kind that has none."""
    if not isinstance(raw, dict):
        raise BadSpec([Problem("policy.policies", "must be a table with a policy for each kind of server", raw)])
    _check_kinds(fleet, raw, "policy.policies")
    return {kind: None if raw.get(kind) is None else policy_from_dict(raw[kind]) for kind in fleet.kinds}


def _pinned(fleet: Fleet, raw: object, split: Array) -> Pinned:
    rule = 'must be a list of tables as {"kind": "small", "count": 6, "jobs": {"query": 3}}'
    if not (isinstance(raw, list) and all(isinstance(row, dict) and set(row) == {"kind", "count", "jobs"} for row in raw)):
        raise BadSpec([Problem("policy.servers", rule, raw)])
    kinds, counts, schedules = [], [], np.zeros((len(raw), len(fleet.names)))
    for at, row in enumerate(raw):
        place = f"policy.servers.{at}"
        if not isinstance(row["kind"], str) or not is_real(row["count"]):
            raise BadSpec([Problem(place, rule, row)])
        _check_kinds(fleet, [row["kind"]], place)
        kinds.append(fleet.kinds.index(row["kind"]))
        counts.append(row["count"])
        schedules[at] = _numbers(fleet, row["jobs"], f"{place}.jobs")
    return Pinned(kinds, schedules, counts, split)


def _table(fleet: Fleet, raw: object, place: str) -> Array:
    """Numbers by kind and type (C, K); 0 for those that are left out."""
    if not isinstance(raw, dict):
        raise BadSpec([Problem(place, "must be a table by kind and type", raw)])
    _check_kinds(fleet, raw, place)
    return np.array([_numbers(fleet, raw.get(kind, {}), f"{place}.{kind}") for kind in fleet.kinds])


def _numbers(fleet: Fleet, raw: object, place: str) -> list[float]:
    if not (isinstance(raw, dict) and all(is_real(value) for value in raw.values())):
        raise BadSpec([Problem(place, "must be a table of numbers by type", raw)])
    if strays := [name for name in raw if name not in fleet.names]:
        raise BadSpec([Problem(f"{place}.{name}", f"no such type (there are: {', '.join(fleet.names)})") for name in strays])
    return [float(raw.get(name, 0.0)) for name in fleet.names]


def _check_kinds(fleet: Fleet, names: Any, place: str) -> None:
    if strays := [name for name in names if name not in fleet.kinds]:
        raise BadSpec([Problem(f"{place}.{name}", f"no such kind of server (there are: {', '.join(fleet.kinds)})") for name in strays])
