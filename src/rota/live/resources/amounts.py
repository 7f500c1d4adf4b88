"""Amounts of a resource as people write them."""

from __future__ import annotations

import re

from rota.errors import BadSpec, Problem
from rota.live.resources.memory import Memory, bytes_per_unit, power_of

__all__ = ["parse_amount"]

_AMOUNT = re.compile(r"\s*(-?\d+(?:\.\d*)?|-?\.\d+)\s*(?:([kmgtp]?)(i?)(b?))\s*", re.IGNORECASE)


def parse_amount(text: str, resource: str) -> float:
    """`text` as an amount of this resource: "7G" of memory_gb is 7, of memory_mib 6675.72…; a bare number is in its own unit."""
    match = _AMOUNT.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise BadSpec([Problem(resource, "must be a number, for memory also with K, M, G, T (1000) or Ki, Mi, Gi, Ti (1024)", text)])
    number, unit = float(match[1]), match[2]
    if number < 0:
        raise BadSpec([Problem(resource, "must be at least 0", text)])
    if not unit and not match[4]:
        return number
    if not Memory.takes(resource):
        raise BadSpec([Problem(resource, "is not memory and takes a number without a unit", text)])
    return number * power_of(unit, bool(match[3])) / bytes_per_unit(resource)
