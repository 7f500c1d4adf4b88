"""Whole numbers instead of decimals, so that sums of demands are exact.

In floating point a thousand jobs of 0.001 may or may not fit into 1. Here each resource is measured in a unit of its own that makes every
demand and the capacity whole. Each number stands for the simplest fraction within rounding distance of it (0.001 is 1/1000, 0.333…3 is 1/3,
0.1 + 0.2 is 3/10); the unit is one over the common denominator. Where that denominator gets too large for 64-bit integers, which takes
numbers without any common decimal grid, the unit is 2⁻⁵¹ of the capacity and sums are right to about 1e-12: `exact` then says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rota.arrays import Array, Int
from rota.model import System
from rota.model.system import check_system

__all__ = ["Units", "integer_units"]


_LARGEST = 2**52  # whole floats beyond this are not exact, and the linear programs see floats
_ROUNDING = Fraction(1, 10**13)


@dataclass(frozen=True)
class Units:
    """Demands (K, R) and capacity (R,) of a system in whole units; u fits if and only if u·demand ≤ capacity.

    `per_unit` (R,): how many of them make one unit as the user counts. (The capacity is rounded down to whole ones.)
    """

    demand: Int
    capacity: Int
    exact: bool
    per_unit: Array


def integer_units(system: System) -> Units:
    """The whole-number form of a system's demands and capacity."""
    check_system(system)
    return _units(tuple(system.capacity.tolist()), tuple(map(tuple, system.demand.tolist())))


@lru_cache(maxsize=64)
def _units(available: tuple[float, ...], needed: tuple[tuple[float, ...], ...]) -> Units:
    """By value: a search asks for the units of the same server at many arrival rates."""
    K, R = len(needed), len(available)
    demand = np.empty((K, R), dtype=np.int64)
    capacity = np.empty(R, dtype=np.int64)
    per_unit = np.empty(R)
    exact = True
    for r in range(R):
        total, needs, scale, whole = _whole(available[r], [row[r] for row in needed])
        capacity[r], demand[:, r], per_unit[r] = total, needs, float(scale)
        exact = exact and whole
    demand.flags.writeable = capacity.flags.writeable = per_unit.flags.writeable = False
    return Units(demand, capacity, exact, per_unit)


def _whole(available: float, needs: list[float]) -> tuple[int, list[int], Fraction, bool]:
    """One resource in whole units: capacity, demands, how many units make one of the user's, and whether that was exact."""
    # Far below 1 the simplest fraction loses the decimals (1e-13 is also 1/9999999999999): count in tenths, hundredths, … of which there
    # is at least one.
    shift = 10 ** max(math.ceil(-math.log10(available)), 0)
    fractions = [simplest_fraction(Fraction(x) * shift) for x in needs]
    scale = 1
    for fraction in fractions:
        scale = math.lcm(scale, fraction.denominator)
        if scale > 2**200:
            break
    units = [int(fraction * scale) for fraction in fractions]
    common = math.gcd(*units) or 1
    units = [unit // common for unit in units]
    # Rounding down loses nothing, as every use is a whole number of units. A demand that `System` accepts within rounding fits alone, and a
    # resource that no type needs has at least one unit.
    total = max(int(simplest_fraction(Fraction(available) * shift) * scale / common), *units, 1)
    if scale <= 2**200 and total <= _LARGEST:
        return total, units, Fraction(shift * scale, common), True
    scale = _LARGEST // 2
    units = [max(round(Fraction(x) / Fraction(available) * scale), 1) if x > 0 else 0 for x in needs]
    return scale + scale // 10**12, units, scale / Fraction(available), False


def simplest_fraction(x: float | Fraction) -> Fraction:
    """The fraction with the smallest denominator within a relative 1e-13 of x ≥ 0 (Stern–Brocot, by continued fractions)."""
    exact = Fraction(x)
    low, high = exact * (1 - _ROUNDING), exact * (1 + _ROUNDING)
    return Fraction(round(exact)) if low <= round(exact) <= high else _simplest_between(low, high)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    floor = math.floor(low)
    return floor + 1 / _simplest_between(1 / (high - floor), 1 / (low - floor))
