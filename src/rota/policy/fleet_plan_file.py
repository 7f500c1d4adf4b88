"""Plans of fleets as files: the fleet, what its servers run, and the dispatch rule, in one JSON object that a person can read.

{ "rota_fleet_plan": 1, "fleet": { "servers": { … }, "jobs": { … } }, "load": 0.66, "dispatch": { "rule": "least-wait" },
  "policies": { "small": { "rota_policy": 1, "policy": "first-fit" }, "gpu": { … } },
  "predicted": { "train": { "mean": 4.2, "p50": 2.9, "p95": 12.1, "p99": 18.6 } } }

`fleet` has the tables of the spec; times are in its unit. A design of the whole fleet stands under `policy` in place of `policies`
(`rota.policy.fleet_files`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rota.arguments import is_real, parse_json, read_text
from rota.errors import BadSpec, Problem, version_problem
from rota.model import Dispatch, Fleet
from rota.model.dispatch import make_dispatch
from rota.model.fleet_tables import dispatch_to_dict, fleet_from_dict, fleet_to_dict
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.fleet_files import FleetDesign, fleet_policy_from_dict, fleet_policy_to_dict
from rota.policy.plan_file import is_predicted, with_names
from rota.policy.registry import Policy
from rota.policy.split import Split

__all__ = [
    "FLEET_PLAN_VERSION",
    "FleetPlanFile",
    "fleet_plan_at",
    "fleet_plan_file_from_json",
    "fleet_plan_file_to_json",
    "is_fleet_plan",
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
    policy: Mapping[str, Policy | None] | FleetDesign
    dispatch: Dispatch
    load: float | None = None
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fleet: Fleet,
        policy: Policy | Mapping[str, Policy | None] | FleetDesign,
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
        **_policy_to_dict(plan.fleet, plan.policy),
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
    known = {"rota_fleet_plan", "fleet", "load", "dispatch", "policy", "policies", "predicted"}
    problems = [Problem(name, "is not a known key") for name in raw if name not in known]
    problems += [Problem(name, "is missing") for name in ("fleet", "dispatch") if not isinstance(raw.get(name), dict)]
    if ("policy" in raw) == ("policies" in raw):
        problems.append(Problem("policies", "is needed, or policy, and only one of them"))
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
        policy = _policy_from_dict(fleet, raw)
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None
    return FleetPlanFile(fleet, policy, dispatch, raw.get("load"), predicted)


def read_fleet_plan_file(path: str | Path) -> FleetPlanFile:
    """Reads the plan of a fleet from its file."""
    return fleet_plan_file_from_json(read_text(path), str(path))


def is_fleet_plan(path: str | Path) -> bool:
    """Whether the plan of a fleet is at a path."""
    if not str(path).endswith(".json") or not Path(path).is_file():
        return False
    raw = parse_json(read_text(path), str(path))
    return isinstance(raw, dict) and "rota_fleet_plan" in raw


def fleet_plan_at(path: str | Path, fleet: Fleet) -> FleetPlanFile | None:
    """The plan of this fleet at a path; None if that is no plan of a fleet. Raises `BadSpec` if it is one of another fleet."""
    if not is_fleet_plan(path):
        return None
    plan = read_fleet_plan_file(path)
    for what, own, others in (("kinds", fleet.kinds, plan.fleet.kinds), ("job types", fleet.names, plan.fleet.names)):
        if own != others:
            rule = f"is the plan of another fleet: its {what} are {', '.join(others)}, and here they are {', '.join(own)}"
            raise BadSpec([Problem("policy", rule)], str(path))
    return plan


# ------------------------------------------------------------------------------------------------------------ what servers run


def _policy_to_dict(fleet: Fleet, policy: Mapping[str, Policy | None] | FleetDesign) -> dict[str, Any]:
    """The entry of the file: `policy`, a design of the whole fleet, or `policies` by kind, with the names of the types that run there."""
    if isinstance(policy, FleetDesign):
        return {"policy": fleet_policy_to_dict(policy)}
    written = {kind: None if one is None else policy_to_dict(with_names(one, fleet.server(kind).names)) for kind, one in policy.items()}
    return {"policies": written}


def _policy_from_dict(fleet: Fleet, raw: dict[str, Any]) -> Mapping[str, Policy | None] | FleetDesign:
    if "policy" in raw:
        design = fleet_policy_from_dict(raw["policy"])
        _check_design(fleet, design)
        return design
    by_kind = raw["policies"]
    if not isinstance(by_kind, dict):
        raise BadSpec([Problem("policies", "must be a table with a policy for each kind of server", by_kind)])
    known = f"no such kind of server (there are: {', '.join(fleet.kinds)})"
    problems = [Problem(f"policies.{kind}", known) for kind in by_kind if kind not in fleet.kinds]
    for c, kind in enumerate(fleet.kinds):
        if by_kind.get(kind) is None and fleet.runs[c].any():
            problems.append(Problem(f"policies.{kind}", "needs a policy: jobs can run there"))
    if problems:
        raise BadSpec(problems)
    return {kind: None if by_kind.get(kind) is None else policy_from_dict(by_kind[kind]) for kind in fleet.kinds}


def _check_design(fleet: Fleet, design: FleetDesign) -> None:
    """Raises `BadSpec` unless a design fits the fleet."""
    if isinstance(design, Split):
        for c in range(len(fleet.kinds)):
            design.server(fleet, c) if fleet.runs[c].any() else None
    else:
        design.check(fleet)
