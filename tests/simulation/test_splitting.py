"""A simulation split over independent runs."""

import numpy as np
import pytest

import rota
from rota.simulation.simulate import seeds_of
from rota.simulation.splitting import MOST_RUNS, runs_for, shortest_run

MM1 = rota.System([1], [[1]], [0.5], [1.0])


def measured(result: rota.Result) -> dict:
    """All that was measured, as text; times of the machine left out."""
    return {name: repr(value) for name, value in vars(result).items() if name != "time_s"}


def test_workers_do_not_change_the_result():
    """One thread or three: the same in every bit, also with `until`."""
    for options in ({"jobs": 400_000}, {"until": 0.03}):
        alone, shared = (rota.simulate(MM1, "fcfs", seed=1, replications="auto", workers=n, **options) for n in (1, 3))
        assert measured(alone) == measured(shared)
        assert alone.runs == 8


def test_the_number_does_not_depend_on_the_machine(monkeypatch):
    """A machine of one core and one of a hundred split a simulation into the same runs."""
    found = []
    for cores in (1, 100):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        found.append(measured(rota.simulate(MM1, "fcfs", jobs=200_000, replications="auto")))
    assert found[0] == found[1]


def test_the_runs_are_those_of_their_seeds():
    """Jobs, sums and time of a split simulation are those of single runs with the seeds of the runs; so is its histogram."""
    split = rota.simulate(MM1, "fcfs", jobs=60_000, seed=5, replications=3)
    single = [rota.simulate(MM1, "fcfs", jobs=20_000, seed=seed) for seed in seeds_of(5, 3)]
    assert split.runs == 3
    assert split.jobs == 60_000
    np.testing.assert_allclose(split.totals, sum(one.totals for one in single), rtol=1e-12)
    assert split.events == sum(one.events for one in single)
    assert split.warmup == pytest.approx(single[0].warmup)
    medians = [one.response_time_quantiles[0.5] for one in single]
    assert min(medians) <= split.response_time_quantiles[0.5] <= max(medians)


def test_the_mean_is_the_exact_one():
    """M/M/1 at load 0.5: E[T] = 2 within twice a half-width, which is as narrow as that of one run of as many jobs, and of `replicate`."""
    split, one = (rota.simulate(MM1, "fcfs", jobs=800_000, seed=2, replications=n) for n in (8, 1))
    assert abs(split.mean_response_time - 2) < 2 * split.interval
    assert split.interval == pytest.approx(one.interval, rel=0.5)
    runs = rota.replicate(MM1, "fcfs", replications=8, jobs=100_000, seed=2)
    assert split.mean_response_time == pytest.approx(runs.mean_response_time, rel=1e-12)
    assert split.interval == pytest.approx(runs.interval, rel=1.0)


def test_a_queue_that_grows_grows_in_most_runs():
    """Above load 1 there is no mean, and the growth is that of the work that is too much; one run of eight may look so by chance."""
    busy = rota.simulate(MM1.replace(arrival_rate=[1.3]), "fcfs", jobs=80_000, replications=4)
    assert not busy.stable
    assert busy.growth == pytest.approx(0.3, rel=0.1)
    slow = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "none", 0.3)
    paper = rota.read_system("examples/paper.toml").scaled(load=0.7)
    seed = next(seed for seed in range(100) if not rota.simulate(paper, slow, jobs=5000, seed=seeds_of(seed, 8)[0]).stable)
    joined = rota.simulate(paper, slow, jobs=40_000, seed=seed, replications=8)
    assert joined.stable
    assert joined.growth == 0
    assert joined.growing == ()


def test_one_run_is_one_run():
    """One replication is the plain simulation, bit for bit."""
    plain, one = (rota.simulate(MM1, "fcfs", jobs=20_000, seed=4, replications=n) for n in (None, 1))
    assert measured(plain) == measured(one)


def test_pairs_of_split_runs():
    """Two policies that are split alike saw the same jobs, and are compared batch by batch."""
    system = rota.System([3, 3, 3], [[3, 1, 1], [1, 1, 1], [1, 2, 1]], [0.2, 0.3, 0.3], [1.0, 1.0, 1.0])
    first, second = (rota.simulate(system, name, jobs=80_000, seed=1, replications=4) for name in ("first-fit", "fcfs"))
    apart = rota.compare_pair(second, first)
    assert apart.significant
    assert apart.interval < second.interval + first.interval


def test_fewer_runs_near_load_one():
    """The closer to load 1 the longer a queue remembers its start, so the fewer runs: one at load 1, or if nothing is left out."""
    numbers = [runs_for(MM1.replace(arrival_rate=[load]), rota.FCFS(), 1_000_000) for load in (0.5, 0.9, 0.95, 0.98, 1.0)]
    assert numbers[0] == MOST_RUNS
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-2:] == [1, 1]
    assert runs_for(MM1, rota.FCFS(), 1_000_000, 0.0) == 1
    assert runs_for(MM1, rota.FCFS(), 90_000) == 1


def test_a_slow_rota_needs_longer_runs():
    """A rota that goes round slowly has a warm-up of many rounds in every run."""
    system = rota.System([1], [[1], [1]], [0.2, 0.2], [1.0, 1.0])
    quick, slow = (rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", rate) for rate in (10.0, 0.001))
    assert shortest_run(system, slow) > 2 * shortest_run(system, quick)


def test_plain_python_in_processes():
    """A policy in plain Python goes to other processes, with the result of one."""

    def one_at_a_time(state, target):
        target[0] = min(1, state.system[0])
        return np.inf

    policy = rota.Custom(one_at_a_time, compiled=False)
    alone, shared = (rota.simulate(MM1, policy, jobs=3000, replications=2, workers=n) for n in (1, 2))
    assert alone.mean_response_time == shared.mean_response_time
    assert alone.runs == 2
    assert alone.policy is policy


def test_what_cannot_be_split():
    """A list of jobs and a log are of one run: "auto" knows that, a number is refused, and so is another word."""
    jobs = rota.Jobs(np.arange(1.0, 401.0), np.zeros(400, dtype=int), np.full(400, 0.5))
    assert rota.simulate(MM1, "fcfs", workload=jobs, replications="auto").runs == 1
    assert rota.simulate(MM1, "fcfs", jobs=200_000, log_jobs=10, replications="auto").runs == 1
    with pytest.raises(rota.BadSpec, match="gives every run the same jobs"):
        rota.simulate(MM1, "fcfs", workload=jobs, replications=2)
    with pytest.raises(rota.BadSpec, match="log_jobs: goes with one run only"):
        rota.simulate(MM1, "fcfs", jobs=1000, log_jobs=10, replications=2)
    with pytest.raises(rota.BadSpec, match=r"replications: must be a whole number or \"auto\""):
        rota.simulate(MM1, "fcfs", jobs=1000, replications="many")
    with pytest.raises(rota.BadSpec, match="workers: must be"):
        rota.simulate(MM1, "fcfs", jobs=1000, replications=2, workers=0)
