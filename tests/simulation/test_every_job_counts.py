"""Means that leave nothing out: jobs not done at the end, rare types, types that never finish; and intervals that hold what they say."""

import math

import numpy as np
import pytest

import rota
from systems import paper_example


def own_fcfs(times, sizes):
    """The mean wait of one server, first come, first served, by Lindley's recursion."""
    free, waits = 0.0, []
    for arrival, size in zip(times, sizes, strict=True):
        start = max(arrival, free)
        waits.append(start - arrival)
        free = start + size
    return float(np.mean(waits))


# ---------------------------------------------------------------------------------------------------------------- finite lists


def test_a_list_is_played_until_its_last_job_is_done():
    """At load 0.95 many jobs wait when the last one comes: all count, and the mean wait is that of fifteen lines of one's own."""
    rng = np.random.default_rng(1)
    times, sizes = np.cumsum(rng.exponential(1 / 0.95, 10_000)), rng.exponential(1.0, 10_000)
    result = rota.simulate(rota.System([1], [[1]], [0.95], [1.0]), "fcfs", workload=rota.Jobs(times, np.zeros(10_000, int), sizes))
    assert result.counted.tolist() == [10_000]
    assert result.unfinished.tolist() == [0]
    assert result.mean_waiting_time == pytest.approx(own_fcfs(times, sizes), rel=1e-9)
    assert result.little_response_time == pytest.approx(result.mean_response_time, rel=1e-9)


def test_a_list_that_overloads_the_server_has_a_mean():
    """A list of jobs ends, so its mean is a fact, also where jobs pile up; that they did is said."""
    times, sizes = np.arange(2000) * 1.0, np.full(2000, 2.0)
    result = rota.simulate(rota.System([1], [[1]], [1.0], [1.0]), "fcfs", workload=rota.Jobs(times, np.zeros(2000, int), sizes))
    assert result.mean_waiting_time == pytest.approx(np.arange(2000).mean())
    assert result.stable
    assert result.growth == pytest.approx(0.5, rel=0.01)
    assert any("piled up" in sentence for sentence in result.remarks)


def test_a_short_list_is_never_called_unstable():
    """Ninety-three jobs that come in a burst are done in the end: every policy has a mean."""
    rng = np.random.default_rng(2)
    jobs = rota.Jobs(np.sort(rng.random(93)), rng.integers(0, 3, 93), rng.exponential(5.0, 93))
    found = rota.compare(paper_example(0.5), ["fcfs", "first-fit", "max-weight-np"], workload=jobs)
    assert [result.stable for result in found.results] == [True] * 3
    assert all(np.isfinite(result.mean_response_time) for result in found.results)
    assert found.best is not None


def test_a_part_of_a_list():
    """With `jobs` the first so many of a list are the list."""
    jobs = rota.Jobs(np.arange(300) * 0.5, np.zeros(300, int), np.ones(300))
    result = rota.simulate(rota.System([1], [[1]], [1.0], [1.0]), "fcfs", workload=jobs, jobs=200)
    assert (result.jobs, result.counted.tolist()) == (200, [200])
    assert result.mean_waiting_time == pytest.approx((0.5 * np.arange(200)).mean())


# ---------------------------------------------------------------------------------------------------------------- no end


def test_jobs_that_count_are_followed_to_their_end():
    """Without an end, the jobs that came after the warm-up all count, and no other: 80,000 of 100,000, whatever is still there."""
    result = rota.simulate(rota.System([1], [[1]], [0.95], [1.0]), "fcfs", jobs=100_000, seed=3)
    assert result.counted.sum() == pytest.approx(80_000, rel=0.001)
    assert result.unfinished.sum() == 0


def test_short_runs_have_no_bias():
    """M/M/1 at load 0.8, runs of 10,000 jobs: the mean over 400 runs is 5 within its own error, which is below 1.5 %."""
    found = rota.replicate(rota.System([1], [[1]], [0.8], [1.0]), "fcfs", replications=400, jobs=10_000, seed=7)
    assert found.interval < 0.015 * 5
    assert abs(found.mean_response_time - 5) < 1.5 * found.interval


def test_a_short_run_of_a_large_server_does_not_begin_empty():
    """A run that lasts five mean sizes of the jobs on a server of 1,000 places: the number present is right all the same."""
    system = rota.System([1000], [[1]], [800.0], sizes=[rota.LogNormal(mean=1.0, cv=1.5)])
    result = rota.simulate(system, "fcfs", jobs=4000, seed=1)
    assert result.mean_queue_length[0] == pytest.approx(800, rel=0.05)
    assert result.utilization[0] == pytest.approx(0.8, rel=0.05)


# ---------------------------------------------------------------------------------------------------------------- types apart


STARVING = {
    "one large": rota.System([20], [[1], [20]], [16.0, 0.0003], [1.0, 0.05]),
    "four": rota.System([64], [[1], [4], [16], [64]], [20.0, 4.0, 0.8, 0.002], [1.0, 1.0, 0.5, 0.25]),
}


def test_a_type_that_never_finishes_is_not_stable():
    """Under First-Fit the jobs that need the whole server never start: they pile up, and the result is not stable."""
    system = STARVING["four"]
    result = rota.simulate(system, "first-fit")
    assert not result.stable
    assert result.growing == (system.names[-1],)
    assert system.names[-1] in repr(result)
    assert np.isnan(result.mean_response_time)
    assert result.growth == pytest.approx(system.arrival_rate[-1], rel=0.2)


def test_a_type_that_hardly_ever_finishes_has_no_interval():
    """Under First-Fit a job that needs the whole server starts when it happens to be empty, once or twice in the run: nothing is known."""
    result = rota.simulate(STARVING["one large"], "first-fit")
    assert not result.stable or result.interval == np.inf
    assert any("not done at the end" in sentence or "too short" in sentence for sentence in result.remarks)


def test_a_type_of_few_jobs_has_no_mean():
    """A million jobs of which 71 are of the slow type: no mean of that type, nor over all, for half of the jobs present are of it."""
    system = rota.System([2], [[1], [1]], [70.0, 0.007], [100.0, 0.01], names=["web", "sim"])
    result = rota.simulate(system, rota.MSR([[1, 1]], preemption="full"), jobs=1_000_000)
    assert result.unknown == ("sim",)
    assert np.isnan([result.response_time[1], result.mean_queue_length[1], result.mean_response_time, result.interval]).all()
    assert result.response_time[0] == pytest.approx(1 / 30, rel=0.03)
    assert any(f"Only {result.counted[1]} jobs of 'sim'" in sentence for sentence in result.remarks)
    assert "too few jobs of 'sim'" in repr(result)


def test_a_rare_type_gets_enough_jobs():
    """Without a number of jobs, a run is long enough for 500 jobs of the rarest type, up to 20 million; a short one says what it lacks."""
    assert rota.simulation.enough_jobs(rota.System([2], [[1], [1]], [1.0, 1.0], [2.0, 2.0])) == 1_000_000
    assert rota.simulation.enough_jobs(rota.System([2], [[1], [1]], [1.0, 1e-4], [2.0, 2.0])) == pytest.approx(500 / 0.8 * 1e4, rel=0.001)
    assert rota.simulation.enough_jobs(rota.System([2], [[1], [1]], [1.0, 1e-9], [2.0, 2.0])) == 20_000_000
    assert rota.simulation.enough_jobs(rota.System([9], [[1], [1]], [1e5, 1.0], [1e6, 1.0])) == pytest.approx(62_500_625, abs=1e9)


def test_a_rare_type_that_hardly_counts_leaves_the_mean():
    """Too few jobs of a type that holds hardly any of the jobs present: no mean of that type, but one over all."""
    system = rota.System([4], [[1], [1]], [2.0, 0.0004], [1.0, 1.0])
    result = rota.simulate(system, "fcfs", jobs=100_000)
    assert result.unknown == (system.names[1],)
    assert result.mean_response_time == pytest.approx(1 + 0.0870 / 1, rel=0.05)  # M/M/4 at load 0.5: 1 + C(4, 2)/(4 − 2)


def test_replications_of_a_rare_type_agree_with_theory():
    """Two M/M/1 queues whose rates differ by a thousand: the mean over ten runs of default length holds the exact one."""
    system = rota.System([2], [[1], [1]], [70.0, 0.07], [100.0, 0.1])
    exact = (70 / 30 + 0.07 / 0.03) / 70.07
    found = rota.replicate(system, rota.MSR([[1, 1]], preemption="full"), seed=3)
    assert found.results[0].jobs == rota.simulation.enough_jobs(system, 100_000)
    assert abs(found.mean_response_time - exact) < 1.5 * found.interval
    assert found.interval < 0.2 * exact


# ---------------------------------------------------------------------------------------------------------------- intervals


def test_until_that_is_not_reached_is_said():
    """A narrow interval that the jobs do not give: `reached` is False, and a remark says so; None if nothing was asked for."""
    system = rota.System([1], [[1]], [0.5], [1.0])
    short = rota.simulate(system, "fcfs", jobs=20_000, until=0.0001)
    assert short.reached is False
    assert any("was not reached within 20,000 jobs" in sentence for sentence in short.remarks)
    assert rota.simulate(system, "fcfs", until=0.05).reached is True
    assert rota.simulate(system, "fcfs", jobs=20_000).reached is None


def test_pairs_are_of_the_same_jobs():
    """Results of other seeds, systems or lengths are no pair; with different warm-ups, both means are over the same jobs."""
    system = paper_example(0.6)
    first = rota.simulate(system, "first-fit", jobs=20_000, seed=1)
    for other, what in (
        (rota.simulate(system, "first-fit", jobs=20_000, seed=2), "seeds 1 and 2"),
        (rota.simulate(system, "first-fit", jobs=30_000, seed=1), "20,000 jobs, the other 30,000"),
        (rota.simulate(system.replace(capacity=2 * system.capacity), "first-fit", jobs=20_000, seed=1), "different systems"),
        (rota.simulate(paper_example(0.5), "first-fit", jobs=20_000, seed=1), "different jobs"),
    ):
        with pytest.raises(rota.BadSpec, match=what):
            rota.compare_pair(first, other)
    later = rota.simulate(system, "first-fit", jobs=20_000, seed=1, warmup=0.5)
    same = rota.compare_pair(first, later)
    assert (same.mean, same.interval) == (0.0, 0.0)
    assert first.mean_response_time != later.mean_response_time


def test_paired_intervals_cover():
    """Two rotas with exact means on the same 30,000 jobs: the interval of the difference holds the exact one in about 95 % of the runs."""
    system = rota.System([4], [[1], [2]], [1.2, 0.6], [1.0, 1.0])
    pair = [rota.MSR([(4, 0), (0, 2)], (0.5, 0.5), "full", rate) for rate in (1.0, 3.0)]
    exact = [rota.analyze(system, policy).mean_response_time for policy in pair]
    hits = 0
    for seed in range(300):
        difference = rota.compare_pair(*(rota.simulate(system, policy, jobs=30_000, seed=seed) for policy in pair))
        hits += abs(difference.mean - (exact[0] - exact[1])) <= difference.interval
    assert 0.92 <= hits / 300 <= 0.98


def test_little_and_the_mean_of_jobs_agree():
    """ΣE[Q]/Λ from time integrals and the mean over jobs are the same number up to the ends of the run."""
    result = rota.simulate(paper_example(0.8), "first-fit", jobs=300_000)
    assert result.little_response_time == pytest.approx(result.mean_response_time, rel=0.01)
    assert not result.remarks
    assert math.isfinite(result.interval)


def test_a_stream_that_ends_while_the_last_jobs_are_waited_for():
    """A workload of unknown length that ends just after the jobs that count: they run to their end, and time ends with the last arrival."""

    class Short:
        """Twenty thousand jobs and some, one by one, without a length."""

        def chunks(self, system, seed):
            """All in one go."""
            rng = np.random.default_rng(seed)
            n = 20_050
            yield rota.model.Chunk(np.cumsum(rng.exponential(1 / 0.9, n)), np.zeros(n, int), *(2 * [rng.exponential(1.0, n)]))

    system = rota.System([1], [[1]], [0.9], [1.0])
    ends, long = (rota.simulate(system, "fcfs", workload=work, jobs=20_000) for work in (Short(), None))
    assert ends.counted.sum() == long.counted.sum()
    assert ends.unfinished.sum() == 0
    assert ends.little_response_time == pytest.approx(ends.mean_response_time, rel=0.05)
    assert ends.simulated_time == pytest.approx(20_000 / 0.9, rel=0.03)
