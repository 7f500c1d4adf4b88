"""Views of named tuples: compiled functions read the same as Python does, and call each other by address."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.kernel import compiled
from rota.views import View, Views, by_reference, call_code


@by_reference
class Inner(NamedTuple):
    """Constants, as those of a policy."""

    table: np.ndarray
    factor: float


class Pair(NamedTuple):
    """A named tuple that goes by value."""

    first: np.ndarray
    second: int


class Record(NamedTuple):
    """A record with a field of every kind."""

    ints: np.ndarray
    floats: np.ndarray
    matrix: np.ndarray
    strided: np.ndarray
    flag: bool
    count: int
    rate: float
    nothing: None
    pair: Pair
    inner: Inner


def record(numbers):
    """A record of which the entries come from a list of numbers."""
    n = len(numbers)
    rows = np.zeros(n, dtype=np.dtype([("a", np.int32), ("b", np.float64)], align=True))
    rows["a"], rows["b"] = numbers, np.array(numbers) / 2
    return Record(
        ints=np.array(numbers, dtype=np.int64),
        floats=np.array(numbers) / 4,
        matrix=np.arange(2.0 * n).reshape(2, n) + numbers[0],
        strided=rows["a"],
        flag=n % 2 == 1,
        count=n,
        rate=0.1 * n,
        nothing=None,
        pair=Pair(np.array(numbers[::-1], dtype=np.int64), 7),
        inner=Inner(np.array([3.0, 5.0]), 0.25),
    )


def total(r):
    """A number in which every field counts."""
    result = r.rate + r.count + (100.0 if r.flag else 0.0) + r.inner.factor * r.inner.table[1] + r.pair.second * r.pair.first[0]
    for k in range(r.count):
        result += r.ints[k] + 2.0 * r.floats[k] + 3.0 * r.matrix[1, k] + 5.0 * r.strided[k]
    if r.nothing is None:
        result += 1000.0
    return result


def shift(r):
    """Writes into every array."""
    for k in range(r.count):
        r.ints[k] += 1
        r.floats[k] -= 0.5
        r.matrix[0, k] = 2.0 * r.matrix[1, k]
        r.strided[k] = r.ints[k]
    return r.inner.factor


TOTAL, SHIFT = compiled(total, _nrt=False), compiled(shift, _nrt=False)


@given(numbers=st.lists(st.integers(-1000, 1000), min_size=1, max_size=5), negative=st.booleans())
def test_a_view_reads_and_writes_what_the_named_tuple_has(numbers, negative):
    """The same function gives the same number, and leaves the same arrays, for a named tuple in Python and for a view of one, compiled."""
    plain, viewed = record(numbers), record(numbers)
    view = View(viewed, negative=negative)
    assert TOTAL(view) == pytest.approx(total(plain), rel=1e-14)
    assert SHIFT(view) == shift(plain)
    for name in ("ints", "floats", "matrix", "strided"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(viewed, name))


def test_an_index_from_the_end_where_it_is_allowed():
    """With `negative`, index −1 is the last entry, as in Python: functions of users rely on it."""
    last = numba.njit(lambda r: r.ints[-1] + r.matrix[-1, -1])
    r = record([4, 5, 6])
    assert last(View(r, negative=True)) == r.ints[-1] + r.matrix[-1, -1]


def test_one_caller_calls_functions_for_longer_views():
    """A function that is compiled once for the first fields calls, by address, functions that were compiled for all fields."""

    class Short(NamedTuple):
        x: np.ndarray
        data: object

    ask = compiled(_call, _nrt=False)
    for data, answer in ((2.0, 2.0 * 21.0), (np.array([5.0, 7.0]), 12.0 * 21.0)):
        view = View(Short(np.array([21.0]), data))
        view.set_code(numba.njit(_scalar if isinstance(data, float) else _array))
        assert ask(view.without("data")) == answer
    assert len(ask.signatures) == 1


def _call(view):
    return call_code(view)


def _scalar(view):
    return view.data * view.x[0]


def _array(view):
    return view.data.sum() * view.x[0]


def test_an_error_comes_through():
    """What a called function raises, its caller raises."""

    def refuse(view):
        if view.x[0] > 1.0:
            raise ValueError("too large")
        return 0.0

    class One(NamedTuple):
        x: np.ndarray

    ask, code = compiled(_call), numba.njit(refuse)
    for x in (0.5, 2.0):
        view = View(One(np.array([x])))
        view.set_code(code)
        if x > 1:
            with pytest.raises(ValueError, match="too large"):
                ask(view)
        else:
            assert ask(view) == 0.0


def test_what_has_no_view():
    """A value without words, a function that returns no float, and a field that is not the last are refused."""

    class One(NamedTuple):
        x: object
        y: float = 1.0

    with pytest.raises(TypeError, match="has no words for"):
        View(One({"a": 1}))
    with pytest.raises(TypeError, match="not a float"):
        View(One(1.0)).set_code(numba.njit(lambda view: 1))
    with pytest.raises(TypeError, match="the last field is y, not x"):
        View(One(1.0)).without("x")


def test_views_are_made_anew_when_the_arrays_change():
    """The view of the same named tuple is kept; another named tuple of its class gets a view of its own."""
    views, first, second = Views(), record([1]), record([2])
    assert views.of(first) is views.of(first)
    assert TOTAL(views.of(first)) == pytest.approx(total(first))
    assert TOTAL(views.of(second)) == pytest.approx(total(second))
