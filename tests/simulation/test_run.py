"""A run between chunks: memory, clocks and sums."""

from itertools import islice

import numpy as np
import pytest

import rota
from rota.decide import decider_of
from rota.model.workload import Chunk
from rota.simulation import PoissonArrivals
from rota.simulation.run import Run
from rota.simulation.server import BACK
from systems import paper_example


def run_of(system, policy, **options):
    """A fresh run."""
    options.setdefault("batch_jobs", 100)
    return Run(system, decider_of(system, policy), np.random.SeedSequence(1), **options)


def chunks(system, n, size):
    """Some chunks of the model's jobs."""
    return islice(PoissonArrivals(size).chunks(system, np.random.SeedSequence(2)), n)


def test_memory_is_bounded_by_the_jobs_present():
    """A stable system has as many places after two hundred chunks as after the first; an unstable one gets more."""
    run, places = run_of(paper_example(0.5), rota.FirstFit()), []
    for chunk in chunks(paper_example(0.5), 200, 2000):
        run.feed(chunk)
        places.append(len(run.server.jobs))
    assert places[-1] <= 2 * places[0]
    assert len(set(places)) <= 2
    run = run_of(paper_example(1.5), rota.FirstFit())
    for chunk in chunks(paper_example(1.5), 20, 2000):
        run.feed(chunk)
    assert len(run.server.jobs) >= run.present > 2 * places[0]


def test_places_grow_while_jobs_run_that_end_after_the_horizon():
    """Under a rota with full preemption running jobs are kept in two parts, and more places for jobs change neither of them."""
    system = rota.System([40], [[1], [1]], [30.0, 30.0], [1.0, 1.0])
    policy = rota.MSR([[40, 0], [10, 30]], [0.5, 0.5], "full", 5.0)
    whole = next(chunks(system, 1, 6000))
    logs = []
    for step in (6000, 100):
        run, grown_with_some = run_of(system, policy, log_jobs=10**9, check=True), 0
        for at in range(0, 6000, step):
            before, back = len(run.server.jobs), run.server.numbers[BACK]
            run.feed(Chunk(*(column[at : at + step] for column in whole)))
            grown_with_some += len(run.server.jobs) > before and back > 0
        logs.append(np.concatenate(run.log))
        assert (grown_with_some > 0) == (step == 100)
    assert (logs[0] == logs[1]).all()


def test_what_came_in_is_there_or_done():
    """Arrivals = departures + jobs present, per type, and the histogram has every job that is done."""
    system = paper_example(0.8)
    run = run_of(system, rota.MaxWeight(), check=True)
    assert run.batch_jobs == 128  # the next power of two
    came = np.zeros(3)
    for k, chunk in enumerate(chunks(system, 5, 1024), 1):
        run.feed(chunk)
        came += np.bincount(chunk.kinds, minlength=3)
        rows, areas, spans = run.batches()
        assert rows.shape == (8 * k, 3, 7)
        assert areas.shape == (8 * k, 2, 3)
        assert (spans[1:, 0] == spans[:-1, 1]).all()
    done = rows[:, :, 0].sum(axis=0)
    assert (came == done + run.state.system).all()
    assert (run.tally.buckets.sum(axis=2) == done).all()
    assert run.take_histogram().counts.sum() == 3 * done.sum()
    assert not run.tally.buckets.any()


def test_drain_empties_the_system():
    """With `drain` a run goes on until no job is left, and can go on with more."""
    system = paper_example(0.9)
    run = run_of(system, rota.FCFS(), check=True)
    first, second = chunks(system, 2, 500)
    run.feed(first, drain=True)
    assert run.present == 0
    assert run.events == 1000
    later = second._replace(times=second.times + run.now)
    run.feed(later, drain=True)
    assert (run.present, run.events) == (0, 2000)


def test_time_integrals():
    """The integral of jobs present is the sum of response times, that of jobs running the sum of sizes, once all are done."""
    system = paper_example(0.9)
    run = run_of(system, rota.FirstFit(), batch_jobs=10**9)
    (chunk,) = chunks(system, 1, 2000)
    run.feed(chunk, drain=True)
    sizes = np.bincount(chunk.kinds, weights=chunk.sizes, minlength=3)
    assert run.tally.area[0] == pytest.approx(run.tally.rows[:, :, 1].sum(axis=0), rel=1e-9)
    assert run.tally.area[1] == pytest.approx(sizes, rel=1e-9)


def test_a_job_counts_in_the_batch_of_its_arrival():
    """Under every policy a batch has the same jobs, also those that end when it is long over; batches can be joined."""
    system, counts = paper_example(0.9), []
    for policy in (rota.FCFS(), rota.FirstFit()):
        run = run_of(system, policy)
        (chunk,) = chunks(system, 1, 1280)
        run.feed(chunk, drain=True)
        by_type = np.array([np.bincount(part, minlength=3) for part in chunk.kinds.reshape(10, 128)])
        rows, areas, _ = run.batches()
        assert (rows[:, :, 0] == by_type).all()
        run.join_batches()
        joined, joined_areas, spans = run.batches()
        assert (joined[:, :, 0] == by_type.reshape(5, 2, 3).sum(axis=1)).all()
        assert joined_areas.sum() == pytest.approx(areas.sum())
        assert (spans[1:, 0] == spans[:-1, 1]).all()
        counts.append(joined[:, :, 0])
    assert (counts[0] == counts[1]).all()


def test_jobs_to_begin_with_do_not_count():
    """Jobs that are there at the start take their resources and leave no trace in the sums; nor do jobs after the last that counts."""
    system = rota.System([1], [[1]], [0.5], [1.0])
    run = run_of(system, rota.FCFS(), check=True)
    run.begin_with(np.zeros(3, dtype=np.int64), np.full(3, 2.0), np.full(3, 2.0))
    assert (run.present, run.arrived) == (3, 0)
    job = Chunk(np.array([1.0]), np.array([0]), np.array([1.0]), np.array([1.0]))
    run.feed(job)
    run.stop_counting()
    run.feed(job._replace(times=np.array([2.0])), drain=True)
    rows, _, _ = run.batches()
    assert rows[:, 0, :2].tolist() == [[1.0, 6.0]]  # behind six units of work: it came at 1 and left at 7


def test_a_job_that_is_not_done_counts_with_its_age():
    """Jobs still there are counted with the time they have been there, each in its own batch."""
    system = rota.System([1], [[1]], [0.5], [1.0])
    run = run_of(system, rota.FCFS(), batch_jobs=1)
    times, ones = np.array([0.0, 1.0, 4.0]), np.ones(3)
    run.feed(Chunk(times, np.zeros(3, dtype=np.int64), 3 * ones, 3 * ones))
    assert run.count_unfinished().tolist() == [2]
    rows, _, _ = run.batches()
    assert rows[:, 0, 1].tolist() == [3.0, 3.0, 0.0]
    assert rows[:, 0, 3].tolist() == [0.0, 2.0, 0.0]  # the second waited until 3 and has run since


def test_log_of_any_length():
    """A log longer than its buffer is complete: each job arrives, starts and finishes."""
    system = paper_example(0.5)
    run = run_of(system, rota.FCFS(), log_jobs=10**9, batch_jobs=10**9)
    (chunk,) = chunks(system, 1, 50_000)
    run.feed(chunk, drain=True)
    log = np.concatenate(run.log)
    assert len(run.log) > 1
    assert len(log) == 150_000
    for kind in (0, 1, 3):
        assert (np.sort(log[log[:, 1] == kind, 3]) == np.arange(50_000)).all()
