"""Random splitting: designed per kind of server, with the load of the fleet on each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import small_fleets
from systems import paper_example

FLEET = rota.Fleet(
    count=[3, 2, 1],
    capacity=[[2, 0], [4, 2], [1, 0]],
    demand=[[2, 0], [1, 1], [2, 0]],
    arrival_rate=[2.0, 1.5, 0.0],
    service_rate=[1.0, 1.0, 1.0],
    preemption="full",
)


def test_every_server_is_stable():
    """A rota for each kind to which jobs go, none for one where no job fits; everything is served, and pinned servers wait less here."""
    design = rota.design_split(FLEET, time_limit_s=6)
    assert design.policies[2] is None
    assert design.split.sum(axis=0) == pytest.approx(1)
    answer = rota.analyze(FLEET, design)
    assert answer.stable
    assert answer.load.max() < 1
    pinned = rota.analyze(FLEET, rota.design_pinned(FLEET))
    assert pinned.mean_response_time < answer.mean_response_time
    assert pinned.lower_bound <= answer.mean_response_time


@settings(max_examples=5, deadline=None)
@given(small_fleets(), st.floats(0.5, 0.9))
def test_never_worse_than_the_split_of_the_load(fleet, load):
    """Chosen together, split and rotas have at most the mean response time of the load's split with its rotas."""
    fleet = fleet.scaled(load=load).with_preemption("full")
    best = rota.system_load(fleet)
    kept = rota.analyze(fleet, rota.design_split(fleet, load=best, joint=False, time_limit_s=20))
    chosen = rota.analyze(fleet, rota.design_split(fleet, load=best, time_limit_s=20))
    assert chosen.mean_response_time <= kept.mean_response_time * (1 + 1e-6)


def test_the_best_of_a_grid():
    """One type on two kinds of servers, one of them twice as fast: none of 200 splits is better."""
    fleet = rota.Fleet([2, 1], [[1], [1]], [[1]], [1.6], [1.0], speed=[[1], [2]], preemption="full")
    design = rota.design_split(fleet)
    servers = [rota.MSR([[1]], [1.0], preemption="full"), rota.MSR([[1]], [1.0], preemption="full")]
    answers = [rota.analyze(fleet, rota.Split(servers, [[part / 200], [1 - part / 200]])) for part in range(201)]
    least = min(answer.mean_response_time for answer in answers if answer.stable)
    assert rota.analyze(fleet, design).mean_response_time <= least * (1 + 1e-9)


def test_refused():
    """Overload, no arrivals, one server, another load."""
    with pytest.raises(rota.Unstable, match="of the fleet is not below 1"):
        rota.design_split(FLEET.scaled(factor=5))
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.design_split(FLEET.scaled(factor=0))
    with pytest.raises(rota.BadSpec, match=r"must be a rota\.Fleet"):
        rota.design_split(paper_example())
    with pytest.raises(rota.BadSpec, match="is of another fleet"):
        rota.design_split(FLEET, load=rota.system_load(FLEET.scaled(factor=0.5)))
