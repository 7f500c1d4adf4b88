"""The values of fixed decisions without preemption, on the states in which no job starts.

Where the decision in (q, u) is that jobs start, W(q, u) = W(q, u') with the u' that runs then, so only the values with u' = u are unknown:
a third of all in the paper's example. Let these *kept* states be numbered in the order of all states. Each value is a weighted sum of at
most 2K others, those after an arrival and those after a completion,

    x_k = (c_k − g + Σ_i λ_i x_{after arrival i} + Σ_i u_i μ_i x_{after completion i}) / (Λ_q + Σ_i u_i μ_i)

and the weights depend only on the schedule and on the types at the edge, so they are few. A sweep through these numbers takes a sixth of
the time of one that improves the decisions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.kernel import compiled
from rota.optimal.state_space import StateSpace
from rota.optimal.without_preemption import lost, move_on, within

__all__ = ["KeptStates", "kept_states", "sweep_kept"]


class KeptStates(NamedTuple):
    """The kept states, n in all, with the equations of their values. The empty server is the first; its value stays 0."""

    place: NDArray[np.int32]  # (n,) of (q, u) among all states
    of: NDArray[np.int32]  # (all,) the number of the kept state whose value a state has; −1 if the state cannot be
    after: NDArray[np.int32]  # (n, 2K) the numbers after an arrival and after a completion of each type
    case: NDArray[np.int32]  # (n,) the row of weights
    weight: Array  # (cases, 2K) λ_i and u_i μ_i, by the rate out; 0 at the edge, and where none runs
    per_rate: Array  # (cases,) one by the rate out
    holding: Array  # (n,) c_k
    first: Int  # (K,) with one job in an empty server
    arrival_rate: Array  # (K,)


def kept_states(space: StateSpace, choice: NDArray[np.int16]) -> KeptStates:
    """The kept states of these decisions."""
    S, K = space.schedules.shape
    of = np.full(space.size * S, -1, dtype=np.int32)
    n = _number(space, choice, of)
    weight, per_rate = _weights(space)
    after, case, holding = np.zeros((n, 2 * K), dtype=np.int32), np.empty(n, dtype=np.int32), np.empty(n)
    place = np.empty(n, dtype=np.int32)
    _equations(space, choice, of, place, after, case, holding)
    first = of[space.stride * S].astype(np.int64)
    return KeptStates(place, of, after, case, weight, per_rate, holding, first, space.arrival_rate)


def _weights(space: StateSpace) -> tuple[Array, Array]:
    """Weights and 1 / rate out, for each schedule s and set of types below the edge, in row s · 2^K + set."""
    S, K = space.schedules.shape
    below = (np.arange(2**K)[:, None] >> np.arange(K)) & 1
    arrivals = np.broadcast_to(below * space.arrival_rate, (S, 2**K, K))
    ends = np.broadcast_to((space.schedules * space.service_rate)[:, None, :], (S, 2**K, K))
    rates = np.concatenate([arrivals, ends], axis=2).reshape(S * 2**K, 2 * K)
    total = rates.sum(axis=1)
    per_rate = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)  # with rate 0 nothing is kept: some job must start
    return np.ascontiguousarray(rates * per_rate[:, None]), per_rate


@compiled
def _number(space: StateSpace, choice: NDArray[np.int16], of: NDArray[np.int32]) -> int:
    """Numbers the kept states, and gives all others the number of the state in which the jobs have started. Returns how many are kept."""
    u = space.schedules
    S, K = u.shape
    present = np.zeros(K, dtype=np.int64)
    n = 0
    for j in range(space.size):
        if j > 0:
            move_on(present, space.truncation, True)
        for s in range(S):
            if within(u[s], present) and (choice[j * S + s] == s or j == 0):
                of[j * S + s] = n
                n += 1
        for s in range(S):
            if within(u[s], present):
                of[j * S + s] = of[j * S + choice[j * S + s]] if j > 0 else 0
    return n


@compiled
def _equations(
    space: StateSpace,
    choice: NDArray[np.int16],
    of: NDArray[np.int32],
    place: NDArray[np.int32],
    after: NDArray[np.int32],
    case: NDArray[np.int32],
    holding: Array,
) -> None:
    """Fills the equations of the kept states."""
    u, N, ends = space.schedules, space.truncation, space.ends
    S, K = u.shape
    present = np.zeros(K, dtype=np.int64)
    k = 0
    for j in range(space.size):
        if j > 0:
            move_on(present, N, True)
        cost, below = 0.0, 0
        for i in range(K):
            cost += present[i]
            if present[i] < N[i]:
                below |= 1 << i
            else:
                cost += lost(space, present, i)
        for s in range(S):
            at = j * S + s
            if not within(u[s], present) or (choice[at] != s and j > 0):
                continue
            place[k], case[k], holding[k] = at, s * 2**K + below, cost
            for i in range(K):
                if below >> i & 1:
                    after[k, i] = of[at + space.stride[i] * S]
            for move in range(ends.start[s], ends.start[s + 1]):
                after[k, K + ends.kind[move]] = of[at + ends.offset[move]]
            k += 1


@compiled
def sweep_kept(kept: KeptStates, x: Array, cost: float, ascending: bool) -> None:
    """One Gauss–Seidel sweep through the values x (n,) in place. `cost` is that of a job present: 1, or 0 for the linear part alone."""
    after, case, weight, per_rate, holding = kept.after, kept.case, kept.weight, kept.per_rate, kept.holding
    n, width = after.shape
    g = 0.0
    for i in range(kept.first.shape[0]):
        g += kept.arrival_rate[i] * x[kept.first[i]]
    for count in range(1, n):
        k = count if ascending else n - count
        row = case[k]
        total = (cost * holding[k] - g) * per_rate[row]
        for m in range(width):
            total += weight[row, m] * x[after[k, m]]
        x[k] = total
