"""The compiled searches against brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.capacity import integer_units
from rota.capacity.packing import best_schedule, greedy_schedules, make_maximal
from systems import small_systems


@st.composite
def priced_systems(draw):
    """A small system with a value for each type (whole, so that sums are exact; some zero) and a price for each resource."""
    system = draw(small_systems())
    K, R = system.demand.shape
    value = np.array(draw(st.lists(st.integers(0, 20), min_size=K, max_size=K)), dtype=float)
    price = np.array(draw(st.lists(st.floats(0.01, 10), min_size=R, max_size=R)))
    return system, value, price


@given(priced_systems(), st.data())
def test_best_schedule_is_the_best_of_all(priced, data):
    """Branch and bound finds the highest value among all schedules below `most`, or says that none exceeds the floor."""
    system, value, price = priced
    units = integer_units(system)
    most = np.array([data.draw(st.integers(0, int(count))) for count in rota.largest_counts(system)])
    schedules = rota.list_schedules(system)
    truth = float((schedules[(schedules <= most).all(axis=1)] @ value).max())
    floor = data.draw(st.sampled_from([0.0, truth / 2, truth - 0.5, truth, truth + 1]))
    found, schedule, finished = best_schedule(units.demand, units.capacity, value, most, price, floor, 10**6)
    assert finished
    if truth > floor:
        assert found == truth == value @ schedule
        assert (schedule <= most).all()
        assert rota.fits(system, schedule)
    else:
        assert found == floor
        assert not schedule.any()


def test_best_schedule_where_the_bounds_compete():
    """On 500 wider instances, whose prices fit badly so that now one bound prunes and now another, the best is still found."""
    rng = np.random.default_rng(5)
    for _ in range(500):
        K, R = rng.integers(2, 5), rng.integers(1, 4)
        demand = rng.integers(1, 12, (K, R))
        system = rota.System(rng.integers(12, 30, R), demand, np.ones(K), np.ones(K))
        units = integer_units(system)
        value = rng.integers(1, 40, K).astype(float)
        price = 10.0 ** rng.uniform(-2, 2, R)
        found, schedule, _ = best_schedule(units.demand, units.capacity, value, rota.largest_counts(system), price, 0.0, 10**6)
        assert found == value @ schedule == (rota.list_schedules(system) @ value).max()


@given(priced_systems(), st.integers(1, 30))
def test_a_node_limit_ends_the_search_honestly(priced, nodes):
    """Cut short, the search says so, and its value is that of the schedule it returns; not cut short, it is the best."""
    system, value, price = priced
    units = integer_units(system)
    found, schedule, finished = best_schedule(units.demand, units.capacity, value, rota.largest_counts(system), price, 0.0, nodes)
    assert found == value @ schedule
    assert rota.fits(system, schedule)
    if finished:
        assert found == (rota.list_schedules(system) @ value).max()


def test_a_node_limit_of_one_finds_nothing():
    """One node is not enough for any schedule."""
    found, schedule, finished = best_schedule(np.array([[1]]), np.array([3]), np.array([1.0]), np.array([3]), np.array([1.0]), 0.0, 1)
    assert (found, schedule.tolist(), finished) == (0.0, [0], False)


@given(priced_systems(), st.integers(0, 2**32 - 1))
def test_greedy_schedules_fit_and_are_maximal(priced, seed):
    """Whatever the noise, each greedy schedule fits, and no job can be added."""
    system, value, price = priced
    units = integer_units(system)
    rng = np.random.default_rng(seed)
    noise, share = rng.uniform(-1, 1, (20, len(value))), rng.random((20, len(value)))
    found = greedy_schedules(units.demand, units.capacity, value, price, noise, share)
    assert rota.is_maximal(system, found).all()


def test_plain_greedy_fills_by_value_per_price():
    """Without noise the type with most value per price comes first."""
    demand, capacity = np.array([[2], [3]]), np.array([11])
    plain = np.zeros((1, 2)), np.ones((1, 2))
    assert greedy_schedules(demand, capacity, np.array([2.0, 2.0]), np.ones(1), *plain).tolist() == [[5, 0]]
    assert greedy_schedules(demand, capacity, np.array([2.0, 6.0]), np.ones(1), *plain).tolist() == [[1, 3]]


@given(small_systems(), st.data())
def test_make_maximal_only_adds(system, data):
    """Any schedule is filled up: a maximal one comes out that has at least the same counts."""
    units = integer_units(system)
    schedules = rota.list_schedules(system)
    start = schedules[data.draw(st.integers(0, len(schedules) - 1))]
    merit = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=len(start), max_size=len(start))))
    full = make_maximal(units.demand, units.capacity, start, merit)
    assert (full >= start).all()
    assert rota.is_maximal(system, full)
    if rota.is_maximal(system, start):
        assert np.array_equal(full, start)


def test_make_maximal_prefers_merit():
    """Room goes to the type of highest merit."""
    demand, capacity, nothing = np.array([[1], [1]]), np.array([3]), np.zeros(2, dtype=np.int64)
    assert make_maximal(demand, capacity, nothing, np.array([0.0, 1.0])).tolist() == [0, 3]
    assert make_maximal(demand, capacity, nothing, np.array([1.0, 0.0])).tolist() == [3, 0]
