"""The queue of one type as a quasi-birth–death process, solved by matrix-analytic methods.

Level: number of jobs; phase: state of the modulating process. At level q, min(q, u_s) of the u_s slots hold jobs, so with a_s(q) = μ
min(q, u_s)

    up      λ I
    down    A₂(q) = diag(a(q)) · After                                   a job is done, the ring may move the phase
    local   A₁(q) = Plain + diag(c − a(q)) · After, diagonal set so that rows sum to zero            a ring without a job moves the phase
    only

homogeneous from level β on. `first_passage` G (from level q+1 to q): A₂ + A₁ G + λG² = 0. Below β: S_q = A₁(q) + λ G_{q+1}, G_q =
(−S_q)^{-1} A₂(q).
Where arrivals have phases of their own (`rota.analysis.markovian`), a matrix A₀ takes the place of λ.
The stationary vectors are π_0 S_0 = 0, π_{q+1} = λ π_q (−S_{q+1})^{-1}; from β on the factor is the `rate_matrix` R.

Every −S is an M-matrix with S·1 = −A₂·1. Its diagonal is computed from that, never by subtraction, which keeps small numbers accurate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.arrays import Array
from rota.errors import NotConverged
from rota.policy import stationary_law

__all__ = [
    "Levels",
    "climb",
    "first_passage",
    "m_matrix",
    "rate_matrix",
    "solve_levels",
    "solve_qbd",
    "tail_moments",
    "tail_probabilities",
]


_RESIDUAL = 1e-11
_POLISH = 20


@dataclass(frozen=True, eq=False)
class Levels:
    """π_0, …, π_β in the rows of `vectors` (β+1, N), and R with π_{q+1} = π_q R from β on; `surplus`: E_U[q − Δ(s⁺)]."""

    vectors: Array
    rate_matrix: Array
    residual: float
    surplus: float


def solve_qbd(queue: TypeQueue, *, single_server: bool = False) -> QueueLength:
    """The law of Q. `single_server`: of the MSR-1 companion, which serves one job at a time at rate c_s (Definition msr-1)."""
    levels = solve_levels(queue, single_server=single_server)
    mass, top, R = levels.vectors[:-1].sum(axis=1), levels.vectors[-1], levels.rate_matrix
    (first, second), total = tail_moments(mass, top, R)
    return QueueLength(
        mean=queue.mean_from(levels.surplus, first),
        variance=second - first**2,
        decay_rate=float(np.abs(np.linalg.eigvals(R)).max()),
        mean_by_sum=first,
        residual=max(levels.residual, abs(total - 1.0)),
        method=f"matrix-analytic, {len(top)} phases, {len(mass)} boundary levels",
        probabilities=lambda n: tail_probabilities(mass, top, R, n),
        unused_average=levels.surplus,
    )


def solve_levels(queue: TypeQueue, *, single_server: bool = False) -> Levels:
    """The stationary vectors of the levels, state by state."""
    lam, mu = queue.arrival_rate, queue.service_rate
    c, u = queue.ring_rate, queue.slots
    beta = 1 if single_server else queue.max_parallel
    plain: Array = queue.plain.toarray()
    after: Array = queue.after.toarray()

    def busy(q: int) -> Array:
        """a(q): the rate of real completions at level q."""
        if single_server:
            return c if q >= 1 else np.zeros_like(c)
        return mu * np.minimum(q, u)

    def local(q: int) -> Array:
        moves: Array = plain + (c - busy(q))[:, None] * after
        return moves

    down = busy(beta)[:, None] * after
    G, residual = first_passage(lam, local(beta), down)

    # Downwards: −S_q and with it the factor λ(−S_q)^{-1} that leads from π_{q−1} to π_q.
    factor: list[Array] = [np.empty(0)] * (beta + 1)
    passage = G
    for q in range(beta, 0, -1):
        inverse = np.linalg.inv(m_matrix(local(q) + lam * passage, busy(q)))
        factor[q] = lam * inverse
        passage = inverse @ (busy(q)[:, None] * after)
    R = rate_matrix(lam, local(beta), down, G)

    levels = climb(stationary_law(local(0) + lam * passage), factor)

    # Rings without a job, at rate c − a(q), make up for what the server offers beyond the arrivals: E[c] − λ. That scales the vectors.
    unused = np.array([levels[q] * (c - busy(q)) for q in range(beta)])
    surplus = float((unused * (np.arange(beta)[:, None] - queue.after_ring)).sum() / unused.sum())
    scale = (queue.capacity - lam) / unused.sum()
    return Levels(scale * np.array(levels), R, residual, surplus)


def climb(bottom: Array, factor: Sequence[Array]) -> list[Array]:
    """π_0, …, π_β from π_0 and the factors between neighbours, scaled together so that the largest sum is 1.

    Levels can differ by hundreds of orders of magnitude (think of a Poisson law with mean 1000), so each is scaled on the way.
    """
    vectors, logs = [bottom / bottom.sum()], [0.0]
    for step in factor[1:]:
        vector = vectors[-1] @ step
        total = float(vector.sum())
        vectors.append(vector / total)
        logs.append(logs[-1] + float(np.log(total)))
    highest = max(logs)
    return [vector * np.exp(log - highest) for vector, log in zip(vectors, logs, strict=True)]


def first_passage(up: float | Array, local: Array, down: Array) -> tuple[Array, float]:
    """G of the homogeneous part and its residual. `up` is λ or A₀; `local` has no diagonal: A₁ = local − diag(row sums of all three).

    Logarithmic reduction (Latouche and Ramaswami 1993): converges quadratically, as long as the queue is stable; then a few turns of
    G = (−A₁ − λG)^{-1} A₂. H and L are the probabilities to go 2ᵏ levels up or down before the other: H·1 + L·1 = 1, hence
    (I − HL − LH)·1 = (H² + L²)·1, which gives the diagonal without subtraction. So close to load 1, where I − HL − LH is nearly singular,
    no digits are lost.
    """
    N = len(local)
    A1 = local.copy()
    np.fill_diagonal(A1, 0.0)
    np.fill_diagonal(A1, -(A1.sum(axis=1) + down.sum(axis=1) + (up.sum(axis=1) if isinstance(up, np.ndarray) else up)))
    inverse = np.linalg.inv(-A1)
    H: Array = inverse @ up if isinstance(up, np.ndarray) else up * inverse
    L: Array = inverse @ down
    G, T = L.copy(), H.copy()
    for _ in range(64):
        squares = np.hstack([H @ H, L @ L])
        both = np.linalg.solve(m_matrix(H @ L + L @ H, squares.sum(axis=1)), squares)
        both /= both.sum(axis=1, keepdims=True)
        H, L = both[:, :N], both[:, N:]
        step = T @ L
        G += step
        T = T @ H
        if step.max() < 1e-17 or T.max() < 1e-17:
            break
    else:
        raise NotConverged("logarithmic reduction did not converge: is the load below 1?")
    # The queue is stable, so G is stochastic; what error is left then fades quickly under the plain iteration, whose diagonal is exact.
    G /= G.sum(axis=1, keepdims=True)
    for _ in range(_POLISH):
        before = G
        G = np.linalg.solve(m_matrix(local + _upwards(up, G), down.sum(axis=1)), down)
        if np.abs(G - before).max() < 1e-15:
            break
    residual = float(np.abs(down + A1 @ G + _upwards(up, G @ G)).max() / np.abs(A1).max())
    if residual > _RESIDUAL:
        raise NotConverged(f"the first-passage equation has residual {residual:.1e}, more than {_RESIDUAL:.0e}")
    return G, residual


def rate_matrix(up: float | Array, local: Array, down: Array, G: Array) -> Array:
    """R = A₀ (−A₁ − A₀ G)^{-1}: π_{q+1} = π_q R from level β on; `up` as for `first_passage`."""
    return _upwards(up, np.linalg.inv(m_matrix(local + _upwards(up, G), down.sum(axis=1))))


def _upwards(up: float | Array, M: Array) -> Array:
    """λM or A₀M."""
    return up @ M if isinstance(up, np.ndarray) else up * M


def m_matrix(inner: Array, leaving: Array) -> Array:
    """−S from the entries of S off its diagonal, given that the rows of S sum to −leaving."""
    M = -inner
    np.fill_diagonal(M, 0.0)
    np.fill_diagonal(M, leaving - M.sum(axis=1))
    return M


def tail_moments(mass: Array, top: Array, R: Array, counts: Array | None = None) -> tuple[tuple[float, float], float]:
    """E[Q], E[Q²] and the total probability by summation: `mass` below level β, `top` = π_β, the tail by Σ Rⁿ, Σ nRⁿ, Σ n²Rⁿ.

    `counts`: 1 for the phases that count, 0 for the others; all count if it is None.
    """
    beta = len(mass)
    I_R = np.eye(len(R)) - R
    s0 = np.linalg.solve(I_R, np.ones(len(R)) if counts is None else counts)  # Σ Rⁿ 1
    s1 = np.linalg.solve(I_R, R @ s0)  # Σ n Rⁿ 1
    s2 = np.linalg.solve(I_R, R @ (s0 + 2 * s1))  # Σ n² Rⁿ 1
    numbers = np.arange(beta)
    total = float(mass.sum() + top @ s0)
    first = float(mass @ numbers + top @ (beta * s0 + s1))
    second = float(mass @ numbers**2 + top @ (beta**2 * s0 + 2 * beta * s1 + s2))
    return (first, second), total


def tail_probabilities(mass: Array, top: Array, R: Array, n: int, counts: Array | None = None) -> Array:
    """P(Q = 0), …, P(Q = n−1)."""
    out = np.empty(n)
    known = min(n, len(mass))
    out[:known] = mass[:known]
    vector = top
    for q in range(known, n):
        out[q] = vector.sum() if counts is None else vector @ counts
        vector = vector @ R
    return out
