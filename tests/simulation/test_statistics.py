"""Confidence intervals, growth and quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from rota.simulation.statistics import (
    QUANTILES,
    difference_interval,
    grows,
    quantile_intervals,
    quantiles,
    ratio_interval,
    spread_interval,
    widening,
)
from rota.simulation.tally import BUCKETS, bucket, new_tally


def autoregressive(rng, n, correlation):
    """A series x_t = c x_{t−1} + noise, begun in its stationary law."""
    noise = rng.standard_normal(n)
    noise[0] /= np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise)


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.5, 0.93), (0.9, 0.93)])
@pytest.mark.parametrize("batches", [60, 1000])
def test_intervals_cover(correlation, least, batches):
    """About 95 % of the intervals hold the true mean, for independent and for correlated batches, few or many."""
    if batches == 60 and correlation == 0.9:
        least = 0.8  # sixty values are worth three independent ones
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(2000):
        series = autoregressive(rng, batches, correlation)
        hits += abs(series.mean()) <= difference_interval(series, np.ones(batches))
    assert least <= hits / 2000 <= 0.975


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_of_equal_policies_none_is_told_apart(correlation):
    """Six policies of equal means: some is called worse than the best of the run in 5 % of the studies at most, and in far more without
    the correction for all fifteen pairs."""
    rng, ones, studies, policies = np.random.default_rng(8), np.ones(300), 300, 6
    wrong = {1: 0, 15: 0}
    for _ in range(studies):
        batches = np.array([autoregressive(rng, 300, correlation) for _ in range(policies)])
        apart = batches - batches[batches.mean(axis=1).argmin()]
        for pairs in wrong:
            wrong[pairs] += any(row.mean() > difference_interval(row, ones, pairs) for row in apart)
    assert wrong[15] <= 0.08 * studies  # 5 %, and its error by chance
    assert wrong[1] >= 0.12 * studies


def test_differences_that_cancel_nearby():
    """Two policies that differ in two neighbouring batches only, and by as much: the interval is finite and not 0."""
    apart = np.zeros(2048)
    apart[1000:1002] = (0.5, -0.5)
    with np.errstate(all="raise"):
        found = difference_interval(apart, np.ones(2048))
    assert 0 < found < 1e-3


def test_differences_that_exist_are_still_found():
    """A policy that is worse by six times the error of a difference is told apart from the best among six policies."""
    rng, ones = np.random.default_rng(9), np.ones(300)
    found = 0
    for _ in range(100):
        row = rng.standard_normal(300) * np.sqrt(2) + 6 * np.sqrt(2 / 300)
        found += row.mean() > difference_interval(row, ones, 15)
    assert found >= 80


def test_the_widening_is_that_of_the_intervals():
    """More comparisons make intervals wider, and by the factor that `widening` says."""
    series, ones = autoregressive(np.random.default_rng(10), 1000, 0.3), np.ones(1000)
    alone = difference_interval(series, ones)
    factors = [difference_interval(series, ones, pairs) / alone for pairs in (1, 3, 15, 45)]
    assert factors == pytest.approx([widening(pairs) for pairs in (1, 3, 15, 45)])
    assert factors == sorted(factors)
    assert factors[0] == 1.0


@pytest.mark.parametrize("n", [8, 25])
def test_intervals_of_quantiles_cover(n):
    """About 95 % of the intervals hold the true quantile of exponential times; a quantile beyond what was seen has none."""
    rng, studies = np.random.default_rng(11), 400
    tally, hits, times = new_tally(1, 1), 0, np.linspace(1e-4, 40, 200_000)
    places = np.array([bucket(tally, x) for x in times])
    for _ in range(studies):
        drawn = places[np.searchsorted(times, rng.exponential(1.0, (n, 500)))]
        parts = np.array([np.bincount(row, minlength=BUCKETS) for row in drawn])
        middle = quantiles(parts.sum(axis=0), (0.95,))[0]
        hits += abs(middle - np.log(20)) <= quantile_intervals(parts)[0.95] + 0.008 * np.log(20)
    assert hits / studies >= 0.92
    assert quantile_intervals(parts, (0.999999,)) == {0.999999: np.inf}
    assert quantile_intervals(parts[:5])[0.95] == np.inf
    assert np.isnan(quantile_intervals(np.zeros((25, BUCKETS), dtype=np.int64))[0.95])


def test_intervals_of_ratios():
    """Batches of any size count by their size; too few of them, or a mean that drowns in its error, have no interval."""
    rng = np.random.default_rng(5)
    values, counts = 10 + rng.standard_normal(400), rng.integers(1, 9, 400).astype(float)
    sums = values * counts
    assert ratio_interval(sums, counts) == pytest.approx(ratio_interval(7 * sums, 7 * counts))
    assert ratio_interval(sums, counts) == pytest.approx(1.96 * np.sqrt((counts**2).sum()) / counts.sum(), rel=0.5)
    assert ratio_interval(np.full(400, 3.0), np.ones(400)) == 0.0
    assert ratio_interval(sums[:9], counts[:9]) == np.inf
    assert ratio_interval(sums, np.zeros(400)) == np.inf
    lone = np.zeros(400)
    lone[17] = 1.0
    assert ratio_interval(lone, np.ones(400)) == np.inf


def test_the_upper_side_of_a_logarithm():
    """A wide interval of a positive mean is wider than that of a difference with the same batches, a narrow one hardly."""
    rng = np.random.default_rng(7)
    noise, ones = rng.standard_normal(400), np.ones(400)
    noise -= noise.mean()
    for level, ratio in ((1000.0, 1.0), (0.5, 1.1)):
        plain = difference_interval(level + noise, ones)
        assert ratio_interval(level + noise, ones) == pytest.approx(level * np.expm1(plain / level))
        assert ratio_interval(level + noise, ones) >= ratio * plain


def test_spread_between_runs():
    """Runs of equal length: Student's t on their means; a run of twice the length counts twice."""
    sums, counts = np.array([3.0, 4.0, 5.0]), np.ones(3)
    assert spread_interval(sums, counts) == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert spread_interval(2 * sums, 2 * counts) == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)


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
