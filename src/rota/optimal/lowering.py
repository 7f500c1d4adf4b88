"""A bound from values that are not solved yet: lower them where their one-step difference is too small. Without preemption.

Values of which a few are wrong, far from the empty server, prove little: the bound is the least one-step difference of all states. Let g be
what should be proved. Lower every value that is too large for that,

    W(q, u) ← min( W(q, u), min_i W(q, u + e_i), (c(q) − g + Σ λ_i W(q + e_i, u) + Σ u_i μ_i W(q − e_i, u − e_i)) / rate out ),

in sweeps through all states, and for the states with one job beyond the edge likewise (`rota.optimal.continuation`). The right sides grow
with the values, so the values fall towards the largest ones below them that prove g; there are such values if g is below the optimum of
the truncation. Whatever they are after some sweeps, `backup` says what they prove.
"""

from __future__ import annotations

import time

import numpy as np

from rota.arrays import Array
from rota.kernel import compiled
from rota.optimal.iteration import Solved
from rota.optimal.state_space import StateSpace
from rota.optimal.without_preemption import at_edge, backup, lost, marginal, move_on, pull_of, within

__all__ = ["proved_by_lowering"]

_BELOW = 1e-3  # so much below the mean number of jobs by the values themselves, relative, is aimed at; and so near to it is enough
_PAIRS = 10  # of sweeps between two looks at what is proved


@compiled
def lower(space: StateSpace, W: Array, g: float, ascending: bool) -> None:
    """One sweep through W (size·S,) in place."""
    lam, N, stride = space.arrival_rate, space.truncation, space.stride
    u, ends, starts = space.schedules, space.ends, space.starts
    S, K = u.shape
    present = np.zeros(K, dtype=np.int64) if ascending else N.copy()
    pull = np.zeros(K)
    for count in range(space.size):
        j = count if ascending else space.size - 1 - count
        if count > 0:
            move_on(present, N, ascending)
        for mask in range(2**K):  # the types with one job more than N_i, of those with N_i
            if not at_edge(mask, present, N):
                continue
            holding, arrivals = float(pull_of(space, mask, pull)) - g, 0.0
            for i in range(K):
                holding += present[i] + lam[i] * pull[i]
                if present[i] < N[i]:
                    arrivals += lam[i]
                else:
                    holding += lost(space, present, i)
            for s in range(S - 1, -1, -1):
                if not within(u[s], present):
                    continue
                at = j * S + s
                total, rate = holding, arrivals + space.served[s]
                for i in range(K):
                    if present[i] < N[i]:
                        total += lam[i] * W[at + stride[i] * S]
                for move in range(ends.start[s], ends.start[s + 1]):
                    i, to = ends.kind[move], at + ends.offset[move]
                    if mask >> i & 1:  # F(q + 1_E − e_i) − F(q + 1_E), and the values of the same q
                        total += ends.rate[move] * (W[to + stride[i] * S] - marginal(space, present, i) - pull[i] + space.growth[i, i])
                    else:
                        total += ends.rate[move] * (W[to] - pull[i])
                value = min(W[at], total / rate) if rate > 0 else W[at]
                for move in range(starts.start[s], starts.start[s + 1]):
                    if starts.most[move] <= present[starts.kind[move]]:
                        value = min(value, W[j * S + starts.to[move]])
                W[at] = value


def proved_by_lowering(solved: Solved, until: float) -> float:
    """What the values prove of the mean number of jobs, lowered until it is near to what they say of it, or the clock is past `until`."""
    space, W = solved.space, solved.values.copy()
    says = float(space.arrival_rate @ W[space.stride * len(space.schedules)])  # g = Σ λ_i W(e_i, 0)
    choice, edge, most = solved.choice.copy(), np.empty(len(space.truncation)), solved.proved
    while most < (1 - 2 * _BELOW) * says:
        for _ in range(_PAIRS):
            for ascending in (True, False):
                if time.monotonic() > until:
                    return most
                lower(space, W, (1 - _BELOW) * says, ascending)
        most = max(most, float(backup(space, W, choice, space.uniform_rate, edge)[2]))
    return most
