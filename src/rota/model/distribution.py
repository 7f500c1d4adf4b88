"""What all distributions of job sizes share: raw moments E[X^k], and with them mean, second moment and squared coefficient of variation;
sampling; scaling. They are pydantic models, so one definition serves Python, the tables of a spec and the JSON schema.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rota.arguments import is_real
from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem, problems_of

__all__ = ["MAX_CV", "ComputedMean", "Finite", "NonNegative", "Positive", "Probability", "SizeDistribution"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]

MAX_CV = 1e6  # larger than any use needs, and small enough for the moments to stay floats


class SizeDistribution(BaseModel):
    """What all distributions share. `mean` is a field of some and computed by others; `moment(1)` always is.

    A distribution names those of its fields that are times, and those that are rates: they change when sizes are scaled.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    time_fields: ClassVar[tuple[str, ...]] = ()
    rate_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, /, *values: Any, **fields: Any) -> None:
        if values:
            names = ", ".join(f"{name}=…" for name in type(self).model_fields if name != "distribution")
            raise BadSpec([Problem(type(self).__name__, f"takes its parameters by name: {names}", values[0])])
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadSpec(problems_of(error), type(self).__name__) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # a spec is read without it, and reports where problems are

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

    def scaled(self, factor: float) -> Self:
        """The distribution of factor · X: of the same kind, with times multiplied and rates divided by the factor."""
        if not (is_real(factor) and factor > 0):
            raise BadSpec([Problem("factor", "must be positive and finite", factor)])
        if not (self.time_fields or self.rate_fields):
            raise Infeasible(f"{type(self).__name__} cannot be scaled: it names none of its fields in time_fields or rate_fields")
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        fields |= {name: _multiplied(fields[name], float(factor)) for name in self.time_fields}
        fields |= {name: _multiplied(fields[name], 1.0 / float(factor)) for name in self.rate_fields}
        return type(self)(**fields)

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
