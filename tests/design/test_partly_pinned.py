"""Partly pinned servers: there whenever the load is below 1, never worse than pinned ones, and the single server's rota for one server."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import small_fleets
from systems import paper_example


def test_one_server_has_its_rota():
    """One server that must turn gets the rota that is designed for it alone."""
    system = rota.System([3], [[1], [2]], [1.2, 0.7], [1.0, 1.0], preemption="full").scaled(load=0.9)
    one = rota.Fleet.equal(system, 1)
    with pytest.raises(rota.Infeasible, match=r"rota\.design_partly_pinned"):
        rota.design_pinned(one)
    design = rota.design_partly_pinned(one)
    assert design.turning.tolist() == [1]
    assert design.policies[0] == rota.design_policy(system)
    assert rota.analyze(one, design).exact == pytest.approx(rota.analyze(system, design.policies[0]).exact)


def test_three_servers_of_the_paper():
    """At load 0.9 three servers cannot all be pinned; two pinned ones and one that turns wait a fifth of what one server waits."""
    fleet = rota.Fleet.equal(paper_example(0.9), 3).scaled(factor=3)
    with pytest.raises(rota.Infeasible):
        rota.design_pinned(fleet)
    design = rota.design_partly_pinned(fleet, time_limit_s=8)
    answer = rota.analyze(fleet, design)
    assert answer.stable
    assert design.turning.sum() < 3
    assert answer.lower_bound < answer.mean_response_time < 10


@settings(max_examples=8, deadline=None)
@given(small_fleets(), st.floats(0.5, 0.9))
def test_whenever_the_load_is_below_one(fleet, load):
    """What is designed is stable, above the bound, and not worse than pinned servers where there are some."""
    fleet = fleet.scaled(load=load).with_preemption("full")
    best = rota.system_load(fleet)
    design = rota.design_partly_pinned(fleet, load=best, time_limit_s=4)
    answer = rota.analyze(fleet, design)
    assert answer.stable
    assert answer.lower_bound <= answer.mean_response_time * (1 + 1e-9)
    try:
        pinned = rota.design_pinned(fleet, load=best, time_limit_s=4)
    except rota.Infeasible:
        assert design.turning.any()
        return
    assert answer.mean_response_time <= rota.analyze(fleet, pinned).mean_response_time * (1 + 1e-6)


def test_speeds_are_chosen_too():
    """A type that runs at two speeds: pinned servers keep the split of the load, partly pinned ones choose it."""
    fleet = rota.Fleet([6, 3], [[2], [2]], [[1]], [12.0], [1.0], speed=[[1], [3]])
    pinned = rota.analyze(fleet, rota.design_pinned(fleet)).mean_response_time
    design = rota.design_partly_pinned(fleet)
    answer = rota.analyze(fleet, design)
    parts = np.linspace(0.001, 0.999, 500)
    tried = [rota.Pinned([0, 1], [[2], [2]], [6, 3], [[part], [1 - part]]) for part in parts]
    answers = [rota.analyze(fleet, each) for each in tried]
    least = min(each.mean_response_time for each in answers if each.stable)
    assert answer.mean_response_time <= least * (1 + 1e-9)
    assert answer.mean_response_time < pinned * 0.99


def test_refused():
    """Overload and other arguments are told."""
    fleet = rota.Fleet.equal(paper_example(0.9), 2)
    with pytest.raises(rota.Unstable, match="of the fleet is not below 1"):
        rota.design_partly_pinned(fleet.scaled(factor=5))
    with pytest.raises(rota.BadSpec, match=r"must be a rota\.Fleet"):
        rota.design_partly_pinned(paper_example())
    with pytest.raises(rota.BadSpec, match="time_limit_s: must be positive"):
        rota.design_partly_pinned(fleet, time_limit_s=0)
