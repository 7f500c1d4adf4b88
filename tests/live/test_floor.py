"""The floor: the same decisions as the simulator where every order can be carried out, and honest ones where not."""

from __future__ import annotations

import numpy as np
import pytest

import rota
from floor_body import play
from rota.simulation.named import as_policy
from rota.simulation.workload import Jobs, PoissonArrivals

N = 2000
NAMES = ["arrive", "start", "preempt", "finish"]


def paper(load=0.8):
    """The system of the paper's example."""
    return rota.System(
        capacity=[20, 15, 50],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=[1.0, 1.0, 1.0],
        service_rate=[1.0, 1.0, 1.0],
    ).scaled(load=load)


def some_jobs(system, n=N, seed=5):
    """Poisson arrivals, and those of the simulator under the same seed."""
    workload_seed, _ = np.random.SeedSequence(seed).spawn(2)
    chunk = next(iter(PoissonArrivals().chunks(system, workload_seed)))
    return Jobs(chunk.times[:n], chunk.kinds[:n], chunk.sizes[:n])


def rotas(system):
    """Rotas of every kind."""
    best = rota.system_load(system)
    for preemption, rate in (("full", 1.0), ("none", 0.05), ("setup", 0.5)):
        for backfill in (False, True):
            setup = 10.0 if preemption == "setup" else None
            yield rota.MSR(best.candidates, best.weights, preemption, rate, setup_rate=setup, backfill=backfill)


POLICIES = ["fcfs", "first-fit", "easy", "max-weight", "max-weight-np", rota.RandomizedTimers(rate=1.0), *rotas(paper())]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else rota.decide.policy_name(p))
def test_same_decisions_as_the_simulator(policy):
    """Event for event, the floor starts, stops and ends the jobs that the simulator does."""
    system, policy = paper(), as_policy(policy)
    jobs = some_jobs(system)
    result = rota.simulate(system, policy, workload=jobs, seed=5, jobs=N, log_jobs=N)
    simulated = [(row["time"], row["event"], row["job"]) for row in result.log.to_dicts()]
    played = [(time, NAMES[what], job) for time, what, _, job in play(system, policy, jobs, 5)]
    assert len(simulated) > 2.9 * N  # the simulator's log ends with the last arrival
    for ours, theirs in zip(played, simulated, strict=False):
        assert ours[1:] == theirs[1:]
        assert ours[0] == pytest.approx(theirs[0], rel=1e-12)
