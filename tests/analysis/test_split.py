"""Random splitting over the servers of a fleet: each server by itself, added up."""

import numpy as np
import pytest

import rota

# Three servers of one kind and two of another; the second type runs twice as fast on the latter, the third only there.
FLEET = rota.Fleet(
    count=[3, 2],
    capacity=[[2, 0], [4, 2]],
    demand=[[1, 0], [2, 0], [1, 1]],
    arrival_rate=[2.0, 2.0, 1.0],
    service_rate=[1.0, 1.0, 1.0],
    kinds=["plain", "gpu"],
    speed=[[1, 1, 1], [1, 2, 1]],
)
SPLIT = [[0.75, 0.25, 0.0], [0.25, 0.75, 1.0]]
PLAIN = rota.MSR([[2, 0], [0, 1]], [0.6, 0.4], preemption="full", switching_rate=2.0)
GPU = rota.MSR([[2, 0, 2], [0, 2, 0]], [0.5, 0.5], preemption="full", switching_rate=2.0)


def test_servers_add_up():
    """The jobs in the fleet are those of all its servers, each analyzed exactly with its part of the arrivals and its speeds."""
    fleet = FLEET.with_preemption("full")
    answer = rota.analyze(fleet, rota.Split([PLAIN, GPU], SPLIT))
    plain = rota.System([2], [[1], [2]], [2 * 0.75 / 3, 2 * 0.25 / 3], [1.0, 1.0], preemption="full")
    gpu = rota.System([4, 2], [[1, 0], [2, 0], [1, 1]], [2 * 0.25 / 2, 2 * 0.75 / 2, 0.5], [1.0, 2.0, 1.0], preemption="full")
    one, other = rota.analyze(plain, PLAIN).exact, rota.analyze(gpu, GPU).exact
    assert answer.exact == pytest.approx(3 * np.append(one, 0.0) + 2 * other, rel=1e-9)
    assert answer.stable
    assert answer.response_time == pytest.approx(answer.exact / FLEET.arrival_rate)
    assert answer.mean_response_time == pytest.approx(answer.exact.sum() / 5)


def test_equal_servers():
    """Servers that are alike have the response time of one at its part of the arrivals."""
    system = rota.System([4], [[1], [2]], [1.0, 0.4], [1.0, 1.0])
    policy = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], switching_rate=1.0)
    fleet = rota.Fleet.equal(system, 7).scaled(factor=7)
    answer = rota.analyze(fleet, rota.Split([policy], [[1.0, 1.0]]))
    assert answer.mean_response_time == pytest.approx(rota.analyze(system, policy).mean_response_time, rel=1e-9)
    assert answer.load == pytest.approx(rota.analyze(system, policy).load)


def test_unstable():
    """A server with too little for a type is told, as for one server."""
    answer = rota.analyze(FLEET.scaled(factor=5).with_preemption("full"), rota.Split([PLAIN, GPU], SPLIT))
    assert not answer.stable
    with pytest.raises(rota.Unstable):
        _ = answer.exact


@pytest.mark.parametrize(
    ("policies", "split", "rule"),
    [
        ([PLAIN], SPLIT, "needs 1 rows"),
        ([PLAIN, "fcfs"], SPLIT, r"must be a list with a rota\.MSR, or None"),
        ([PLAIN, GPU], [[0.5, 0.5, 0.0], [0.25, 0.5, 1.0]], "needs columns that sum to 1"),
        ([PLAIN, GPU], [[0.75, 0.25, 0.5], [0.25, 0.75, 0.5]], "must be 0 for types that cannot run on this kind: type3"),
        ([PLAIN, GPU], [[0.5, 0.5], [0.5, 0.5]], "is for another fleet: this one has 2 kinds and 3 types"),
        ([None, GPU], SPLIT, "sends jobs to a kind of server that has no policy"),
    ],
)
def test_refused(policies, split, rule):
    """What makes no sense, by itself or for the fleet."""
    with pytest.raises(rota.BadSpec, match=rule):
        rota.analyze(FLEET.with_preemption("full"), rota.Split(policies, split))


def test_bursts_are_refused():
    """Split at random, bursts would come to several servers at the same time."""
    fleet = FLEET.with_preemption("full").replace(arrivals=[rota.Bursts(factor=3.0, share=0.2, length=10.0)] * 3)
    with pytest.raises(rota.Infeasible, match=r"analyzed for Poisson arrivals.*fleet\.with_poisson_arrivals\(\)"):
        rota.analyze(fleet, rota.Split([PLAIN, GPU], SPLIT))


def test_equality():
    """Equal policies and parts make equal splits."""
    assert rota.Split([PLAIN, GPU], SPLIT) == rota.Split([PLAIN, GPU], SPLIT)
    assert hash(rota.Split([PLAIN, GPU], SPLIT)) == hash(rota.Split([PLAIN, GPU], SPLIT))
    assert rota.Split([PLAIN, GPU], SPLIT) != rota.Split([GPU, GPU], SPLIT)
    assert rota.Split([PLAIN, GPU], SPLIT) != "split"
    assert repr(rota.Split([PLAIN, GPU], SPLIT)) == "<Split over 2 kinds of servers>"
