"""Whole units: decimals add up exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.capacity import integer_units
from rota.capacity.units import simplest_fraction
from systems import decimal, small_systems


def one_resource(capacity: float, *demand: float) -> rota.System:
    """A server with one resource and a type for each demand."""
    return rota.System([capacity], [[d] for d in demand], [1] * len(demand), [1] * len(demand))


@pytest.mark.parametrize(
    ("capacity", "demand", "count"),
    [
        (1, 0.001, 1000),
        (1, 0.1, 10),
        (0.3, 0.1, 3),
        (0.3, 0.1 + 0.2, 1),
        (1, 1 / 3, 3),
        (1, 2 / 3, 1),
        (1, 3 * 2**-20, 2**20 // 3),
        (5 * 2**-20, 2**-20, 5),
        (0.7, 0.07, 10),
        (4.35, 0.01, 435),
        (1e9, 1e-3, 10**12),
        (2e-13, 1e-13, 2),
        (7e-30, 1e-30, 7),
        (1e13, 1e12, 10),
        (1, 1, 1),
        (1, 0.6, 1),
    ],
)
def test_how_many_fit(capacity, demand, count):
    """As many jobs fit as decimal arithmetic says, and not one more."""
    system = one_resource(capacity, demand)
    assert integer_units(system).exact
    assert rota.largest_counts(system).tolist() == [count]
    assert rota.fits(system, [count])
    assert not rota.fits(system, [count + 1])


def test_different_decimals_fill_up_exactly():
    """0.1 + 0.2 fits into 0.3, and with 0.0001 more it does not."""
    assert rota.fits(one_resource(0.3, 0.1, 0.2), [1, 1])
    assert not rota.fits(one_resource(0.3, 0.1, 0.2001), [1, 1])


@given(small_systems(), st.data())
def test_units_keep_every_comparison(system, data):
    """u·D ≤ P holds in units if and only if it holds in exact decimals."""
    units = integer_units(system)
    assert units.exact
    most = rota.largest_counts(system)
    u = np.array([data.draw(st.integers(0, int(count) + 1)) for count in most])
    truth = all(
        sum(int(n) * decimal(d) for n, d in zip(u, system.demand[:, r], strict=True)) <= decimal(P) for r, P in enumerate(system.capacity)
    )
    assert bool((u @ units.demand <= units.capacity).all()) == truth


@given(st.fractions(min_value=0, max_value=1000, max_denominator=10_000))
def test_simple_fractions_are_recognised(fraction):
    """A float nearest to p/q with q ≤ 10,000 stands for p/q."""
    assert simplest_fraction(float(fraction)) == fraction


@given(st.floats(0, 1e15))
def test_simplest_fraction_is_close(x):
    """The fraction is within a relative 1e-13."""
    assert abs(simplest_fraction(x) - Fraction(x)) <= Fraction(x) / 10**13


@given(st.floats(0.001, 1000), st.floats(0.001, 1000))
def test_simplest_fraction_keeps_order(x, y):
    """A smaller number never stands for a larger fraction."""
    assert simplest_fraction(min(x, y)) <= simplest_fraction(max(x, y))


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=6), st.data())
def test_messy_floats_are_right_to_rounding(demand, data):
    """Without a common grid the units are not exact and say so; what fits does, and what exceeds by 2e-12 does not."""
    messy = [d * 0.123456789012345 ** (i / 10) for i, d in enumerate(demand)]
    system = one_resource(1.0, *messy)
    u = np.array([data.draw(st.integers(0, int(2 / (len(messy) * d)) + 1)) for d in messy])
    used = sum(int(n) * Fraction(d) for n, d in zip(u, messy, strict=True))
    if used <= 1:
        assert rota.fits(system, u)
    if used > 1 + Fraction(2, 10**12):
        assert not rota.fits(system, u)


def test_messy_floats_say_that_they_are_not_exact():
    """Irrational demands have no common unit."""
    assert not integer_units(one_resource(1.0, *np.sqrt([0.02, 0.03, 0.05, 0.07, 0.11]))).exact


@pytest.mark.parametrize("excess", [0, 1e-16, 1e-13, 5e-13, 9e-13])
@pytest.mark.parametrize("capacity", [0.3, 1.0, 2**0.5])
def test_whatever_a_system_accepts_fits_alone(capacity, excess):
    """A demand above the capacity by what counts as rounding does fit, once."""
    system = one_resource(capacity, capacity * (1 + excess))
    assert rota.largest_counts(system).tolist() == [1]
    assert rota.system_load(system).load == pytest.approx(1, rel=1e-12)


def test_a_resource_that_no_type_needs():
    """An unused resource of less than one unit limits nothing."""
    system = rota.System([1, 0.1], [[0.5, 0]], [1], [1])
    assert rota.largest_counts(system).tolist() == [2]
    best = rota.system_load(system)
    assert best.load == 0.5
    assert best.utilization.tolist() == [1, 0]


def test_tiny_demands_count():
    """A demand far below the resolution still takes one unit: nothing is for free."""
    units = integer_units(one_resource(1.0, 1e-30, 0.5))
    assert not units.exact
    assert units.demand[0, 0] == 1
