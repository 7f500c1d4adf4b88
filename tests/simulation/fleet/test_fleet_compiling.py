"""The engine of fleets is compiled once, whatever the fleet, the policy and the dispatch rule."""

import numpy as np
import pytest

import rota
from fleets import two_kinds
from rota.model.dispatch import DISPATCH_RULES
from rota.simulation.fleet.build import build
from rota.simulation.fleet.policy import as_fleet_policy
from rota.views import View


def type_of(fleet, policy, rule):
    """The type by which compiled code knows the state of a fleet."""
    return View(build(as_fleet_policy(fleet, policy, rule), np.random.SeedSequence(0)).fleet).type


@pytest.mark.parametrize("fleet", [rota.Fleet.equal(rota.System([4], [[1], [2]], [0.6, 0.2], [1.0, 1.0]), 3), two_kinds().scaled(load=0.4)])
@pytest.mark.parametrize("rule", sorted(DISPATCH_RULES))
def test_the_state_has_one_type(rule, fleet):
    """The state of a fleet has the same type under every rule, with a split of the load and without, for one kind and for two."""
    policy = rota.design_pinned(fleet) if rule == "pinned" else rota.FirstFit()
    assert type_of(fleet, policy, rule) == type_of(two_kinds(), rota.FirstFit(), "jsq")


def test_the_state_has_one_type_with_rotas():
    """So it has where servers follow rotas, to which jobs are sent by their split."""
    fleet = two_kinds().scaled(load=0.4)
    assert type_of(fleet, rota.design_split(fleet, time_limit_s=0.2), "random") == type_of(fleet, rota.FirstFit(), "jsq")
