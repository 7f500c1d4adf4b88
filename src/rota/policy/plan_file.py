"""Plans as files: everything that `rota serve` needs, in one JSON object that a person can read.

{ "rota_plan": 1, "system": { "server": { … }, "jobs": { … } }, "live": { … }, "load": 0.81,
  "policy": { "rota_policy": 1, … }, "predicted": { "train": { "mean": 3.1, "p50": 2.0, "p95": 9.4, "p99": 14.2 } } }

`system` and `live` are the tables of the spec. Times are in the spec's unit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rota.arguments import parse_json, read_text
from rota.errors import BadSpec, Problem, version_problem
from rota.model import System, system_from_dict, system_to_dict
from rota.model.live import LiveSettings, live_settings
from rota.policy.codec import policy_from_dict, policy_to_dict
from rota.policy.improved import Improved
from rota.policy.msr import MSR
from rota.policy.registry import Policy

__all__ = ["PLAN_VERSION", "PlanFile", "is_predicted", "plan_file_from_json", "plan_file_to_json", "read_plan_file", "with_names"]

PLAN_VERSION = 1


@dataclass(frozen=True, eq=False)
class PlanFile:
    """A system, the policy to run on it, and what to expect: `predicted` response times by type (mean, p50, p95, p99).

    The unit of time is known if the system or the `live` table says it; seconds are assumed otherwise.
    """

    system: System
    policy: Policy
    live: LiveSettings = field(default_factory=lambda: LiveSettings())
    load: float | None = None
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", with_names(self.policy, self.system.names))
        said = self.live.time_unit if "time_unit" in self.live.model_fields_set else None
        if self.system.time_unit is None and said is not None:
            object.__setattr__(self, "system", self.system.replace(time_unit=said))
        elif self.system.time_unit is not None and said not in (None, self.system.time_unit):
            raise BadSpec([Problem("live.time_unit", f'is not the "{self.system.time_unit}" of the system', said)])
        elif self.system.time_unit is not None:
            object.__setattr__(self, "live", self.live.model_copy(update={"time_unit": self.system.time_unit}))

    def with_settings(self, given: Mapping[str, object]) -> PlanFile:
        """The plan with these entries of the `[live]` table in place of its own. A unit of time is that of the system too."""
        live = live_settings(self.live.model_dump(exclude_unset=True) | dict(given), self.system.resources)
        system = self.system.replace(time_unit=given["time_unit"]) if "time_unit" in given else self.system
        return replace(self, system=system, live=live)


def with_names(policy: Policy, names: tuple[str, ...]) -> Policy:
    """The policy with the names of the types, as a file has them."""
    if isinstance(policy, MSR) and policy.names is None:
        return policy.replace(names=names)
    if isinstance(policy, Improved) and policy.base.names is None:
        return replace(policy, base=policy.base.replace(names=names))
    return policy


def plan_file_to_json(plan: PlanFile) -> str:
    """The file's text."""
    content: dict[str, Any] = {
        "rota_plan": PLAN_VERSION,
        "system": system_to_dict(plan.system),
        "live": plan.live.model_dump(exclude_defaults=True),
        "load": plan.load,
        "policy": policy_to_dict(plan.policy),
        "predicted": plan.predicted,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def plan_file_from_json(text: str, source: str | None = None) -> PlanFile:
    """Reads a plan; raises `BadSpec` with the problems of the text."""
    raw = parse_json(text, source)
    if isinstance(raw, dict) and "rota_policy" in raw and "rota_plan" not in raw:
        raise BadSpec([Problem("file", "is a policy and not a plan: rota serve SYSTEM.toml --policy FILE runs it")], source)
    if isinstance(raw, dict) and "rota_fleet_plan" in raw:
        rule = "is the plan of a fleet, and this takes that of one server: rota simulate FLEET.toml FILE takes it"
        raise BadSpec([Problem("file", rule)], source)
    if not isinstance(raw, dict) or "rota_plan" not in raw:
        raise BadSpec([Problem("file", 'is not a plan of Rota: it needs "rota_plan": 1 (from: rota plan FILE)')], source)
    if wrong := version_problem("rota_plan", raw["rota_plan"], PLAN_VERSION, "rota plan FILE makes a new one"):
        raise BadSpec([wrong], source)
    known = {"rota_plan", "system", "live", "load", "policy", "predicted"}
    problems = [Problem(name, "is not a known key") for name in raw if name not in known]
    problems += [Problem(name, "is missing") for name in ("system", "policy") if not isinstance(raw.get(name), dict)]
    predicted = raw.get("predicted", {})
    if not is_predicted(predicted):
        problems.append(Problem("predicted", "must be a table of numbers per type"))
    if not (raw.get("load") is None or _is_number(raw["load"])):
        problems.append(Problem("load", "must be a number", raw["load"]))
    if problems:
        raise BadSpec(problems, source)
    try:
        system = system_from_dict(raw["system"])
        policy = policy_from_dict(raw["policy"])
        live = live_settings(raw.get("live"), system.resources)
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None
    return PlanFile(system, policy, live, raw.get("load"), predicted)


def read_plan_file(path: str | Path) -> PlanFile:
    """Reads a plan from its file."""
    return plan_file_from_json(read_text(path), str(path))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_predicted(value: object) -> bool:
    """Whether this is a table of numbers per type."""
    return isinstance(value, dict) and all(
        isinstance(row, dict) and all(isinstance(key, str) and _is_number(number) for key, number in row.items()) for row in value.values()
    )
