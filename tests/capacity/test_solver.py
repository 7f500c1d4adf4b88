"""The door to the solver: the master program and the knapsack."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.capacity import integer_units
from rota.capacity.solver import Knapsack, Master, NearKnapsack, NearTable
from systems import small_systems


def test_master_solves_the_paper_example():
    """With the paper's two candidates and each type alone, the master finds weights ½, ½ and prices that prove load 1."""
    master = Master(np.array([0.5, 2.0, 1.0]), np.array([2, 5, 2]))
    for schedule in ([2, 0, 0], [0, 5, 0], [0, 0, 2], [1, 4, 0]):
        assert master.add(np.array(schedule))
    weights, prices = master.solve()
    assert weights == pytest.approx([0, 0, 0.5, 0.5], abs=1e-12)
    assert prices @ [0.5, 2, 1] == pytest.approx(1, rel=1e-12)
    assert master.schedules(np.array([2, 3])).tolist() == [[0, 0, 2], [1, 4, 0]]


def test_master_takes_a_schedule_once():
    """A schedule that is there already is not added again."""
    master = Master(np.array([1.0]), np.array([3]))
    assert master.add(np.array([2]))
    assert not master.add(np.array([2]))
    assert len(master) == 1


def test_master_without_an_answer_raises():
    """A type that no schedule serves leaves the master infeasible, which is an error and not an answer."""
    master = Master(np.array([1.0, 1.0]), np.array([1, 1]))
    master.add(np.array([1, 0]))
    with pytest.raises(rota.NotConverged, match="Infeasible"):
        master.solve()


def test_a_master_begins_with_the_basis_of_another():
    """The optimal basis of one master, put into a second one with the same schedules, needs no step of the simplex method."""
    schedules = [[2, 0, 0], [0, 5, 0], [0, 0, 2], [1, 4, 0]]
    first, second = (Master(np.array([0.5, 2.0, 1.0]), np.array([2, 5, 2])) for _ in range(2))
    assert [first.place(np.array(schedule)) for schedule in schedules] == [0, 1, 2, 3]
    assert first.place(np.array(schedules[1])) == 1
    weights, prices = first.solve()
    used, exceeded = first.basis()
    assert len(used) + len(exceeded) == 3
    assert set(np.flatnonzero(weights)) <= set(used)

    for schedule in schedules:
        second.add(np.array(schedule))
    second.begin(used.tolist(), exceeded.tolist())
    again, same = second.solve()
    assert again == pytest.approx(weights, abs=1e-12)
    assert same == pytest.approx(prices, abs=1e-12)
    assert second._solver.getInfo().simplex_iteration_count == 0


@given(small_systems(), st.data())
def test_knapsack_bounds_hold(system, data):
    """The integer program gives the best value; the relaxation bounds it from above by prices with y ≤ D p."""
    units = integer_units(system)
    y = np.array([data.draw(st.floats(0.01, 1)) for _ in system.names])
    truth = (rota.list_schedules(system) @ y).max()
    knapsack = Knapsack(units.demand, units.capacity, rota.largest_counts(system))

    bound, price = knapsack.relax(y)
    assert (units.demand @ price >= y * (1 - 1e-12)).all()
    assert (price >= 0).all()
    assert bound == pytest.approx(price @ units.capacity, rel=1e-12)
    assert bound >= truth * (1 - 1e-12)

    proved, schedule = knapsack.solve(y, gap=0.0, seconds=None)
    assert rota.fits(system, schedule)
    assert y @ schedule == pytest.approx(truth, rel=1e-9)
    assert truth * (1 - 1e-12) <= proved <= truth * (1 + 1e-9)


@given(small_systems(), st.data())
def test_a_table_has_the_values_of_the_integer_program(system, data):
    """A look at all schedules near a base finds the value that the integer program finds, and a schedule of that value."""
    units = integer_units(system)
    schedules = rota.list_schedules(system)
    base = schedules[data.draw(st.integers(0, len(schedules) - 1))]
    first = np.array([data.draw(st.floats(-1, 1)) for _ in system.names])
    further = first - np.array([data.draw(st.floats(0, 1)) for _ in system.names])
    below = np.maximum(first, 0.0) + np.array([data.draw(st.floats(0, 1)) for _ in system.names])
    above = schedules - base
    worth = np.clip(above, 0, 1) @ first + np.maximum(above - 1, 0) @ further + np.minimum(above, 0) @ below
    for program in (NearKnapsack, NearTable):
        made = program(units.demand, units.capacity, base, rota.largest_counts(system))
        bound, schedule = made.solve(first, further, below, 0.0, None)
        assert bound == pytest.approx(worth.max(), abs=1e-7)
        assert worth[(schedules == schedule).all(axis=1)] == pytest.approx([worth.max()], abs=1e-7)


@pytest.mark.filterwarnings("error")
def test_a_type_that_does_not_fit_is_in_no_schedule():
    """A type of which no job fits is left out of the best schedule, whatever it is worth, and nothing divides by zero."""
    knapsack = Knapsack(np.array([[3], [9], [2]]), np.array([8]), np.array([2, 0, 4]))
    proved, schedule = knapsack.solve(np.array([1.0, 100.0, 0.6]), gap=0.0, seconds=None)
    assert schedule.tolist() == [2, 0, 1]
    assert proved == pytest.approx(2.6)
    bound, price = knapsack.relax(np.array([1.0, 0.0, 0.6]))
    assert bound == pytest.approx(float(price[0] * 8))
    assert 2.6 <= bound < np.inf
