"""Streams of jobs."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

import rota
from rota.model.workload import Chunk
from rota.simulation import PoissonArrivals

SYSTEM = rota.System([1], [[1], [1], [1]], [1.0, 0.0, 3.0], [2.0, 1.0, 0.5])


def first(system, n, chunk, seed=0):
    """The first n jobs of the model's stream."""
    parts = list(islice(PoissonArrivals(chunk).chunks(system, np.random.SeedSequence(seed)), -(-n // chunk)))
    return Chunk(*(np.concatenate(columns)[:n] for columns in zip(*parts, strict=True)))


def test_poisson_arrivals():
    """Gaps are exponential with the total rate, types come by their rates, sizes have their mean; an idle type never comes."""
    jobs = first(SYSTEM, 40_000, 1000)
    gaps = np.diff(jobs.times, prepend=0.0)
    assert stats.kstest(gaps, "expon", args=(0, 1 / 4)).pvalue > 0.001
    shares = np.bincount(jobs.kinds, minlength=3) / len(jobs.kinds)
    assert shares[1] == 0
    assert shares[0] == pytest.approx(0.25, abs=0.01)
    for i, mean in ((0, 0.5), (2, 2.0)):
        assert stats.kstest(jobs.sizes[jobs.kinds == i], "expon", args=(0, mean)).pvalue > 0.001
    assert (jobs.estimates == jobs.sizes).all()


def test_a_short_first_chunk():
    """Chunks grow from the first one to the usual length, and the jobs are the same to the bit as in chunks of one length."""
    parts = list(islice(PoissonArrivals(1000, first=100).chunks(SYSTEM, np.random.SeedSequence(0)), 6))
    assert [len(part.times) for part in parts] == [100, 200, 400, 800, 1000, 1000]
    whole = first(SYSTEM, 3500, 1000)
    for columns, expected in zip(zip(*parts, strict=True), whole, strict=True):
        assert (np.concatenate(columns) == expected).all()


def test_sizes_have_their_distribution():
    """Each type's sizes come from its own distribution."""
    system = rota.System([1], [[1], [1]], [1, 1], sizes=[rota.Deterministic(mean=3.0), rota.Empirical(values=(1.0, 2.0))])
    jobs = first(system, 1000, 100)
    assert set(jobs.sizes[jobs.kinds == 0]) == {3.0}
    assert set(jobs.sizes[jobs.kinds == 1]) == {1.0, 2.0}


def test_chunks_do_not_change_types_and_sizes():
    """The stream cut into chunks of another length has the same types and sizes, and the same times up to rounding."""
    a, b = first(SYSTEM, 5000, 250), first(SYSTEM, 5000, 5000)
    assert (a.kinds == b.kinds).all()
    assert (a.sizes == b.sizes).all()
    assert a.times == pytest.approx(b.times, rel=1e-12)


def test_seeds():
    """The same seed gives the same jobs, another seed others."""
    a, b, c = (first(SYSTEM, 100, 100, seed) for seed in (1, 1, 2))
    assert (a.times == b.times).all()
    assert (a.times != c.times).any()


def test_given_jobs():
    """Given jobs come as they are, with the sizes as estimates unless there are others."""
    chunks = list(rota.Jobs([0, 1, 1], [0, 2, 0], [1, 2, 3]).chunks(SYSTEM, np.random.SeedSequence(0)))
    assert [column.tolist() for column in chunks[0]] == [[0, 1, 1], [0, 2, 0], [1, 2, 3], [1, 2, 3]]
    chunks = list(rota.Jobs([0], [0], [1], [5]).chunks(SYSTEM, np.random.SeedSequence(0)))
    assert chunks[0].estimates.tolist() == [5]
    many = rota.Jobs(np.arange(200_000.0), np.zeros(200_000, dtype=int), np.ones(200_000))
    parts = list(many.chunks(SYSTEM, np.random.SeedSequence(0)))
    assert len(parts) > 1
    assert np.concatenate([part.times for part in parts]).tolist() == np.arange(200_000.0).tolist()
    assert len(many) == 200_000


@pytest.mark.parametrize(
    ("jobs", "rule"),
    [
        (rota.Jobs([0, 1], [0], [1, 1]), "same length"),
        (rota.Jobs([[0.0]], [[0]], [[1.0]]), "same length"),
        (rota.Jobs([1, 0], [0, 0], [1, 1]), "in order"),
        (rota.Jobs([-1], [0], [1]), "not negative"),
        (rota.Jobs([0], [0], [0]), "positive sizes"),
        (rota.Jobs([0], [0], [np.inf]), "finite"),
        (rota.Jobs([np.nan], [0], [1]), "finite"),
        (rota.Jobs([0], [3], [1]), "types 0…2"),
        (rota.Jobs([0], [-1], [1]), "types 0…2"),
    ],
    ids=str,
)
def test_bad_jobs(jobs, rule):
    """Jobs out of order, of unknown types or without a size are refused."""
    with pytest.raises(rota.BadSpec, match=rule):
        rota.simulate(SYSTEM, "fcfs", workload=jobs)
