"""Into how many independent runs a simulation may be split.

Every run begins empty and has a warm-up of its own, so runs must not be short against the time in which the queue forgets its start. For
an M/M/1 queue with load ρ that is 1 / (μ (1 − √ρ)²). Here ρ is the use of the scarcest resource, and 1/μ the longest of the mean sizes, the
round of a rota and the time scale of bursts. The warm-up of each run is at least 20 such times.

The number depends on the system, the policy and the jobs that were asked for, never on the machine: its cores only decide how many
runs go on at once.
"""

from __future__ import annotations

import numpy as np

from rota.model import System
from rota.policy import MSR, Policy
from rota.simulation.statistics import WARMUP

__all__ = ["MOST_RUNS", "runs_for", "shortest_run"]

MOST_RUNS = 8
_TIMES = 20.0  # the time to forget, in the warm-up of each run
_FEWEST_JOBS = 50_000  # in a run


def runs_for(system: System, policy: Policy, jobs: int, warmup: float | None = None) -> int:
    """The most independent runs, 8 or fewer, into which so many jobs can be split."""
    return int(min(max(jobs // shortest_run(system, policy, warmup), 1), MOST_RUNS))


def shortest_run(system: System, policy: Policy, warmup: float | None = None) -> float:
    """How many jobs an independent run has at least; infinite if one run is best."""
    comes, part = system.arrival_rate > 0, WARMUP if warmup is None else warmup
    use = float((system.offered_work @ system.demand / system.capacity).max())
    if use >= 1 or part == 0:
        return np.inf
    pairs = zip(system.arrivals, system.arrival_rate, strict=True)
    bursts = max((process.at(float(rate)).time_scale for process, rate in pairs if rate > 0), default=0.0)
    turn = len(policy.candidates) / policy.switching_rate if isinstance(policy, MSR) and len(policy.candidates) > 1 else 0.0
    slowest = max(float((1 / system.service_rate[comes]).max()), bursts, turn)
    forgotten = slowest / (1 - np.sqrt(use)) ** 2
    return max(float(_TIMES * forgotten * system.arrival_rate.sum()) / part, _FEWEST_JOBS)
