"""The tools that decision functions use: room, order, randomness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rota.decide import exponential, fits_one, seeded, uniform


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4))
def test_fits_one(pairs):
    """A job fits if no resource is short."""
    need, free = np.array(pairs, dtype=np.int64).T
    assert fits_one(np.ascontiguousarray(need[None, :]), np.ascontiguousarray(free), 0) == (need <= free).all()


def test_uniform_is_uniform():
    """Draws pass a Kolmogorov–Smirnov test, lie in [0, 1), and neighbours are uncorrelated."""
    random = seeded(np.random.SeedSequence(5))
    draws = np.array([uniform(random) for _ in range(20_000)])
    assert 0 <= draws.min() <= draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 4 / np.sqrt(len(draws))


def test_uniform_is_xoshiro():
    """The stream is xoshiro256++ by Blackman and Vigna: the first outputs from the state (1, 2, 3, 4), as they publish them."""
    random = np.array([1, 2, 3, 4], dtype=np.uint64)
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [uniform(random) for _ in expected] == [(x >> 11) / 2**53 for x in expected]


@pytest.mark.parametrize("rate", [0.01, 1.0, 50.0])
def test_exponential_has_its_rate(rate):
    """Draws pass a Kolmogorov–Smirnov test against the exponential law."""
    random = seeded(np.random.SeedSequence(6))
    draws = np.array([exponential(random, rate) for _ in range(10_000)])
    assert stats.kstest(draws, "expon", args=(0, 1 / rate)).pvalue > 0.001


def test_streams_differ_by_seed():
    """Two seeds give two streams, one seed one."""
    a, b, c = (seeded(np.random.SeedSequence(k)) for k in (1, 1, 2))
    assert [uniform(a) for _ in range(5)] == [uniform(b) for _ in range(5)] != [uniform(c) for _ in range(5)]
