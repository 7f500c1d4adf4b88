"""The search for the number of servers, against trying all numbers."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from rota.study.fleet_counts import enough_servers, least_count


@given(low=st.integers(1, 50), more=st.integers(0, 50), edge=st.integers(-5, 120), guess=st.integers(-5, 120))
def test_one_kind(low, more, edge, guess):
    """From any guess the edge is found, and nothing outside of the bounds is tried."""
    high, tried = low + more, []

    def passes(n):
        tried.append(n)
        return n >= edge

    assert least_count(passes, low, high, guess) == (None if edge > high else max(edge, low))
    assert all(low <= n <= high for n in tried)
    assert len(tried) == len(set(tried))


@st.composite
def monotone_tests(draw):
    """Today's servers of up to three kinds, and a test that more servers help to pass: at least one of some vectors is reached."""
    C = draw(st.integers(1, 3))
    counts = st.tuples(*[st.integers(1, 9)] * C)
    corners = draw(st.lists(counts, min_size=1, max_size=3))
    guess = draw(st.none() | counts)
    order = draw(st.permutations(range(C)))
    return draw(counts), lambda n: any(all(a >= b for a, b in zip(n, corner, strict=True)) for corner in corners), order, guess


@given(case=monotone_tests())
def test_several_kinds(case):
    """What is found passes, and no kind can have one less: below today's number only where today's servers pass."""
    today, passes, order, guess = case
    found = enough_servers(today, passes, order=order, guess=guess)
    assert found is not None
    assert passes(found)
    floor = (1,) * len(today) if passes(today) else today
    assert all(n >= least for n, least in zip(found, floor, strict=True))
    for c in range(len(today)):
        if found[c] > floor[c]:
            assert not passes(tuple(n - (k == c) for k, n in enumerate(found)))
    if not passes(today):
        lists = product(*(range(a, 10) for a in today))
        alone = [n for n in lists if passes(n) and sum(a != b for a, b in zip(n, today, strict=True)) == 1]
        if alone:  # one kind alone is enough: then the fewest servers of one kind are bought
            assert sum(found) == min(map(sum, alone))
        assert all(n >= a for n, a in zip(found, today, strict=True))
    else:
        assert all(n <= a for n, a in zip(found, today, strict=True))


def test_no_number_is_enough():
    """The search ends."""
    assert enough_servers((3, 2), lambda counts: False, order=(0, 1)) is None


def test_only_useful_kinds_are_bought_alone():
    """The others are bought together with them only."""
    assert enough_servers((1, 1), lambda n: n[0] + n[1] >= 5, order=(0, 1), useful=(1,)) == (1, 4)
