"""A trace in numbers: its types, load, sizes and arrivals. Computed in two streams over the jobs, so memory stays bounded.

**Sizes** are counted in buckets of 1/128 octave (0.5 % wide), each with its mean. From the buckets come

- quantiles: the mean of the bucket that holds the quantile (exact where equal sizes fill it);
- the failure rate in a bin [a, b): the jobs that end in it over the time that all jobs spend in it, Σ (min(x, b) − a)⁺. This is the
  maximum-likelihood estimate of a rate that is constant there.

**Arrivals.** A *batch* is the jobs of one instant (or of a short while). The *index of dispersion* over windows of length w is
Var N(w) / E N(w), N(w) being the number of arrivals in a window: 1 for a Poisson process at every w, more if arrivals come in batches
(already at small w) or if their rate moves slowly (growing with w).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from rota.arrays import Array, Int
from rota.traces.trace import Trace

__all__ = ["QUANTILES", "WINDOWS", "TraceInfo", "trace_info"]

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
WINDOWS = (1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0)
_HOUR = 3600.0
_PER_OCTAVE = 128
_PER_BIN = 32  # buckets in a bin of the failure rate: a quarter octave
_MOST_WINDOWS = 1 << 24  # the finest windows that are counted
_FEWEST_WINDOWS = 10  # for a variance
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class TraceInfo:
    """A trace in numbers. Times are in seconds."""

    jobs: int
    begin: float
    span: float
    resources: tuple[str, ...]
    capacity: tuple[float, ...] | None
    types: pl.DataFrame  # most frequent first: name, demand.<resource>, jobs, rate, mean_size, cv, work_share
    demand_in_use: dict[str, float]  # by resource: mean demand of the jobs that would run if none waited, Σ size · demand / span
    load: dict[str, float] | None  # the same in parts of the capacity, where that is known
    size_mean: float
    size_cv: float
    size_min: float
    size_max: float
    size_quantiles: dict[float, float]
    size_tail: Array  # (n, 2): x, P(size > x)
    failure_rate: Array  # (bins, 4): from, to, rate, jobs that end in the bin
    gap_cv: float
    zero_gaps: float  # part of the gaps that are 0
    batches: int
    batch_mean: float  # jobs per batch
    batch_max: int
    batch_seen: float  # the batch of a typical job: E[B²] / E[B]
    dispersion: dict[float, float]  # by window
    hourly_arrivals: Int  # in each full hour since `begin`
    correlation: dict[str, float]  # of one gap, log size, hour with the next; neighbours of the same type, and what chance would give

    def coarse_failure_rate(self, factor: float = 4.0) -> list[tuple[float, float, float]]:
        """The failure rate in wider bins, each `factor` times as long as the one before: from, to, rate."""
        steps: dict[int, tuple[float, float]] = {}
        for low, _, rate, ends in self.failure_rate:
            step = math.floor(math.log(low, factor) + 1e-9)
            all_ends, spent = steps.get(step, (0.0, 0.0))
            steps[step] = (all_ends + ends, spent + (ends / rate if rate > 0 else 0.0))  # jobs that end, time spent
        return [(factor**step, factor ** (step + 1), ends / spent) for step, (ends, spent) in steps.items() if spent > 0]


def trace_info(trace: Trace, batch_gap: float = 0.0) -> TraceInfo:
    """The numbers of a trace. Jobs that follow each other within `batch_gap` seconds are one batch."""
    types, in_use = _types(trace)
    buckets = _buckets(trace.jobs)
    arrivals = _Arrivals(trace.begin, trace.end, batch_gap)
    for part in trace.jobs.select("arrival", "size", "type").collect_batches(chunk_size=_CHUNK, maintain_order=True):
        arrivals.add(part["arrival"].to_numpy(), part["size"].to_numpy(), part["type"].to_numpy())
    n, total, squares = len(trace), float(buckets["total"].sum()), float(buckets["squares"].sum())
    mean = total / n
    capacity = None if trace.capacity is None else tuple(float(c) for c in trace.capacity)
    share = types["jobs"].to_numpy() / n
    return TraceInfo(
        jobs=n,
        begin=trace.begin,
        span=trace.span,
        resources=trace.resources,
        capacity=capacity,
        types=types,
        demand_in_use=dict(zip(trace.resources, map(float, in_use), strict=True)),
        load=None if capacity is None else dict(zip(trace.resources, map(float, in_use / np.array(capacity)), strict=True)),
        size_mean=mean,
        size_cv=max(squares / n - mean**2, 0.0) ** 0.5 / mean if mean > 0 else 0.0,
        size_min=float(np.asarray(buckets["least"].min())),
        size_max=float(np.asarray(buckets["most"].max())),
        size_quantiles=_quantiles(buckets),
        size_tail=_tail(buckets),
        failure_rate=_failure_rate(buckets),
        gap_cv=arrivals.gap.cv,
        zero_gaps=arrivals.zero / max(n - 1, 1),
        batches=arrivals.batches,
        batch_mean=n / arrivals.batches,
        batch_max=arrivals.largest,
        batch_seen=arrivals.batch_squares / n,
        dispersion=arrivals.dispersion(),
        hourly_arrivals=arrivals.hourly(),
        correlation={
            "gap": arrivals.gap.next,
            "log_size": arrivals.log_size.next,
            "hourly_arrivals": _next(arrivals.hourly()),
            "same_type": arrivals.same / max(n - 1, 1),
            "same_type_by_chance": float(share @ share),
        },
    )


def _types(trace: Trace) -> tuple[pl.DataFrame, Array]:
    """The table of the types that occur, and the mean demand in use."""
    table = trace.per_type
    time = (table["jobs"] * table["mean_size"]).fill_null(0.0).to_numpy()
    unit = np.asarray(trace.capacity, dtype=np.float64) if trace.capacity is not None else trace.demand.max(axis=0)
    work = time * (trace.demand / np.where(unit > 0, unit, 1.0)).max(axis=1)
    every = pl.DataFrame(
        {
            "name": list(trace.names),
            **{f"demand.{resource}": trace.demand[:, r] for r, resource in enumerate(trace.resources)},
            "jobs": table["jobs"],
            "rate": table["jobs"] / trace.span,
            "mean_size": table["mean_size"],
            "cv": table["cv"],
            "work_share": work / max(work.sum(), 1e-300),
        }
    )
    return every.filter(pl.col("jobs") > 0).sort("jobs", descending=True, maintain_order=True), time @ trace.demand / trace.span


# ---------------------------------------------------------------------------------------------------------------- sizes


def _buckets(jobs: pl.LazyFrame) -> pl.DataFrame:
    """Sizes by bucket, smallest first; size 0 has a bucket of its own (null)."""
    size = pl.col("size")
    bucket = pl.when(size > 0).then((size.log(2) * _PER_OCTAVE).floor()).cast(pl.Int32)
    return (
        jobs.group_by(bucket.alias("bucket"))
        .agg(jobs=pl.len(), total=size.sum(), squares=(size * size).sum(), least=size.min(), most=size.max())
        .collect(engine="streaming")
        .sort("bucket", nulls_last=False)
    )


def _quantiles(buckets: pl.DataFrame) -> dict[float, float]:
    upto = buckets["jobs"].cum_sum().to_numpy()
    mean = (buckets["total"] / buckets["jobs"]).to_numpy()
    return {q: float(mean[np.searchsorted(upto, q * upto[-1])]) for q in QUANTILES}


def _tail(buckets: pl.DataFrame) -> Array:
    """P(size > x) at the upper end of each bucket, thinned to at most a few hundred points; the last point, 0, is left out."""
    upto = buckets["jobs"].cum_sum().to_numpy()
    points = np.column_stack([buckets["most"].to_numpy(), 1 - upto / upto[-1]])[:-1]
    return points[:: max(len(points) // 400, 1)]


def _failure_rate(buckets: pl.DataFrame) -> Array:
    """From, to, rate and endings of each bin that jobs end in. The last bin ends with the largest size."""
    buckets = buckets.filter(pl.col("bucket").is_not_null())
    if buckets.height == 0:
        return np.zeros((0, 4))
    bins = (
        buckets.with_columns(bin=(pl.col("bucket") // _PER_BIN))
        .group_by("bin")
        .agg(pl.col("jobs").sum(), pl.col("total").sum())
        .sort("bin")
    )
    index, ends, total = (bins[name].to_numpy() for name in ("bin", "jobs", "total"))
    ends = ends.astype(np.float64)
    low, high = (2.0 ** (np.array(edge) * _PER_BIN / _PER_OCTAVE) for edge in (index, index + 1))
    after = ends[::-1].cumsum()[::-1] - ends
    spent = (total - ends * low) + after * (high - low)
    return np.column_stack([low, high, np.divide(ends, spent, out=np.full(len(ends), np.nan), where=spent > 0), ends])


# ---------------------------------------------------------------------------------------------------------------- arrivals


class _Lagged:
    """Moments of a stream of numbers, and of each with the next. Shifted by the first number, so that the sums do not cancel."""

    def __init__(self) -> None:
        self.n, self.origin, self.sum, self.square, self.product = 0, 0.0, 0.0, 0.0, 0.0
        self.last: Array = np.zeros(0)

    def add(self, x: Array) -> None:
        """The next numbers of the stream."""
        if len(x) == 0:
            return
        if self.n == 0:
            self.origin = float(x.mean())
        x = x - self.origin
        self.n, self.sum, self.square = self.n + len(x), self.sum + float(x.sum()), self.square + float(x @ x)
        pairs = np.concatenate([self.last, x])
        self.product += float(pairs[:-1] @ pairs[1:])
        self.last = x[-1:]

    @property
    def _variance(self) -> float:
        return max(self.square / self.n - (self.sum / self.n) ** 2, 0.0) if self.n else 0.0

    @property
    def cv(self) -> float:
        """Coefficient of variation."""
        mean = self.origin + self.sum / max(self.n, 1)
        return self._variance**0.5 / mean if mean > 0 else 0.0

    @property
    def next(self) -> float:
        """Correlation of a number with the next (0 if they are all the same)."""
        if self.n < 3 or self._variance <= 1e-14 * self.origin**2:
            return 0.0
        return (self.product / (self.n - 1) - (self.sum / self.n) ** 2) / self._variance


def _next(x: Int) -> float:
    """Correlation of each number with the next."""
    lagged = _Lagged()
    lagged.add(x.astype(np.float64))
    return float(np.clip(lagged.next, -1.0, 1.0))


class _Arrivals:
    """What depends on the order of the jobs, gathered chunk by chunk."""

    def __init__(self, begin: float, end: float, batch_gap: float) -> None:
        self.begin, self.length, self.batch_gap = begin, end - begin, batch_gap
        fine = [w for w in WINDOWS if self.length / w <= _MOST_WINDOWS]
        self.window = fine[0] if fine else WINDOWS[-1]
        self.counts: Int = np.zeros(int(self.length / self.window) + 1, dtype=np.int64)
        self.gap, self.log_size = _Lagged(), _Lagged()
        self.zero = self.same = self.batches = self.largest = 0
        self.closed_squares = 0.0
        self.open = 0  # jobs so far of the batch that the chunk before ended with
        self.last_time, self.last_type = np.nan, -1

    def add(self, time: Array, size: Array, kind: Int) -> None:
        """The next jobs."""
        if len(time) == 0:
            return
        first = bool(np.isnan(self.last_time))
        gaps = np.diff(time, prepend=time[0] if first else self.last_time)
        same = np.diff(kind, prepend=kind[0] - 1 if first else self.last_type) == 0
        starts = gaps > self.batch_gap
        starts[0] |= first
        begins = np.flatnonzero(starts)
        self.gap.add(gaps[1:] if first else gaps)
        self.log_size.add(np.log(size[size > 0]))
        self.zero += int((gaps == 0).sum()) - first
        self.batches += len(begins)
        self.same += int(same.sum())
        lengths = np.diff(np.concatenate([[0], begins, [len(time)]])).astype(np.float64)
        lengths[0] += self.open  # the batch that goes on
        self.open = int(lengths[-1])
        self.largest = max(self.largest, int(lengths.max()))
        self.closed_squares += float(lengths[:-1] @ lengths[:-1])
        place = ((time - self.begin) / self.window).astype(np.int64)
        self.counts[place[0] : place[-1] + 1] += np.bincount(place - place[0])
        self.last_time, self.last_type = float(time[-1]), int(kind[-1])

    @property
    def batch_squares(self) -> float:
        """Sum of the squared batches, the last one with them."""
        return self.closed_squares + float(self.open) ** 2

    def _in_windows(self, length: float) -> Int:
        """Arrivals in each full window of a length that is a multiple of the finest."""
        per = round(length / self.window)
        full = int(self.length / length)
        counts: Int = self.counts[: full * per].reshape(full, per).sum(axis=1)
        return counts

    def dispersion(self) -> dict[float, float]:
        """Variance over mean of the arrivals in a window, for each window of which the trace has enough."""
        found = {}
        for w in WINDOWS:
            if w >= self.window and self.length / w >= _FEWEST_WINDOWS:
                counts = self._in_windows(w)
                found[w] = float(counts.var() / counts.mean())
        return found

    def hourly(self) -> Int:
        """Arrivals in each full hour."""
        return self._in_windows(_HOUR) if self.window <= _HOUR else np.zeros(0, dtype=np.int64)
