"""Bounds for phase-type sizes, by the work in the system instead of the number of jobs (Appendix "Phase-Type Job Sizes").

Let V be the work in the system of one type: the sum of the remaining sizes. It grows by a size S at rate λ and shrinks at rate min(q,
u_s). With Δ the relative completions of work, G Δ = E[u]·1 − u, and a process that completions do not move (pMSR, sMSR), the drift of V²/2
− VΔ(s) gives

    E[V] = (λ E[S²]/2 + E[u Δ]) / (E[u] (1 − ρ)) + E_U[V − Δ(s)]                                      exactly, whatever the sizes,

where E_U averages over slots without a job. At such a moment fewer than β jobs are there and all run, so with m_j the mean remaining size
of a job in phase j, 0 ≤ E_U[V] ≤ (β − 1) max m. Jobs that have not started carry E[S] each, and at most β have started; hence

    E[Q] = E[V]/E[S] + E[Σ over started jobs of (1 − m/E[S])],      the last sum between β min(0, 1 − max m/E[S]) and β max(0, 1 − min
    m/E[S]).

Arrivals that are not Poisson, with relative arrivals Δᴬ and index of dispersion I (`rota.analysis.queue`), add λ E[S]² (I−1)/2 beside
λ E[S²]/2, and E[S] Δᴬ to V − Δ(s).

For exponential sizes m = E[S] and this is Theorem msr-bound, with β − 1 in place of β. (The paper's own route, by the single server of the
same speed, does not carry over: with sizes of high variability many slow slots can beat one fast server.)
"""

from __future__ import annotations

import numpy as np

from rota.analysis.queue import TypeQueue, relative_completions
from rota.arrays import Array
from rota.model import PhaseTypeFamily

__all__ = ["heavy_traffic_constant", "work_bounds"]


def work_bounds(queue: TypeQueue, size: PhaseTypeFamily) -> tuple[float, float]:
    """Lower and upper bound on E[Q]."""
    if queue.arrival_rate == 0:
        return 0.0, 0.0
    if queue.load >= 1:
        return np.inf, np.inf
    mean, delta, beta = size.moment(1), _delta(queue), queue.max_parallel
    slots = float(queue.process.stationary @ queue.slots)
    spread = queue.arrival_rate * (size.second_moment / 2 + mean**2 * queue.excess)
    ahead = np.zeros(1) if queue.arrivals is None else queue.arrivals.relative_arrivals
    main = (spread + _covariance(queue, delta)) / (slots * (1 - queue.load))
    remaining = np.linalg.solve(-size.representation[1], np.ones(len(size.representation[0])))
    longest, shortest = float(remaining.max()), float(remaining.min())
    lower = (main - float(delta.max())) / mean + float(ahead.min()) + beta * min(0.0, 1 - longest / mean)
    upper = (main + (beta - 1) * longest - float(delta.min())) / mean + float(ahead.max()) + beta * max(0.0, 1 - shortest / mean)
    return max(lower, queue.load * slots), upper  # never fewer jobs than busy slots


def heavy_traffic_constant(queue: TypeQueue, size: PhaseTypeFamily) -> float:
    """lim (1−ρ) E[Q] as arrivals grow, with the process unchanged: E[S²]/(2E[S]²) + (I−1)/2 + E[uΔ]/(E[u]E[S])."""
    mean = size.moment(1)
    slots = float(queue.process.stationary @ queue.slots)
    bursts = 0.0 if queue.arrival_process is None else (queue.arrival_process.dispersion(slots / mean) - 1) / 2
    return bursts + size.second_moment / (2 * mean**2) + _covariance(queue, _delta(queue)) / (slots * mean)


def _delta(queue: TypeQueue) -> Array:
    return relative_completions(queue.process, queue.slots)


def _covariance(queue: TypeQueue, delta: Array) -> float:
    return float((queue.process.stationary * queue.slots) @ delta)
