"""From batches to answers: warm-up, confidence intervals, quantiles, and whether the queue keeps growing."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from rota.arrays import Array, Int
from rota.simulation.tally import bucket_values

__all__ = ["QUANTILES", "grows", "half_width", "mser", "quantiles"]

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
CONFIDENCE = 0.95
_GROUPS = 20
_SMALLEST = 10  # batches, for anything to be said


def mser(series: Array) -> int:
    """How many of the first values are warm-up: the cut that minimises the standard error of the rest (MSER, White 1997).

    The values are batch means already, as MSER-5 wants them. At most half of them are cut.
    """
    n = len(series)
    if n < 2 * _SMALLEST:
        return 0
    tail = series[::-1]
    counts = np.arange(1, n + 1)
    means = np.cumsum(tail) / counts
    squares = np.cumsum(tail**2) / counts
    score = np.maximum(squares - means**2, 0.0) / counts  # variance over count, for the last 1, 2, … values
    cut = n - counts
    allowed = cut <= n // 2
    return int(cut[allowed][np.argmin(score[allowed])])


def half_width(values: Array, weights: Array) -> float:
    """The half-width of a 95 % confidence interval for the weighted mean of a series of batch means.

    Batches are joined to 20 groups. What correlation r is left between neighbouring groups makes them worth n (1−r)/(1+r) independent
    ones (a first-order autoregression); 1/n is the bias of the estimate of r.
    """
    if len(values) < _SMALLEST:
        return np.inf
    parts = np.array_split(np.arange(len(values)), min(_GROUPS, len(values)))
    means = np.array([np.average(values[part], weights=weights[part]) for part in parts if weights[part].sum() > 0])
    if len(means) < 3:
        return np.inf
    n, centred = len(means), means - means.mean()
    spread = float(centred @ centred)
    lag_one = float(centred[1:] @ centred[:-1]) / spread if spread > 0 else 0.0
    correlation = min(max(lag_one + 1 / n, 0.0), 0.9)
    worth = n * (1 - correlation) / (1 + correlation)
    return float(student.ppf(0.5 + CONFIDENCE / 2, max(worth - 1, 1)) * means.std(ddof=1) / np.sqrt(worth))


def grows(present: Array) -> bool:
    """Whether the number of jobs keeps growing: the means of the eighths of the run rise along a line, and by much.

    A judgement, not a proof: a run that is short against the time in which the queue changes can look like growth, or hide it.
    """
    if len(present) < 4 * _SMALLEST:
        return False
    means = np.array([part.mean() for part in np.array_split(present, 8)])
    time = np.arange(8) - 3.5
    slope = float(time @ means) / float(time @ time)
    explained = slope**2 * float(time @ time) / max(float(((means - means.mean()) ** 2).sum()), 1e-300)
    rises = means[6:].mean() > 1.5 * means[2:4].mean() and means[4:6].mean() > means[2:4].mean()
    return bool(slope > 0 and explained > 0.75 and rises and means[-1] > 20.0)


def quantiles(counts: Int, probabilities: tuple[float, ...] = QUANTILES) -> Array:
    """Quantiles of a histogram; not a number if it is empty."""
    total = int(counts.sum())
    if total == 0:
        return np.full(len(probabilities), np.nan)
    cumulative = np.cumsum(counts)
    places = np.searchsorted(cumulative, np.ceil(np.array(probabilities) * total - 1e-9))
    return bucket_values()[np.minimum(places, len(counts) - 1)]
