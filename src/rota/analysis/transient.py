"""The queue of a type over time, from a given number of jobs and state of the process, for exponential sizes.

E[Q(t)] = Σ_n e^{−θt} (θt)ⁿ/n! m_n, with m_n the mean number of jobs after n steps of the uniformised chain (`rota.analysis.walk`). The
queue may be unstable. Levels that hold less than 10⁻²⁰ are left out; nothing else is cut off.
"""

from __future__ import annotations

import numpy as np

from rota.analysis.job_times import LONGEST_S, State, state_law
from rota.analysis.law import poisson_range, poisson_weights
from rota.analysis.queue import TypeQueue
from rota.analysis.walk import Walk
from rota.arguments import whole
from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem

__all__ = ["mean_queue_at"]


def mean_queue_at(queue: TypeQueue, t: float | Array, present: int = 0, state: State = None, *, most_s: float = LONGEST_S) -> Array:
    """E[Q(t)] for one time or an array of them, with so many jobs present at time 0."""
    present, law = whole("present", present, 0), state_law(queue.process, state)
    times = np.asarray(t, dtype=np.float64)
    if times.size and not (np.isfinite(times).all() and times.min() >= 0):
        raise BadSpec([Problem("t", "must be times of at least 0", t)])
    walk = Walk(queue, arrivals=True)
    steps = poisson_range(walk.rate * float(times.max(initial=0.0)))[1]
    if steps * walk.step_s(1) > most_s:
        raise Infeasible(
            f"the queue at time {times.max():g} takes {steps:,} steps, more than {most_s:g} s: simulate, or ask for earlier times"
        )
    _, means, _ = walk.go(walk.begin(present, law), np.empty(0), steps=steps, gone=0.0, most_s=most_s)

    def at(time: float) -> float:
        first, last = poisson_range(walk.rate * time)
        return float(poisson_weights(walk.rate * time, first, last) @ means[first:last])

    return np.array([at(time) for time in times.ravel()]).reshape(times.shape)[()]
