"""The sizes of a Borg-like month: a law for each type that agrees with all that is published of them.

Known are the mean size of each type, and of all jobs together the quartiles, the standard deviation, and the number and work of the jobs
longer than 2e5 s. With m_i the mean of type i, m the mean of all, H = 2e5 s and φ the part of the work in long jobs, type i is a mixture:

core      lognormal around c_i = median · (m_i/m)^power, whose failure rate rises and then falls
tail      Pareto between L_i = start · c_i and H, with weight p_i
long      H + (largest − H) · Beta(a, b), the part φ of the work of every type
instant   a few jobs that take hardly any time, as logs have them: the published minimum is one tick of the clock

The weight p_i is what makes the mean right: (1−p_i) E[core_i] + p_i E[tail_i] = (1−φ) m_i. The Beta has the mean and the second moment
that long jobs must have for φ and the standard deviation to come out. The quartiles and the peak of the failure rate fix median, power
and start (`python -m benchmarks borg_calibration` solves for them).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from rota.arrays import Array, Int
from rota.errors import Infeasible

__all__ = ["BorgSizes"]

_TICK = 1e-6  # the clock of the log
_INSTANT = 1e-5  # part of the jobs that take less than a second: log-uniform between a tick and 1 s


@dataclass(frozen=True, eq=False)
class BorgSizes:
    """Published: `jobs` and `means` per type (K,), `deviation`, `limit`, `long_jobs`, `long_work` (φ), `largest`; ours: the rest."""

    jobs: Array
    means: Array
    deviation: float
    limit: float
    long_jobs: int
    long_work: float
    largest: float
    core_median: float
    core_sigma: float
    core_power: float
    tail_start: float
    tail_index: float

    @property
    def mean(self) -> float:
        """The mean of all jobs."""
        return float(self.jobs @ self.means / self.jobs.sum())

    @cached_property
    def core(self) -> Array:
        """c_i, the median of the core (K,)."""
        return np.asarray(self.core_median * (self.means / self.mean) ** self.core_power)

    @cached_property
    def tail(self) -> Array:
        """L_i, where the tail begins (K,)."""
        return np.asarray(self.tail_start * self.core)

    @cached_property
    def tail_weight(self) -> Array:
        """p_i (K,)."""
        core = self._core_moment(1)
        short = (1 - self.long_work) * self.means * self.jobs / (self.jobs - self.long_of_type)
        weight: Array = (short - core) / (self._tail_moment(1) - core)
        if not ((weight >= 0) & (weight <= 1)).all():
            raise Infeasible("no mixture of core and tail has the published means: change core_median, core_power or tail_start")
        return weight

    @cached_property
    def long_of_type(self) -> Int:
        """How many jobs of each type are long: proportional to the type's work, whole numbers by largest remainders (K,)."""
        exact = self.long_jobs * self.jobs * self.means / (self.jobs @ self.means)
        whole = np.floor(exact).astype(np.int64)
        order = np.argsort(whole - exact)
        whole[order[: self.long_jobs - int(whole.sum())]] += 1
        return whole

    @cached_property
    def long_shape(self) -> tuple[float, float]:
        """(a, b) of the Beta law of long jobs, by moments."""
        total, width = self.jobs.sum(), self.largest - self.limit
        share = self.long_jobs / total
        short = (1 - self.tail_weight) * self._core_moment(2) + self.tail_weight * self._tail_moment(2)
        mean = self.long_work * self.mean / share
        second = (self.deviation**2 + self.mean**2 - self.jobs @ short / total) / share
        x, v = (mean - self.limit) / width, (second - mean**2) / width**2
        if not (0 < x < 1 and 0 < v < x * (1 - x)):
            raise Infeasible("no law of long jobs gives the published standard deviation: change tail_index")
        total_shape = x * (1 - x) / v - 1
        return x * total_shape, (1 - x) * total_shape

    def sample(self, rng: np.random.Generator, types: Int) -> Array:
        """A size for each job that is not a long one, in whole ticks."""
        n, s = len(types), self.tail_index
        size = self.core[types] * np.exp(self.core_sigma * rng.standard_normal(n))
        in_tail = np.flatnonzero(rng.random(n) < self.tail_weight[types])
        low = self.tail[types[in_tail]]
        size[in_tail] = low * (1 - rng.random(len(in_tail)) * (1 - (low / self.limit) ** s)) ** (-1 / s)
        instant = np.flatnonzero(rng.random(n) < _INSTANT)
        size[instant] = _TICK ** rng.random(len(instant))
        ticks: Array = np.minimum(np.ceil(size / _TICK) * _TICK, self.limit)
        return ticks

    def sample_long(self, rng: np.random.Generator, n: int) -> Array:
        """Sizes of long jobs."""
        return np.asarray(self.limit + (self.largest - self.limit) * rng.beta(*self.long_shape, n))

    def survival(self, x: Array) -> Array:
        """P(size > x) over all types, for x ≤ `limit`; the instant jobs are left out."""
        z = np.asarray(x, dtype=np.float64)[:, None]
        core = 1 - ndtr(np.log(z / self.core) / self.core_sigma)
        end = (self.limit / self.tail) ** -self.tail_index
        tail = ((np.maximum(z, self.tail) / self.tail) ** -self.tail_index - end) / (1 - end)
        short = (1 - self.tail_weight) * core + self.tail_weight * tail
        total = self.jobs.sum()
        return np.asarray((short @ (self.jobs - self.long_of_type) + self.long_jobs) / total)

    def _core_moment(self, k: int) -> Array:
        return np.asarray(self.core**k * np.exp((k * self.core_sigma) ** 2 / 2))

    def _tail_moment(self, k: int) -> Array:
        """E[X^k] of a Pareto bounded by [L, H]: s/(k−s) · (H^k (L/H)^s − L^k) / (1 − (L/H)^s)."""
        s, ratio = self.tail_index, (self.tail / self.limit) ** self.tail_index
        return np.asarray(s / (k - s) * (self.limit**k * ratio - self.tail**k) / (1 - ratio))
