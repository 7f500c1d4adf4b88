"""A server or a fleet, for the verbs that take either: the server that jobs arrive at, and the policies that run there."""

from __future__ import annotations

from collections.abc import Sequence

from rota.errors import BadSpec, Problem, RotaError
from rota.model import Dispatch, Fleet, System
from rota.policy import DESIGNED_NAMES, Policy, as_policy
from rota.policy.lookup import policy_list
from rota.simulation.fleet.policy import Failures, PolicyOfFleet, fleet_policies, pooled

__all__ = ["Rules", "chosen_policies", "server_for"]

Rules = Dispatch | str | Sequence[Dispatch | str] | None  # a dispatch rule, or several


def server_for(system: System | Fleet, dispatch: Rules, staleness: float, failures: Failures | None) -> System:
    """The server itself, or one as large as all servers of a fleet together. What is for a fleet is refused for one server."""
    if isinstance(system, Fleet):
        return pooled(system)
    if dispatch is not None or staleness or failures is not None:
        raise BadSpec([Problem("dispatch", "goes with a rota.Fleet, and so do staleness and failures", dispatch)])
    return system


def chosen_policies(
    system: System | Fleet,
    policies: Sequence[PolicyOfFleet],
    errors: dict[str, str],
    dispatch: Rules = None,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> list[Policy]:
    """The policies, on a fleet each with each rule; why one cannot be designed for this system is added to the errors."""
    if isinstance(system, Fleet):
        return list(fleet_policies(system, policies, dispatch, errors, staleness, failures))
    known = [
        policy if isinstance(policy, str) and policy in DESIGNED_NAMES else as_policy(policy, system)
        for policy in policy_list(policies)  # type: ignore[arg-type]  # `as_policy` refuses what is not for one server
    ]  # a wrong name is found at once
    chosen = []
    for policy in known:
        try:
            chosen.append(as_policy(policy, system))
        except RotaError as error:
            errors[str(policy)] = str(error)
    return chosen
