"""The histogram's buckets."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rota.simulation.tally import BUCKETS, bucket, bucket_values, new_tally

TALLY = new_tally(1, 0)


@given(st.floats(1e-9, 1e15))
def test_a_value_is_near_the_middle_of_its_bucket(value):
    """The middle of a value's bucket is at most 0.8 % away from it."""
    assert abs(bucket_values()[bucket(TALLY, value)] / value - 1) <= 0.008


@given(st.floats(0, 1e300), st.floats(0, 1e300))
def test_buckets_keep_the_order(a, b):
    """A larger value never has a smaller bucket."""
    assert (bucket(TALLY, a) <= bucket(TALLY, b)) or a > b


def test_the_ends():
    """Zero and what is too small share the first bucket, what is too large the last."""
    assert bucket(TALLY, 0.0) == bucket(TALLY, 1e-12) == 0
    assert bucket(TALLY, 1e300) == bucket(TALLY, math.inf) == BUCKETS - 1
    values = bucket_values()
    assert values[0] == 0
    assert (np.diff(values) > 0).all()
