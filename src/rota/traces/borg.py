"""A Borg-like month: made jobs that agree with all that is published of the paper's trace of 68.9 million jobs.

The month is a list of batches (begin, type, number of jobs) that is drawn from a seed, of any share of the cell's rate:

1. *Batches.* The jobs of a type come in batches with Pareto sizes between `batch_low` and `batch_high`, drawn until the published number
   of jobs is reached. All jobs of a batch arrive within `batch_spread` seconds.
2. *Slow modulation.* Batches of type i begin at rate ∝ exp(σ_i Z_i(t)) · (1 + `daily` · sin(2πt/day)), at most `ceiling` times the mean,
   where Z_i is an Ornstein–Uhlenbeck process: normal, of variance 1, with correlation exp(−t/`memory`). The types have a Z of their own.
   The heavy type, the one with most of the CPU work, has σ = `heavy_modulation`, all others `modulation`.
3. *Trend.* Time is stretched a little, piece by piece, so that the quartiles of the arrivals are the published ones.
4. *Thinning.* Each job is kept with probability `share`: Binomial(jobs, share) of a batch. That is how the paper brings the cell down
   to one server, so a share of the month is a sample of the same month, whatever the share.
5. *Sizes* are independent, see `rota.traces.sizes_borg`. Long jobs come one by one, in time to be done before the month ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from scipy.optimize import brentq
from scipy.signal import lfilter

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.traces.files import open_trace, save_trace
from rota.traces.sizes_borg import BorgSizes
from rota.traces.trace import COLUMNS, Trace

__all__ = ["BORG_DAYS", "BorgModel", "BorgProgress", "borg_month", "write_borg_month"]

_DAY = 86_400.0
BORG_DAYS = 2_679_600.0 / _DAY  # the period with which the paper plays the month again and again
_CHUNK = 1 << 20  # jobs made at a time
_STEP = 600.0  # s; the modulation is linear between points so far apart


@dataclass(frozen=True)
class BorgModel:
    """Every number of the generator. Times in seconds; the first part is published, the second is our choice or our fit."""

    demand: tuple[tuple[float, float], ...] = (  # published: CPU and memory in parts of a server
        *((0.001, 0.006), (0.002, 0.002), (0.002, 0.003), (0.002, 0.006), (0.003, 0.002)),
        *((0.003, 0.006), (0.004, 0.006), (0.005, 0.006), (0.007, 0.006), (0.016, 0.012)),
    )
    jobs: tuple[int, ...] = (  # published: of each type in the month
        *(3_909_590, 15_843_234, 4_564_673, 8_924_386, 3_251_734),
        *(6_231_739, 4_669_357, 3_669_487, 13_676_162, 4_169_055),
    )
    mean_size: tuple[float, ...] = (  # published: of each type
        *(79.13368182971847, 247.76545985472154, 547.7454427456644, 113.98043891930851, 539.4167285622535),
        *(272.0899973466036, 403.9517181818715, 411.55681433450394, 116.91577496031474, 1248.0869304231892),
    )
    arrival_quantiles: tuple[float, ...] = (600.17, 577_906.0, 1_255_278.0, 1_937_091.0, 2_678_906.02)  # published: min, quartiles, max
    size_deviation: float = 8105.39  # published: standard deviation of all sizes
    long_limit: float = 2e5  # published: jobs above it were left out of the paper's figure
    long_jobs: int = 2542  # published
    long_work: float = 0.136  # published ("about")
    largest_size: float = 2_678_140.0  # published

    core_sigma: float = 0.33  # our choice: puts the peak of the failure rate at the published 50 s
    core_median: float = 79.1391  # solved from the published quartiles, together with the next two
    core_power: float = 0.58565
    tail_start: float = 1.74565
    tail_index: float = 1.2  # our choice: joins the tail to the long jobs without a step

    batch_low: float = 20.0  # our choice
    batch_high: float = 50_000.0  # our choice: at ρ = 0.1, where the paper shows no waiting, 100 of these jobs are left
    batch_index: float = 1.0  # our choice: batches of every order of magnitude hold as many jobs
    batch_spread: float = 1.0  # our choice
    daily: float = 0.2  # our choice
    modulation: float = 0.65  # our choice
    heavy_modulation: float = 6.0  # fitted to the paper's First-Fit curve up to ρ = 0.6: hardly anything, or at the ceiling
    memory: float = 3 * _DAY  # fitted, too
    ceiling: float = 8.5  # fitted, too

    @cached_property
    def sizes(self) -> BorgSizes:
        """The law of the sizes."""
        return BorgSizes(
            jobs=np.array(self.jobs, dtype=np.float64),
            means=np.array(self.mean_size),
            deviation=self.size_deviation,
            limit=self.long_limit,
            long_jobs=self.long_jobs,
            long_work=self.long_work,
            largest=self.largest_size,
            core_median=self.core_median,
            core_sigma=self.core_sigma,
            core_power=self.core_power,
            tail_start=self.tail_start,
            tail_index=self.tail_index,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types, as in examples/borg.toml."""
        return tuple(f"cpu{round(1000 * cpu)}_mem{round(1000 * memory)}" for cpu, memory in self.demand)

    @property
    def heavy(self) -> int:
        """The type with most of the CPU work."""
        return int(np.argmax(np.array(self.jobs) * np.array(self.mean_size) * np.array(self.demand)[:, 0]))


@dataclass(frozen=True)
class BorgProgress:
    """How far the making of a trace has come."""

    done: int
    jobs: int


class _Batches(NamedTuple):
    """Batches in order of their beginning. `size` is that of a long job, which is a batch of its own, else not a number."""

    begin: Array
    type: Int
    jobs: Int
    size: Array


def borg_month(*, share: float = 1.0, days: float = BORG_DAYS, seed: int = 0, model: BorgModel | None = None) -> Trace:
    """A month of Borg-like jobs, or any number of days, in memory. The paper's load ρ is a share of 0.01983·ρ.

    The seed makes the month; two shares of one seed are two independent samples of the same month. All of it needs 1.4 GB:
    `write_borg_month` needs less.
    """
    model = model or BorgModel()
    batches = _kept(model, share, days, seed)
    parts = [pl.DataFrame(schema=COLUMNS), *_chunks(model, batches, _seeds(seed, share)[1])]
    return _trace(model, pl.concat(parts).lazy(), share, days, seed)


def write_borg_month(
    path: str | Path,
    *,
    share: float = 1.0,
    days: float = BORG_DAYS,
    seed: int = 0,
    model: BorgModel | None = None,
    progress: Callable[[BorgProgress], None] | None = None,
) -> Trace:
    """Writes the jobs of `borg_month` to a file in chunks, in bounded memory, and opens it."""
    model = model or BorgModel()
    batches = _kept(model, share, days, seed)
    total = int(batches.jobs.sum())

    def source(columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None) -> Iterator[pl.DataFrame]:
        done = 0
        for part in _chunks(model, batches, _seeds(seed, share)[1]):
            done += len(part)
            yield part if columns is None else part.select(columns)
            if progress is not None:
                progress(BorgProgress(done, total))

    save_trace(_trace(model, register_io_source(source, schema=COLUMNS), share, days, seed), path)
    return open_trace(path)


def _trace(model: BorgModel, jobs: pl.LazyFrame, share: float, days: float, seed: int) -> Trace:
    about = {"origin": "synthetic Borg month", "period": days * _DAY, "share": share, "seed": seed, "time_unit_s": 1.0}
    return Trace(jobs, model.names, ("cpu", "memory"), np.array(model.demand), np.ones(2), about)


def _seeds(seed: int, share: float) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """One for the month, which every share of it has in common, and one for the sample."""
    return np.random.SeedSequence([seed, 0]), np.random.SeedSequence([seed, 1, int(share * 2**53)])


# ---------------------------------------------------------------------------------------------------------------- the batches


def _kept(model: BorgModel, share: float, days: float, seed: int) -> _Batches:
    """The batches of the month, thinned."""
    problems = []
    if not 0 < share <= 1:
        problems.append(Problem("share", "must be above 0 and at most 1", share))
    if not (days > 0 and np.isfinite(days)):
        problems.append(Problem("days", "must be positive and finite", days))
    if problems:
        raise BadSpec(problems)
    month, sample = _seeds(seed, share)
    batches = _batches(model, days * _DAY, np.random.default_rng(month))
    jobs = np.random.default_rng(sample.spawn(1)[0]).binomial(batches.jobs, share)
    some = jobs > 0
    return _Batches(batches.begin[some], batches.type[some], jobs[some], batches.size[some])


def _batches(model: BorgModel, period: float, rng: np.random.Generator) -> _Batches:
    """All batches of the month; of a longer or shorter time, in proportion."""
    part = period / (BORG_DAYS * _DAY)
    ends = np.array(model.arrival_quantiles) * part
    long_of_type = model.sizes.long_of_type
    begins, types, counts = [], [], []
    for i, jobs in enumerate(model.jobs):
        count = _batch_sizes(model, round((jobs - int(long_of_type[i])) * part), rng)
        counts.append(count)
        begins.append(_modulated(model, i, period, len(count), rng))
        types.append(np.full(len(count), i))
    begin, kind, count = np.concatenate(begins), np.concatenate(types), np.concatenate(counts)
    begin = np.interp(begin, [0.0, *_weighted_quartiles(begin, count), period], ends)

    long_types = np.repeat(np.arange(len(model.jobs)), np.floor(long_of_type * part + rng.random(len(model.jobs))).astype(np.int64))
    long = model.sizes.sample_long(rng, len(long_types))
    latest = np.where(long < ends[-1] - ends[0], ends[-1] - long, ends[-1])
    long_begin = ends[0] + (latest - ends[0]) * rng.random(len(long))

    begin, kind = np.concatenate([begin, long_begin]), np.concatenate([kind, long_types])
    count, size = np.concatenate([count, np.ones_like(long_types)]), np.concatenate([np.full(len(count), np.nan), long])
    order = np.argsort(begin, kind="stable")
    return _Batches(begin[order], kind[order], count[order], size[order])


def _batch_sizes(model: BorgModel, jobs: int, rng: np.random.Generator) -> Int:
    """Pareto sizes between `batch_low` and `batch_high` that add up to `jobs`; the last batch is cut."""
    low, high, s = model.batch_low, model.batch_high, model.batch_index
    drawn: list[Int] = []
    total = 0
    while total < jobs:
        n = int((jobs - total) / (4 * low)) + 10  # fewer than are needed, as a rule: then once more
        more = np.ceil(low * (1 - rng.random(n) * (1 - (low / high) ** s)) ** (-1 / s)).astype(np.int64)
        drawn.append(more)
        total += int(more.sum())
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *drawn])
    sums = np.cumsum(sizes)
    last = int(np.searchsorted(sums, jobs))
    sizes = sizes[: last + 1]
    if jobs > 0:
        sizes[last] -= sums[last] - jobs
    return sizes


def _modulated(model: BorgModel, i: int, period: float, n: int, rng: np.random.Generator) -> Array:
    """n times in [0, period) from the modulated rate of type i."""
    grid = np.linspace(0.0, period, max(2, int(np.ceil(period / _STEP)) + 1))
    keep = np.exp(-grid[1] / model.memory)
    noise = rng.standard_normal(len(grid))
    noise[1:] *= np.sqrt(1 - keep**2)  # so that the variance is 1 from the beginning
    z = lfilter([1.0], [1.0, -keep], noise)
    sigma = model.heavy_modulation if i == model.heavy else model.modulation
    rate = _capped(np.exp(sigma * z) * (1 + model.daily * np.sin(2 * np.pi * grid / _DAY)), model.ceiling)
    sums = np.concatenate([[0.0], np.cumsum(rate[1:] + rate[:-1])])
    return np.asarray(np.interp(rng.random(n) * sums[-1], sums, grid))


def _capped(rate: Array, ceiling: float) -> Array:
    """min(k · rate, ceiling) with the k that makes the mean 1."""

    def excess(log_k: float) -> float:
        return float(np.minimum(np.exp(log_k) * rate, ceiling).mean()) - 1

    low, high = -np.log(rate.mean()), np.log(ceiling / rate.min())  # without a ceiling, and all at the ceiling
    return np.asarray(np.minimum(np.exp(brentq(excess, low - 1e-9, high)) * rate, ceiling))


def _weighted_quartiles(times: Array, weights: Int) -> Array:
    order = np.argsort(times)
    sums = np.cumsum(weights[order])
    return np.asarray(times[order][np.searchsorted(sums, np.array([0.25, 0.5, 0.75]) * sums[-1])])


# ---------------------------------------------------------------------------------------------------------------- the jobs


def _chunks(model: BorgModel, batches: _Batches, seed: np.random.SeedSequence) -> Iterator[pl.DataFrame]:
    """The jobs in order of arrival, about a million at a time. What arrives after the next batch began waits for the next chunk."""
    rng = np.random.default_rng(seed)
    cuts = np.searchsorted(np.cumsum(batches.jobs), np.arange(_CHUNK, batches.jobs.sum(), _CHUNK))
    held: tuple[Array, Int, Array] = (np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(0))
    for begin, end in itertools.pairwise([0, *np.unique(cuts[cuts > 0]).tolist(), len(batches.begin)]):
        of = np.repeat(np.arange(begin, end), batches.jobs[begin:end])
        arrival = batches.begin[of] + model.batch_spread * rng.random(len(of))
        size, fixed = model.sizes.sample(rng, batches.type[of]), batches.size[of]
        size = np.where(np.isnan(fixed), size, fixed)
        made = (arrival, batches.type[of].astype(np.int32), size)
        arrival, kind, size = (np.concatenate(pair) for pair in zip(held, made, strict=True))
        order = np.argsort(arrival)
        limit = batches.begin[end] if end < len(batches.begin) else np.inf
        ready, later = np.split(order, [np.searchsorted(arrival, limit, sorter=order)])
        held = (arrival[later], kind[later], size[later])
        yield pl.DataFrame({"arrival": arrival[ready], "size": size[ready], "type": kind[ready]}, schema=COLUMNS)
