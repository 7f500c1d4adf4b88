"""The search for large jobs, with bounds from tables, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.capacity import integer_units, tables
from rota.capacity.tables import search_tables
from systems import small_systems


def all_lists(demand, capacity, start=0):
    """Every schedule (as a tuple of counts) by plain recursion: one job more of a type not before `start`."""
    yield (0,) * len(demand)
    for i in range(start, len(demand)):
        if (demand[i] <= capacity).all():
            for rest in all_lists(demand, capacity - demand[i], i):
                yield (*rest[:i], rest[i] + 1, *rest[i + 1 :])


def large_jobs(rng, K, R, capacity=20):
    """Demands of which up to six fit, values near what they need, and prices."""
    demand = rng.integers(3, capacity // 2, (K, R))
    value = demand.sum(axis=1) / (R * capacity) * rng.uniform(0.8, 1.2, K)
    return demand, np.full(R, capacity), value, rng.uniform(0.1, 2, R)


@given(small_systems(), st.data())
def test_the_best_of_all_schedules(system, data):
    """The bound is the highest value of all schedules, one of those found attains it, and all fit."""
    units = integer_units(system)
    value = np.array([data.draw(st.integers(0, 20)) for _ in system.names], dtype=float)
    price = np.array([data.draw(st.floats(0.01, 10)) for _ in system.resources])
    found = search_tables(units.demand, units.capacity, value, price)
    truth = (rota.list_schedules(system) @ value).max()
    assert found.finished
    assert found.bound == pytest.approx(truth, rel=1e-11)
    assert found.bound >= truth
    assert (found.schedules @ value).max() == truth
    assert rota.fits(system, found.schedules).all()


@pytest.mark.parametrize("R", [1, 2, 3, 5])
def test_other_good_schedules(R):
    """With a spread, the best schedule for each first type comes too, if it is good enough, and nothing that is not good."""
    rng = np.random.default_rng(R)
    for _ in range(20):
        demand, capacity, value, price = large_jobs(rng, 7, R)
        every = np.array(list(all_lists(demand, capacity)))
        truth = (every @ value).max()
        good, spread = 0.8 * truth, 0.5
        found = search_tables(demand, capacity, value, price, good, spread)
        worth = found.schedules @ value
        assert found.finished
        assert found.bound == pytest.approx(truth, rel=1e-11)
        assert worth.max() == pytest.approx(truth, rel=1e-12)
        assert (worth > good).all()
        assert (found.schedules @ demand <= capacity).all()
        # In order of value per price: each first type whose best schedule is good enough has one of that value.
        order = np.argsort(-value / (demand @ price), kind="stable")
        first = np.array([next((k for k in order if u[k]), -1) for u in every])
        begins = np.array([next(k for k in order if u[k]) for u in found.schedules])
        unneeded = tables._dominated(demand, value)
        plain = ~(every[:, unneeded].any(axis=1))
        for k in np.unique(first[first >= 0]):
            best = (every[(first == k) & plain] @ value).max(initial=0.0)
            if best > truth - spread * (truth - good) + 1e-9:
                assert worth[begins == k].max() == pytest.approx(best, rel=1e-12)


@settings(max_examples=60)
@given(small_systems(), st.integers(1, 40), st.data())
def test_cut_short_the_bound_holds(system, nodes, data):
    """After any number of nodes, what was found fits, and the bound is one."""
    units = integer_units(system)
    value = np.array([data.draw(st.floats(0.01, 1)) for _ in system.names])
    found = search_tables(units.demand, units.capacity, value, np.ones(len(system.resources)), node_limit=nodes)
    truth = (rota.list_schedules(system) @ value).max()
    assert found.bound >= truth
    assert rota.fits(system, found.schedules).all()
    assert not found.finished or (found.schedules @ value).max() == pytest.approx(truth, rel=1e-11)


@pytest.mark.parametrize("entries", [1, 10, 1000])
def test_coarse_tables_only_cost_time(monkeypatch, entries):
    """Tables that see demands in coarse steps, down to none, give the same answer."""
    monkeypatch.setattr(tables, "_ENTRIES", entries)
    rng = np.random.default_rng(entries)
    for R in (1, 2, 3):
        demand, capacity, value, price = large_jobs(rng, 6, R)
        found = search_tables(demand, capacity, value, price)
        assert found.finished
        assert found.bound == pytest.approx((np.array(list(all_lists(demand, capacity))) @ value).max(), rel=1e-11)


def test_units_beyond_any_table():
    """Capacities of 2^51 units, as of numbers without a common grid: the same schedules as of the numbers before they were multiplied."""
    rng = np.random.default_rng(3)
    demand, capacity, value, price = large_jobs(rng, 8, 3)
    scale = 2**51 // 20
    small = search_tables(demand, capacity, value, price)
    large = search_tables(demand * scale, capacity * scale, value, price / scale)
    assert large.finished
    assert large.bound == pytest.approx(small.bound, rel=1e-12)
    assert (large.schedules @ demand <= capacity).all()


def test_a_list_that_is_too_long():
    """Where more jobs fit than a list holds the search says that it did not finish, and its bound holds."""
    found = search_tables(np.array([[1, 2], [2, 1]]), np.array([1000, 1000]), np.array([1.0, 1.0]), np.ones(2))
    assert not found.finished
    assert found.bound >= 666


def test_no_type_of_any_value():
    """Where nothing has a value, the empty schedule is the best."""
    found = search_tables(np.array([[1], [2]]), np.array([3]), np.zeros(2), np.ones(1))
    assert (found.bound, found.schedules.tolist(), found.finished) == (0.0, [[0, 0]], True)


def test_dominated_types():
    """A type gives way to one that needs no more and is worth no less; of two equal ones, the first stays."""
    demand = np.array([[2, 2], [2, 1], [2, 2], [1, 1], [3, 3]])
    assert tables._dominated(demand, np.array([2.0, 2.0, 3.0, 1.0, 4.0])).tolist() == [True, False, False, False, False]
    assert tables._dominated(demand[[0, 0]], np.ones(2)).tolist() == [False, True]
