"""Phase-type distributions of job sizes.

X is the time to absorption of a Markov chain that starts in phase j with probability a_j and moves by the subgenerator T, so that

    P(X > x) = a exp(T x) 1,        E[X^k] = k! a (-T)^{-k} 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from rota.arrays import Array
from rota.model.distribution import MAX_CV, ComputedMean, Finite, Positive, Probability, SizeDistribution

__all__ = ["Coxian", "Erlang", "Exponential", "Fitted", "Hyperexponential", "PhaseType", "PhaseTypeFamily"]

MAX_PHASES = 1000


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

    time_fields = ("mean",)

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

    time_fields = ("mean",)

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


class Hyperexponential(ComputedMean, PhaseTypeFamily):
    """With probability `probabilities[j]` exponential of mean `means[j]`: cv ≥ 1."""

    time_fields = ("means",)

    distribution: Literal["hyperexponential"] = "hyperexponential"
    probabilities: tuple[Probability, ...]
    means: tuple[Positive, ...]

    @model_validator(mode="after")
    def _check(self) -> Hyperexponential:
        if not self.means or len(self.means) != len(self.probabilities):
            raise ValueError("probabilities and means need the same length, at least 1")
        _sums_to_one(self.probabilities, "probabilities")
        return self

    def _build(self) -> tuple[Array, Array]:
        return np.array(self.probabilities), -np.diag(1.0 / np.array(self.means))


class Coxian(ComputedMean, PhaseTypeFamily):
    """Phases in a row with the given rates; after phase j the job goes on with probability `proceed[j]`, else it is done."""

    rate_fields = ("rates",)

    distribution: Literal["coxian"] = "coxian"
    rates: tuple[Positive, ...]
    proceed: tuple[Probability, ...]

    @model_validator(mode="after")
    def _check(self) -> Coxian:
        if not self.rates or len(self.proceed) != len(self.rates) - 1:
            raise ValueError("a Coxian with n rates needs n − 1 probabilities to proceed")
        return self

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

    time_fields = ("mean",)

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


class PhaseType(ComputedMean, PhaseTypeFamily):
    """A general phase-type distribution: start vector `initial` and subgenerator `generator`."""

    rate_fields = ("generator",)

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

    def _build(self) -> tuple[Array, Array]:
        return np.array(self.initial), np.array(self.generator)


def _sums_to_one(values: tuple[float, ...], name: str) -> None:
    if abs(sum(values) - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, not {sum(values):.10g}")
