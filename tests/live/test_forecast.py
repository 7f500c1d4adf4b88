"""Forecasts of starts against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rota
from rota.decide import seeded
from rota.live.floor import OWN, Floor
from rota.live.forecast import forecast

NOW = 1000.0


def server(size, capacity=1, arrival_rate=0.3):
    """One type of jobs on so many slots."""
    return rota.System([capacity], [[1]], [arrival_rate], sizes=[size])


def floor_with(system, policy, jobs, stop="none", now=NOW):
    """A floor where so many jobs of type 0 arrived at `now`, numbered from 1."""
    floor = Floor(system, policy, seeded(np.random.SeedSequence(1)), stop=stop)
    floor.begin(now)
    for id in range(1, jobs + 1):
        floor.arrive(id, 0, now)
    return floor


@pytest.mark.parametrize(("slots", "job"), [(1, 2), (1, 6), (3, 4), (3, 9)])
def test_exponential_jobs(slots, job):
    """First come, first served on c slots: the start of the k-th that waits is a sum of k exponential times of rate c."""
    floor = floor_with(server(rota.Exponential(mean=1.0), slots), rota.FCFS(), job)
    starts = forecast(floor, dict.fromkeys(range(1, slots + 1), 0.5), job, NOW + 0.5, runs=500, budget_s=20.0)
    assert len(starts) == 500
    law = stats.gamma(job - slots, scale=1 / slots)
    assert stats.kstest(starts, law.cdf).pvalue > 1e-3
    assert np.median(starts) == pytest.approx(law.median(), rel=0.15)
    assert starts == sorted(starts)


def test_what_has_been_served_counts():
    """Jobs of a fixed length: the second starts when the first has what it still needs, the third one length later."""
    floor = floor_with(server(rota.Deterministic(mean=2.0)), rota.FCFS(), 3)
    assert forecast(floor, {1: 0.5}, 2, NOW + 0.5, runs=5) == pytest.approx([1.5] * 5)
    assert forecast(floor, {1: 0.5}, 3, NOW + 0.5, runs=5) == pytest.approx([3.5] * 5)
    late = forecast(floor, {1: 99.0}, 2, NOW + 99, runs=5)  # longer than any: the law says nothing more, the mean is taken
    assert late == pytest.approx([2.0] * 5)


def test_long_jobs_are_expected_to_be_longer():
    """With sizes that vary much, who has run for long will run for longer."""
    floor = floor_with(server(rota.Hyperexponential(probabilities=(0.9, 0.1), means=(0.2, 10.0))), rota.FCFS(), 2)
    young, old = (np.mean(forecast(floor, {1: served}, 2, NOW + served, runs=400, budget_s=20.0)) for served in (0.01, 3.0))
    assert old > 4 * young
    assert old == pytest.approx(10.0, rel=0.25)


def test_it_begins_now_and_not_at_the_last_event():
    """The rota's clock rings at a time of its own: half of the way there, half of the time is left."""
    policy = rota.MSR([[0, 1], [1, 0]], [0.5, 0.5], "none", 1e-6)
    system = rota.System([1], [[1], [1]], [1e-9, 1e-9], [1.0, 1.0])
    floor = floor_with(system, policy, 1)
    floor.wake = floor.state.memory[1] = NOW + 100.0
    starts = forecast(floor, {}, 1, NOW + 60, runs=20)
    assert min(starts) >= 40.0  # and then the other slot is drained, which takes a time of mean 1
    assert np.mean(starts) == pytest.approx(41.0, abs=1.0)


@pytest.mark.parametrize("stop", ["suspend", "requeue"])
@pytest.mark.parametrize("policy", [rota.MaxWeight(), rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", 1.0)])
def test_with_preemption(policy, stop):
    """Whoever is stopped goes on later; every job that waits starts in every future."""
    system = rota.System([2, 4], [[2, 1], [2, 1]], [0.1, 0.1], [1.0, 1.0])
    floor = Floor(system, policy, seeded(np.random.SeedSequence(1)), stop=stop)
    floor.begin(NOW)
    for id, kind in ((1, 0), (2, 1), (3, 1), (4, 0)):
        floor.arrive(id, kind, NOW)
    floor.arrive(5, OWN, NOW, demand=floor.units_of([1, 1]))
    for id in (id for id, job in floor.jobs.items() if job.state != "running" and job.kind != OWN):
        starts = forecast(floor, {1: 0.2}, id, NOW + 0.2, runs=30, budget_s=20.0)
        assert len(starts) == 30
        assert all(np.isfinite(starts))
        assert starts[0] >= 0


def test_the_floor_stays_as_it_was():
    """Futures are played on copies."""
    floor = floor_with(server(rota.Exponential(mean=1.0)), rota.FCFS(), 5)
    before = floor.save(), {id: job.state for id, job in floor.jobs.items()}
    forecast(floor, {}, 5, NOW, runs=10)
    assert before == (floor.save(), {id: job.state for id, job in floor.jobs.items()})


def test_without_time_there_is_no_answer():
    """And a job that never starts does not take longer than the time that was given."""
    floor = floor_with(server(rota.Exponential(mean=1.0)), rota.FCFS(), 5)
    assert forecast(floor, {}, 5, NOW, budget_s=0.0) == []
    never = rota.MSR([[0, 1]], [1.0], "none", 1.0)
    system = rota.System([1], [[1], [1]], [0.5, 0.5], [1.0, 1.0])
    assert forecast(floor_with(system, never, 1), {}, 1, NOW, budget_s=0.2) == []
    assert forecast(floor_with(system.replace(arrival_rate=[0.0, 0.0]), never, 1), {}, 1, NOW) == []
