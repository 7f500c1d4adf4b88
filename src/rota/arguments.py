"""Numbers that people give as arguments: what is meant is taken (1e5 jobs are 100,000), everything else is refused with the rule."""

from __future__ import annotations

import math
from numbers import Integral, Real

from rota.errors import BadSpec, Problem

__all__ = ["is_real", "whole"]


def is_real(value: object) -> bool:
    """Whether this is a finite number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def whole(place: str, value: object, least: int) -> int:
    """A whole number of at least `least`; 1e5 is one, 1.5 is not."""
    if not is_real(value) or (not isinstance(value, Integral) and not float(value).is_integer()):  # type: ignore[arg-type]
        raise BadSpec([Problem(place, f"must be a whole number of at least {least:,}", value)])
    if value < least:  # type: ignore[operator]
        raise BadSpec([Problem(place, f"must be at least {least:,}", value)])
    return int(value)  # type: ignore[call-overload, no-any-return]
