"""Which schedules fit: membership, enumeration, counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from systems import keep_maximal, paper_example, reference_schedules, small_systems, vm_example


@given(small_systems())
def test_enumeration_is_the_plain_recursion(system):
    """All schedules, and all maximal ones, are those of the recursion over exact fractions, in the same (lexicographic) order."""
    everything = reference_schedules(system)
    assert [tuple(u) for u in rota.list_schedules(system)] == everything
    assert [tuple(u) for u in rota.list_schedules(system, maximal=True)] == keep_maximal(everything)
    assert everything == sorted(everything)


@given(small_systems(), st.integers(1, 50), st.booleans())
def test_blocks_of_any_size_give_the_same(system, block, maximal):
    """Blocks are full but for the last, and together they are the list."""
    blocks = list(rota.iterate_schedules(system, maximal=maximal, block=block))
    assert all(len(part) == block for part in blocks[:-1])
    assert 1 <= len(blocks[-1]) <= block
    assert np.array_equal(np.concatenate(blocks), rota.list_schedules(system, maximal=maximal))


@given(small_systems(), st.booleans())
def test_a_limit_never_truncates(system, maximal):
    """A limit of the true number lists all; one less raises, with the limit and an estimate."""
    n = len(rota.list_schedules(system, maximal=maximal))
    assert len(rota.list_schedules(system, maximal=maximal, limit=n)) == n
    if n > 1:
        with pytest.raises(rota.TooManySchedules, match="raise the limit") as caught:
            rota.list_schedules(system, maximal=maximal, limit=n - 1)
        assert caught.value.limit == n - 1
        assert caught.value.estimate >= n


def test_blocks_come_before_the_end():
    """The first block of 10^18 schedules is there at once: nothing is enumerated ahead."""
    system = rota.System([1000], [[1]] * 8, [1] * 8, [1] * 8)
    first = next(rota.iterate_schedules(system, block=3))
    assert first[:, -1].tolist() == [0, 1, 2]
    with pytest.raises(rota.TooManySchedules) as caught:
        rota.list_schedules(system, limit=1000)
    assert caught.value.estimate == pytest.approx(math.comb(1008, 8), rel=0.2)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -1}])
def test_limit_must_be_positive(wrong):
    """A limit below 1 is refused."""
    with pytest.raises(rota.BadSpec, match="limit: must be at least 1"):
        rota.list_schedules(paper_example(), **wrong)


@pytest.mark.parametrize("block", [0, -1])
def test_block_must_be_positive(block):
    """Blocks of no rows would never end, so they are refused."""
    with pytest.raises(rota.BadSpec, match="block: must be at least 1"):
        next(rota.iterate_schedules(paper_example(), block=block))


def test_paper_example():
    """The paper's example has 20 schedules; its two candidates are maximal."""
    system = paper_example()
    assert len(rota.list_schedules(system)) == 20
    assert rota.is_maximal(system, [[0, 0, 2], [1, 4, 0], [1, 3, 0]]).tolist() == [True, True, False]
    assert rota.largest_counts(system).tolist() == [2, 5, 2]


@given(small_systems(), st.data())
def test_fits_and_is_maximal_agree_with_the_lists(system, data):
    """A row fits if it is among the schedules, and is maximal if it is among the maximal ones; negative counts never fit."""
    everything = set(reference_schedules(system))
    maximal = set(keep_maximal(sorted(everything)))
    counts = st.tuples(*(st.integers(-1, int(most) + 1) for most in rota.largest_counts(system)))
    rows = data.draw(st.lists(counts, min_size=1, max_size=20))
    assert rota.fits(system, rows).tolist() == [row in everything for row in rows]
    assert rota.is_maximal(system, rows).tolist() == [row in maximal for row in rows]
    assert rota.fits(system, rows[0]) is (rows[0] in everything)
    assert rota.is_maximal(system, rows[0]) is (rows[0] in maximal)


def test_huge_counts_do_not_overflow():
    """Counts whose demand leaves 64 bits do not fit."""
    system = paper_example()
    assert not rota.fits(system, [10**18, 10**18, 10**18])
    assert not rota.is_maximal(system, [2**62, 0, 0])


@pytest.mark.parametrize("schedule", [[1, 2], [[1, 2]], 3, [[[1, 2, 3]]]])
@pytest.mark.parametrize("question", [rota.fits, rota.is_maximal])
def test_wrong_shapes_are_refused(question, schedule):
    """A schedule has one count per type."""
    with pytest.raises(rota.BadSpec, match="needs 3 counts"):
        question(paper_example(), schedule)


@pytest.mark.parametrize("count", [0.5, math.nan, math.inf, 1e30])
@pytest.mark.parametrize("question", [rota.fits, rota.is_maximal])
def test_fractions_of_jobs_are_refused(question, count):
    """Counts are whole numbers; whole floats are taken as such."""
    with pytest.raises(rota.BadSpec, match="whole numbers"):
        question(paper_example(), [count, 0, 0])
    assert rota.fits(paper_example(), [1.0, 4.0, 0.0])


@given(small_systems())
def test_largest_counts(system):
    """The largest count of a type is its maximum over all schedules."""
    assert rota.largest_counts(system).tolist() == np.max(reference_schedules(system), axis=0).tolist()


@given(small_systems(), st.booleans())
def test_a_small_count_is_exact(system, maximal):
    """Where the box of counts is small, the schedules are counted: no error, and the number that lists have."""
    at_most = float(np.prod(rota.largest_counts(system) + 1))
    assert rota.estimate_count(system, maximal=maximal) == (len(rota.list_schedules(system, maximal=maximal)), 0, at_most)


@pytest.mark.parametrize("maximal", [False, True])
@pytest.mark.parametrize("factor", [3, 5])
def test_the_estimate_is_unbiased(factor, maximal):
    """Beyond a million, 20,000 probes give the number of schedules within 5 standard errors, which are below 5 %, for every seed."""
    system = vm_example()
    system = system.replace(capacity=factor * system.capacity)
    n = sum(map(len, rota.iterate_schedules(system, maximal=maximal)))
    for seed in range(4):
        estimate = rota.estimate_count(system, maximal=maximal, seed=seed)
        assert 0 < estimate.standard_error <= 0.05 * n
        assert abs(estimate.schedules - n) <= 5 * estimate.standard_error
        assert max(n, 1e6) < estimate.at_most
        assert estimate == rota.estimate_count(system, maximal=maximal, seed=seed)
