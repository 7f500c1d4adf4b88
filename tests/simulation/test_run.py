"""A run between chunks: memory, clocks and sums."""

from itertools import islice

import numpy as np
import pytest

import rota
from rota.decide import brain_of
from rota.simulation import PoissonArrivals
from rota.simulation.run import Run
from systems import paper_example


def run_of(system, policy, **options):
    """A fresh run."""
    options.setdefault("batch_jobs", 100)
    return Run(system, brain_of(system, policy), np.random.SeedSequence(1), **options)


def chunks(system, n, size):
    """Some chunks of the model's jobs."""
    return islice(PoissonArrivals(size).chunks(system, np.random.SeedSequence(2)), n)


def test_memory_is_bounded_by_the_jobs_present():
    """A stable system has as many places after two hundred chunks as after the first; an unstable one gets more."""
    run, places = run_of(paper_example(0.5), rota.FirstFit()), []
    for chunk in chunks(paper_example(0.5), 200, 2000):
        run.feed(chunk)
        run.take_batches()
        places.append(len(run.body.kind))
    assert places[-1] <= 2 * places[0]
    assert len(set(places)) <= 2
    run = run_of(paper_example(1.5), rota.FirstFit())
    for chunk in chunks(paper_example(1.5), 20, 2000):
        run.feed(chunk)
        run.take_batches()
    assert len(run.body.kind) >= run.present > 2 * places[0]


def test_what_came_in_is_there_or_done():
    """Arrivals = departures + jobs present, per type, and the histogram has every job that is done."""
    system = paper_example(0.8)
    run = run_of(system, rota.MaxWeight(), check=True)
    came, done = np.zeros(3), np.zeros(3)
    for chunk in chunks(system, 5, 1000):
        run.feed(chunk)
        came += np.bincount(chunk.kinds, minlength=3)
        rows, areas, spans = run.take_batches()
        assert rows.shape == (10, 3, 7)
        assert areas.shape == (10, 2, 3)
        assert (spans[1:, 0] == spans[:-1, 1]).all()
        done += rows[:, :, 0].sum(axis=0)
    done += run.tally.sums[:, 0]
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
    assert run.tally.area[0] == pytest.approx(run.tally.sums[:, 1], rel=1e-9)
    assert run.tally.area[1] == pytest.approx(sizes, rel=1e-9)


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
