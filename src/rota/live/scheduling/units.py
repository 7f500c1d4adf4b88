"""Resources in integer units that are fine enough for demands outside the plan.

The units of a plan (`integer_units`) are as coarse as its types allow: where every type needs 4 or 8 GB, the unit is 4 GB. An own job may
need 1 GB, or 2.5. Here the unit is a thousandth of the natural one (or of the fraction of it that the types use), so that such demands are
integers, too. Sets of jobs of the types fit exactly as before.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import integer_units
from rota.capacity.units import simplest_fraction
from rota.model import System

__all__ = ["fine_units"]

_PARTS = 1000
_LARGEST = 2**52  # as for the units of the plan


def fine_units(system: System) -> tuple[Int, Int, Array]:
    """Demands (K, R) and capacity (R,) in fine units, and how much one unit is (R,)."""
    plan = integer_units(system)
    demand, capacity, amount = plan.demand.copy(), plan.capacity.copy(), np.empty(len(plan.capacity))
    for r, available in enumerate(system.capacity.tolist()):
        if capacity[r] >= _LARGEST // 2:  # fine already
            amount[r] = available / capacity[r]
            continue
        users = np.flatnonzero(demand[:, r])
        unit = simplest_fraction(float(system.demand[users[0], r])) / int(demand[users[0], r]) if len(users) else Fraction(1)
        fine, total = unit, simplest_fraction(available)
        for parts in (1, _PARTS):
            if (smaller := Fraction(1, parts * unit.denominator)) * _LARGEST > total:
                fine = smaller
        demand[:, r] *= int(unit / fine)
        # What is left below one unit of the plan is of no use for the types, and `System` lets a demand pass the capacity by rounding.
        capacity[r] = max(int(total / fine), int(capacity[r] * (unit / fine)) if len(users) else 1)
        amount[r] = float(fine)
    return demand, capacity, amount
