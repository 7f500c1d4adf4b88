"""The best split between places: against all splits on a grid, by its marginals, and never worse than the start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.analysis import mean_waiting
from rota.design.best_split import best_split, jobs_at
from rota.design.deadline import Deadline


def slots(*numbers: int):
    """A place with so many slots for each type, served at rate 1."""
    return lambda rate: np.array([a + mean_waiting(k, a) for k, a in zip(numbers, rate.tolist(), strict=True)])


def total(places, rate, split) -> float:
    """Jobs at all places."""
    return float(jobs_at(places, rate, split).sum())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=2), st.floats(0.05, 0.95))
def test_no_split_on_a_grid_is_better(counts, load):
    """Two places: none of a thousand splits has fewer jobs, and slots in proportion are the start."""
    places = [slots(k) for k in counts]
    rate = np.array([load * sum(counts)])
    start = np.array(counts, dtype=float)[:, None] / sum(counts)
    found = best_split(places, rate, start, np.ones((2, 1), dtype=bool), Deadline.after(60))
    assert found.sum(axis=0) == pytest.approx(1)
    least = min(total(places, rate, np.array([[x], [1 - x]])) for x in np.linspace(0, 1, 1001))
    assert total(places, rate, found) <= least * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_marginals_agree(seed):
    """Four places and three types: where a type is sent to two places, one job more costs the same at both, and no place is cheaper."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, (4, 3))
    places = [slots(*row) for row in counts]
    rate = rng.uniform(0.3, 0.9, 3) * counts.sum(axis=0)
    allowed = rng.random((4, 3)) < 0.8
    allowed[0] = True
    start = np.where(allowed, counts, 0) / np.where(allowed, counts, 0).sum(axis=0)
    rate = np.minimum(rate, 0.9 * np.where(allowed, counts, 0).sum(axis=0))
    found = best_split(places, rate, start, allowed, Deadline.after(60))
    assert not found[~allowed].any()
    assert (jobs_at(places, rate, found).sum(axis=0) <= jobs_at(places, rate, start).sum(axis=0) * (1 + 1e-12)).all()
    step = 1e-6
    more = (jobs_at(places, rate, found + step) - jobs_at(places, rate, found)) / (step * rate)
    for i in range(3):
        at = found[:, i] > 1e-4
        assert more[at, i].max() <= more[allowed[:, i], i].min() * (1 + 2e-2)


def test_nothing_to_choose():
    """A type with one place stays there, and one that never arrives stays as it is."""
    places = [slots(2, 2), slots(3, 3)]
    allowed = np.array([[True, True], [False, True]])
    start = np.array([[1.0, 0.5], [0.0, 0.5]])
    assert (best_split(places, np.array([1.0, 0.0]), start, allowed, Deadline.after(60)) == start).all()
