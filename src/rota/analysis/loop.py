"""The queue of one type under a long loop, solved by its structure where a matrix per level would be too large.

A loop is left in one direction only. Let x_s(q) be the probability of state s with q jobs, and y_s(q) the flow into state s at level q.
Within a state the queue is a birth–death process that is killed at the exit rate ν_s, so one tridiagonal system gives x_s from y_s, and
x_s gives y_{s+1}:

    (λ + ν_s + d_s(q)) x_s(q) − λ x_s(q−1) − d_s(q+1) x_s(q+1) = y_s(q),           d_s(q) = μ min(q, u_s)
    y_{s+1}(q) = ν_s x_s(q)                                          left by a timer, a setup or another type's completion
    y_{s+1}(q) = μ min(q+1, u_s) x_s(q+1) + μ (u_s − q)⁺ x_s(q)       left by this type's own completion (then d_s = 0, ν_s = μ u_s)

Only levels 0…β are followed; what leaves them upwards comes back by the first-passage matrix G. The unknowns are y_0, the flow through one
cut of the loop, and the return flows h_s = λ (z G)_s with z_s = x_s(β): together β + 1 + N, the stationary vector of a stochastic matrix.
That takes N β (N + β) operations where a matrix per level takes β N³; the first-passage matrix itself takes some 400 N³.

The decay rate η of the tail is the root in (0, 1) of Σ_s log f_s(η) = Σ_s log g_s(η), where

    f_s(z) = (λ + ν_s + d_s) z − λ − d_s z²,      g_s(z) = ν_s z, or ν_s z² where the own completion moves the state

(put x_s(q) = v_s z^q into the balance equations and go round once): N operations per evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
import scipy
from numpy.typing import NDArray

from rota.analysis.qbd import first_passage, rate_matrix, tail_moments, tail_probabilities
from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.arrays import Array, Int
from rota.errors import NotConverged

__all__ = ["loop_decay_rate", "solve_loop"]


def loop_decay_rate(queue: TypeQueue) -> float:
    """η: P(Q > n) ~ const·ηⁿ, in O(N) per evaluation."""
    nu, own = queue.process.exit_rate, queue.triggers
    lam, d = queue.arrival_rate, np.where(own, 0.0, queue.ring_rate)
    # f_s is positive between its root r_s in (0, 1) and 1; the largest such root bounds η from below.
    total = lam + nu + d
    root = 2 * lam / (total + np.sqrt(total**2 - 4 * lam * d))
    low = float(root.max())

    def turn(above: float) -> float:
        """At z = low + above, with f_s(z) = (z − r_s)(λ + ν_s + d_s − d_s (z + r_s)): no digits are lost close to the root."""
        z = low + above
        f = (above + (low - root)) * (total - d * (z + root)) / nu
        return float(np.log(f).sum() - np.log(z) * (len(nu) + own.sum()))

    # turn(z = 1) = 0 always; just below 1 it is positive when the load is below 1, and towards `low` it falls to −∞.
    near, far = (1 - low) * 1e-290, (1 - low) / 2
    while turn(far) <= 0:
        near, far = far, 1 - low - (1 - low - far) / 2
        if 1 - low - far < 1e-14:
            raise NotConverged("no decay rate below 1 was found: is the load below 1?")
    if turn(near) >= 0:  # closer to `low` than floats can resolve: a queue that hardly ever leaves its slowest state
        return low
    solve = scipy.optimize.brentq
    return low + float(np.exp(solve(lambda log_above: turn(np.exp(log_above)), np.log(near), np.log(far), xtol=1e-15, rtol=1e-15)))


@dataclass(frozen=True)
class _Loop:
    """The loop as the kernels take it, states in order."""

    lam: float
    mu: float
    nu: Array
    slots: Int
    own: NDArray[np.bool_]
    after_ring: Array

    @staticmethod
    def of(queue: TypeQueue) -> _Loop:
        order = queue.process.loop
        assert order is not None
        return _Loop(
            queue.arrival_rate,
            queue.service_rate,
            np.ascontiguousarray(queue.process.exit_rate[order]),
            np.ascontiguousarray(queue.process.schedules[order, queue.type]),
            np.ascontiguousarray(queue.triggers[order]),
            np.ascontiguousarray(queue.after_ring[order]),
        )

    @property
    def parameters(self) -> tuple[float, float, Array, Int, NDArray[np.bool_]]:
        return self.lam, self.mu, self.nu, self.slots, self.own


def solve_loop(queue: TypeQueue) -> QueueLength:
    """The law of Q under a loop, whatever the length of the queue."""
    loop = _Loop.of(queue)
    order = queue.process.loop
    assert order is not None
    lam, beta, N = loop.lam, queue.max_parallel, len(loop.nu)
    local = queue.plain[order][:, order].toarray()
    down = (loop.mu * loop.slots)[:, None] * queue.after[order][:, order].toarray()
    G, residual = first_passage(lam, local, down)

    # Unit flows: into the cut at each level (rows 0…β), and into level β of each state from above (rows β+1…).
    n = beta + 1
    through, tops = _unit_flows(*loop.parameters, n)
    step = np.hstack([through, lam * (tops @ G)])  # stochastic: every flow leaves by the cut or upwards, and comes back
    system = (np.eye(n + N) - step).T
    system[0] = 1.0
    flow = np.linalg.solve(system, np.eye(n + N)[0])
    residual = max(residual, float(np.abs(flow @ step - flow).max() / flow.max()))

    flow = np.maximum(flow, 0.0)
    law, top, unused, surplus = _accumulate(flow[:n], flow[n:], *loop.parameters, loop.after_ring)
    scale = (queue.capacity - lam) / unused
    law, top = law * scale, top * scale
    R = rate_matrix(lam, local, down, G)
    (first, second), total = tail_moments(law[:beta], top, R)
    return QueueLength(
        mean=queue.mean_from(surplus / unused, first),
        variance=second - first**2,
        decay_rate=loop_decay_rate(queue),
        mean_by_sum=first,
        residual=max(residual, abs(total - 1)),
        method=f"loop of {N} states by passage, {beta} boundary levels",
        probabilities=lambda k: tail_probabilities(law[:beta], top, R, k),
        unused_average=surplus / unused,
    )


@nb.njit(cache=True)
def _state(y: Array, lam: float, mu: float, nu: float, u: int, own: bool, forward: Array, x: Array) -> None:
    """x_s from y_s: one tridiagonal system, eliminated upwards. Arrivals at the last level leave it upwards."""
    last = y.shape[0] - 1
    d = 0.0 if own else mu
    pivot = lam + nu
    forward[0] = y[0]
    x[0] = 1.0 / pivot  # x holds 1/pivot until it is overwritten
    for q in range(1, last + 1):
        rate = d * min(q, u)
        below = lam / pivot
        pivot = lam + nu + rate * (1.0 - below)
        forward[q] = y[q] + below * forward[q - 1]
        x[q] = 1.0 / pivot
    x[last] = forward[last] * x[last]
    for q in range(last - 1, -1, -1):
        x[q] = (forward[q] + d * min(q + 1, u) * x[q + 1]) * x[q]


@nb.njit(cache=True)
def _flow(x: Array, mu: float, nu: float, u: int, own: bool, y: Array) -> None:
    """y_{s+1} from x_s."""
    last = x.shape[0] - 1
    if own:
        for q in range(last):
            y[q] = mu * (min(q + 1, u) * x[q + 1] + max(u - q, 0) * x[q])
        y[last] = mu * max(u - last, 0) * x[last]
    else:
        for q in range(last + 1):
            y[q] = nu * x[q]


@nb.njit(cache=True)
def _unit_flow(row: int, lam: float, mu: float, nu: Array, u: Int, own: NDArray[np.bool_], y: Array, top: Array) -> None:
    n = y.shape[0]
    forward, x = np.empty(n), np.empty(n)
    at = np.int64(row)  # numba counts parallel loops with unsigned numbers
    y[min(at, n - 1)] = 1.0
    for s in range(max(at - n, 0), nu.shape[0]):
        _state(y, lam, mu, nu[s], u[s], own[s], forward, x)
        top[s] = x[n - 1]
        _flow(x, mu, nu[s], u[s], own[s], y)


@nb.njit(cache=True, parallel=True)
def _unit_flows(lam: float, mu: float, nu: Array, u: Int, own: NDArray[np.bool_], n: int) -> tuple[Array, Array]:
    """For each unit inflow (n into the cut, N into the top of a state): the flow through the cut after the turn, and x_s at the top."""
    N = nu.shape[0]
    through = np.zeros((n + N, n))
    tops = np.zeros((n + N, N))
    for row in nb.prange(n + N):
        _unit_flow(row, lam, mu, nu, u, own, through[row], tops[row])
    return through, tops


@nb.njit(cache=True)
def _accumulate(
    start: Array,
    above: Array,
    lam: float,
    mu: float,
    nu: Array,
    u: Int,
    own: NDArray[np.bool_],
    after_ring: Array,
) -> tuple[Array, Array, float, float]:
    """One turn at the fixed point, `above` flowing into the last level of each state.

    Returns the law of Q (not normalised), x_s at the last level, E[unused rings] and E[unused rings · (q − Δ(s⁺))].
    """
    y = start.copy()
    forward, x = np.empty_like(y), np.empty_like(y)
    law = np.zeros_like(y)
    top = np.zeros(nu.shape[0])
    unused = surplus = 0.0
    for s in range(nu.shape[0]):
        y[-1] += above[s]
        _state(y, lam, mu, nu[s], u[s], own[s], forward, x)
        for q in range(min(u[s], x.shape[0])):
            rings = mu * (u[s] - q) * x[q]
            unused += rings
            surplus += rings * (q - after_ring[s])
        law += x
        top[s] = x[-1]
        _flow(x, mu, nu[s], u[s], own[s], y)
    return law, top, unused, surplus
