"""Policies of your own by the place they are imported from: `module:name`, a decision function or a `Custom`."""

from __future__ import annotations

from rota.errors import BadSpec, Problem
from rota.imported import import_object, place_of
from rota.policy.others import Custom

__all__ = ["custom_at", "place_of_custom"]


def custom_at(place: str) -> Custom:
    """The policy at `module:name`."""
    found = import_object(place, "policy")
    if isinstance(found, Custom):
        return found
    if isinstance(found, type) or not callable(found):
        raise BadSpec([Problem("policy", f"must be a decision function or a rota.Custom, and is a {type(found).__name__}", place)])
    return Custom(found, name=place.partition(":")[2])


def place_of_custom(policy: Custom) -> str:
    """Where another process finds a policy: its own `module:name`, or that of its function if there is no more to it than that."""
    plain = Custom(policy.decide, name=policy.name)
    alone = policy.data is plain.data and (policy.memory, policy.counters, policy.compiled) == (plain.memory, plain.counters, None)
    place = place_of(policy, policy.decide) or (place_of(policy.decide, policy.decide) if alone else None)
    if place is None:
        rule = (
            "is a function of your own, which a study can only take by name: put it into a file, say mine.py "
            '(with data, as a rota.Custom), and give "mine:name"'
        )
        raise BadSpec([Problem("policies", rule, policy.name)])
    return place
