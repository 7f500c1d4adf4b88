"""How long a job runs: all distributions of job sizes, as `size = { distribution = "lognormal", mean = 1, cv = 3 }` names them in a spec.

Those with phases, which analysis can do, are in `rota.model.phase_types`; the others are here.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from rota.arrays import Array
from rota.model.distribution import MAX_CV, ComputedMean, NonNegative, Positive, SizeDistribution
from rota.model.phase_types import Coxian, Erlang, Exponential, Fitted, Hyperexponential, PhaseType

__all__ = ["BoundedPareto", "Deterministic", "Empirical", "LogNormal", "Size", "Weibull"]


class Deterministic(SizeDistribution):
    """Every job has the same size."""

    time_fields = ("mean",)

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

    time_fields = ("mean",)

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


class BoundedPareto(ComputedMean):
    """Pareto with exponent `shape` between `low` and `high`: density ∝ x^(−shape−1)."""

    time_fields = ("low", "high")

    distribution: Literal["bounded-pareto"] = "bounded-pareto"
    shape: Positive
    low: Positive
    high: Positive

    @model_validator(mode="after")
    def _check(self) -> BoundedPareto:
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self

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

    time_fields = ("mean",)

    distribution: Literal["weibull"] = "weibull"
    mean: Positive
    shape: Annotated[float, Field(ge=0.05, allow_inf_nan=False, strict=True)]

    def moment(self, k: int) -> float:
        """E[X^k] = mean^k Γ(1+k/shape) / Γ(1+1/shape)^k."""
        return float(self.mean**k * math.exp(math.lgamma(1 + k / self.shape) - k * math.lgamma(1 + 1 / self.shape)))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""
        return rng.weibull(self.shape, n) * (self.mean / math.gamma(1 + 1 / self.shape))


class Empirical(ComputedMean):
    """One of the given values, with the given weights (equal ones if left out)."""

    time_fields = ("values",)

    distribution: Literal["empirical"] = "empirical"
    values: Annotated[tuple[Positive, ...], Field(min_length=1)]
    weights: tuple[NonNegative, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Empirical:
        if self.weights is not None and (len(self.weights) != len(self.values) or sum(self.weights) <= 0):
            raise ValueError("weights need the length of values and a positive sum")
        return self

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
