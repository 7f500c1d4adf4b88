"""Warm-up, confidence intervals, growth and quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from rota.simulation.statistics import QUANTILES, grows, half_width, mser, quantiles
from rota.simulation.tally import BUCKETS, bucket, new_tally


def autoregressive(rng, n, correlation):
    """A series x_t = c x_{t−1} + noise, begun in its stationary law."""
    noise = rng.standard_normal(n)
    noise[0] /= np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise)


@pytest.mark.parametrize("length", [50, 300, 700])
def test_mser_finds_a_transient(length):
    """A start that lies far above the rest is cut off, to a few values; hardly more than it."""
    rng = np.random.default_rng(1)
    series = rng.standard_normal(2000) + np.where(np.arange(2000) < length, 20 * np.exp(-np.arange(2000) / length), 0)
    assert 0.9 * length <= mser(series) <= length + 150


def test_mser_leaves_what_has_no_transient():
    """Without a transient little is cut, never more than half, and nothing of a short series."""
    rng = np.random.default_rng(2)
    cuts = [mser(rng.standard_normal(1000)) for _ in range(50)]
    assert np.median(cuts) < 150
    assert mser(np.arange(1000.0)) <= 500
    assert mser(np.array([100.0, 1.0, 1.0, 1.0])) == 0


def test_mser_is_the_definition():
    """The cut minimises the squared standard error of what is left, over all cuts up to half."""
    rng = np.random.default_rng(3)
    series = np.cumsum(rng.standard_normal(60))
    scores = [series[d:].var() / len(series[d:]) for d in range(31)]
    assert mser(series) == int(np.argmin(scores))


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.5, 0.93), (0.9, 0.91)])
def test_half_width_covers(correlation, least):
    """About 95 % of the intervals hold the true mean, for independent and for correlated batch means."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(2000):
        series = autoregressive(rng, 1000, correlation)
        hits += abs(series.mean()) <= half_width(series, np.ones(1000))
    assert least <= hits / 2000 <= 0.97


def test_half_width_counts_weights():
    """Batches without weight do not count; equal weights are as none; too few batches have no interval."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal(400)
    assert half_width(values, np.ones(400)) == pytest.approx(half_width(values, np.full(400, 7.0)))
    spoiled = values.copy()
    weights = np.ones(400)
    spoiled[::7], weights[::7] = 1e9, 0.0
    assert half_width(spoiled, weights) < 1
    assert half_width(values[:9], np.ones(9)) == np.inf
    assert half_width(values, np.zeros(400)) == np.inf


def test_grows():
    """A line through noise grows; a level series, one that falls, one that starts empty and fills, and small numbers do not."""
    rng = np.random.default_rng(6)
    noise = rng.random(1000) * 10
    assert grows(np.arange(1000.0) + noise)
    assert not grows(100 + noise)
    assert not grows(np.arange(1000.0)[::-1] + noise)
    assert not grows(100 * (1 - np.exp(-np.arange(1000) / 50)) + noise)
    assert not grows(np.arange(1000.0) / 100)
    assert not grows(np.arange(30.0) * 100)  # too short to tell


@given(st.lists(st.floats(1e-8, 1e14), min_size=1, max_size=300), st.integers(0, 30))
def test_quantiles_are_right_to_a_hundredth(values, zeros):
    """Quantiles of the histogram are those of the sorted list to 0.8 %; zeros stay zeros."""
    tally = new_tally(1, 0)
    values = values + [0.0] * zeros
    counts = np.zeros(BUCKETS, dtype=np.int64)
    for value in values:
        counts[bucket(tally, value)] += 1
    ordered = np.sort(values)
    for p, found in zip(QUANTILES, quantiles(counts), strict=True):
        exact = ordered[int(np.ceil(p * len(values) - 1e-9)) - 1]
        assert abs(found - exact) <= 0.008 * exact


def test_quantiles_of_nothing():
    """An empty histogram has no quantiles."""
    assert np.isnan(quantiles(np.zeros(BUCKETS, dtype=np.int64))).all()
