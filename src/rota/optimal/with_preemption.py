"""Sweeps with full preemption: the state is q, jobs present; the decision is the schedule, at every event anew.

With h(q) relative to the empty server and g the mean number of jobs in the long run,

    h(q) = min_u ( c(q) − g + Σ_{i: q_i < N_i} λ_i h(q + e_i) + Σ u_i μ_i h(q − e_i) ) / ( Λ_q + Σ u_i μ_i ),   u ≤ q

c(q) = Σ q_i + Σ_{i: q_i = N_i} λ_i (F(q + e_i) − F(q)), jobs present and what those cost that are lost
(`rota.optimal.continuation`). The candidates for u are the maximal schedules cut down to q. In the empty server h = 0, so g = Σ λ_i h(e_i).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array
from rota.kernel import compiled
from rota.optimal.state_space import StateSpace
from rota.optimal.without_preemption import at_edge, lost, marginal, move_on, pull_of

__all__ = ["backup", "improve", "sweep"]


@compiled
def improve(space: StateSpace, h: Array, choice: NDArray[np.int16], ascending: bool) -> None:
    """One Gauss–Seidel sweep through h (size,) in place, by the best decisions, which are kept in `choice`."""
    sweep(space, h, choice, True, 1.0, ascending)


@compiled
def sweep(space: StateSpace, h: Array, choice: NDArray[np.int16], improve: bool, cost: float, ascending: bool) -> None:
    """One Gauss–Seidel sweep through h (size,) in place; with `improve` by the best decisions, which are kept in `choice`, else by those.

    A decision is the number of a maximal schedule. `cost` is that of a job present: 1, or 0 for the linear part alone.
    """
    lam, mu, N, stride = space.arrival_rate, space.service_rate, space.truncation, space.stride
    maximal = space.maximal
    M, K = maximal.shape
    present = np.zeros(K, dtype=np.int64) if ascending else N.copy()
    g = 0.0
    for i in range(K):
        g += lam[i] * h[stride[i]]
    for step in range(1, space.size):
        j = step if ascending else space.size - step  # the empty server stays at 0
        if ascending or step > 1:
            move_on(present, N, ascending)
        total, rate = -g, 0.0
        for i in range(K):
            total += cost * present[i]
            if present[i] < N[i]:
                total += lam[i] * h[j + stride[i]]
                rate += lam[i]
            else:
                total += cost * lost(space, present, i)
        value = np.inf
        for m in range(M) if improve else range(choice[j], choice[j] + 1):
            numerator, denominator = total, rate
            for i in range(K):
                served = min(maximal[m, i], present[i]) * mu[i]
                if served > 0:
                    numerator += served * h[j - stride[i]]
                    denominator += served
            if denominator > 0 and numerator / denominator < value:
                value = numerator / denominator
                choice[j] = m
        h[j] = value


@compiled
def backup(space: StateSpace, h: Array, choice: NDArray[np.int16], rate: float, edge: Array) -> tuple[float, float, float]:
    """The least and largest one-step difference R (Th − h) of the process made uniform with rate R, and the decisions that attain Th.

    R (Th − h)(q) = c(q) + Σ λ_i (h(q + e_i) − h(q)) + min_u Σ u_i μ_i (h(q − e_i) − h(q)),   u ≤ q
    For any h the mean number of jobs under the best policy of the truncated system and under these decisions is between the two. The least
    difference takes of a maximal schedule only the types that it pays to serve, so no schedule is left out. The formula does not need R.
    The third number is the least difference with the states one job beyond the edge, along any types that are at it, by
    `rota.optimal.continuation`; `edge` (K,) gets the least of those with a job of each type beyond it.
    """
    lam, mu, N, stride = space.arrival_rate, space.service_rate, space.truncation, space.stride
    maximal = space.maximal
    M, K = maximal.shape
    present, pull = np.zeros(K, dtype=np.int64), np.zeros(K)
    least, largest, beyond = np.inf, -np.inf, np.inf
    edge[:] = np.inf
    for j in range(space.size):
        if j > 0:
            move_on(present, N, True)
        for mask in range(2**K):  # the types with one job more than N_i, of those with N_i
            if not at_edge(mask, present, N):
                continue
            over = pull_of(space, mask, pull)
            drift = float(over)
            for i in range(K):
                drift += present[i]
                if present[i] < N[i]:
                    drift += lam[i] * (h[j + stride[i]] - h[j] + pull[i])
                else:
                    drift += lost(space, present, i) + lam[i] * pull[i]
            best, bound = np.inf, np.inf
            for m in range(M):
                gain, part = 0.0, 0.0
                for i in range(K):
                    served = min(maximal[m, i], present[i]) * mu[i]
                    if served > 0:
                        if mask >> i & 1:  # F(q + 1_E − e_i) − F(q + 1_E)
                            difference = -served * (marginal(space, present, i) + pull[i] - space.growth[i, i])
                        else:
                            difference = served * (h[j - stride[i]] - h[j] - pull[i])
                        gain += difference
                        part += min(difference, 0.0)
                bound = min(bound, part)
                if gain < best:
                    best = gain
                    if mask == 0:
                        choice[j] = m
            beyond = min(beyond, drift + bound)
            for i in range(K):
                if mask >> i & 1:
                    edge[i] = min(edge[i], drift + bound)
            if mask == 0:
                least, largest = min(least, drift + bound), max(largest, drift + best)
    return least, largest, beyond
