"""The queue of one type whose arrivals have phases: bursts, Markovian arrival processes, batches.

The phase of arrivals and the state of the modulating process do not depend on each other, so the queue is a quasi-birth–death process as in
`rota.analysis.qbd` with pairs (m, s) of both for its phases. With D₀, D₁ of the arrivals (without batches: `rota.model.markovian`) and T
the diagonal matrix of those of its phases in which time passes,

    up      A₀    = D₁ ⊗ I
    down    A₂(q) = T ⊗ diag(a(q)) After
    local   A₁(q) = D₀ ⊗ I + T ⊗ (Plain + diag(c − a(q)) After)

In a phase in which time does not pass a batch is being unpacked: jobs are added one by one and nothing else happens. Such phases have
no part in any probability, and every job of a batch sees those of it that came before.

A type whose slots never change does not notice the state: it has the phases of its arrivals alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rota.analysis.erlang import has_constant_slots
from rota.analysis.qbd import Levels, climb, first_passage, m_matrix, rate_matrix, tail_moments, tail_probabilities
from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.arrays import Array
from rota.policy import stationary_law
from rota.process import ModulatingProcess

__all__ = ["condensed", "entry", "markovian_levels", "phase_count", "solve_markovian"]


def condensed(queue: TypeQueue) -> TypeQueue:
    """The same queue under a process of one state, if its slots never change."""
    if len(queue.process) == 1 or not has_constant_slots(queue):
        return queue
    slots, none = queue.process.schedules[:1], np.empty(0, dtype=np.int64)
    one = ModulatingProcess(slots, slots, np.zeros(1, dtype=np.int64), none, none, np.empty(0), none, queue.process.names)
    return replace(queue, process=one)


def phase_count(queue: TypeQueue) -> int:
    """How many phases the queue has at each level, `queue` condensed."""
    assert queue.arrivals is not None
    return len(queue.arrivals.unfolded.real) * len(queue.process)


def solve_markovian(queue: TypeQueue) -> QueueLength:
    """The law of Q, sizes exponential, `queue` condensed."""
    assert queue.arrivals is not None
    levels = markovian_levels(queue)
    counts = np.repeat(queue.arrivals.unfolded.real, len(queue.slots)).astype(np.float64)
    mass, top, R = levels.vectors[:-1] @ counts, levels.vectors[-1], levels.rate_matrix
    (first, second), total = tail_moments(mass, top, R, counts)
    return QueueLength(
        mean=queue.mean_from(levels.surplus, first),
        variance=second - first**2,
        decay_rate=float(np.abs(np.linalg.eigvals(R)).max()),
        mean_by_sum=first,
        residual=max(levels.residual, abs(total - 1.0)),
        method=f"matrix-analytic, {len(top)} phases ({len(top) // len(queue.slots)} of arrivals), {len(mass)} boundary levels",
        probabilities=lambda n: tail_probabilities(mass, top, R, n, counts),
        unused_average=levels.surplus,
    )


def markovian_levels(queue: TypeQueue) -> Levels:
    """The stationary vectors of the levels, phase by phase; those in which time passes have a total of 1."""
    assert queue.arrivals is not None
    moves, marked, real = queue.arrivals.unfolded
    mu, c, u, beta = queue.service_rate, queue.ring_rate, queue.slots, queue.max_parallel
    N, M = len(u), len(real)
    plain, after = queue.plain.toarray(), queue.after.toarray()
    passes = np.diag(real.astype(np.float64))
    up, turning = np.kron(marked, np.eye(N)), np.kron(moves, np.eye(N))

    def busy(q: int) -> Array:
        """a(q): the rate of real completions at level q."""
        return mu * np.minimum(q, u)

    def local(q: int) -> Array:
        return turning + np.kron(passes, plain + (c - busy(q))[:, None] * after)

    def down(q: int) -> Array:
        return np.kron(passes, busy(q)[:, None] * after)

    G, residual = first_passage(up, local(beta), down(beta))
    factor: list[Array] = [np.empty(0)] * (beta + 1)
    passage = G
    for q in range(beta, 0, -1):
        leave = down(q)
        inverse = np.linalg.inv(m_matrix(local(q) + up @ passage, leave.sum(axis=1)))
        factor[q] = up @ inverse
        passage = inverse @ leave
    R = rate_matrix(up, local(beta), down(beta), G)
    levels = np.array(climb(stationary_law(local(0) + up @ passage), factor))

    # Rings without a job, at rate c − a(q), make up for what the server offers beyond the arrivals: E[c] − λ. That scales the vectors.
    number = np.arange(beta)[:, None, None]
    unused = levels[:-1].reshape(beta, M, N)[:, real] * (c - mu * np.minimum(number, u))
    surplus = float((unused * (number + queue.arrivals.relative_arrivals[:, None] - queue.after_ring)).sum() / unused.sum())
    return Levels((queue.capacity - queue.arrival_rate) / unused.sum() * levels, R, residual, surplus)


def entry(queue: TypeQueue) -> Array:
    """What arrivals make of a vector over the phases (M N, N): the rates in each phase over λ, so that only the state is left."""
    assert queue.arrivals is not None
    return np.kron(queue.arrivals.unfolded.marked.sum(axis=1)[:, None] / queue.arrival_rate, np.eye(len(queue.slots)))
