"""Fine units: sets of jobs of the types fit as before, and other demands are met to a thousandth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.decide import seeded
from rota.live.floor import Floor
from rota.live.units import fine_units
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
    floor = Floor(system, rota.FCFS(), seeded(np.random.SeedSequence(1)))
    asked = system.capacity * (share / 1000)
    units = floor.units_of(asked)
    assert (units <= floor.state.capacity).all()
    assert (units * floor.unit >= asked - floor.unit * 1e-6 - (system.capacity - floor.state.capacity * floor.unit)).all()
    assert (units * floor.unit <= asked + floor.unit * (1 + 1e-6)).all()
    np.testing.assert_array_equal(floor.units_of(system.capacity), floor.state.capacity)
    for row, demand in zip(floor.state.demand, system.demand, strict=True):
        np.testing.assert_array_equal(floor.units_of(demand), row)


def test_natural_numbers_are_exact():
    """Types of 4 GB do not make a job of 1 GB take 4, and three thirds of a core are a core."""
    system = rota.System([10, 1, 5], [[4, 1 / 3, 0]], [1.0], [1.0], resources=["memory_gb", "cores", "unused"])
    floor = Floor(system, rota.FCFS(), seeded(np.random.SeedSequence(1)))
    np.testing.assert_allclose(floor.units_of([1, 0.5, 2]) * floor.unit, [1, 0.5, 2])
    assert (10 * floor.units_of([1, 0.1, 0.5]) == floor.state.capacity).all()
    assert 3 * floor.state.demand[0, 1] == floor.state.capacity[1]


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
    floor = Floor(system, rota.ServerFilling(), seeded(np.random.SeedSequence(1)), stop="suspend")
    assert floor.state.capacity[0] * floor.unit[0] == 8
    assert floor.units_of([10.0]) == floor.state.capacity
