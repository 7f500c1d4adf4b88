"""Sweeps without preemption: the state is (q, u), jobs present and running; the decision is which waiting jobs start.

A job that runs goes on, so from (q, u) every u' ≥ u that fits and has u' ≤ q may be chosen. With W(q, u) the value before and V(q, u) the
value after the decision, relative to the empty server, and g the mean number of jobs in the long run,

    (Λ_q + Σ u_i μ_i) V(q, u) = c(q) − g + Σ_{i: q_i < N_i} λ_i W(q + e_i, u) + Σ u_i μ_i W(q − e_i, u − e_i)
    W(q, u) = min { V(q, u') : u' ≥ u } = min( V(q, u), min_i W(q, u + e_i) )

c(q) = Σ q_i + Σ_{i: q_i = N_i} λ_i (F(q + e_i) − F(q)), jobs present and what those cost that are lost
(`rota.optimal.continuation`); Λ_q is the sum of λ_i over types below the edge. In the empty server W = 0, so g = Σ λ_i W(e_i, 0). The
second form of the minimum takes the schedules from large to small and looks one job ahead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.kernel import compiled
from rota.optimal.state_space import StateSpace

__all__ = ["at_edge", "backup", "improve", "lost", "marginal", "move_on", "pull_of", "within"]


@compiled
def within(counts: Int, present: Int) -> bool:
    """u ≤ q."""
    for i in range(present.shape[0]):  # noqa: SIM110 (numba has no all())
        if counts[i] > present[i]:
            return False
    return True


@compiled
def improve(space: StateSpace, W: Array, choice: NDArray[np.int16], ascending: bool) -> None:
    """One Gauss–Seidel sweep through W (size·S,) in place, by the best decisions, which are kept in `choice`."""
    N, u, ends, starts = space.truncation, space.schedules, space.ends, space.starts
    S, K = u.shape
    present = np.zeros(K, dtype=np.int64) if ascending else N.copy()
    step, rate_in = np.zeros(K, dtype=np.int64), np.zeros(K)  # of the types below the edge
    g = 0.0
    for i in range(K):
        g += space.arrival_rate[i] * W[space.stride[i] * S]
    for count in range(1, space.size):
        j = count if ascending else space.size - count  # the empty server stays at 0
        if ascending or count > 1:
            move_on(present, N, ascending)
        holding, arrivals, open_types = -g, 0.0, 0
        for i in range(K):
            holding += present[i]
            if present[i] < N[i]:
                arrivals += space.arrival_rate[i]
                step[open_types], rate_in[open_types] = space.stride[i] * S, space.arrival_rate[i]
                open_types += 1
            else:
                holding += lost(space, present, i)
        all_fit = within(space.largest, present)
        for s in range(S - 1, -1, -1):
            if not (all_fit or within(u[s], present)):
                continue
            at = j * S + s
            total = holding
            for i in range(open_types):
                total += rate_in[i] * W[at + step[i]]
            for move in range(ends.start[s], ends.start[s + 1]):
                total += ends.rate[move] * W[at + ends.offset[move]]
            rate = arrivals + space.served[s]
            value, best = total / rate if rate > 0 else np.inf, s  # with nothing running and no job let in, some job must start
            for move in range(starts.start[s], starts.start[s + 1]):
                more = starts.to[move]
                if (all_fit or starts.most[move] <= present[starts.kind[move]]) and W[j * S + more] <= value:
                    value, best = W[j * S + more], choice[j * S + more]
            W[at], choice[at] = value, best


@compiled
def backup(space: StateSpace, W: Array, choice: NDArray[np.int16], rate: float, edge: Array) -> tuple[float, float, float]:
    """The least and largest one-step difference R (TW − W) of the process made uniform with rate R, and the decisions that attain TW.

    TW(q, u) = min_{u' ≥ u} W(q, u') + (1/R) (c(q) + Σ λ_i (W(q + e_i, u') − W(q, u')) + Σ u'_i μ_i (W(q − e_i, u' − e_i) − W(q, u')))
    For any W the mean number of jobs under the best policy of the truncated system and under these decisions is between the two. The third
    number is the least difference with the states one job beyond the edge, along any types that are at it, by `rota.optimal.continuation`.
    `edge` (K,) gets the least of those with a job of each type beyond it.
    """
    lam, N, stride = space.arrival_rate, space.truncation, space.stride
    u, ends, starts = space.schedules, space.ends, space.starts
    S, K = u.shape
    present = np.zeros(K, dtype=np.int64)
    after, pull = np.zeros(S), np.zeros(K)
    least, largest, beyond = np.inf, -np.inf, np.inf
    edge[:] = np.inf
    for j in range(space.size):
        if j > 0:
            move_on(present, N, True)
        for mask in range(2**K):  # the types with one job more than N_i, of those with N_i
            if not at_edge(mask, present, N):
                continue
            over = pull_of(space, mask, pull)
            for s in range(S - 1, -1, -1):
                if not within(u[s], present):
                    continue
                at = j * S + s
                drift, arrivals = float(over), 0.0
                for i in range(K):
                    drift += present[i]
                    if present[i] < N[i]:
                        drift += lam[i] * (W[at + stride[i] * S] - W[at] + pull[i])
                        arrivals += lam[i]
                    else:
                        drift += lost(space, present, i) + lam[i] * pull[i]
                for move in range(ends.start[s], ends.start[s + 1]):
                    i = ends.kind[move]
                    if mask >> i & 1:  # F(q + 1_E − e_i) − F(q + 1_E), and the values of the same q
                        to = at + ends.offset[move] + stride[i] * S
                        drift += ends.rate[move] * (W[to] - W[at] - marginal(space, present, i) - pull[i] + space.growth[i, i])
                    else:
                        drift += ends.rate[move] * (W[at + ends.offset[move]] - W[at] - pull[i])
                value, best = W[at] + drift / rate if arrivals + space.served[s] > 0 or mask > 0 else np.inf, s
                for move in range(starts.start[s], starts.start[s + 1]):
                    more = starts.to[move]
                    if starts.most[move] <= present[starts.kind[move]] and after[more] <= value:
                        value, best = after[more], choice[j * S + more] if mask == 0 else 0
                after[s] = value
                difference = rate * (value - W[at])
                beyond = min(beyond, difference)
                for i in range(K):
                    if mask >> i & 1:
                        edge[i] = min(edge[i], difference)
                if mask == 0:
                    choice[at] = best
                    least, largest = min(least, difference), max(largest, difference)
    return least, largest, beyond


@compiled
def at_edge(mask: int, present: Int, N: Int) -> bool:
    """Whether all types of a set are at the edge."""
    for i in range(present.shape[0]):  # noqa: SIM110 (numba has no all())
        if mask >> i & 1 and present[i] < N[i]:
            return False
    return True


@compiled
def pull_of(space: StateSpace, mask: int, pull: Array) -> int:
    """A 1_E, what the jobs beyond the edge add to the cost of a job of each type; and how many they are."""
    count = 0
    pull[:] = 0.0
    for j in range(pull.shape[0]):
        if mask >> j & 1:
            count += 1
            for i in range(pull.shape[0]):
                pull[i] += space.growth[i, j]
    return count


@compiled
def marginal(space: StateSpace, present: Int, i: int) -> float:
    """F(q + e_i) − F(q), what one more job of type i costs at q beyond the edge."""
    total = float(space.first[i])
    for j in range(present.shape[0]):
        total += space.growth[i, j] * present[j]
    return total


@compiled
def lost(space: StateSpace, present: Int, i: int) -> float:
    """λ_i (F(q + e_i) − F(q)), the cost per unit of time of the arrivals of type i beyond the edge."""
    return float(space.arrival_rate[i]) * marginal(space, present, i)


@compiled
def move_on(present: Int, N: Int, ascending: bool) -> None:
    """The next q in lexicographic order, or the one before it."""
    for k in range(present.shape[0]):
        i = present.shape[0] - 1 - k
        if ascending:
            if present[i] < N[i]:
                present[i] += 1
                return
            present[i] = 0
        else:
            if present[i] > 0:
                present[i] -= 1
                return
            present[i] = N[i]
