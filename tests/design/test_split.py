"""Random splitting: designed per kind of server, with the load of the fleet on each."""

import pytest

import rota
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
