"""What is counted while a simulation runs, and the histogram behind the quantiles.

A histogram bucket is the exponent and the first six bits of the mantissa of a floating-point number, so each bucket is at most 1/64 wide
relative to its lower end: quantiles read off its middle are right to 0.8 %, at the price of a shift instead of a logarithm.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.kernel import kernel
from rota.views import by_reference

__all__ = [
    "BATCH_BEGAN",
    "BUCKETS",
    "CLOSED",
    "COLUMNS",
    "COUNT",
    "LAST_EVENT",
    "LIMIT",
    "MANY",
    "PRESENT",
    "RESPONSE",
    "SERVED",
    "SHIFT",
    "SLOWDOWN",
    "SQUARE",
    "SWITCHED",
    "WAITING",
    "Counts",
    "Tally",
    "bucket",
    "bucket_values",
    "buckets_of",
    "histograms",
    "joined",
    "new_tally",
]

_BITS = 6
_LOWEST, _HIGHEST = -30, 50  # powers of two with buckets of their own: 1e-9 … 1e15
BUCKETS = ((_HIGHEST - _LOWEST) << _BITS) + 1  # the first one holds what is smaller, zero included
_OFFSET = (1023 + _LOWEST) << _BITS
MANY = 200  # types beyond which there is one histogram for all
COLUMNS = ("count", "response", "response²", "waiting", "waiting²", "slowdown", "slowdown²")
COUNT, RESPONSE, WAITING, SLOWDOWN = 0, 1, 3, 5  # places in a row of `Tally.rows`, as COLUMNS …
SQUARE = 1  # … and this far behind each sum, that of the squares
PRESENT, SERVED = 0, 1  # places in `Tally.area`
CLOSED, SHIFT, LIMIT = 0, 1, 2  # places in `Tally.numbers`
BATCH_BEGAN, LAST_EVENT, SWITCHED = 0, 1, 2  # places in `Tally.times`
_ALL_JOBS = np.iinfo(np.int64).max


@by_reference
class Tally(NamedTuple):
    """Sums over batches of jobs that arrived one after the other, and histograms since they were last emptied.

    A batch has 2^shift jobs. A job counts in the batch in which it arrived, whenever it ends, so under every policy a batch has the same
    jobs. Time integrals are over the time from the first arrival of a batch to that of the next.
    """

    rows: Array  # (batches, K, 7) as COLUMNS
    areas: Array  # (batches, 2, K) time integrals of jobs present and running
    span: Array  # (batches, 2) begin and end
    area: Array  # (2, K) the integrals of the batch that is open
    since: Array  # (K,) when the counts of a type last changed
    numbers: Int  # CLOSED batches, SHIFT, LIMIT: jobs with this number and later ones do not count, nor do those before job 0
    times: Array  # BATCH_BEGAN: the open one; LAST_EVENT; SWITCHED: time spent switching
    arrived: Int  # (K,)
    preemptions: Int  # (K,)
    buckets: Int  # (3, K, BUCKETS) response, waiting, slowdown; (3, 1, BUCKETS) for all types together if there are many
    scratch: Array  # (1,) a number as such …
    bits: Int  # (1,) … and as bits


def new_tally(K: int, batches: int, shift: int = 0) -> Tally:
    """An empty tally for this many batches of 2^shift jobs."""
    scratch = np.zeros(1)
    return Tally(
        rows=np.zeros((batches, K, len(COLUMNS))),
        areas=np.zeros((batches, 2, K)),
        span=np.zeros((batches, 2)),
        area=np.zeros((2, K)),
        since=np.zeros(K),
        numbers=np.array([0, shift, _ALL_JOBS], dtype=np.int64),
        times=np.zeros(3),
        arrived=np.zeros(K, dtype=np.int64),
        preemptions=np.zeros(K, dtype=np.int64),
        buckets=histograms(K),
        scratch=scratch,
        bits=scratch.view(np.int64),
    )


def histograms(K: int) -> Int:
    """Empty histograms of response time, waiting time and slowdown, for each type or, if there are many, for all together."""
    return np.zeros((3, K if K <= MANY else 1, BUCKETS), dtype=np.int64)


class Counts(NamedTuple):
    """The buckets of a histogram that are not empty: their places in the flattened array, and what is in them."""

    places: Int
    counts: Int


def joined(first: Counts, second: Counts) -> Counts:
    """Two histograms as one."""
    places, inverse = np.unique(np.concatenate([first.places, second.places]), return_inverse=True)
    return Counts(places, np.bincount(inverse, weights=np.concatenate([first.counts, second.counts])).astype(np.int64))


@kernel
def bucket(tally: Tally, value: float) -> int:
    """The bucket of a value that is not negative."""
    tally.scratch[0] = value
    return int(min(max((tally.bits[0] >> (52 - _BITS)) - _OFFSET + 1, 0), BUCKETS - 1))


def buckets_of(values: Array) -> Int:
    """The buckets of many values that are not negative."""
    codes = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.asarray(np.clip((codes >> (52 - _BITS)) - _OFFSET + 1, 0, BUCKETS - 1), dtype=np.int64)


@cache
def bucket_values() -> Array:
    """The middle of each bucket; zero for the first."""
    codes = (np.arange(BUCKETS - 1, dtype=np.int64) + _OFFSET) << (52 - _BITS)
    low, high = codes.view(np.float64), (codes + (1 << (52 - _BITS))).view(np.float64)
    return np.concatenate([[0.0], np.sqrt(low * high)])
