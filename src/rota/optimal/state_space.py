"""The states of the decision process: jobs present per type, up to a truncation, and what may run of them.

The jobs present q, 0 ≤ q_i ≤ N_i, are numbered in lexicographic order: the place of q is Σ_i stride_i q_i. Schedules are in lexicographic
order too, so u + e_i comes after u. A value of (q, u) is at place(q)·S + s, where u is schedule s.

Arrivals beyond N_i are lost, and cost what the values that go on beyond the edge say (`rota.optimal.continuation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import largest_counts, list_schedules
from rota.errors import Infeasible, TooManySchedules
from rota.model import System

__all__ = ["Moves", "StateSpace", "least_truncation", "schedules_of", "state_space"]

MOST_SCHEDULES = 5_000


class Moves(NamedTuple):
    """From schedule to schedule, in compressed rows: those of schedule s are from start[s] to start[s+1]."""

    start: Int  # (S+1,)
    kind: Int  # the type i of the job that starts or ends
    most: Int  # the larger u_i of the two schedules
    to: Int  # the schedule that this leads to
    rate: Array  # of ends: u_i μ_i
    offset: Int  # of ends: from the place of (q, u) to that of (q − e_i, u − e_i)


class StateSpace(NamedTuple):
    """What the compiled sweeps need: rates, truncation, schedules and the moves between them. Allocated once, read only."""

    arrival_rate: Array  # (K,)
    service_rate: Array  # (K,)
    truncation: Int  # (K,) N
    stride: Int  # (K,)
    size: int  # Π (N_i + 1)
    largest: Int  # (K,) how many of a type can run at once
    growth: Array  # (K, K) A: beyond the edge values go on as F(q) = ½ q·A q + b·q, see `rota.optimal.continuation`
    first: Array  # (K,) F(e_i) = ½ A_ii + b_i
    schedules: Int  # (S, K)
    ends: Moves  # u → u − e_i
    starts: Moves  # u → u + e_i
    served: Array  # (S,) Σ u_i μ_i
    maximal: Int  # (M, K) the schedules to which no job can be added

    @property
    def uniform_rate(self) -> float:
        """Λ + max_u Σ u_i μ_i: no state is left at a higher rate."""
        return float(self.arrival_rate.sum() + self.served.max())


def schedules_of(system: System) -> Int:
    """All schedules (S, K), the empty one first; raises `Infeasible` if there are too many to be states."""
    try:
        schedules = list_schedules(system, limit=MOST_SCHEDULES)
    except TooManySchedules as error:
        raise Infeasible(
            f"the server has more than {MOST_SCHEDULES:,} schedules (about {error.estimate:.3g}), each of which would be a state for each "
            "number of jobs present: take fewer types or a smaller server, or compare policies by simulation (rota.compare)"
        ) from None
    empty = np.zeros((1, len(system.names)), dtype=np.int64)
    return schedules if not schedules[0].any() else np.vstack([empty, schedules])


def _moves(schedules: Int, step: int, mu: Array, stride: Int) -> Moves:
    """The moves by one job: one more (`step` 1), or one less (−1)."""
    S = len(schedules)
    place = {tuple(row): s for s, row in enumerate(schedules.tolist())}
    start, moves = [0], list[tuple[float, ...]]()
    for s, row in enumerate(schedules.tolist()):
        for i, count in enumerate(row):
            to = place.get((*row[:i], count + step, *row[i + 1 :]))
            if to is not None:
                moves.append((i, max(count, count + step), to, count * mu[i], to - s + step * stride[i] * S))
        start.append(len(moves))
    columns = np.array(moves, dtype=float).reshape(-1, 5).T  # whole numbers far below 2⁵³
    kind, most, to_schedule, offset = (columns[k].astype(np.int64) for k in (0, 1, 2, 4))
    return Moves(np.array(start, dtype=np.int64), kind, most, to_schedule, np.ascontiguousarray(columns[3]), offset)


def state_space(system: System, truncation: Sequence[int] | Int, schedules: Int | None = None) -> StateSpace:
    """The states of a system with at most so many jobs of each type."""
    N = np.array(truncation, dtype=np.int64)
    stride = np.append(np.cumprod((N + 1)[::-1])[::-1][1:], 1).astype(np.int64)
    u = schedules_of(system) if schedules is None else schedules
    mu = np.array(system.service_rate)
    starts = _moves(u, 1, mu, stride)
    lam, most = np.array(system.arrival_rate), u.max(axis=0)
    return StateSpace(
        arrival_rate=lam,
        service_rate=mu,
        truncation=N,
        stride=stride,
        size=int(np.prod(N + 1)),
        largest=most,
        growth=np.zeros((len(N), len(N))),
        first=np.zeros(len(N)),
        schedules=u,
        ends=_moves(u, -1, mu, stride),
        starts=starts,
        served=np.asarray(u @ mu),
        maximal=u[np.diff(starts.start) == 0],
    )


def least_truncation(system: System) -> Int:
    """Each type needs two more jobs than can run at once, so that some wait and the decay of its queue is seen."""
    return largest_counts(system) + 2
