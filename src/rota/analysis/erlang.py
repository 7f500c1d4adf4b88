"""The queue of a type whose slots never change: M/M/k, in closed form.

A policy with a single schedule gives every type such a queue. So does a rota to a type of which all its schedules, and all states
between them, have the same number k of slots. With a = λ/μ, ρ = a/k and C the probability of waiting (Erlang C,
`rota.analysis.queue.erlang_c`),

    E[Q] = a + C ρ/(1−ρ)
    P(Q = q) = P(Q = k) · k!/q! · a^{q−k}   (q ≤ k),      P(Q = k + j) = P(Q = k) ρʲ,      P(Q = k) = C (1 − ρ)

Nothing is as large as the number of slots but one array, so that hundreds of thousands of them take milliseconds.
"""

from __future__ import annotations

import numpy as np
import scipy

from rota.analysis.queue import TypeQueue, erlang_c
from rota.analysis.solution import QueueLength
from rota.arrays import Array

__all__ = ["has_constant_slots", "solve_erlang"]


def has_constant_slots(queue: TypeQueue) -> bool:
    """Whether every state of the process gives the type the same number of slots."""
    return bool((queue.slots == queue.slots[0]).all())


def solve_erlang(queue: TypeQueue) -> QueueLength:
    """The law of Q of a type with a constant number of slots; the load is below 1."""
    k, offered = queue.max_parallel, queue.arrival_rate / queue.service_rate
    rho = queue.load
    waits = erlang_c(k, offered)
    top = waits * (1 - rho)
    below = _levels_below(k, offered, top)
    numbers = np.arange(k)
    # Σ_j ρʲ, Σ_j (k + j) ρʲ, Σ_j (k + j)² ρʲ: the geometric tail from level k on
    s0, s1, s2 = 1 / (1 - rho), rho / (1 - rho) ** 2, rho * (1 + rho) / (1 - rho) ** 3
    total = float(below.sum() + top * s0)
    first = float(below @ numbers + top * (k * s0 + s1))
    second = float(below @ numbers.astype(np.float64) ** 2 + top * (k * k * s0 + 2 * k * s1 + s2))
    mean = offered + waits * rho / (1 - rho)
    unused = k - numbers  # a ring that finds no job at level q happens at rate μ (k − q)
    at_unused = float((below * unused) @ numbers / max(float(below @ unused), 1e-300))

    def probabilities(n: int) -> Array:
        tail = top * rho ** np.arange(max(n - k, 0), dtype=np.float64)
        return np.concatenate([below, tail])[:n]

    return QueueLength(
        mean=mean,
        variance=second - mean**2,
        decay_rate=rho,
        mean_by_sum=first,
        residual=abs(total - 1),
        method=f"Erlang C, {k} slots",
        probabilities=probabilities,
        unused_average=at_unused,
    )


def _levels_below(k: int, offered: float, top: float) -> Array:
    """P(Q = 0), …, P(Q = k−1) from P(Q = k), by logarithms: k!/q! a^{q−k} may be beyond any float."""
    # Where no job ever waits, to the accuracy of floats, the law is that of Poisson.
    log_top = np.log(top) if top > 0 else -offered + k * np.log(offered) - scipy.special.gammaln(k + 1.0)
    q = np.arange(k, dtype=np.float64)
    law: Array = np.exp(log_top + scipy.special.gammaln(k + 1.0) - scipy.special.gammaln(q + 1) + (q - k) * np.log(offered))
    return law
