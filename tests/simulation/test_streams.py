"""The jobs of a system with bursts and batches: rates, dispersion, reproducibility, and Poisson systems as they were."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.simulation import PoissonArrivals, SystemArrivals, enough_jobs
from rota.simulation.streams import _follow
from systems import arrival_processes, paper_example

MIXED = rota.System(
    [8],
    [[1], [2], [4]],
    [2.0, 0.5, 0.0],
    sizes=[rota.LogNormal(mean=1.0, cv=2.0), rota.Exponential(mean=1.0), rota.Exponential(mean=1.0)],
    arrivals=[
        rota.Bursts(factor=3.0, share=0.2, length=4.0),
        rota.Poisson(batch=rota.GivenBatch(sizes=(1, 3))),
        rota.Bursts(factor=2.0, share=0.5, length=1.0),
    ],
)


def jobs(system, n, seed=0, chunk=1 << 16):
    """The first n jobs: times, kinds, sizes."""
    parts, found = [], 0
    for part in SystemArrivals(chunk).chunks(system, np.random.SeedSequence(seed)):
        parts.append(part)
        found += len(part.times)
        if found >= n:
            break
    return tuple(np.concatenate([part[k] for part in parts])[:n] for k in range(3))


def test_poisson_systems_have_the_jobs_they_had():
    """Without bursts the jobs are those of `PoissonArrivals`, bit for bit, and so are results; nor is a named Poisson process a burst."""
    system = paper_example(0.7)
    for given_as in (system, system.replace(arrivals=[rota.Poisson()] * 3)):
        pairs = zip(
            islice(SystemArrivals(1000).chunks(given_as, np.random.SeedSequence(4)), 5),
            islice(PoissonArrivals(1000).chunks(system, np.random.SeedSequence(4)), 5),
            strict=True,
        )
        for mine, other in pairs:
            assert all(np.array_equal(a, b) for a, b in zip(mine, other, strict=True))
    first = next(PoissonArrivals(1000).chunks(system, np.random.SeedSequence(4)))
    gaps, marks, lengths = (np.random.default_rng(child) for child in np.random.SeedSequence(4).spawn(3))
    assert first.times == pytest.approx(np.cumsum(gaps.standard_exponential(1000)) / system.arrival_rate.sum())
    assert np.array_equal(first.sizes, lengths.standard_exponential(1000))
    assert len(marks.random(1000)) == 1000
    results = [rota.simulate(each, "first-fit", jobs=5000, seed=2) for each in (system, system.replace(arrivals=[rota.Poisson()] * 3))]
    assert results[0].fingerprint == results[1].fingerprint
    assert results[0].mean_response_time == results[1].mean_response_time


def test_jobs_depend_on_the_seed_and_on_nothing_else():
    """One seed gives the same jobs whatever the chunks; another seed gives others; a type has the same jobs whatever the others do."""
    whole, pieces, other = jobs(MIXED, 5000), jobs(MIXED, 5000, chunk=100), jobs(MIXED, 5000, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))
    assert not np.array_equal(whole[0], other[0])
    assert (np.diff(whole[0]) >= 0).all()
    assert set(whole[1].tolist()) == {0, 1}
    more = jobs(MIXED.replace(arrival_rate=[2.0, 5.0, 1.0]), 5000)
    first, again = (times[kinds == 0] for times, kinds, _ in (whole, more))
    assert np.array_equal(first[: len(again)], again[: len(first)])


@settings(max_examples=15)
@given(process=arrival_processes(), rate=st.floats(0.5, 2))
def test_rate_and_dispersion_of_the_jobs(process, rate):
    """So many jobs arrive as the rate says, and their counts in long windows spread as the index of dispersion says."""
    system = rota.System([8], [[1]], [rate], [1.0], arrivals=[process])
    arrivals = process.at(rate)
    window = 30 * max(arrivals.time_scale, 1 / rate)
    times = jobs(system, 200_000, seed=3)[0]
    counts = np.histogram(times, np.arange(0, times[-1], window))[0]
    n = len(counts)
    error = np.sqrt(arrivals.dispersion / (rate * n * window))
    assert counts.mean() / window == pytest.approx(rate, rel=5 * error)
    if process.batch is None and n > 100:  # a window of 30 time scales has 1/30 less at most
        assert counts.var() / counts.mean() == pytest.approx(arrivals.dispersion, rel=0.05 + 5 * np.sqrt(2 / n))


def test_batches_arrive_at_one_moment():
    """Jobs of a batch have the same time, and their numbers the law given."""
    system = rota.System([8], [[1]], [2.0], [1.0], arrivals=[rota.Poisson(batch=rota.GivenBatch(sizes=(1, 4), weights=(3.0, 1.0)))])
    times, _, sizes = jobs(system, 50_000)
    _, counts = np.unique(times[:-10], return_counts=True)
    assert set(counts[:-1].tolist()) == {1, 4}
    assert (counts == 4).mean() == pytest.approx(0.25, abs=0.02)
    assert len(np.unique(sizes)) == len(sizes)


def test_compiled_events_are_those_of_plain_python():
    """The compiled loop over the phases does what the same lines do in Python."""
    rng = np.random.default_rng(0)
    cumulative = np.cumsum(rng.dirichlet(np.ones(6), 3), axis=1)
    cumulative[:, -1] = 1.0
    gaps, marks, leave = rng.standard_exponential(500), rng.random(500), np.array([1.0, 3.0, 0.5])
    one, other = gaps.copy(), gaps.copy()
    found = _follow(one, marks, leave, cumulative, 1, 2.0)
    assert found == _follow.py_func(other, marks, leave, cumulative, 1, 2.0)
    assert np.array_equal(one, other)
    assert (np.diff(one[: found[0]]) > 0).all()


def test_bursts_make_a_run_longer():
    """A run has some hundred time scales of the slowest bursts, so that it has seen them; with a limit."""
    slow = paper_example(0.7).replace(arrivals=[rota.Bursts(factor=2.0, share=0.5, length=4000.0)] + [rota.Poisson()] * 2)
    assert enough_jobs(paper_example(0.7)) == 1_000_000
    assert enough_jobs(slow) == pytest.approx(500 * 2000 * slow.arrival_rate.sum(), rel=1e-6)


def test_bursts_cost_response_time_under_every_policy():
    """The same rates in bursts: longer response times under policies that look at the queues, and results that say the same twice."""
    system = paper_example(0.6)
    bursts = system.replace(arrivals=[rota.Bursts(factor=4.0, share=0.2, length=5.0)] * 3)
    for policy in ("first-fit", "max-weight-np"):
        plain, longer, again = (rota.simulate(each, policy, jobs=30_000, seed=1) for each in (system, bursts, bursts))
        assert longer.stable
        assert longer.mean_response_time > 1.5 * plain.mean_response_time
        assert longer.mean_response_time == again.mean_response_time
