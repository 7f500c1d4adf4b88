"""From batches to answers: confidence intervals, quantiles, and whether the queue keeps growing.

A mean over jobs is a ratio T = Σ s_b / Σ n_b over batches b: s_b is a sum over the jobs of the batch, n_b their number. A mean over time is
the same with n_b the length of the batch. The error of T is that of the residuals z_b = s_b − T n_b, which add up to 0:

    Var T ≈ B f / (Σ n_b)²,    f = Σ_k Cov(z_b, z_{b+k}), the spectral density of z at frequency 0.

f takes in all correlation between batches. It is estimated from the periodogram of z: its logarithm is near a parabola at low
frequencies, and the parabola is read off at 0 (Heidelberger and Welch 1981). That needs no batches that are independent, only a run that is
long against the time over which the queue is correlated.

Means of queues are skewed: a run with few long queues gives a low mean and a narrow interval together. So the interval is that of log T,
and the half-width is its upper side, T (exp(h/T) − 1). And a run whose jobs are worth n independent ones has not seen what happens less
than once in n: h is made wider by √(1 + 5/n). The 5 was found on M/M/1 queues; `python -m benchmarks calibration` checks it on others.

Of m intervals at 95 % each, one or the other misses far more often than once in 20. They hold all at once, at 95 %, if each is made at
1 − 0.05/m (Bonferroni), whatever the dependence between them.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.simulation.student import student_quantile
from rota.simulation.tally import bucket_values

__all__ = [
    "QUANTILES",
    "WARMUP",
    "MeanInterval",
    "difference_interval",
    "grows",
    "mean_interval",
    "quantile_intervals",
    "quantiles",
    "ratio_interval",
    "spread_interval",
    "widening",
]

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
CONFIDENCE = 0.95
# The part of a run without end that is left out. A fixed part: a cut that depends on the data, as that of MSER, tends to come after long
# queues and before short ones, which makes the mean too low.
WARMUP = 0.2
_UNSEEN = 5.0
_SMALLEST = 10  # batches, for any estimate
_POINTS, _DEGREE = 25, 2  # of the periodogram, each the mean of two ordinates, and the degree of what is fitted to them
_GROUPS = 256  # batches are joined to this many
_FEWEST_PARTS = 6  # of a run, for the interval of a quantile
_FEW_GROUPS = 20  # if there are too few for a periodogram


# ---------------------------------------------------------------------------------------------------------------- intervals


class MeanInterval(NamedTuple):
    """The half-width of the interval of a mean over jobs, and how many independent jobs the counted ones are worth."""

    half_width: float
    worth: float


def mean_interval(sums: Array, counts: Array, variance: float) -> MeanInterval:
    """The interval of a mean over jobs, each with this variance.

    The mean of as many independent jobs as they are worth has the same error.
    """
    total = float(counts.sum())
    if len(sums) < _SMALLEST or total <= 0:
        return MeanInterval(np.inf, 0.0)
    ratio = float(sums.sum()) / total
    of_sum, freedom = _total_variance(sums - ratio * counts)
    worth = float(variance * total**2 / of_sum) if of_sum > 0 else np.inf
    return MeanInterval(_above(ratio, of_sum, freedom, total, worth) if np.count_nonzero(counts) >= _SMALLEST else np.inf, worth)


def ratio_interval(sums: Array, counts: Array, worth: float = np.inf) -> float:
    """The half-width of a 95 % confidence interval for Σ sums / Σ counts; infinite if there are too few batches.

    `worth` is how many independent jobs those of the run are worth.
    """
    total = float(counts.sum())
    if len(sums) < _SMALLEST or total <= 0 or np.count_nonzero(counts) < _SMALLEST:
        return np.inf
    ratio = float(sums.sum()) / total
    return _above(ratio, *_total_variance(sums - ratio * counts), total, worth)


def _above(ratio: float, of_sum: float, freedom: float, total: float, worth: float) -> float:
    """The upper side of the interval of a ratio, from the variance of its sum: h = t √Var / total, made wider; T (exp(h/T) − 1)."""
    half_width = _half_width(of_sum, freedom) / total * sqrt(1 + _UNSEEN / max(worth, 1.0))
    if ratio <= 0 or half_width == 0:
        return half_width
    return float(ratio * np.expm1(half_width / ratio)) if half_width < ratio else np.inf


def difference_interval(sums: Array, counts: Array, comparisons: int = 1) -> float:
    """The same for a difference, which may have either sign: not by the logarithm. It is one of so many that hold at once."""
    total = float(counts.sum())
    if len(sums) < _SMALLEST or total <= 0:
        return np.inf
    return _half_width(*_total_variance(sums - float(sums.sum()) / total * counts), comparisons) / total


def widening(comparisons: int) -> float:
    """By how much 95 % intervals of long runs are made wider, so that this many hold at once."""
    _, variance = _fit(_GROUPS)
    freedom = _freedom(variance)
    return float(student_quantile(_level(comparisons), freedom) / student_quantile(_level(1), freedom))


def spread_interval(sums: Array, counts: Array) -> Array:
    """The half-width for Σ sums / Σ counts over runs (first axis) that are independent of each other."""
    n, total = len(sums), np.asarray(counts.sum(axis=0), dtype=np.float64)
    ratio = np.divide(sums.sum(axis=0), total, out=np.full_like(total, np.nan), where=total > 0)
    spread = np.asarray((sums - ratio * counts).std(axis=0, ddof=1))
    return np.asarray(student_quantile(0.5 + CONFIDENCE / 2, n - 1) * np.sqrt(n) * spread / total)


def _half_width(variance: float, freedom: float, comparisons: int = 1) -> float:
    """The half-width for a value whose estimated variance has so many degrees of freedom."""
    return student_quantile(_level(comparisons), freedom) * sqrt(variance)


def _level(comparisons: int) -> float:
    """The probability below the upper end of an interval that is one of so many."""
    return 1 - (1 - CONFIDENCE) / (2 * comparisons)


def _total_variance(residuals: Array) -> tuple[float, float]:
    """The variance of the sum of a series of mean 0, and its degrees of freedom."""
    n = len(residuals)
    if np.ptp(residuals) <= 1e-12 * np.abs(residuals).max(initial=0.0):
        return 0.0, 1.0
    joined = np.add.reduceat(residuals, _groups(n))
    if np.ptp(joined) <= 1e-12 * np.abs(joined).max():  # what differs cancels within each group: as if batches were independent
        return float(residuals @ residuals), n - 1.0
    density, freedom = _spectrum(joined) if n >= 4 * _POINTS else _autoregression(joined)
    return len(joined) * density, freedom


@cache
def _groups(n: int) -> Int:
    """Where the groups begin into which n batches are joined."""
    groups = min(_GROUPS if n >= 4 * _POINTS else _FEW_GROUPS, n)
    return np.arange(groups) * n // groups


def _spectrum(series: Array) -> tuple[float, float]:
    """The spectral density at 0 and its degrees of freedom, by the parabola of Heidelberger and Welch."""
    n = len(series)
    periodogram = np.abs(np.fft.rfft(series - series.mean())[1 : 2 * _POINTS + 1]) ** 2 / n
    pairs = (periodogram[0::2] + periodogram[1::2]) / 2
    # The mean of two ordinates is χ²(4)/4 times the density: its logarithm has mean −0.270 and variance 0.645.
    logarithms = np.log(np.maximum(pairs, 1e-12 * pairs.max())) + 0.270
    weights, variance = _fit(n)
    value = float(weights @ logarithms)  # at frequency 0; exp(value − variance/2) has no bias
    return float(np.exp(value - variance / 2)), _freedom(variance)


def _freedom(variance: float) -> float:
    """Degrees of freedom of an estimate whose logarithm has this variance."""
    return float(max(2 / np.expm1(variance), 1.0))


@cache
def _fit(n: int) -> tuple[Array, float]:
    """The weights that give the value at 0 of the fitted polynomial, and its variance."""
    frequencies = (4 * np.arange(1, _POINTS + 1) - 1) / (2 * n)
    powers = np.vander(frequencies, _DEGREE + 1, increasing=True)
    weights = np.linalg.pinv(powers)[0]
    return weights, 0.645 * float(weights @ weights)


def _autoregression(series: Array) -> tuple[float, float]:
    """The same of a short series, with only the correlation r between neighbours: n values are worth n (1−r)/(1+r) independent ones."""
    n, centred = len(series), series - series.mean()
    spread = float(centred @ centred)
    lag_one = float(centred[1:] @ centred[:-1]) / spread if spread > 0 else 0.0
    correlation = min(max(lag_one + 1 / n, 0.0), 0.9)  # 1/n is the bias of the estimate
    worth = n * (1 - correlation) / (1 + correlation)
    return spread / (n - 1) * n / worth, max(worth - 1, 1.0)


# ---------------------------------------------------------------------------------------------------------------- growth


def grows(present: Array) -> bool:
    """Whether the number of jobs keeps growing: the means of the eighths of the run rise along a line, and by much.

    A judgement, not a proof: a run that is short compared to the time scale of the queue can look like growth, or hide it.
    """
    if len(present) < 4 * _SMALLEST:
        return False
    means = np.array([float(part.sum()) / len(part) for part in np.array_split(present, 8)])
    time = np.arange(8) - 3.5
    slope = float(time @ means) / float(time @ time)
    explained = slope**2 * float(time @ time) / max(float(((means - means.mean()) ** 2).sum()), 1e-300)
    rises = means[6:].mean() > 1.5 * means[2:4].mean() and means[4:6].mean() > means[2:4].mean()
    return bool(slope > 0 and explained > 0.75 and rises and means[-1] > 20.0)


def quantiles(counts: Int, probabilities: tuple[float, ...] = QUANTILES) -> Array:
    """Quantiles of a histogram; not a number if it is empty."""
    cumulative = np.cumsum(counts)
    return _at(cumulative, probabilities) if cumulative[-1] > 0 else np.full(len(probabilities), np.nan)


def _at(cumulative: Int, probabilities: tuple[float, ...]) -> Array:
    """The same of a histogram that is summed up."""
    places = np.searchsorted(cumulative, np.ceil(np.array(probabilities) * cumulative[-1] - 1e-9))
    return np.asarray(bucket_values()[np.minimum(places, len(cumulative) - 1)])


def quantile_intervals(parts: Int, levels: tuple[float, ...] = QUANTILES) -> dict[float, float]:
    """The half-widths for quantiles, from the histograms of the parts of a run (parts, buckets).

    F at the quantile is a mean over jobs, with a half-width h from the spread between the parts, which are few and long. The quantile lies
    between those of probability p − h and p + h, and the half-width is the larger side; infinite if p + h is not below 1, or if there are
    too few parts or jobs beyond the quantile.
    """
    total = parts.sum(axis=0)
    cumulative = np.cumsum(total)
    jobs = int(cumulative[-1])
    if jobs == 0:
        return dict.fromkeys(levels, np.nan)
    found = dict.fromkeys(levels, np.inf)
    known = [level for level in levels if len(parts) >= _FEWEST_PARTS and (1 - level) * jobs >= _SMALLEST]
    if not known:
        return found
    counts = parts.sum(axis=1)
    for level in known:
        place = int(np.searchsorted(cumulative, np.ceil(level * jobs - 1e-9)))
        below = counts - parts[:, place + 1 :].sum(axis=1)
        density, freedom = _autoregression(below - below.sum() / jobs * counts)
        h = _half_width(density * len(parts), freedom) / jobs
        if level + h < 1:
            low, middle, high = _at(cumulative, (max(level - h, 0.0), level, level + h))
            found[level] = float(max(middle - low, high - middle))
    return found
