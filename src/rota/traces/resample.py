"""A trace of any length with the burstiness of a real one: a block bootstrap.

The trace is cut into blocks of about equal length, and blocks are drawn with replacement and put one after the other. Jobs keep their
sizes, their types and their place within the block. A cut is moved into the widest gap between two arrivals nearby (within a twentieth of a
block), so that a batch stays whole as long as it is shorter than that.

Kept are batches, all dependence between jobs of one block, and hence the index of dispersion of counts for windows well below the block's
length. Lost is what takes longer than a block: trends, the time of day and the day of the week (unless a block is whole days or weeks), and
dependence across blocks; the index of dispersion stays, beyond the block, at about its value there. Where a few great bursts make most of
the variance, a resampled month has each of them none, one or two times: months differ, and only many of them are as bursty as the real one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from rota.arrays import Array
from rota.errors import BadSpec, Problem
from rota.traces.trace import ACTUAL, Trace

__all__ = ["resample"]

_NEARBY = 0.05  # of a block: how far a cut may move


def resample(trace: Trace, *, days: float | None = None, span: float | None = None, seed: int = 0, block: float = 21_600.0) -> Trace:
    """A trace of this many `days`, or of `span` seconds (as long as the given one if neither is given), from blocks of the given one.

    `block` is the length of a block in seconds, at most half the trace: the longest time over which burstiness is kept. A sixth of a real
    trace or less gives enough different blocks. The result begins at time 0 and is in memory.
    """
    if days is not None and span is not None:
        raise BadSpec([Problem("span", "does not go with days: give one of them", span)])
    length = days * 86_400.0 if days is not None else trace.span if span is None else span
    problems = []
    if not (length > 0 and np.isfinite(length)):
        problems.append(Problem("days" if days is not None else "span", "must be positive and finite", days if days is not None else span))
    if not 0 < block <= trace.span / 2:
        problems.append(Problem("block", f"must be positive and at most half the trace, {trace.span / 2:.6g} s", block))
    if problems:
        raise BadSpec(problems)
    jobs = trace.jobs.drop(ACTUAL, strict=False).collect(engine="streaming")
    arrival = jobs["arrival"].to_numpy()
    cuts = _cuts(arrival, trace.begin, trace.span, block)
    first = np.searchsorted(arrival, cuts)
    first[-1] = len(arrival)

    drawn = _draw(np.diff(cuts), length, np.random.default_rng(seed))
    offset = np.concatenate([[0.0], np.cumsum(np.diff(cuts)[drawn])])[:-1] - cuts[drawn]  # from the old place to the new one
    count = np.diff(first)[drawn]
    rows = np.arange(count.sum()) + np.repeat(first[drawn] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
    made = jobs[rows].with_columns(arrival=pl.Series(arrival[rows] + np.repeat(offset, count)))
    made = made.filter(pl.col("arrival") < length)
    return replace(trace, jobs=made.lazy(), about={**trace.about, "period": length, "resampled": {"block": block, "seed": seed}})


def _cuts(arrival: Array, begin: float, span: float, block: float) -> Array:
    """Where the blocks begin, and the end of the last one; each inner cut in the middle of the widest gap nearby."""
    cuts = np.linspace(begin, begin + span, max(2, round(span / block)) + 1)
    reach = _NEARBY * (cuts[1] - cuts[0])
    for k in range(1, len(cuts) - 1):
        near = arrival[np.searchsorted(arrival, cuts[k] - reach) : np.searchsorted(arrival, cuts[k] + reach)]
        edges = np.concatenate([[cuts[k] - reach], near, [cuts[k] + reach]])
        widest = int(np.argmax(np.diff(edges)))
        cuts[k] = (edges[widest] + edges[widest + 1]) / 2
    return np.asarray(cuts)


def _draw(lengths: Array, span: float, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Positions of blocks, with replacement, that fill the span."""
    least = int(np.ceil(span / lengths.min())) + 1
    drawn = rng.integers(len(lengths), size=least)
    return drawn[: int(np.searchsorted(np.cumsum(lengths[drawn]), span)) + 1]
