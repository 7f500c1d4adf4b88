"""Partly pinned servers: most hold one schedule for good, a few turn.

Where servers are few, pinned ones alone may not serve everything, although the load is below 1. How many have to turn? Over the schedules
that were found for the load and for pinned servers, with m_cs servers pinned, w_cs of those that turn running schedule s on average and r_c
of kind c that turn, an integer program finds the servers that carry most,

    max θ   s.t.   Σ_c Σ_s (m_cs + w_cs) (v_c ⊙ s) ≥ θ λ⊘μ,   Σ_s m_cs ≤ n_c − r_c,   Σ_s w_cs ≤ r_c,   Σ_c r_c = R,   m, r whole, w ≥ 0

They serve all jobs if θ > 1. With R = Σ n_c it is the load: θ = 1/ρ. Its optimum is at a corner with at most K + C positive weights, so
that at most K + C servers have to turn, however many there are.

For R = 0, 1, 2, … that is the start; from there the pinned schedules, the rotas and the split between them are improved in turns on the
mean response time (`rota.design.fleet_parts`). R grows until that gains nothing. The answer is never worse than pinned servers alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from rota.arrays import Array, Int
from rota.capacity import FleetLoad
from rota.design.deadline import Deadline
from rota.design.fleet_load import checked_fleet_load
from rota.design.fleet_parts import Parts, alternated, design_within
from rota.design.pinned import PinnedSearch
from rota.errors import Infeasible
from rota.model import Fleet
from rota.policy import PartlyPinned, Pinned

__all__ = ["design_partly_pinned"]

_PATIENCE = 2  # numbers of turning servers in a row that gain nothing, after which no more are tried
_SPARE = 1e-6  # θ must be above 1 by this, or jobs would hardly be served
_PART = 0.5  # of the time that is left, for the next number of turning servers
_PINNED = 0.2  # of the time, for pinned servers alone


def design_partly_pinned(fleet: Fleet, *, load: FleetLoad | None = None, time_limit_s: float = 60.0) -> PartlyPinned:
    """Pinned servers, and a few that turn where that helps or is needed: how many, the schedules of the pinned ones, the rotas of the
    others, and the split of every type between them, on the exact mean response time. Sizes are taken as exponential.

    There is one whenever the load is below 1; it is never worse than pinned servers alone. Raises `Unstable` if the load is not below 1.
    """
    best = checked_fleet_load(fleet, load, time_limit_s)
    deadline = Deadline.after(time_limit_s)
    search = PinnedSearch(fleet, best, deadline.began + _PINNED * time_limit_s)
    search.relax()
    found = _all_pinned(search, best, Deadline.after(2 * _PINNED * time_limit_s))
    columns = _Columns.of(search, best)
    idle = 0
    for turning in range(1, min(fleet.servers, len(fleet.names) + len(fleet.kinds)) + 1):
        if found is not None and (idle >= _PATIENCE or deadline.left_s < 0):
            break
        start = _start(fleet, columns, turning, deadline)
        if start is None:
            continue
        other = alternated(start, best, Deadline.after(_PART * max(deadline.left_s, 0.0)))
        if found is None or other.value < found.value:
            found, idle = other, 0
        else:
            idle += 1
    if found is None:
        raise Infeasible(
            f"no servers were found that serve all types, although the load is {best.load:.4g}: give more time, or spread the jobs at "
            "random over servers that all turn (rota.design_split)"
        )
    return found.policy()


def _all_pinned(search: PinnedSearch, best: FleetLoad, deadline: Deadline) -> Parts | None:
    """Pinned servers alone; None if none were found that serve everything."""
    fleet = search.fleet
    pinned = search.pinned(search.whole_numbers())
    C = len(fleet.kinds)
    split = np.zeros((2 * C, len(fleet.names)))
    for queue in pinned.queues(fleet):
        split[queue.kinds[0], queue.type] = queue.share
    _send_somewhere(fleet, split)
    parts = Parts(fleet, pinned, np.zeros(C, dtype=np.int64), (None,) * C, split)
    return alternated(parts, best, deadline) if np.isfinite(parts.value) else None


def _send_somewhere(fleet: Fleet, split: Array) -> None:
    """A type that does not arrive goes wherever it can."""
    C = len(fleet.kinds)
    for i in np.flatnonzero(fleet.arrival_rate == 0):
        split[:, i] = 0.0
        split[:C, i] = fleet.runs[:, i] / fleet.runs[:, i].sum()


@dataclass(frozen=True, eq=False)
class _Columns:
    """Schedules of kinds, over all types of the fleet: `kind` (n,), `rows` (n, K)."""

    kind: Int
    rows: Int

    @staticmethod
    def of(search: PinnedSearch, best: FleetLoad) -> _Columns:
        """Those that the search for pinned servers found, which has those of the load too."""
        everything = np.ones(len(search.kind), dtype=np.int64)
        listed = search.pinned(everything)
        return _Columns(listed.kind, listed.candidates)


def _start(fleet: Fleet, columns: _Columns, turning: int, deadline: Deadline) -> Parts | None:
    """Servers of which so many turn that carry most; None if they do not serve everything."""
    C, K, n = len(fleet.kinds), len(fleet.names), len(columns.kind)
    active = np.flatnonzero(fleet.arrival_rate > 0)
    work = columns.rows * fleet.speed[columns.kind]  # (n, K)
    of_kind = (columns.kind[None, :] == np.arange(C)[:, None]).astype(np.float64)
    # x = (m, w, r, θ)
    serve = np.hstack([work.T[active], work.T[active], np.zeros((len(active), C)), -fleet.offered_work[active, None]])
    unit = np.abs(serve).max(axis=1, keepdims=True)
    pinned = np.hstack([of_kind, np.zeros((C, n)), np.eye(C), np.zeros((C, 1))])
    turn = np.hstack([np.zeros((C, n)), of_kind, -np.eye(C), np.zeros((C, 1))])
    total = np.concatenate([np.zeros(2 * n), np.ones(C), [0.0]])[None]
    answer = milp(
        np.append(np.zeros(2 * n + C), -1.0),
        constraints=[
            LinearConstraint(serve / unit, lb=0.0),
            LinearConstraint(pinned, ub=fleet.count.astype(np.float64)),
            LinearConstraint(turn, ub=0.0),
            LinearConstraint(total, lb=turning, ub=turning),
        ],
        bounds=Bounds(0.0, np.concatenate([np.full(2 * n, np.inf), fleet.count, [np.inf]])),
        integrality=np.concatenate([np.ones(n), np.zeros(n), np.ones(C), [0.0]]),
        options={"time_limit": max(deadline.left_s / 4, 1.0)},
    )
    if answer.x is None or answer.x[-1] <= 1 + _SPARE:
        return None
    held, share = np.round(answer.x[:n]).astype(np.int64), np.maximum(answer.x[n : 2 * n], 0.0)
    servers = np.round(answer.x[2 * n : 2 * n + C]).astype(np.int64)
    used = np.flatnonzero(held)
    pinned_servers = Pinned(columns.kind[used], columns.rows[used], held[used], np.zeros((C, K)))
    served = np.zeros((2 * C, K))
    for queue in pinned_servers.queues(fleet):
        served[queue.kinds[0], queue.type] = queue.slots * queue.speed
    np.add.at(served, C + columns.kind, share[:, None] * work)
    served[C:][servers == 0] = 0.0
    served[:, fleet.arrival_rate == 0] = 0.0
    split = np.divide(served, served.sum(axis=0), out=np.zeros_like(served), where=served.sum(axis=0) > 0)
    _send_somewhere(fleet, split)
    rotas = []
    for c in range(C):
        sent = fleet.arrival_rate * split[C + c]
        kinds_left = int((servers[c:] > 0).sum())
        within = Deadline.after(max(deadline.left_s, 0.0) / (4 * max(kinds_left, 1)))
        rotas.append(design_within(fleet.server(c, sent / servers[c]), within) if sent.any() else None)
    parts = Parts(fleet, pinned_servers, servers, tuple(rotas), split)
    return parts if np.isfinite(parts.value) else None
