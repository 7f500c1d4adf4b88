"""Simulated fleets against what is known exactly: random splitting, pinned servers, pooled servers; and laws of pairs of runs."""

import numpy as np
import pytest

import rota
from rota.model.dispatch import DISPATCH_RULES
from systems import paper_example

TWO_KINDS = rota.Fleet(
    count=[3, 2],
    capacity=[[4], [8]],
    demand=[[1], [4]],
    arrival_rate=[14.0, 3.0],
    service_rate=[2.0, 1.0],
    speed=[[1.0, 1.0], [1.0, 2.0]],
    kinds=["small", "large"],
)


def assert_near(result, exact, most):
    """The exact mean is within the interval, made a little wider as many are looked at, and the interval is narrow."""
    assert result.interval < most * exact
    assert abs(result.mean_response_time - exact) < 1.8 * result.interval


def erlang_c(k, offered):
    """The probability that a job waits in an M/M/k queue, from the sum of its weights."""
    term, total = 1.0, 1.0
    for n in range(1, k):
        term *= offered / n
        total += term
    waits = term * offered / k / (1 - offered / k)
    return waits / (total + waits)


def test_random_splitting():
    """Random splitting over two kinds with rotas of their own: the exact mean response time, and the parts of the split."""
    split = rota.design_split(TWO_KINDS)
    result = rota.simulate(TWO_KINDS, split, jobs=400_000, seed=1)
    assert_near(result, rota.analyze(TWO_KINDS, split).mean_response_time, 0.05)
    np.testing.assert_allclose(result.parts, split.split, atol=0.01)


def test_pinned_servers():
    """Pinned servers of a type with two speeds: the exact mean response time, and that of each type."""
    pinned = rota.design_pinned(TWO_KINDS)
    exact = rota.analyze(TWO_KINDS, pinned)
    result = rota.simulate(TWO_KINDS, pinned, jobs=300_000, seed=2)
    assert_near(result, exact.mean_response_time, 0.02)
    assert (np.abs(result.response_time - exact.response_time) < 2.2 * result.response_time_interval).all()


PARTLY = rota.Fleet(
    count=[3, 2, 3],
    capacity=[[4], [8], [8]],
    demand=[[1], [2]],
    arrival_rate=[8.0, 3.0],
    service_rate=[1.0, 0.5],
    kinds=["small", "large", "idle"],
    only=[["small", "large"], ["small", "large"]],
    speed=[[1, 1], [1, 2], [1, 1]],
    preemption="full",
)
HELD = rota.Pinned([0, 1], [[2, 1], [2, 3]], [2, 1], [[0.5, 0.4], [0.0, 0.6], [0, 0]])
TURNS = (
    rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], preemption="full", switching_rate=1.0),
    rota.MSR([[8, 0], [0, 4]], [0.6, 0.4], preemption="full", switching_rate=1.0),
    None,
)
SENT = [[0.1, 0.1], [0.4, 0.35], [0.0, 0.0]]


def test_partly_pinned_servers():
    """Pinned servers of two kinds and one of each that turns: the exact mean response time of each type, all parts as in the design."""
    design = rota.PartlyPinned(HELD, [1, 1, 0], TURNS, SENT)
    exact = rota.analyze(PARTLY, design)
    result = rota.simulate(PARTLY, design, jobs=1_000_000, seed=4)
    assert result.name == "partly pinned"
    assert result.fleet == PARTLY
    assert_near(result, exact.mean_response_time, 0.02)
    assert (result.response_time_interval < 0.03 * exact.response_time).all()
    assert (np.abs(result.response_time - exact.response_time) < 2.2 * result.response_time_interval).all()
    # Of type 1 all pinned jobs share one queue, whose slots small and large servers have; those of type 2 go by speed.
    small = SENT[0][1] + (1 - SENT[0][1] - SENT[1][1]) * 0.4
    np.testing.assert_allclose(result.parts[:, 1], [small, 1 - small, 0], atol=0.005)


@pytest.mark.parametrize("copies", [None, 0, 3], ids=["some turn", "none turns", "all turn"])
def test_partly_pinned_servers_keep_the_laws(copies):
    """Every law of the engine holds after every event, also while servers fail; with none that turns it is pinned servers, bit for bit."""
    design = rota.PartlyPinned(HELD, [1, 1, 0], TURNS, SENT)
    if copies == 0:
        design = rota.PartlyPinned(HELD, [0, 0, 0], [None] * 3, np.zeros((3, 2)))
        results = [rota.simulate(PARTLY.scaled(factor=0.5), one, jobs=20_000, seed=5) for one in (design, HELD)]
        assert results[0].response_time.tolist() == results[1].response_time.tolist()
    if copies == 3:
        none = rota.Pinned([], HELD.candidates[:0], [], np.zeros((3, 2)))
        design = rota.PartlyPinned(none, [3, 2, 0], TURNS, [[0.3, 0.3], [0.7, 0.7], [0, 0]])
    fleet = PARTLY.scaled(factor=0.3)
    result = rota.simulate(fleet, design, jobs=5000, seed=6, warmup=0, check=True, failures=(50.0, 5.0))
    assert result.counted.sum() == 5000
    assert result.stable


def test_a_designed_remainder():
    """Three servers of the paper at load 0.8, of which some must turn: the design by its name, simulated against its exact mean."""
    fleet = rota.Fleet.equal(paper_example(0.8), 3).scaled(factor=3)
    design = rota.design_partly_pinned(fleet, time_limit_s=5)
    assert 0 < design.turning.sum() < 3
    exact = rota.analyze(fleet, design)
    assert_near(rota.simulate(fleet, design, jobs=1_500_000, seed=7), exact.mean_response_time, 0.05)


def test_jobs_that_never_wait():
    """Where every job starts at once, the mean waiting time is 0 and not the rounding of the clock."""
    fleet = rota.Fleet.equal(rota.System([2], [[1]], [0.1], [1.0]), 1000)
    result = rota.simulate(fleet, "first-fit", dispatch="pull", jobs=5000)
    assert result.mean_waiting_time == 0
    assert result.waiting_time.tolist() == [0]


def test_pooled_servers_are_one_queue():
    """Jobs that need one slot each and are pulled by 7 servers of 1 to 3 slots are an M/M/14 queue: Erlang's C formula."""
    fleet = rota.Fleet(count=[2, 3, 2], capacity=[[1], [2], [3]], demand=[[1]], arrival_rate=[11.9], service_rate=[1.0])
    result = rota.simulate(fleet, "fcfs", dispatch="pull", jobs=600_000, seed=3)
    assert_near(result, 1 + erlang_c(14, 11.9) / (14 - 11.9), 0.02)


def test_utilization_is_work():
    """What each resource has in use is the work that arrives, Σ λ_i D_ir / μ_i by what all servers have, where speeds are 1."""
    fleet = TWO_KINDS.replace(speed=None)
    for rule in ("round-robin", "least-wait", "pull"):
        result = rota.simulate(fleet, "first-fit", dispatch=rule, jobs=100_000)
        expected = fleet.offered_work @ fleet.demand / (fleet.count @ fleet.capacity)
        np.testing.assert_allclose(result.utilization, expected, rtol=0.02)
        np.testing.assert_allclose(
            (fleet.count[:, None] * fleet.capacity * result.kind_utilization).sum(axis=0) / (fleet.count @ fleet.capacity),
            result.utilization,
        )
        np.testing.assert_array_equal(result.kind_counted.sum(axis=0), result.counted)
        little = result.mean_queue_length.sum() / fleet.arrival_rate.sum()
        assert little == pytest.approx(result.mean_response_time, rel=0.02)


@pytest.mark.parametrize("rule", ["jsq", "best-fit", "pull", "power-of-d"])
def test_kinds_in_another_order_change_nothing_in_law(rule):
    """The order of the servers decides ties only: the mean response time is the same within the intervals."""
    system = rota.System([4], [[1], [2]], [3.0, 1.5], [2.0, 2.0])
    one = rota.Fleet.equal(system, 4).scaled(factor=4)
    kinds = {"capacity": [[4], [4]], "kinds": ["a", "b"], "speed": None, "up_time": None, "down_time": None}
    two = one.replace(count=[1, 3], **kinds)
    first = rota.simulate(one, "first-fit", dispatch=rule, jobs=150_000, seed=4)
    second = rota.simulate(two, "first-fit", dispatch=rule, jobs=150_000, seed=5)
    assert abs(first.mean_response_time - second.mean_response_time) < 1.5 * (first.interval + second.interval)


def test_servers_that_fail_are_up_for_their_part_of_the_time():
    """One slot that fails: a job in service starts again, so its time in service is (1/θ + d)(M(θ) − 1), and M/G/1 gives its wait.

    With failures of rate θ, mean down time d, and jobs of a fixed size s, the time from the start of a job to its end has the mean
    (1/θ + d)(e^{θs} − 1), jobs that come to an empty failed server aside; here arrivals are rare, so that this is all.
    """
    theta, down, size = 0.5, 2.0, 1.5
    fleet = rota.Fleet(count=[1], capacity=[[1]], demand=[[1]], arrival_rate=[0.001], sizes=[rota.Deterministic(mean=size)])
    result = rota.simulate(fleet, "fcfs", failures=(1 / theta, down), jobs=40_000, seed=6)
    empty_and_down = down / (1 / theta + down) * down  # a job that comes while it is down waits for the rest of that
    expected = (1 / theta + down) * (np.exp(theta * size) - 1) + empty_and_down
    assert result.mean_response_time == pytest.approx(expected, rel=0.03)


def test_more_information_helps():
    """On ten servers at load 0.9: the mean response time falls from random to round-robin to power of two to jsq to pull."""
    system = rota.System([4], [[1], [2]], [3.0, 1.0], [2.0, 1.0])
    fleet = rota.Fleet.equal(system, 10).scaled(load=0.9)
    found = rota.compare(fleet, ["first-fit"], dispatch=["random", "round-robin", "power-of-d", "jsq", "pull"], jobs=200_000)
    assert not found.errors
    means = [result.mean_response_time for result in found.results]
    assert means == sorted(means, reverse=True)
    assert found.best.dispatch.rule == "pull"
    assert len({result.fingerprint for result in found.results}) == 1


def test_stale_information_hurts():
    """The older what the dispatcher knows, the longer people wait; staleness 0 is the same run as none."""
    fleet = rota.Fleet.equal(rota.System([2], [[1]], [1.6], [1.0]), 10).scaled(factor=10)
    means = [rota.simulate(fleet, "fcfs", dispatch="jsq", staleness=t, jobs=100_000).mean_response_time for t in (0.0, 0.1, 1.0)]
    assert means == sorted(means)
    assert means[0] == rota.simulate(fleet, "fcfs", dispatch=rota.Dispatch("jsq"), jobs=100_000).mean_response_time


def test_cost_is_added_under_light_load():
    """A job that never waits for a slot has its running time and the way to its server."""
    fleet = rota.Fleet(count=[50], capacity=[[1]], demand=[[1]], arrival_rate=[1.0], service_rate=[1.0])
    free, costly = (rota.simulate(fleet, "fcfs", dispatch=rota.Dispatch("jsq", cost=cost), jobs=20_000) for cost in (0.0, 0.75))
    assert costly.mean_response_time == pytest.approx(free.mean_response_time + 0.75, rel=1e-3)


def test_replications_and_until():
    """Independent runs in threads are joined, the same for any number of workers; `until` stops when the interval is narrow."""
    fleet = rota.Fleet.equal(rota.System([2], [[1]], [1.2], [1.0]), 5).scaled(factor=5)
    runs = [rota.simulate(fleet, "first-fit", jobs=40_000, replications=4, workers=n) for n in (1, 2)]
    assert runs[0].mean_response_time == runs[1].mean_response_time
    assert (runs[0].runs, int(runs[0].kind_counted.sum())) == (4, int(runs[0].counted.sum()))
    narrow = rota.simulate(fleet, "first-fit", until=0.02)
    assert narrow.reached
    assert narrow.interval <= 0.02 * narrow.mean_response_time


def test_every_rule_has_a_function():
    """Every rule of the list is loaded from the place that its record names, and the literal of the file has the same names."""
    from typing import get_args

    from rota.model.dispatch import DispatchRule

    assert tuple(DISPATCH_RULES) == get_args(DispatchRule)
    for record in DISPATCH_RULES.values():
        rule = record.load()
        assert record.looks == (rule.look is not None)
        assert record.title
