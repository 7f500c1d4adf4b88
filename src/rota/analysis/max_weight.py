"""MaxWeight in heavy traffic, from below: state-space collapse (Theorem ht, and Eryilmaz and Srikant 2012, whom its proof cites).

Arrivals λ = ρ λ̃ grow towards the boundary of the capacity region. Take any prices y that prove the load (`rota.capacity.Facets`). The
priced work V = Σ y_i · (remaining sizes of type i) falls at rate at most 1, since y·u ≤ 1 for every schedule u, and grows by y_i S_i with
every arrival. So under *any* policy V is at least the work of an M/G/1 queue of load ρ, and for exponential sizes, where E[V] = Σ (y_i/μ_i)
E[Q_i],

    Σ_i (y_i/μ_i) E[Q_i]  ≥  Σ_i λ_i (y_i/μ_i)² / (1 − ρ).                                                        (resource pooling)

Under MaxWeight, which serves the largest Σ u_i Q_i, the queues collapse: as ρ → 1 all the schedules that the boundary point mixes must keep
the same weight, the largest one, so Q/|Q| lies in the cone over these y. Hence

    lim (1−ρ) Σ E[Q_i]  ≥  min Σ q_i   over q in the cone with  Σ (y_i/μ_i) q_i ≥ Σ λ̃_i (y_i/μ_i)²  for all y.

Arrivals that are not Poisson, of index of dispersion I_i at rate λ̃_i, have λ̃_i (1 + (I_i − 1)/2) in place of λ̃_i on the right-hand side:
the work of a single server has that limit, and queues collapse under Markovian arrivals as well (Mou and Maguluri 2020).

Corners y suffice, as the right-hand side is convex in y, and leaving some out only lowers the bound. Within one facet there is one y, the
cone is a ray q = κ y, and this is the limit itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
from rota.capacity import Facets, Load, active_facets
from rota.model import System

__all__ = ["Collapse", "max_weight_collapse"]

_ROUNDS = 30
_STEPS = 20
_MORE = 1e-7


@dataclass(frozen=True)
class Collapse:
    """Where the queues of MaxWeight collapse to in heavy traffic.

    `total`: a lower bound on lim (1−ρ) Σ E[Q_i], and that limit itself if `facets`, how many were found to meet at the boundary, is 1.
    `queues` (K,): the q at which the bound is attained.
    """

    total: float
    queues: Array
    facets: int


def max_weight_collapse(system: System, best: Load) -> Collapse:
    """The bound on the queues of MaxWeight as the load of a system grows to 1; sizes are taken as exponential."""
    facets: Facets = active_facets(system, best)
    mu = system.service_rate[facets.arriving]
    lam = system.arrival_rate[facets.arriving] / best.load  # λ̃
    grown = zip(system.arrivals, system.arrival_rate / best.load, strict=True)
    lam = lam * (1 + np.array([process.dispersion(float(rate)) if rate > 0 else 1.0 for process, rate in grown])[facets.arriving]) / 2

    def pooled(y: Array) -> float:
        return float(lam @ (y / mu) ** 2)

    corners = facets.extremes()
    for _ in range(_ROUNDS):
        rows = np.array([y / mu for y in corners])
        q = facets.least_sum(rows, np.array([pooled(y) for y in corners]))
        added = False
        for y in list(
            corners
        ):  # look uphill from each corner for one whose bound q breaks: the gap is convex in y, so a linear step climbs
            for _ in range(_STEPS):
                further = facets.price(2 * lam * y / mu**2 - q / mu)
                if np.abs(further - y).max() < _MORE:
                    break
                y = further
            if pooled(y) - q @ (y / mu) > _MORE:
                added |= facets.add(corners, y)
        if not added:
            break
    queues = np.zeros(len(system.names))
    queues[facets.arriving] = q
    return Collapse(float(q.sum()), queues, len(corners))
