"""Limits on the mean response time of single types, and the share of the server that each type gets."""

import numpy as np
import pytest
from hypothesis import given

import rota
from rota.design import ResponseLimits, design_policy
from rotas import PREEMPTIONS, paper_case, systems_and_rotas
from systems import paper_example

SETUP = {"setup": {"setup_rate": 10.0}}
LOADS = {"full": 0.7, "none": 0.5, "setup": 0.5}


@given(systems_and_rotas())
def test_service_share(case):
    """The share of a type is its mean number of slots times the largest part of a resource that one job takes; ρ of it is used."""
    system, policy = case
    answer = rota.analyze(system, policy)
    parts = [max(need / have for need, have in zip(row, system.capacity, strict=True)) for row in system.demand]
    assert answer.service_share == pytest.approx(answer.process.mean_schedule * parts, rel=1e-12)
    assert answer.service_share * answer.load == pytest.approx(system.offered_work * parts, rel=1e-9)
    assert (answer.service_share <= 1 + 1e-9).all()


def test_service_share_of_the_example():
    """(0,0,2) and (1,4,0), half of the time each: type 1 gets 7/15 of the memory for half of the time, and so on."""
    assert rota.analyze(*paper_case(0.5)).service_share == pytest.approx([7 / 15 / 2, 16 / 20 / 2, 20 / 20 / 2])


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_the_limit_holds(preemption):
    """A limit of 70 % of what the slowest type had without one holds in the result, exactly; only the limited type must gain by it."""
    system, fields = paper_example(LOADS[preemption]), SETUP.get(preemption, {})
    free = rota.analyze(system, design_policy(system, preemption, objective="response-time", time_limit_s=3, **fields))
    i = int(np.argmax(free.response_time))
    limit = {system.names[i]: 0.7 * float(free.response_time[i])}
    policy = design_policy(system, preemption, objective="response-time", time_limit_s=20, max_response_time=limit, **fields)
    answer = rota.analyze(system, policy)
    assert answer.response_time[i] <= limit[system.names[i]]
    assert answer.response_time[i] > 0.5 * limit[system.names[i]]


def test_several_limits_hold_together():
    """Two types with limits; the third pays."""
    limits = {"type1": 12.0, "type3": 8.0}
    policy = design_policy(paper_example(0.9), "full", objective="response-time", max_response_time=limits, time_limit_s=4)
    first, second, third = rota.analyze(paper_example(0.9), policy).response_time
    assert (first <= 12.0, third <= 8.0, second > 12.0) == (True, True, True)


def test_a_given_switching_rate_is_kept():
    """With a switching rate of one's own the limits hold at that rate."""
    system = paper_example(0.7)
    policy = design_policy(system, "full", objective="response-time", switching_rate=3.0, max_response_time={"type3": 4.0}, time_limit_s=4)
    assert policy.switching_rate == 3.0
    assert rota.analyze(system, policy).response_time[2] <= 4.0


def test_a_limit_that_changes_nothing():
    """Limits that the best rota keeps anyway leave its mean response time as it was."""
    system = paper_example(0.5)
    free = design_policy(system, "full", objective="response-time", time_limit_s=4)
    wide = design_policy(system, "full", objective="response-time", time_limit_s=8, max_response_time={"type1": 1e6})
    assert rota.analyze(system, wide).mean_response_time <= 1.001 * rota.analyze(system, free).mean_response_time


def test_a_limit_that_no_policy_can_keep():
    """Below what a type has with the server to itself, an M/M/2 queue for type 1, the error says so at once."""
    alone = rota.analyze(rota.System([2], [[1]], [0.45], [1.0]), rota.MSR([[2]])).mean_response_time
    assert ResponseLimits.of(paper_example(0.9), {"type1": alone * 1.0001}).any
    with pytest.raises(rota.Infeasible, match=rf"even with the server to itself it has {alone:.6g}"):
        design_policy(paper_example(0.9), "full", objective="response-time", max_response_time={"type1": alone * 0.9999})


def test_limits_that_are_too_much_together():
    """Limits that each could be kept alone but not together: the error names those that are broken, and by how much."""
    limits = {"type1": 1.5, "type2": 1.3, "type3": 1.5}
    with pytest.raises(rota.Infeasible, match=r"no policy was found that keeps .* 'type.' has .*, above 1\..*Allow more"):
        design_policy(paper_example(0.9), "full", objective="response-time", max_response_time=limits, time_limit_s=2)


@pytest.mark.parametrize(
    ("limits", "objective", "says"),
    [
        ({"api": 3.0}, "response-time", r"max_response_time.api: no such type \(there are: type1, type2, type3\)"),
        ({"type1": -3.0}, "response-time", "max_response_time.type1: must be a positive time"),
        ({"type1": float("nan")}, "response-time", "max_response_time.type1: must be a positive time"),
        ({"type1": "soon"}, "response-time", "max_response_time.type1: must be a positive time"),
        ({"type1": 3.0}, "load", 'goes with objective="response-time"'),
    ],
)
def test_wrong_limits(limits, objective, says):
    """Unknown types, values that are no times, and the wrong objective are refused."""
    with pytest.raises(rota.BadSpec, match=says):
        design_policy(paper_example(0.5), "full", objective=objective, max_response_time=limits)


def test_excess_and_charge():
    """The excess is that of the type furthest above its limit; a charge is none where limits hold and grows with the excess."""
    system = paper_example(1.0).replace(arrival_rate=[1.0, 1.0, 0.0])
    limits = ResponseLimits.of(system, {"type1": 10.0, "type2": 5.0, "type3": 1.0})
    assert limits.excess(np.array([9.0, 4.0, 0.0])) == 0
    assert limits.excess(np.array([11.0, 6.0, 0.0])) == pytest.approx(0.2)
    assert limits.charged(3.0, np.array([9.0, 4.0, 0.0])) == 3.0
    charges = [limits.charged(3.0, np.array([10.0 * x, 1.0, 0.0])) for x in (1.0, 1.1, 2.0)]
    assert charges == sorted(charges)
    assert charges[0] > 3.0  # a search aims a little below
    assert limits.charged(np.inf, np.array([np.inf, 1.0, 0.0])) == np.inf
    assert not ResponseLimits.of(system, None).any
