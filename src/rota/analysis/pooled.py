"""A lower bound on the mean response time of a fleet, for every dispatcher and every policy that does not know sizes, preemptive or not.

Sizes are exponential and arrivals Poisson. Two things limit every fleet.

*Slots.* A type never has more jobs in service than fit the whole fleet, k⁺ = Σ_c n_c max_{u ∈ 𝒮_c} u_i, none faster than at its highest
speed v⁺_i. So E[Q_i] is at least that of an M/M/k⁺ queue with the service rate μ_i v⁺_i: ℓ_i.

*Work.* Let y ≥ 0 be prices of the types with y·(v_c ⊙ u) ≤ z_c for all schedules u of kind c and Σ_c n_c z_c = 1, as the proof of the
load has. Weigh the work that is left of the jobs by these prices: W. It falls at a rate of at most 1, whatever runs where, and a job of
type i that arrives raises it by y_i S_i. So W is never below the work of an M/G/1 queue with the same arrivals; with ρ_y = Σ λ_i y_i/μ_i

    E[W] ≥ Σ_i λ_i y_i² E[S_i²] / (2 (1 − ρ_y)) = Σ_i λ_i (y_i/μ_i)² / (1 − ρ_y)                         (Pollaczek and Khinchine)

What is left of an exponential size has its mean, so E[W] = Σ_i (y_i/μ_i) E[Q_i]. Together

    min Σ_i q_i   s.t.   q_i ≥ ℓ_i,   Σ_i (y_i/μ_i) q_i ≥ Σ_i λ_i (y_i/μ_i)² / (1 − ρ_y)   for every y that is known

is a linear program whose value is at most Σ_i E[Q_i]. The prices known: those of the load, and those of every resource,
y_i = D_ir / max_c v_ci over Σ_c n_c P_cr, as the jobs in service never hold more of it than there is.
"""

from __future__ import annotations

import numpy as np
import scipy

from rota.analysis.queue import mean_waiting
from rota.arrays import Array
from rota.capacity import FleetLoad, largest_counts, system_load
from rota.model import Fleet

__all__ = ["least_mean_jobs", "least_mean_response_time", "pooled_queues"]

_LOAD_S = 10.0  # for the load, if its proof takes that long


def pooled_queues(fleet: Fleet) -> Array:
    """ℓ_i (K,): what E[Q_i] is at least, by slots; infinite if all slots of the fleet are too few."""
    runs = fleet.runs
    most = np.zeros(len(fleet.names))
    for c in range(len(fleet.kinds)):
        if runs[c].any():
            most[runs[c]] += fleet.count[c] * largest_counts(fleet.server(c))
    offered = fleet.offered_work / np.where(runs, fleet.speed, 0.0).max(axis=0)
    return np.array([a + mean_waiting(int(k), a) if a < k else np.inf for a, k in zip(offered.tolist(), most, strict=True)])


def least_mean_jobs(fleet: Fleet, load: FleetLoad) -> float:
    """A lower bound on Σ E[Q_i], by slots and by work. `load` is that of the fleet; its prices are used."""
    least = pooled_queues(fleet)
    arrives = fleet.arrival_rate > 0
    if not np.isfinite(least).all():
        return np.inf
    rows, right = [], []
    for y in _prices(fleet, load):
        weight = y / fleet.service_rate
        used = float(y @ fleet.offered_work)
        if used >= 1:
            return np.inf
        rows.append(-weight[arrives])
        right.append(-float(fleet.arrival_rate @ weight**2) / (1 - used))
    unit = np.abs(rows).max(axis=1)  # a row for each price, of the same magnitude
    keep = unit > 0
    if not keep.any():
        return float(least.sum())
    table, limit = np.array(rows)[keep] / unit[keep, None], np.array(right)[keep] / unit[keep]
    bounds = [(low, None) for low in least[arrives]]
    answer = scipy.optimize.linprog(np.ones(len(bounds)), A_ub=table, b_ub=limit, bounds=bounds, method="highs")
    # The dual bounds from below too, so that the solver's rounding does not matter: Σ ℓ_i (1 − a_i) + b·p for p ≥ 0 with Σ p a ≤ 1.
    p = np.maximum(-np.array(answer.ineqlin.marginals), 0.0) if answer.status == 0 else np.zeros(len(limit))
    p /= max(float((p @ -table).max()), 1.0)
    return float(least[arrives] @ (1 - p @ -table) + p @ -limit)


def least_mean_response_time(fleet: Fleet, load: FleetLoad | None = None) -> float:
    """A lower bound on the mean response time of all jobs, by Little's law."""
    best = system_load(fleet, time_limit_s=_LOAD_S) if load is None else load
    return least_mean_jobs(fleet, best) / float(fleet.arrival_rate.sum())


def _prices(fleet: Fleet, load: FleetLoad) -> list[Array]:
    """Prices y (K,) of a unit of work of each type, such that all servers together do work worth at most 1 per unit of time."""
    found = [load.type_price]
    fastest = np.where(fleet.runs, fleet.speed, 0.0).max(axis=0)
    total = fleet.count @ fleet.capacity
    return [*found, *(fleet.demand[:, r] / fastest / total[r] for r in np.flatnonzero(total))]
