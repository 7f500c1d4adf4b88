"""What all distributions of job sizes share: raw moments E[X^k], and with them mean, second moment and squared coefficient of variation;
sampling; scaling. They are pydantic models, so one definition serves Python, the tables of a spec and the JSON schema.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from rota.arguments import is_real
from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem
from rota.model.described import Described

__all__ = ["MAX_CV", "ComputedMean", "Finite", "NonNegative", "Positive", "Probability", "SizeDistribution"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]

MAX_CV = 1e6  # larger than any use needs, and small enough for the moments to stay floats


class SizeDistribution(Described):
    """What all distributions share. `mean` is a field of some and computed by others; `moment(1)` always is.

    A distribution names those of its fields that are times, and those that are rates: they change when sizes are scaled.
    """

    tag = "distribution"
    time_fields: ClassVar[tuple[str, ...]] = ()
    rate_fields: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def moment(self, k: int) -> float:
        """The raw moment E[X^k]; infinite where it does not exist."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` independent sizes."""

    def scaled(self, factor: float) -> Self:
        """The distribution of factor · X: of the same kind, with times multiplied and rates divided by the factor."""
        if not (is_real(factor) and factor > 0):
            raise BadSpec([Problem("factor", "must be positive and finite", factor)])
        if not (self.time_fields or self.rate_fields):
            raise Infeasible(f"{type(self).__name__} cannot be scaled: it names none of its fields in time_fields or rate_fields")
        times = {name: _multiplied(getattr(self, name), float(factor)) for name in self.time_fields}
        rates = {name: _multiplied(getattr(self, name), 1.0 / float(factor)) for name in self.rate_fields}
        return self.changed(**times, **rates)

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


class ComputedMean(SizeDistribution):
    """A distribution whose mean is computed, and is not a field."""

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)


def _multiplied(value: Any, factor: float) -> Any:
    """A number, or a table of numbers, times the factor."""
    return tuple(_multiplied(part, factor) for part in value) if isinstance(value, tuple) else value * factor
