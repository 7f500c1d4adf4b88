"""Sweeps with full preemption: the state is q, jobs present; the decision is the schedule, at every event anew.

With h(q) relative to the empty server and g the mean number of jobs in the long run,

    h(q) = min_u ( c(q) − g + Σ_{i: q_i < N_i} λ_i h(q + e_i) + Σ u_i μ_i h(q − e_i) ) / ( Λ_q + Σ u_i μ_i ),   u ≤ q

c(q) = Σ q_i + Σ_{i: q_i = N_i} λ_i c_i, jobs present and the cost of those that are lost. The candidates for u are the maximal schedules
cut down to q. In the empty server h = 0, so g = Σ λ_i h(e_i).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array
from rota.kernel import compiled
from rota.optimal.state_space import StateSpace
from rota.optimal.without_preemption import move_on

__all__ = ["backup", "sweep"]


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
                total += cost * space.toll[i]
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
def backup(space: StateSpace, h: Array, choice: NDArray[np.int16], rate: float) -> tuple[float, float]:
    """The least and largest one-step difference R (Th − h) of the process made uniform with rate R, and the decisions that attain Th.

    R (Th − h)(q) = c(q) + Σ λ_i (h(q + e_i) − h(q)) + min_u Σ u_i μ_i (h(q − e_i) − h(q)),   u ≤ q
    For any h the mean number of jobs under the best policy and under these decisions is between the two. The least difference takes of a
    maximal schedule only the types that it pays to serve, so no schedule is left out. The formula does not need R.
    """
    lam, mu, N, stride = space.arrival_rate, space.service_rate, space.truncation, space.stride
    maximal = space.maximal
    M, K = maximal.shape
    present = np.zeros(K, dtype=np.int64)
    least, largest = np.inf, -np.inf
    for j in range(space.size):
        if j > 0:
            move_on(present, N, True)
        drift = 0.0
        for i in range(K):
            drift += present[i]
            if present[i] < N[i]:
                drift += lam[i] * (h[j + stride[i]] - h[j])
            else:
                drift += space.toll[i]
        best, bound = np.inf, np.inf
        for m in range(M):
            gain, part = 0.0, 0.0
            for i in range(K):
                served = min(maximal[m, i], present[i]) * mu[i]
                if served > 0:
                    difference = served * (h[j - stride[i]] - h[j])
                    gain += difference
                    part += min(difference, 0.0)
            bound = min(bound, part)
            if gain < best:
                best = gain
                choice[j] = m
        least, largest = min(least, drift + bound), max(largest, drift + best)
    return least, largest
