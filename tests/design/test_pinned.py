"""Pinned servers: the best of all there are, by trying all of them; a bound that holds; and what cannot be pinned."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rota
from fleets import all_schedules, small_fleets
from rota.analysis import mean_waiting
from rota.design import find_pinned
from systems import EXAMPLES, paper_example


def least_waiting(fleet: rota.Fleet) -> float:
    """The fewest waiting jobs of all ways to pin the servers of a fleet at speed 1; infinite if none is stable."""
    ways = []
    for c, count in enumerate(fleet.count):
        rows = np.array(all_schedules(fleet, c))
        maximal = [row for row in rows if not any((other >= row).all() and (other > row).any() for other in rows)]
        ways.append([sum(chosen) for chosen in itertools.combinations_with_replacement(maximal, int(count))])
    sums = (sum(chosen) for chosen in itertools.product(*ways))
    return min(sum(mean_waiting(int(k), float(a)) for k, a in zip(slots, fleet.offered_work, strict=True)) for slots in sums)


@settings(max_examples=60, deadline=None)
@given(small_fleets(), st.floats(0.3, 0.95))
def test_the_best_of_all(fleet, load):
    """No other way to pin the servers has fewer waiting jobs; and where nothing is found, there is nothing."""
    fleet = fleet.replace(speed=None, count=np.minimum(fleet.count, 3))
    ways = [len(all_schedules(fleet, c)) ** int(n) for c, n in enumerate(fleet.count)]
    assume(np.prod(ways, dtype=float) < 1e5)
    fleet = fleet.scaled(load=load)
    least = least_waiting(fleet)
    if np.isinf(least):
        with pytest.raises(rota.Infeasible, match="no pinned servers were found"):
            rota.design_pinned(fleet, time_limit_s=120)
        return
    design = find_pinned(fleet, time_limit_s=120)
    assert design.waiting == pytest.approx(least, rel=1e-9, abs=1e-12)
    assert design.lower_bound <= least * (1 + 1e-9)
    answer = rota.analyze(fleet, design.policy)
    assert answer.waiting.sum() == pytest.approx(design.waiting, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(small_fleets())
def test_speeds(fleet):
    """With speeds too, what is designed fits, serves everything, and waits no less than its bounds say."""
    fleet = fleet.scaled(load=0.6).replace(count=fleet.count * 4)
    try:
        design = find_pinned(fleet, time_limit_s=120)
    except rota.Infeasible:
        return
    answer = rota.analyze(fleet, design.policy)
    assert answer.stable
    assert answer.waiting.sum() == pytest.approx(design.waiting, rel=1e-9, abs=1e-12)
    assert design.lower_bound <= design.waiting
    assert design.gap >= 0
    arrives = fleet.arrival_rate > 0
    assert (answer.pooled[arrives] <= answer.exact[arrives] * (1 + 1e-9)).all()


def test_many_servers_of_the_paper_come_near_the_bound():
    """At load 0.9: 2 servers wait long, 10 less, 1,000 hardly at all, within 0.001 % of what no policy can beat."""
    times = {}
    for n in (2, 10, 100, 1000):
        fleet = rota.Fleet.equal(paper_example(0.9), n).scaled(factor=n)
        design = find_pinned(fleet, time_limit_s=120)
        assert design.gap <= 1e-6
        answer = rota.analyze(fleet, design.policy)
        times[n] = answer.mean_response_time
        assert answer.lower_bound <= times[n]
    assert times[2] > times[10] > times[100] > times[1000]
    assert times[1000] == pytest.approx(1.0, rel=1e-5)


def test_the_example():
    """All servers hold a schedule, and the queues of both speeds of a type are served."""
    fleet = rota.read_system(EXAMPLES / "fleet.toml")
    design = find_pinned(fleet, time_limit_s=120)
    assert design.gap <= 1e-6
    assert np.bincount(design.policy.kind, weights=design.policy.servers).tolist() == [40, 4]
    assert rota.analyze(fleet, design.policy).stable
    assert rota.design_pinned(fleet, load=rota.system_load(fleet), time_limit_s=120) == design.policy


def test_what_cannot_be_pinned():
    """One server of the paper's example must turn; overload, no arrivals and other arguments are told apart."""
    one = rota.Fleet.equal(paper_example(0.9), 1)
    with pytest.raises(rota.Infeasible, match="so few servers have to turn between schedules"):
        rota.design_pinned(one)
    with pytest.raises(rota.Unstable, match=r"the load 1.8 of the fleet is not below 1: scale arrivals by less than 0.5556"):
        rota.design_pinned(one.scaled(factor=2))
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.design_pinned(one.scaled(factor=0))
    with pytest.raises(rota.BadSpec, match=r"must be a rota.Fleet \(rota.Fleet.equal makes one of a system\)"):
        rota.design_pinned(paper_example())
    with pytest.raises(rota.BadSpec, match="is of another fleet"):
        rota.design_pinned(one, load=rota.system_load(one.scaled(factor=0.5)))
    with pytest.raises(rota.BadSpec, match="time_limit_s: must be positive"):
        rota.design_pinned(one, time_limit_s=0)
