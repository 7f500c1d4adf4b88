"""The door to the solver: the master program and the knapsack."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.capacity import integer_units
from rota.capacity.solver import Knapsack, Master
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
