"""What a fleet does as plain data, and back: the policy of each kind of server, the dispatch rule, and the arrivals that policies see.

{ "policies": { "small": { … }, "gpu": null }, "arrivals": [[1.5, 0.2], null], "dispatch": { "rule": "jsq" }, "split": null }
{ "design": { "rota_policy": 1, "policy": "pinned", … }, "dispatch": { "rule": "pinned" } }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rota.errors import BadSpec, Problem
from rota.imported import place_of, source_of
from rota.model import CustomDispatch, Dispatch, Fleet
from rota.model.dispatch import make_dispatch
from rota.model.fleet_tables import dispatch_to_dict
from rota.policy import Policy
from rota.policy.fleet_files import fleet_policy_from_dict, fleet_policy_to_dict
from rota.policy.plan_file import with_names
from rota.simulation.fleet.policy import FleetPolicy, as_fleet_policy

__all__ = ["fleet_policy_from_plain", "fleet_policy_plain", "rule_from_plain", "rule_plain"]


def rule_plain(rule: Dispatch) -> dict[str, Any]:
    """A dispatch rule as plain data; one of your own as the place that it is imported from and a hash of its source."""
    if not isinstance(rule, CustomDispatch):
        return dispatch_to_dict(rule)
    place = place_of(rule.function, rule.function)
    if place is None:
        rule_of_own = 'is a rule of your own, which a study can only take by name: put it into a file, say mine.py, and give "mine:name"'
        raise BadSpec([Problem("dispatch", rule_of_own, rule.rule)])
    return {"custom": place, "source": source_of(place, "dispatch"), "staleness": rule.staleness, "cost": rule.cost}


def rule_from_plain(content: dict[str, Any]) -> Dispatch:
    """The rule that `rule_plain` wrote."""
    if "custom" not in content:
        return make_dispatch(**content)
    place, now = content["custom"], source_of(content["custom"], "dispatch")
    if now != content["source"]:
        raise BadSpec([Problem("dispatch", f"{place} has changed since the study began (hash {content['source']}, now {now})")])
    return CustomDispatch(place, staleness=content["staleness"], cost=content["cost"])


def fleet_policy_plain(policy: FleetPolicy, write: Callable[[Policy], Any]) -> dict[str, Any]:
    """What a fleet does; `write` gives the policy of one server as plain data."""
    fleet = policy.given
    down = np.column_stack([fleet.up_time, fleet.down_time])[policy.home]
    # Times are left out if they are the fleet's own; infinite ones are null.
    failures = {} if np.array_equal(policy.failures, down) else {"failures": [_finite(row) for row in policy.failures]}
    rest = {"dispatch": rule_plain(policy.dispatch), **failures}
    if policy.whole is not None:
        return {"design": fleet_policy_to_dict(policy.whole[1]), **rest}
    if policy.pinned is not None:
        return {"design": fleet_policy_to_dict(policy.pinned), **rest}
    arrivals = []
    written: dict[str, Any] = {}
    for c, (kind, one, system) in enumerate(zip(fleet.kinds, policy.policies, policy.systems, strict=True)):
        written[kind] = None if one is None or system is None else write(with_names(one, system.names))
        row = np.zeros(len(fleet.names))
        if system is not None:
            row[fleet.runs[c]] = system.arrival_rate
        arrivals.append(None if system is None else row.tolist())
    return {
        "policies": written,
        "arrivals": arrivals,
        "split": None if policy.split is None else policy.split.tolist(),
        **rest,
    }


def fleet_policy_from_plain(fleet: Fleet, content: dict[str, Any], read: Callable[[Any], Policy]) -> FleetPolicy:
    """What `fleet_policy_plain` wrote, for the same fleet; `read` is the other way of `write`."""
    rule = rule_from_plain(content["dispatch"])
    failures = None
    if "failures" in content:
        failures = np.array([[np.inf if time is None else time for time in row] for row in content["failures"]])
    if "design" in content:
        found = as_fleet_policy(fleet, fleet_policy_from_dict(content["design"]), rule)
        return found if failures is None else replace(found, failures=failures)
    policies = [None if content["policies"][kind] is None else read(content["policies"][kind]) for kind in fleet.kinds]
    systems = [None if row is None else fleet.server(c, row) for c, row in enumerate(content["arrivals"])]
    split = None if content["split"] is None else np.array(content["split"])
    own = np.column_stack([fleet.up_time, fleet.down_time])
    return FleetPolicy(fleet, tuple(policies), tuple(systems), rule, split, None, own if failures is None else failures)


def _finite(row: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in row]
