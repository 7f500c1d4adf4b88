"""Where the jobs come from: streams of arrivals in chunks, the same for every policy.

Arrival times, types and sizes have random streams of their own, so that two policies with one seed see the same jobs, however many
numbers each draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.kernel import compiled
from rota.model import Exponential, SizeDistribution, System
from rota.model.workload import CHUNK, Chunk

__all__ = ["Jobs", "PoissonArrivals", "initial_jobs", "what_is_left"]


@dataclass(frozen=True)
class PoissonArrivals:
    """Poisson arrivals of each type, sizes of its distribution: the own workload of a system without bursts. Without end.

    `first`: jobs of the first chunk, if not `chunk`; each next one is twice as long, up to `chunk`. So a short run does not draw more jobs
    than it needs. It goes for exponential sizes only, of which the stream is the same however it is cut.
    """

    chunk: int = CHUNK
    first: int | None = None

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """Chunks of jobs, for ever."""
        gaps, marks, lengths = (np.random.default_rng(child) for child in seed.spawn(3))
        total = float(system.arrival_rate.sum())
        if total == 0:
            return
        keep, alias = _alias(system.arrival_rate / total)
        means = 1.0 / system.service_rate
        exponential = all(isinstance(size, Exponential) for size in system.sizes)
        now, count = 0.0, min(self.first or self.chunk, self.chunk) if exponential else self.chunk
        while True:
            # Drawn by numpy and not in the compiled loop: numba crashes on a Ctrl-C while it unpacks a generator.
            times, kinds = gaps.standard_exponential(count), np.empty(count, dtype=np.int64)
            now = _fill(times, kinds, marks.random(count), now, total, keep, alias)
            if exponential:
                sizes = lengths.standard_exponential(count) * means[kinds]
            else:
                sizes = np.empty(count)
                for i, size in enumerate(system.sizes):
                    of_type = kinds == i
                    sizes[of_type] = size.sample(lengths, int(of_type.sum()))
            yield Chunk(times, kinds, sizes, sizes)
            count = min(2 * count, self.chunk)


def initial_jobs(system: System, seed: np.random.SeedSequence) -> tuple[Int, Array]:
    """Types and remaining sizes of jobs to begin with: as many of each type as run on average, λ_i E[S_i], under every stable policy."""
    rng = np.random.default_rng(seed)
    counts = np.rint(system.offered_work).astype(np.int64)
    left = [what_is_left(size, rng, count) for size, count in zip(system.sizes, counts.tolist(), strict=True)]
    order = rng.permutation(int(counts.sum()))
    return np.repeat(np.arange(len(counts)), counts)[order], np.concatenate(left)[order]


def what_is_left(size: SizeDistribution, rng: np.random.Generator, count: int) -> Array:
    """What is left of jobs that are seen at a random moment: a uniform part of a size that is chosen by its length."""
    seen = size.sample(rng, 64 * count)
    chosen = rng.choice(seen, count, p=seen / seen.sum()) if count else seen
    return chosen * (1 - rng.random(count))


def _alias(shares: Array) -> tuple[Array, Int]:
    """Walker's alias table: type j with probability keep[j], else alias[j], for j uniform."""
    K = len(shares)
    keep, alias = shares * K, np.arange(K)
    small, large = [j for j in range(K) if keep[j] < 1], [j for j in range(K) if keep[j] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        alias[low] = high
        keep[high] -= 1 - keep[low]
        (small if keep[high] < 1 else large).append(high)
    for j in small + large:  # what is left is 1 except for rounding
        keep[j] = 1.0
    return keep, alias


@partial(compiled, _nrt=False, nogil=True)  # several simulations at once draw their jobs on all cores
def _fill(
    times: Array,
    kinds: Int,
    marks: Array,
    now: float,
    rate: float,
    keep: Array,
    alias: Int,
) -> float:
    """Arrival times (from gaps of mean 1, in place) and types (from uniform marks) of a chunk; returns the last time."""
    K = keep.shape[0]
    for k in range(times.shape[0]):
        now += times[k] / rate
        times[k] = now
        place = marks[k] * K
        j = int(place)
        kept = int(place - j < keep[j])  # a product, as the processor would mispredict half of the branches
        kinds[k] = kept * j + (1 - kept) * alias[j]
    return now


@dataclass(frozen=True, eq=False)
class Jobs:
    """A given list of jobs: arrival times in order, types (positions in the system), sizes, and estimates (the sizes if left out)."""

    fixed: ClassVar[bool] = True  # the same for every seed
    times: ArrayLike
    kinds: ArrayLike
    sizes: ArrayLike
    estimates: ArrayLike | None = None

    def __len__(self) -> int:
        return len(np.atleast_1d(self.times))

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs as one chunk."""
        kinds, floats = np.asarray(self.kinds), (self.times, self.sizes, self.sizes if self.estimates is None else self.estimates)
        try:
            times, sizes, estimates = (np.ascontiguousarray(values, dtype=np.float64) for values in floats)
        except (TypeError, ValueError) as error:
            raise BadSpec([Problem("jobs", f"need numbers: {error}")]) from None
        if kinds.size and not np.issubdtype(kinds.dtype, np.integer):
            raise BadSpec([Problem("jobs", "need types as whole numbers: positions in the system", str(kinds.dtype))])
        kinds = np.ascontiguousarray(kinds, dtype=np.int64)
        if not (times.shape == kinds.shape == sizes.shape == estimates.shape) or times.ndim != 1:
            raise BadSpec([Problem("jobs", "times, kinds, sizes and estimates need the same length", times.shape)])
        if len(times) and (
            (np.diff(times) < 0).any() or not (np.isfinite(times).all() and np.isfinite(sizes).all()) or times[0] < 0 or sizes.min() <= 0
        ):
            raise BadSpec([Problem("jobs", "need times in order, not negative, and positive sizes, all finite")])
        if len(times) and (kinds.min() < 0 or kinds.max() >= len(system.names)):
            raise BadSpec([Problem("jobs", f"need types 0…{len(system.names) - 1}", int(kinds.max()))])
        for at in range(0, len(times), CHUNK):
            part = slice(at, at + CHUNK)
            yield Chunk(times[part], kinds[part], sizes[part], estimates[part])
