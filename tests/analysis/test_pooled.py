"""The bound for every dispatcher and policy: tight for M/M/1 and M/M/k, and below the best policies there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import all_schedules, small_fleets
from rota.analysis.pooled import _prices, least_mean_response_time, pooled_queues
from systems import paper_example


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_one_slot_is_an_mm1_queue(load):
    """Of one type with one slot the bound is exact: 1/(μ − λ)."""
    fleet = rota.Fleet.equal(rota.System([1], [[1]], [2 * load], [2.0]), 1)
    assert least_mean_response_time(fleet) == pytest.approx(1 / (2 - 2 * load))


def test_many_slots_are_an_mmk_queue():
    """Of one type with several slots it is exact too, by its slots."""
    fleet = rota.Fleet.equal(rota.System([3], [[1]], [10.0], [1.0]), 4)
    exact = rota.analyze(fleet, rota.Pinned([0], [[3]], [4], [[1.0]])).mean_response_time
    assert least_mean_response_time(fleet) == pytest.approx(exact)


@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize("demand", [[[1], [2]], [[2], [3]], [[1], [1]]])
def test_below_the_optimum(demand, load):
    """The best of all policies of one server, with preemption at no cost, is not below it, and no more than twice as long here."""
    system = rota.System([3], demand, [1.0, 0.5], [1.0, 0.5], preemption="full").scaled(load=load)
    best = rota.optimal_policy(system, "full", accuracy=1e-3, time_limit_s=60)
    bound = least_mean_response_time(rota.Fleet.equal(system, 1))
    assert bound <= best.mean_response_time * (1 + 1e-3)
    assert bound >= best.mean_response_time / 2


def test_work_counts_where_servers_are_few():
    """One server of the paper at load 0.9: by slots alone the bound is less than half of that by slots and work, which is below the
    optimum with preemption, 3.3015. With a thousand servers both are the mean size.
    """
    one = rota.Fleet.equal(paper_example(0.9), 1)
    rate = one.arrival_rate.sum()
    assert 2 * pooled_queues(one).sum() / rate < least_mean_response_time(one) < 3.3015
    many = rota.Fleet.equal(paper_example(0.9), 1000).scaled(factor=1000)
    assert least_mean_response_time(many) == pytest.approx(1.0, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(small_fleets())
def test_prices_hold(fleet):
    """No servers of the fleet, whatever they run, do work worth more than 1 per unit of time at any of the prices."""
    for y in _prices(fleet, rota.system_load(fleet)):
        most = [max(float(y @ (fleet.speed[c] * np.array(u))) for u in all_schedules(fleet, c)) for c in range(len(fleet.kinds))]
        assert float(fleet.count @ most) <= 1 + 1e-7


@settings(max_examples=40, deadline=None)
@given(small_fleets(), st.floats(0.2, 0.9))
def test_at_least_the_slots(fleet, load):
    """It is never below the bound by slots, scales with time, and is below pinned servers wherever there are some."""
    fleet = fleet.scaled(load=load)
    bound = least_mean_response_time(fleet)
    assert bound >= pooled_queues(fleet)[fleet.arrival_rate > 0].sum() / fleet.arrival_rate.sum() * (1 - 1e-9)
    faster = fleet.replace(arrival_rate=fleet.arrival_rate * 2, service_rate=fleet.service_rate * 2)
    assert least_mean_response_time(faster) == pytest.approx(bound / 2, rel=1e-5)
    try:
        pinned = rota.design_pinned(fleet)
    except rota.Infeasible:
        return
    assert bound <= rota.analyze(fleet, pinned).mean_response_time * (1 + 1e-9)


def test_overload():
    """Beyond load 1 no bound is finite."""
    assert least_mean_response_time(rota.Fleet.equal(paper_example(0.9), 1).scaled(factor=2)) == np.inf
