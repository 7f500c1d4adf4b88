"""How long a job runs: distributions of job sizes.

Every distribution knows its raw moments E[X^k], and with them its mean, second moment and squared coefficient of variation, and how to
sample itself. The phase-type family also knows its representation (a, T): X is the time to absorption of a Markov chain that starts in
phase j with probability a_j and moves by the subgenerator T, so that

    P(X > x) = a exp(T x) 1,        E[X^k] = k! a (-T)^{-k} 1.

They are pydantic models, so one definition serves Python, the TOML spec (`size = { distribution = "lognormal", mean = 1, cv = 3 }`) and the
JSON schema.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rota.arrays import Array
from rota.errors import BadSpec, Problem, problems_of

__all__ = [
    "BoundedPareto",
    "Coxian",
    "Deterministic",
    "Empirical",
    "Erlang",
    "Exponential",
    "Fitted",
    "Hyperexponential",
    "LogNormal",
    "PhaseType",
    "PhaseTypeFamily",
    "Size",
    "SizeDistribution",
    "Weibull",
]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]

MAX_PHASES = 1000
MAX_CV = 1e6  # beyond all use, and small enough for the moments to stay floats


class SizeDistribution(BaseModel):
    """What all distributions share. `mean` is a field of some and computed by others; `moment(1)` always is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, *values: Any, **fields: Any) -> None:
        if values:
            names = ", ".join(f"{name}=…" for name in type(self).model_fields if name != "distribution")
            raise BadSpec([Problem(type(self).__name__, f"takes its parameters by name: {names}", values[0])])
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadSpec(problems_of(error), type(self).__name__) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # a spec is read without it, and knows the places of its problems

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SizeDistribution):
            return NotImplemented
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def _fields(self) -> tuple[object, ...]:
        """The values that make the distribution; pydantic would compare cached arrays with them."""
        return tuple(getattr(self, name) for name in type(self).model_fields)

    @abstractmethod
    def moment(self, k: int) -> float:
        """The raw moment E[X^k]; infinite where it does not exist."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""

    @property
    def second_moment(self) -> float:
        """E[X²]."""
        return self.moment(2)

    @property
    def variance(self) -> float:
        """E[X²] − E[X]², not below zero by rounding."""
        return max(self.moment(2) - self.moment(1) ** 2, 0.0)

    @property
    def scv(self) -> float:
        """The squared coefficient of variation: variance over mean²."""
        return self.variance / self.moment(1) ** 2


# ---------------------------------------------------------------------------------------------------------------- phase type


class PhaseTypeFamily(SizeDistribution):
    """Distributions with a representation (a, T); moments and sampling follow from it."""

    @abstractmethod
    def _build(self) -> tuple[Array, Array]:
        """The start vector `a` and the subgenerator `T`."""

    @cached_property
    def representation(self) -> tuple[Array, Array]:
        """Start vector `a` (phases,) and subgenerator `T` (phases, phases), read-only."""
        a, T = self._build()
        a.flags.writeable = T.flags.writeable = False
        return a, T

    def moment(self, k: int) -> float:
        """E[X^k] = k! a (-T)^{-k} 1."""
        a, T = self.representation
        x: Array = np.ones(len(a))
        for _ in range(k):
            x = np.linalg.solve(-T, x).astype(np.float64)
        return float(math.factorial(k) * (a @ x))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Runs all `n` chains side by side until the last one is absorbed."""
        a, T = self.representation
        phases = len(a)
        leave = -np.diag(T)
        jump = np.hstack([T, -T.sum(axis=1, keepdims=True)]) / leave[:, None]  # last column: absorption
        jump[np.arange(phases), np.arange(phases)] = 0.0
        cumulative = np.cumsum(jump, axis=1)
        cumulative[:, -1] = 1.0
        size = np.zeros(n)
        alive = np.arange(n)
        phase = np.minimum(np.searchsorted(np.cumsum(a), rng.random(n), side="right"), phases - 1)
        while alive.size:
            size[alive] += rng.standard_exponential(alive.size) / leave[phase]
            phase = (rng.random(alive.size)[:, None] >= cumulative[phase]).sum(axis=1)
            stays = phase < phases
            alive, phase = alive[stays], phase[stays]
        return size


class Exponential(PhaseTypeFamily):
    """Exponential with the given mean: one phase."""

    distribution: Literal["exponential"] = "exponential"
    mean: Positive

    def _build(self) -> tuple[Array, Array]:
        return np.ones(1), np.array([[-1.0 / self.mean]])

    def moment(self, k: int) -> float:
        """E[X^k] = k! mean^k."""
        return math.factorial(k) * self.mean**k

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""
        return rng.standard_exponential(n) * self.mean


class Erlang(PhaseTypeFamily):
    """Sum of `phases` exponential phases of equal mean: cv = 1/√phases."""

    distribution: Literal["erlang"] = "erlang"
    mean: Positive
    phases: Annotated[int, Field(ge=1, le=MAX_PHASES, strict=True)]

    def _build(self) -> tuple[Array, Array]:
        a = np.zeros(self.phases)
        a[0] = 1.0
        rate = self.phases / self.mean
        return a, rate * (np.eye(self.phases, k=1) - np.eye(self.phases))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes, drawn as gamma variates."""
        return rng.gamma(self.phases, self.mean / self.phases, n)


class Hyperexponential(PhaseTypeFamily):
    """With probability `probabilities[j]` exponential of mean `means[j]`: cv ≥ 1."""

    distribution: Literal["hyperexponential"] = "hyperexponential"
    probabilities: tuple[Probability, ...]
    means: tuple[Positive, ...]

    @model_validator(mode="after")
    def _check(self) -> Hyperexponential:
        if not self.means or len(self.means) != len(self.probabilities):
            raise ValueError("probabilities and means need the same length, at least 1")
        _sums_to_one(self.probabilities, "probabilities")
        return self

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    def _build(self) -> tuple[Array, Array]:
        return np.array(self.probabilities), -np.diag(1.0 / np.array(self.means))


class Coxian(PhaseTypeFamily):
    """Phases in a row with the given rates; after phase j the job goes on with probability `proceed[j]`, else it is done."""

    distribution: Literal["coxian"] = "coxian"
    rates: tuple[Positive, ...]
    proceed: tuple[Probability, ...]

    @model_validator(mode="after")
    def _check(self) -> Coxian:
        if not self.rates or len(self.proceed) != len(self.rates) - 1:
            raise ValueError("a Coxian with n rates needs n − 1 probabilities to proceed")
        return self

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    def _build(self) -> tuple[Array, Array]:
        rates = np.array(self.rates)
        a = np.zeros(len(rates))
        a[0] = 1.0
        return a, np.diag(rates[:-1] * np.array(self.proceed), k=1) - np.diag(rates)


class Fitted(PhaseTypeFamily):
    """The small phase-type distribution with this mean and coefficient of variation.

    cv < 1: a mixture of Erlang(k−1) and Erlang(k) of one rate (Tijms 1986), k = ⌈1/cv²⌉; cv = 1: exponential; cv > 1: two exponentials with
    balanced means. Both moments are met exactly.
    """

    distribution: Literal["fitted"] = "fitted"
    mean: Positive
    cv: Annotated[float, Field(ge=MAX_PHASES**-0.5, le=MAX_CV, allow_inf_nan=False, strict=True)]

    def _build(self) -> tuple[Array, Array]:
        scv = self.cv**2
        if scv >= 1.0:  # balanced means: p1 m1 = p2 m2 = mean / 2
            root = math.sqrt((scv - 1.0) / (scv + 1.0))
            probabilities = np.array([(1.0 + root) / 2.0, 1.0 / ((scv + 1.0) * (1.0 + root))])  # the second: (1 − root) / 2, not cancelled
            return probabilities, -np.diag(2.0 * probabilities / self.mean)
        k = max(2, math.ceil(1.0 / scv - 1e-12))
        # The first of k phases is skipped with probability q; the q that meets the second moment is Tijms' (A.17).
        q = (k * scv - math.sqrt(max(k * (1.0 + scv) - k * k * scv, 0.0))) / (1.0 + scv)
        q = min(max(q, 0.0), 1.0)
        rate = (k - q) / self.mean
        a = np.zeros(k)
        a[0], a[1] = 1.0 - q, q
        return a, rate * (np.eye(k, k=1) - np.eye(k))


class PhaseType(PhaseTypeFamily):
    """A general phase-type distribution: start vector `initial` and subgenerator `generator`."""

    distribution: Literal["phase-type"] = "phase-type"
    initial: tuple[Probability, ...]
    generator: tuple[tuple[Finite, ...], ...]

    @model_validator(mode="after")
    def _check(self) -> PhaseType:
        n = len(self.initial)
        if not 1 <= n <= MAX_PHASES:
            raise ValueError(f"needs 1 to {MAX_PHASES} phases")
        if len(self.generator) != n or any(len(row) != n for row in self.generator):
            raise ValueError(f"generator must be {n} × {n}, as initial has {n} entries")
        _sums_to_one(self.initial, "initial")
        T = np.array(self.generator)
        off = T - np.diag(np.diag(T))
        exit_rate = -T.sum(axis=1)
        scale = np.abs(T).max()
        if (off < 0).any() or (np.diag(T) >= 0).any() or (exit_rate < -1e-12 * scale).any():
            raise ValueError("generator needs a negative diagonal, no other negative entry, and rows that sum to at most 0")
        if np.linalg.cond(T) > 1e14:
            raise ValueError("generator has phases that are never left for good")
        return self

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    def _build(self) -> tuple[Array, Array]:
        return np.array(self.initial), np.array(self.generator)


# ---------------------------------------------------------------------------------------------------------------- the others


class Deterministic(SizeDistribution):
    """Every job has the same size."""

    distribution: Literal["deterministic"] = "deterministic"
    mean: Positive

    def moment(self, k: int) -> float:
        """E[X^k] = mean^k."""
        return self.mean**k

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` equal sizes."""
        return np.full(n, self.mean)


class LogNormal(SizeDistribution):
    """log X is normal; given by mean and coefficient of variation of X."""

    distribution: Literal["lognormal"] = "lognormal"
    mean: Positive
    cv: Annotated[float, Field(gt=0, le=MAX_CV, allow_inf_nan=False, strict=True)]

    @property
    def _sigma2(self) -> float:
        return math.log1p(self.cv**2)

    def moment(self, k: int) -> float:
        """E[X^k] = mean^k exp(σ² k (k−1) / 2)."""
        return float(self.mean**k * math.exp(self._sigma2 * k * (k - 1) / 2))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""
        return rng.lognormal(math.log(self.mean) - self._sigma2 / 2, math.sqrt(self._sigma2), n)


class BoundedPareto(SizeDistribution):
    """Pareto with exponent `shape` between `low` and `high`: density ∝ x^(−shape−1)."""

    distribution: Literal["bounded-pareto"] = "bounded-pareto"
    shape: Positive
    low: Positive
    high: Positive

    @model_validator(mode="after")
    def _check(self) -> BoundedPareto:
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    def moment(self, k: int) -> float:
        """E[X^k] = s L^k/(1−(L/H)^s) · ∫ over [1, H/L] of y^(k−s−1) dy, the integral by expm1 so that k ≈ s is no special case."""
        s, log_ratio = self.shape, math.log(self.high / self.low)
        d = k - s
        integral = math.expm1(d * log_ratio) / d if d != 0 else log_ratio
        return float(s * self.low**k * integral / -math.expm1(-s * log_ratio))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes by inversion."""
        tail = -math.expm1(-self.shape * math.log(self.high / self.low))
        x = self.low * np.exp(-np.log1p(-rng.random(n) * tail) / self.shape)
        return np.minimum(x, self.high)


class Weibull(SizeDistribution):
    """P(X > x) = exp(−(x/c)^shape), with the scale c set by the mean. shape < 1: decreasing failure rate."""

    distribution: Literal["weibull"] = "weibull"
    mean: Positive
    shape: Annotated[float, Field(ge=0.05, allow_inf_nan=False, strict=True)]

    def moment(self, k: int) -> float:
        """E[X^k] = mean^k Γ(1+k/shape) / Γ(1+1/shape)^k."""
        return float(self.mean**k * math.exp(math.lgamma(1 + k / self.shape) - k * math.lgamma(1 + 1 / self.shape)))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""
        return rng.weibull(self.shape, n) * (self.mean / math.gamma(1 + 1 / self.shape))


class Empirical(SizeDistribution):
    """One of the given values, with the given weights (equal ones if left out)."""

    distribution: Literal["empirical"] = "empirical"
    values: Annotated[tuple[Positive, ...], Field(min_length=1)]
    weights: tuple[NonNegative, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Empirical:
        if self.weights is not None and (len(self.weights) != len(self.values) or sum(self.weights) <= 0):
            raise ValueError("weights need the length of values and a positive sum")
        return self

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    def moment(self, k: int) -> float:
        """The weighted mean of value^k."""
        return float(np.average(np.array(self.values) ** k, weights=self.weights))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent draws."""
        values = np.array(self.values)
        if self.weights is None:
            return values[rng.integers(len(values), size=n)]
        cumulative = np.cumsum(self.weights)
        return values[np.searchsorted(cumulative / cumulative[-1], rng.random(n), side="right")]


Size = Annotated[
    Exponential | Deterministic | Erlang | Hyperexponential | Coxian | Fitted | PhaseType | LogNormal | BoundedPareto | Weibull | Empirical,
    Field(discriminator="distribution"),
]


def _sums_to_one(values: tuple[float, ...], name: str) -> None:
    if abs(sum(values) - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, not {sum(values):.10g}")
