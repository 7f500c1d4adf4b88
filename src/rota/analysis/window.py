"""The queue of one type where many jobs run at once, on those levels that are ever seen.

The equations are those of `rota.analysis.qbd`. A job is served at rate μ at most, so in law the queue is never shorter than an M/M/∞ queue,
which has a Poisson law of mean a = λ/μ:

    P(Q ≤ a − t)  ≤  P(Poisson(a) ≤ a − t)  ≤  exp(−t²/(2a))                                              (Chernoff)

Levels below L = a − 9.5 √a have a probability of 3e-20 at most, less than the rounding of a float. They are left out: a job that ends at
level L is replaced at once. What remains, L…β, is eliminated upwards. Let U_q be the probabilities of the phase at the first visit to level
q + 1, from level q:

    U_q = λ (−A₁(q) − A₂(q) U_{q−1})^{-1}            rows sum to 1, so −S_q·1 = λ·1: the diagonal comes without subtraction
    π_β (A₁(β) + A₂(β) U_{β−1} + λ G) = 0            the process seen at level β only
    π_{q−1} = π_q A₂(q) U_{q−1} / λ

One inverse per level, compiled. Where levels differ by hundreds of orders of magnitude, those that are never seen become 0.
"""

from __future__ import annotations

import numpy as np

from rota.analysis.qbd import first_passage, rate_matrix, tail_moments, tail_probabilities
from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.arrays import Array, Int
from rota.kernel import compiled
from rota.policy import stationary_law

__all__ = ["MANY_LEVELS", "lowest_level", "solve_window"]

MANY_LEVELS = 64  # from here on this is the faster way
_DEVIATIONS = 9.5  # of a Poisson law below its mean
_LARGE = 1e100


def lowest_level(queue: TypeQueue) -> int:
    """L, below which there is no level that matters; less than β."""
    offered = queue.arrival_rate / queue.service_rate
    return int(np.clip(offered - _DEVIATIONS * np.sqrt(offered), 0, queue.max_parallel - 1))


def solve_window(queue: TypeQueue) -> QueueLength:
    """The law of Q, sizes exponential."""
    lam, beta, N = queue.arrival_rate, queue.max_parallel, len(queue.slots)
    low = lowest_level(queue)
    plain: Array = queue.plain.toarray()
    after = queue.after
    down: Array = queue.ring_rate[:, None] * after.toarray()
    G, residual = first_passage(lam, plain, down)
    R = rate_matrix(lam, plain, down, G)

    passages = np.empty((beta - low, N, N))
    rings = after.indptr.astype(np.int64), after.indices.astype(np.int64), after.data
    _climb(lam, queue.service_rate, queue.slots, plain, *rings, low, passages)
    vectors = np.empty((beta - low + 1, N))
    vectors[-1] = stationary_law(plain + down @ passages[-1] + lam * G)
    _descend(lam, queue.service_rate, queue.slots, *rings, low, passages, vectors)

    # Rings without a job, at rate c − a(q), make up for what the server offers beyond the arrivals: E[c] − λ. That scales the vectors.
    numbers = np.arange(low, beta)
    unused = vectors[:-1] * queue.service_rate * np.maximum(queue.slots - numbers[:, None], 0)
    surplus = float((unused * (numbers[:, None] - queue.after_ring)).sum() / unused.sum())
    scale = (queue.capacity - lam) / unused.sum()
    mass, top = np.concatenate([np.zeros(low), scale * vectors[:-1].sum(axis=1)]), scale * vectors[-1]
    (first, second), total = tail_moments(mass, top, R)
    return QueueLength(
        mean=queue.mean_from(surplus, first),
        variance=second - first**2,
        decay_rate=float(np.abs(np.linalg.eigvals(R)).max()),
        mean_by_sum=first,
        residual=max(residual, abs(total - 1.0)),
        method=f"matrix-analytic, {N} phases, boundary levels {low} to {beta}",
        probabilities=lambda n: tail_probabilities(mass, top, R, n),
        unused_average=surplus,
    )


@compiled
def _climb(lam: float, mu: float, slots: Array, plain: Array, start: Int, target: Int, part: Array, low: int, passages: Array) -> None:
    """U_q for q = L…β−1, into `passages`. A ring in state s leads to target[k] with probability part[k], start[s] ≤ k < start[s + 1]."""
    N = len(slots)
    M = np.empty((N, N))
    for level in range(len(passages)):
        q = low + level
        for s in range(N):
            busy = mu * min(float(q), slots[s])
            for t in range(N):
                M[s, t] = -plain[s, t]
            for k in range(start[s], start[s + 1]):
                if level == 0:  # a job that ends at level L is replaced
                    M[s, target[k]] -= part[k] * mu * slots[s]
                    continue
                M[s, target[k]] -= part[k] * (mu * slots[s] - busy)
                for t in range(N):
                    M[s, t] -= part[k] * busy * passages[level - 1, target[k], t]
            M[s, s] = 0.0
            leaving = lam
            for t in range(N):
                leaving -= M[s, t]
            M[s, s] = leaving
        passages[level] = lam * np.linalg.inv(M)


@compiled
def _descend(lam: float, mu: float, slots: Array, start: Int, target: Int, part: Array, low: int, passages: Array, vectors: Array) -> None:
    """π_q for q = β−1…L from π_β, the last of `vectors`."""
    N = len(slots)
    ended = np.empty(N)
    for level in range(len(passages) - 1, -1, -1):
        ended[:] = 0.0
        for s in range(N):
            busy = mu * min(float(low + level + 1), slots[s])
            for k in range(start[s], start[s + 1]):
                ended[target[k]] += vectors[level + 1, s] * busy * part[k] / lam
        vectors[level] = ended @ passages[level]
        if vectors[level].sum() > _LARGE:
            vectors[level:] /= _LARGE
