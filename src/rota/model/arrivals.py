"""When jobs of a type arrive: Markovian arrival processes, as a spec names them, `arrivals = { process = "bursts", factor = 5, … }`.

`arrival_rate` of the type is always the mean number of *jobs* per unit of time; the process says how they come. At another rate

    poisson, bursts, mmpp   the rates of all phases are multiplied, and the phases change as fast as before;
    map                     everything goes faster or slower, as arrivals may move the phase.

Any of them may have batches: then several jobs arrive at the same moment.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from rota.arrays import Array, Int
from rota.model.described import Described
from rota.model.distribution import Finite, NonNegative, Positive
from rota.model.markovian import MarkovianArrivals, irreducible

__all__ = ["MAP", "MMPP", "ArrivalProcess", "Arrivals", "BatchSize", "Bursts", "GeometricBatch", "GivenBatch", "Poisson"]

_MOST_PHASES = 100
_LARGEST_BATCH = 1000
_Matrix = Annotated[tuple[tuple[Finite, ...], ...], Field(min_length=1, max_length=_MOST_PHASES)]


# ------------------------------------------------------------------------------------------------------------ batches


class BatchSize(Described):
    """How many jobs a batch has: 1 or more.

    `unpacked` is the law of what is left once the first job has come, as a chain whose every step is a further job: the law of the first
    state, `begin` (J,), the rest of which is the probability of a single job, and the probabilities between states, `go` (J, J).
    """

    tag = "law"

    @abstractmethod
    def moment(self, k: Literal[1, 2]) -> float:
        """E[B] or E[B²]."""

    @property
    @abstractmethod
    def unpacked(self) -> tuple[Array, Array]:
        """`begin` and `go`."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Int:
        """The sizes of `n` batches."""


class GeometricBatch(BatchSize):
    """P(B = k) = (1 − θ) θ^{k−1} with mean 1/(1 − θ)."""

    law: Literal["geometric"] = "geometric"
    mean: Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False, strict=True)]

    def moment(self, k: Literal[1, 2]) -> float:
        """E[B], and E[B²] = (1 + θ)/(1 − θ)² = 2 E[B]² − E[B]."""
        return self.mean if k == 1 else 2 * self.mean**2 - self.mean

    @property
    def unpacked(self) -> tuple[Array, Array]:
        """After every job there is a further one with probability θ."""
        theta = 1 - 1 / self.mean
        return np.array([theta]), np.array([[theta]])

    def sample(self, rng: np.random.Generator, n: int) -> Int:
        """The sizes of `n` batches."""
        return rng.geometric(1 / self.mean, n).astype(np.int64)


class GivenBatch(BatchSize):
    """One of the given sizes, with the given weights (equal ones if left out)."""

    law: Literal["given"] = "given"
    sizes: Annotated[tuple[Annotated[int, Field(ge=1, le=_LARGEST_BATCH, strict=True)], ...], Field(min_length=1)]
    weights: tuple[NonNegative, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> GivenBatch:
        if self.weights is not None and (len(self.weights) != len(self.sizes) or sum(self.weights) <= 0):
            raise ValueError("weights need the length of sizes and a positive sum")
        return self

    @cached_property
    def _probabilities(self) -> Array:
        weights = np.ones(len(self.sizes)) if self.weights is None else np.array(self.weights)
        return np.asarray(weights / weights.sum())

    def moment(self, k: Literal[1, 2]) -> float:
        """E[B] or E[B²]."""
        return float(self._probabilities @ np.array(self.sizes, dtype=np.float64) ** k)

    @property
    def unpacked(self) -> tuple[Array, Array]:
        """State j: j + 1 further jobs are left."""
        left: Array = np.bincount(np.array(self.sizes) - 1, weights=self._probabilities)[1:].astype(np.float64)
        return left, np.eye(len(left), k=-1)

    def sample(self, rng: np.random.Generator, n: int) -> Int:
        """The sizes of `n` batches."""
        places = np.minimum(np.searchsorted(np.cumsum(self._probabilities), rng.random(n), side="right"), len(self.sizes) - 1)
        return np.array(self.sizes, dtype=np.int64)[places]


Batch = Annotated[GeometricBatch | GivenBatch, Field(discriminator="law")]


# ------------------------------------------------------------------------------------------------------------ processes


class ArrivalProcess(Described):
    """How the jobs of a type arrive; its mean rate is `arrival_rate` of the system. `batch`: how many come at once, one if None."""

    tag = "process"
    has_rate: ClassVar[bool] = False  # whether its numbers say a rate of their own

    batch: Batch | None = None

    @abstractmethod
    def _phases(self, rate: float) -> tuple[Array, Array]:
        """Rates between phases without an arrival (no diagonal) and with one (M, M), so that `rate` arrivals or batches come."""

    @property
    def is_poisson(self) -> bool:
        """Whether these are single jobs of a Poisson process."""
        return isinstance(self, Poisson) and self.batch is None

    @property
    def mean_batch(self) -> float:
        """E[B]: jobs that arrive at once."""
        return 1.0 if self.batch is None else self.batch.moment(1)

    def at(self, rate: float) -> MarkovianArrivals:
        """The process with `rate` jobs per unit of time, as matrices."""
        moves, marked = self._phases(rate / self.mean_batch)
        batch = self.batch
        if batch is None:
            return MarkovianArrivals(moves, marked)
        return MarkovianArrivals(moves, marked, batch.moment(1), batch.moment(2), *batch.unpacked)

    def dispersion(self, rate: float) -> float:
        """The index of dispersion I = lim Var N(t)/E N(t) of the number N(t) of arrivals in a time t, at this rate; 1 if Poisson."""
        return self.at(rate).dispersion

    @property
    def time_scale(self) -> float:
        """How long the rate of arrivals stays correlated: the slowest mode of the phases; 0 if there is one phase. In units at own rate."""
        return self.at(self.rate if self.has_rate else 1.0).time_scale

    @property
    def rate(self) -> float:
        """The mean rate that the numbers of the process say; not a number if they say none."""
        return float("nan")


class Poisson(ArrivalProcess):
    """Arrivals that know nothing of each other: the default."""

    process: Literal["poisson"] = "poisson"

    def _phases(self, rate: float) -> tuple[Array, Array]:
        return np.zeros((1, 1)), np.array([[rate]])


class Bursts(ArrivalProcess):
    """Bursts and quiet times, both exponential: an MMPP of two phases.

    For a part `share` of the time the rate is `factor` times the mean, in bursts of mean length `length`; in between it is what is left.
    """

    process: Literal["bursts"] = "bursts"
    factor: Annotated[float, Field(gt=1, le=1e6, allow_inf_nan=False, strict=True)]
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False, strict=True)]
    length: Positive

    @model_validator(mode="after")
    def _check(self) -> Bursts:
        if self.factor * self.share > 1 + 1e-12:
            most = f"at most {1 / self.share:.6g} with this share"
            raise ValueError(f"factor × share must be at most 1, as a burst has no more than all arrivals: factor {most}")
        return self

    @property
    def quiet_factor(self) -> float:
        """The rate between bursts over the mean rate: (1 − factor · share)/(1 − share)."""
        return max(1 - self.factor * self.share, 0.0) / (1 - self.share)

    def _phases(self, rate: float) -> tuple[Array, Array]:
        end = 1 / self.length
        begin = end * self.share / (1 - self.share)
        return np.array([[0.0, end], [begin, 0.0]]), rate * np.diag([self.factor, self.quiet_factor])


class MMPP(ArrivalProcess):
    """A Markov-modulated Poisson process: arrivals at rate `rates[m]` in phase m, which moves by `generator` and never by an arrival."""

    has_rate = True

    process: Literal["mmpp"] = "mmpp"
    rates: Annotated[tuple[NonNegative, ...], Field(min_length=1, max_length=_MOST_PHASES)]
    generator: _Matrix

    @model_validator(mode="after")
    def _check(self) -> MMPP:
        G = _square(self.generator, len(self.rates), "generator", "rates")
        off = G - np.diag(np.diag(G))
        if (off < 0).any() or (np.abs(G.sum(axis=1)) > 1e-9 * max(np.abs(G).max(), 1e-300)).any():
            raise ValueError("generator needs rows that sum to 0, with no negative entry off the diagonal")
        if not irreducible(off):
            raise ValueError("generator has phases that are not reached from every other one")
        if sum(self.rates) <= 0:
            raise ValueError("rates need a positive one")
        return self

    @property
    def rate(self) -> float:
        """The mean rate of jobs."""
        return self._own.rate * self.mean_batch

    @cached_property
    def _own(self) -> MarkovianArrivals:
        G = np.array(self.generator)
        return MarkovianArrivals(G - np.diag(np.diag(G)), np.diag(self.rates))

    def _phases(self, rate: float) -> tuple[Array, Array]:
        own = self._own
        return own.moves, own.marked * (rate / own.rate)


class MAP(ArrivalProcess):
    """A Markovian arrival process: phase moves without an arrival by `d0`, and with one by `d1`; d0 + d1 is a generator."""

    has_rate = True

    process: Literal["map"] = "map"
    d0: _Matrix
    d1: _Matrix

    @model_validator(mode="after")
    def _check(self) -> MAP:
        D0 = _square(self.d0, len(self.d0), "d0", "itself")
        D1 = _square(self.d1, len(self.d0), "d1", "d0")
        off = D0 - np.diag(np.diag(D0))
        scale = max(np.abs(D0).max(), 1e-300)
        if (off < 0).any() or (D1 < 0).any():
            raise ValueError("d0 may be negative on its diagonal only, and d1 nowhere")
        if (np.abs((D0 + D1).sum(axis=1)) > 1e-9 * scale).any():
            raise ValueError("d0 + d1 needs rows that sum to 0")
        if not irreducible(off + D1):
            raise ValueError("d0 + d1 has phases that are not reached from every other one")
        if D1.sum() <= 0:
            raise ValueError("d1 needs a positive entry")
        return self

    @property
    def rate(self) -> float:
        """The mean rate of jobs."""
        return self._own.rate * self.mean_batch

    @cached_property
    def _own(self) -> MarkovianArrivals:
        D0 = np.array(self.d0)
        return MarkovianArrivals(D0 - np.diag(np.diag(D0)), np.array(self.d1))

    def _phases(self, rate: float) -> tuple[Array, Array]:
        own = self._own
        return own.moves * (rate / own.rate), own.marked * (rate / own.rate)


Arrivals = Annotated[Poisson | Bursts | MMPP | MAP, Field(discriminator="process")]


def _square(rows: tuple[tuple[float, ...], ...], n: int, name: str, like: str) -> Array:
    if len(rows) != n or any(len(row) != n for row in rows):
        as_like = "be square" if like == "itself" else f"be {n} × {n}, as {like} has {n} {'rows' if like == 'd0' else 'entries'}"
        raise ValueError(f"{name} must {as_like}")
    return np.array(rows)
