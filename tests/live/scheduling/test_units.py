"""Fine units: sets of jobs of the types fit as before, and other demands are met to a thousandth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.decide import seeded
from rota.live.scheduling.scheduler import Scheduler
from rota.live.scheduling.units import fine_units
from systems import small_systems


@given(system=small_systems(), seed=st.integers(0, 2**32))
def test_the_same_sets_of_types_fit(system, seed):
    """Whatever counts: they fit in fine units if and only if they fit."""
    demand, capacity, amount = fine_units(system)
    counts = np.random.default_rng(seed).integers(0, 4, size=(50, len(system.names)))
    np.testing.assert_array_equal((counts @ demand <= capacity).all(axis=1), rota.fits(system, counts))
    np.testing.assert_allclose(demand * amount, system.demand, rtol=1e-12)
    assert (capacity * amount <= system.capacity * (1 + 1e-12)).all()
    assert (capacity * amount > system.capacity - amount - 1e-12).all()


@settings(deadline=None)
@given(share=st.integers(0, 1000), system=small_systems())
def test_demands_are_rounded_up(share, system):
    """A job is never given less than it asked for, at most one unit more, and what the server has can be met."""
    scheduler = Scheduler(system, rota.FCFS(), seeded(np.random.SeedSequence(1)))
    asked = system.capacity * (share / 1000)
    units = scheduler.units_of(asked)
    assert (units <= scheduler.state.capacity).all()
    assert (units * scheduler.unit >= asked - scheduler.unit * 1e-6 - (system.capacity - scheduler.state.capacity * scheduler.unit)).all()
    assert (units * scheduler.unit <= asked + scheduler.unit * (1 + 1e-6)).all()
    np.testing.assert_array_equal(scheduler.units_of(system.capacity), scheduler.state.capacity)
    for row, demand in zip(scheduler.state.demand, system.demand, strict=True):
        np.testing.assert_array_equal(scheduler.units_of(demand), row)


def test_natural_numbers_are_exact():
    """Types of 4 GB do not make a job of 1 GB take 4, and three thirds of a core are a core."""
    system = rota.System([10, 1, 5], [[4, 1 / 3, 0]], [1.0], [1.0], resources=["memory_gb", "cores", "unused"])
    scheduler = Scheduler(system, rota.FCFS(), seeded(np.random.SeedSequence(1)))
    np.testing.assert_allclose(scheduler.units_of([1, 0.5, 2]) * scheduler.unit, [1, 0.5, 2])
    assert (10 * scheduler.units_of([1, 0.1, 0.5]) == scheduler.state.capacity).all()
    assert 3 * scheduler.state.demand[0, 1] == scheduler.state.capacity[1]


@pytest.mark.parametrize("capacity", [64e9, 2.0**53, np.pi * 1e7])
def test_large_and_odd_numbers(capacity):
    """Memory in bytes, and numbers without a common grid, stay within 64 bits."""
    system = rota.System([capacity], [[capacity / 8], [np.e]], [1.0, 1.0], [1.0, 1.0])
    demand, units, amount = fine_units(system)
    assert 0 < units[0] <= 2**53
    np.testing.assert_allclose(demand * amount, system.demand, rtol=1e-6, atol=float(amount[0]))
    assert 8 * demand[0, 0] <= units[0]


def test_server_filling_sees_powers_of_two():
    """What is left beside the powers of two is of no use to it."""
    system = rota.System([10], [[4], [8]], [0.1, 0.1], [1.0, 1.0])
    scheduler = Scheduler(system, rota.ServerFilling(), seeded(np.random.SeedSequence(1)), stop="suspend")
    assert scheduler.state.capacity[0] * scheduler.unit[0] == 8
    assert scheduler.units_of([10.0]) == scheduler.state.capacity
