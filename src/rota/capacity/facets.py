"""The facets of the capacity region that the arrivals grow against: all type prices that prove the system load.

With x = λ⊘μ/ρ, the point where the ray of the arrivals leaves Conv(𝒮), the prices

    Y = { y ≥ 0 : y·u ≤ 1 for all u ∈ 𝒮, y·x = 1 }

are those that are optimal for the load. Their corners are the facets that meet at x; one corner only means that x lies within one facet.
A multiple of such a y is a vector q ≥ 0 with q·u ≤ q·x for all u: among all mixes of schedules, x has the largest weight q·u. These q form
the cone over Y. Types that never arrive are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array
from rota.capacity.load import Load
from rota.capacity.schedules import LISTED, list_schedules
from rota.errors import Infeasible, NotConverged, TooManySchedules
from rota.model import System

__all__ = ["Facets", "active_facets"]

_SAME = 1e-7


@dataclass(frozen=True, eq=False)
class Facets:
    """The prices Y by their constraints. `arriving` (K,): the types that arrive, to which all other arrays are restricted."""

    arriving: NDArray[np.bool_]
    schedules: Array
    boundary: Array

    def price(self, direction: Array) -> Array:
        """The y ∈ Y of largest direction·y."""
        from scipy.optimize import linprog

        found = linprog(-direction, A_ub=self.schedules, b_ub=np.ones(len(self.schedules)), A_eq=self.boundary[None, :], b_eq=[1.0])
        if found.status != 0:
            raise NotConverged(f"the prices of the load were not found: {found.message}")
        y: Array = np.maximum(found.x, 0.0)
        return y / (y @ self.boundary)

    def extremes(self) -> list[Array]:
        """The corners of Y with the largest and the smallest price of each type, each once."""
        corners: list[Array] = []
        for direction in np.vstack([np.eye(len(self.boundary)), -np.eye(len(self.boundary))]):
            self.add(corners, self.price(direction))
        return corners

    @staticmethod
    def add(corners: list[Array], y: Array) -> bool:
        """Adds a corner; False if it was there."""
        if any(np.abs(y - other).max() < _SAME for other in corners):
            return False
        corners.append(y)
        return True

    def least_sum(self, rows: Array, at_least: Array) -> Array:
        """The q of least Σ q_i in the cone over Y with rows·q ≥ at_least."""
        from scipy.optimize import linprog

        A = np.vstack([-rows, self.schedules - self.boundary])
        b = np.concatenate([-at_least, np.zeros(len(self.schedules))])
        found = linprog(np.ones(len(self.boundary)), A_ub=A, b_ub=b)
        if found.status != 0:
            raise NotConverged(f"no vector of queues was found in the cone of the prices: {found.message}")
        q: Array = found.x
        return q


def active_facets(system: System, best: Load) -> Facets:
    """The facets at which the arrivals of a system leave the capacity region. Needs a list of its maximal schedules (at most 20,000)."""
    arriving = np.asarray(system.arrival_rate > 0)
    try:
        schedules = list_schedules(system, maximal=True, limit=LISTED)
    except TooManySchedules as error:
        raise Infeasible(
            f"the facets need a list of all maximal schedules, and there are more than {LISTED:,} (about {error.estimate:.3g}): "
            'against MaxWeight, use max_weight="simulation"'
        ) from None
    maximal = np.unique(schedules[:, arriving], axis=0)
    return Facets(arriving, maximal.astype(np.float64), system.offered_work[arriving] / best.load)
