"""The means of all types at once, for searches that ask for thousands of them.

The equations are those of `rota.analysis.qbd`, written for a stack of matrices, one per type: on small matrices a call of linear algebra
takes longer to begin than to finish. All types go through as many levels as the one with most slots; beyond its own number of slots β a
type is homogeneous, where the step from level to level gives back the first-passage matrix G, so that nothing changes.

Only the mean comes out, by the exact identity of `rota.analysis.queue`; the bounds of the theorem check it. Where more is wanted, and where
processes are large, `Analysis.exact` is the way.
"""

from __future__ import annotations

import numpy as np

from rota.analysis.queue import TypeQueue, erlang_c
from rota.arrays import Array
from rota.errors import NotConverged

__all__ = ["STACKED_STATES", "means_together"]

STACKED_STATES = 64  # phases up to which a stack is faster
_RESIDUAL = 1e-11
_WITHIN = 1e-6  # of the bounds, relative


def means_together(queues: tuple[TypeQueue, ...]) -> Array:
    """E[Q] of stable queues of one process, sizes exponential. Raises `NotConverged` where a mean is not between its bounds."""
    means = np.zeros(len(queues))
    turning = []
    for queue in queues:
        if queue.arrival_rate == 0:
            continue
        if (queue.slots == queue.slots[0]).all():
            offered = queue.arrival_rate / queue.service_rate
            means[queue.type] = offered + erlang_c(queue.max_parallel, offered) * queue.load / (1 - queue.load)
        else:
            turning.append(queue)
    if turning:
        which = [queue.type for queue in turning]
        means[which] = _stacked(turning)
        for queue in turning:
            lower, upper = queue.bounds()
            if not lower * (1 - _WITHIN) - _WITHIN <= means[queue.type] <= upper * (1 + _WITHIN):
                raise NotConverged(f"a mean of {means[queue.type]:.6g} is not between its bounds {lower:.6g} and {upper:.6g}")
    return means


def _stacked(queues: list[TypeQueue]) -> Array:
    process = queues[0].process
    N, K = len(process), len(queues)
    lam = np.array([queue.arrival_rate for queue in queues])[:, None, None]
    mu = np.array([queue.service_rate for queue in queues])[:, None]
    slots = np.array([queue.slots for queue in queues])
    rings = mu * slots
    plain, after = _moves(queues)

    def busy(q: int) -> Array:
        real: Array = mu * np.minimum(q, slots)
        return real

    local, down = plain, rings[:, :, None] * after  # from level β on every slot is busy: no ring without a job
    G = _first_passage(lam, local, down)
    levels = int(slots.max())
    factor = []
    passage = G
    for q in range(levels, 0, -1):
        real = busy(q)
        inverse = np.linalg.inv(_m_matrices(plain + (rings - real)[:, :, None] * after + lam * passage, real))
        factor.append(lam * inverse)
        passage = inverse @ (real[:, :, None] * after)
    vector = _stationary(_m_matrices(plain + rings[:, :, None] * after + lam * passage, np.zeros((K, N))))

    # Rings without a job, level by level. Levels differ by hundreds of orders of magnitude: the sums are scaled on the way.
    marks = np.array([queue.after_ring for queue in queues])
    total, surplus = np.zeros(K), np.zeros(K)
    for q in range(levels):
        unused = vector * (rings - busy(q))
        total += unused.sum(axis=1)
        surplus += (unused * (q - marks)).sum(axis=1)
        vector = (vector[:, None, :] @ factor[levels - 1 - q])[:, 0, :]
        size = vector.sum(axis=1)
        vector, total, surplus = vector / size[:, None], total / size, surplus / size
    load = np.array([queue.load for queue in queues])
    average = np.array([queue.ring_average() for queue in queues])
    means: Array = (load + average) / (1 - load) + surplus / total
    return means


def _moves(queues: list[TypeQueue]) -> tuple[Array, Array]:
    """Rates of the moves that a type's completions do not trigger, and where its rings lead: stacks (K, N, N)."""
    process = queues[0].process
    N, K = len(process), len(queues)
    plain, own = np.zeros((K, N, N)), np.zeros((K, N, N))
    for k, queue in enumerate(queues):
        mine = process.trigger == queue.type
        np.add.at(plain[k], (process.source[~mine], process.target[~mine]), process.rate[~mine])
        np.add.at(own[k], (process.source[mine], process.target[mine]), process.rate[mine])
    moving = own.sum(axis=2)
    after = own / np.where(moving > 0, moving, 1.0)[:, :, None]
    still = np.nonzero(moving == 0)
    after[still[0], still[1], still[1]] = 1.0
    return plain, after


def _m_matrices(inner: Array, leaving: Array) -> Array:
    """−S from the entries of S off its diagonal, given that the rows of S sum to −leaving."""
    M: Array = -inner
    diagonal = np.arange(M.shape[1])
    M[:, diagonal, diagonal] = 0.0
    M[:, diagonal, diagonal] = leaving - M.sum(axis=2)
    return M


def _first_passage(lam: Array, local: Array, down: Array) -> Array:
    """G of every type by logarithmic reduction, as `rota.analysis.qbd.first_passage`."""
    N = local.shape[1]
    diagonal = np.arange(N)
    A1 = local.copy()
    A1[:, diagonal, diagonal] = 0.0
    A1[:, diagonal, diagonal] = -(A1.sum(axis=2) + down.sum(axis=2) + lam[:, :, 0])
    inverse = np.linalg.inv(-A1)
    H, L = lam * inverse, inverse @ down
    G: Array = L.copy()
    T: Array = H.copy()
    for _ in range(64):
        squares = np.concatenate([H @ H, L @ L], axis=2)
        both = np.linalg.solve(_m_matrices(H @ L + L @ H, squares.sum(axis=2)), squares)
        both /= both.sum(axis=2, keepdims=True)
        H, L = both[:, :, :N], both[:, :, N:]
        step = T @ L
        G += step
        T = T @ H
        if (np.minimum(step.max(axis=(1, 2)), T.max(axis=(1, 2))) < 1e-17).all():
            break
    else:
        raise NotConverged("logarithmic reduction did not converge: is the load below 1?")
    G /= G.sum(axis=2, keepdims=True)
    for _ in range(3):
        G = np.linalg.solve(_m_matrices(local + lam * G, down.sum(axis=2)), down)
    residual = float((np.abs(down + A1 @ G + lam * (G @ G)).max(axis=(1, 2)) / np.abs(A1).max(axis=(1, 2))).max())
    if not residual <= _RESIDUAL:
        raise NotConverged(f"the first-passage equation has residual {residual:.1e}, more than {_RESIDUAL:.0e}")
    return G


def _stationary(minus: Array) -> Array:
    """The left null vectors of a stack of generators, given as −S (K, N, N)."""
    balance = np.swapaxes(minus, 1, 2).copy()
    scale = np.abs(balance).max(axis=(1, 2))
    balance[:, -1, :] = scale[:, None]
    right = np.zeros((*balance.shape[:2], 1))
    right[:, -1, 0] = scale
    law: Array = np.maximum(np.linalg.solve(balance, right)[:, :, 0], 0.0)
    law /= law.sum(axis=1, keepdims=True)
    return law
