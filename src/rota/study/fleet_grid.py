"""What the servers of a fleet do, as the text of a run: a policy for all of them or by kind, or a design, with a dispatch rule.

{"fleet": {"policy": {"rota_policy": 1, "policy": "first-fit"}, "dispatch": {"rule": "jsq"}}}
{"fleet": {"policy": {"design": "adaptive"}, "dispatch": {"rule": "jsq"}}}             to be designed for the fleet of the run
{"fleet": {"policies": {…}, "arrivals": […], "split": null, "dispatch": {…}}}          what was simulated, designs included
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rota.errors import BadSpec, Infeasible, NotConverged, Problem, TooManySchedules, Unstable
from rota.model import Fleet
from rota.model.dispatch import checked_dispatch
from rota.policy import DESIGNED_NAMES, FleetDesign, Policy, as_policy, draws
from rota.policy.fleet_files import fleet_policy_from_dict, fleet_policy_to_dict
from rota.policy.plan_file import with_names
from rota.simulation.fleet.files import fleet_policy_from_plain, rule_from_plain, rule_plain
from rota.simulation.fleet.policy import FLEET_DESIGNS, FleetPolicy, PolicyOfFleet, as_fleet_policy, from_file, has_own_rule, rule_for
from rota.simulation.of_fleet import Rules

__all__ = ["FleetCase", "fleet_cases", "fleet_policy_of"]


@dataclass(frozen=True)
class FleetCase:
    """A policy with a dispatch rule, as the grid of a study takes them."""

    name: str
    text: str
    draws: bool = True
    switches: bool = False  # rates of the grid are for one server
    sets_up: bool = False

    def definition(self, switching_rate: float | None, setup_rate: float | None) -> str:
        """The text; it does not depend on rates."""
        return self.text


def fleet_cases(fleet: Fleet, policies: Sequence[PolicyOfFleet], dispatch: Rules, write: Callable[[Policy], str]) -> list[FleetCase]:
    """Every policy with every rule; raises `BadSpec` for a wrong one. `write` gives a policy of one server as text."""
    given = list(dispatch) if isinstance(dispatch, Iterable) and not isinstance(dispatch, str) else [dispatch]
    if not given:
        raise BadSpec([Problem("dispatch", 'must not be empty: give a rule, or a list as ["jsq", "pull"]', dispatch)])
    cases = []
    for policy in policies:
        for rule in [None] if has_own_rule(policy) else [checked_dispatch(one) for one in given]:
            found, asked = from_file(fleet, policy, rule)
            used = rule_for(fleet, "pinned" if has_own_rule(found) else found, "pinned" if has_own_rule(found) else asked)
            text = json.dumps({"fleet": {"policy": _plain(fleet, found, write), "dispatch": rule_plain(used)}})
            named = isinstance(found, str) and found in (*DESIGNED_NAMES, *FLEET_DESIGNS)
            made = None if named else _made(fleet, found, used)
            name = str(policy) if has_own_rule(found) and named else f"{policy}, {used.label}" if made is None else made.label
            cases.append(FleetCase(name, text, draws=made is None or draws(made)))
    return cases


def _made(fleet: Fleet, policy: PolicyOfFleet, rule: Any) -> FleetPolicy | None:
    """What the servers do; None if that is not possible on this fleet, which the run will say."""
    try:
        return as_fleet_policy(fleet, policy, rule)
    except (Infeasible, Unstable, NotConverged, TooManySchedules):
        return None


def _plain(fleet: Fleet, policy: PolicyOfFleet | None, write: Callable[[Policy], str], kind: int | None = None) -> Any:
    """A policy as plain data, of one kind of server or of all; what is to be designed by its name."""
    if policy is None:
        return None
    if isinstance(policy, str) and (policy in DESIGNED_NAMES or (kind is None and policy in FLEET_DESIGNS)):
        return {"design": policy}
    if isinstance(policy, Mapping):
        return {"kinds": {name: _plain(fleet, one, write, fleet.kind_index(name)) for name, one in policy.items()}}
    if isinstance(policy, FleetDesign):
        return fleet_policy_to_dict(policy)
    found = as_policy(policy, place="policies")
    return json.loads(write(found if kind is None else with_names(found, fleet.server(kind).names)))


def fleet_policy_of(fleet: Fleet, content: dict[str, Any], read: Callable[[str], Policy]) -> FleetPolicy:
    """What the text of a run says that the servers do, designed if it asks for that. `read` is the other way of `write`."""
    if "policy" not in content:
        return fleet_policy_from_plain(fleet, content, lambda one: read(json.dumps(one)))
    return as_fleet_policy(fleet, _whole(content["policy"], read), rule_from_plain(content["dispatch"]))


def _whole(content: Any, read: Callable[[str], Policy]) -> Any:
    """The policy, or its name, that `_plain` wrote."""
    if content is None or "design" in content:
        return content and content["design"]
    if "kinds" in content:
        return {kind: _whole(one, read) for kind, one in content["kinds"].items()}
    if content.get("policy") in ("pinned", "split", "partly-pinned"):
        return fleet_policy_from_dict(content)
    return read(json.dumps(content))
