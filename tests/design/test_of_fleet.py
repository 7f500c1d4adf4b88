"""`rota.design_policy` of a fleet: the best of the designs that are analyzed exactly, and pinned servers where they suffice."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import small_fleets, two_kinds
from rota.design import find_fleet_design
from systems import paper_example


@settings(max_examples=5, deadline=None)
@given(small_fleets(), st.floats(0.5, 0.9))
def test_the_best_of_all(fleet, load):
    """No design that was compared has a lower exact mean, and the answer has the one that is told."""
    fleet = fleet.scaled(load=load).with_preemption("full")
    found = find_fleet_design(fleet, time_limit_s=4)
    answer = rota.analyze(fleet, found.policy)
    assert answer.stable
    assert answer.lower_bound <= answer.mean_response_time * (1 + 1e-9)
    assert answer.mean_response_time == pytest.approx(min(found.means.values()))
    assert found.answer.mean_response_time == answer.mean_response_time
    assert not isinstance(found.policy, rota.PartlyPinned) or found.policy.turning.any()


def test_pinned_servers_suffice():
    """A hundred equal servers with one type: pinned servers are at the bound, and nothing else is designed."""
    fleet = rota.Fleet.equal(rota.System([4], [[1]], [2.0], [1.0]), 100).scaled(load=0.5)
    found = find_fleet_design(fleet)
    assert isinstance(found.policy, rota.Pinned)
    assert list(found.means) == ["pinned"]
    assert found.answer.mean_response_time == pytest.approx(found.answer.lower_bound, rel=1e-3)


def test_one_server_has_to_turn():
    """Of one server of the paper's example there are no pinned servers, which is told, and it gets a rota."""
    fleet = rota.Fleet.equal(paper_example(0.5).with_preemption("full"), 1)
    found = find_fleet_design(fleet, time_limit_s=6)
    assert "have to turn" in found.left_out["pinned"]
    assert isinstance(found.policy, rota.PartlyPinned | rota.Split)
    assert found.answer.stable


def test_one_kind_of_design():
    """`servers` asks for one of them; it is the design of that name."""
    fleet = two_kinds()
    assert rota.design_policy(fleet, servers="pinned") == rota.design_pinned(fleet)
    assert isinstance(rota.design_policy(fleet, servers="split", time_limit_s=4), rota.Split)
    with pytest.raises(rota.Infeasible, match="have to turn"):
        rota.design_policy(rota.Fleet.equal(paper_example(0.9), 1), servers="pinned")


def test_what_the_values_do_not_know():
    """Bursts and failures are told."""
    fleet = two_kinds().replace(up_time=np.full(2, 100.0), down_time=np.full(2, 1.0))
    assert find_fleet_design(fleet, servers="pinned").remarks == (
        "servers of this fleet fail: these values are for servers that do not (rota simulate has failures)",
    )
    bursty = two_kinds().replace(arrivals=[rota.Bursts(factor=3.0, share=0.2, length=5.0), rota.Poisson()])
    assert "are not Poisson" in find_fleet_design(bursty, servers="pinned").remarks[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda fleet: rota.design_policy(fleet, servers="any"), "servers: must be one of best, pinned, partly-pinned, split"),
        (lambda fleet: rota.design_policy(fleet, "full"), "preemption: is for one server: for a fleet there are servers, load"),
        (lambda fleet: rota.design_policy(fleet, route="parallel"), "route: is for one server"),
        (lambda fleet: rota.design_policy(fleet.server(0), servers="pinned"), "servers: is for a fleet"),
        (lambda fleet: rota.design_policy(fleet, time_limit_s=0), "time_limit_s: must be positive"),
        (lambda fleet: rota.design_policy(fleet, load=rota.system_load(fleet.scaled(factor=0.5))), "load: is of another fleet"),
    ],
)
def test_wrong_use(call, message):
    """What does not go with a fleet, or with one server, is refused with the way out."""
    with pytest.raises(rota.BadSpec, match=message):
        call(two_kinds())


def test_too_much_load():
    """A fleet that cannot carry its jobs has no design."""
    with pytest.raises(rota.Unstable, match="is not below 1"):
        rota.design_policy(two_kinds().scaled(load=1.1))


def test_parameters_for_people():
    """The signature has the parameters of one server, and `servers`."""
    parameters = list(inspect.signature(rota.design_policy).parameters)
    assert parameters[:2] == ["system", "preemption"]
    assert parameters[-1] == "servers"
