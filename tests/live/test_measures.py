"""Measured times: sketches that are right to two per cent, in bounded memory."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.live.measures import Measures, Sketch


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_are_right_to_two_per_cent(values, p):
    """Of any sample, every quantile lies within 2 % of the value of that rank; the mean is exact."""
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    exact = sorted(values)[max(1, math.ceil(p * len(values) - 1e-9)) - 1]
    assert sketch.quantiles(p)[0] == pytest.approx(exact, rel=0.02)
    assert sketch.mean == pytest.approx(sum(values) / len(values))


def test_a_sketch_is_bounded():
    """Whatever comes, there are fewer than 950 buckets, and nothing below 0 or beyond a century breaks it."""
    sketch, rng = Sketch(), random.Random(0)
    for _ in range(30_000):
        sketch.add(10 ** rng.uniform(-12, 15))
    sketch.add(0.0)
    assert len(sketch.buckets) < 950
    assert all(value > 0 for value in sketch.quantiles(0.0, 0.5, 1.0))


def test_measures_go_through_json():
    """Restored, they tell the same and go on."""
    measures, rng = Measures(), random.Random(1)
    for _ in range(500):
        measures.ended("train", rng.expovariate(0.1), rng.expovariate(1.0))
    restored = Measures.restored(json.loads(json.dumps(measures.state())))
    assert restored.response("train") == measures.response("train")
    assert restored.size("train") == measures.size("train")
    restored.ended("own", 1.0, 1.0)
    assert restored.response("own").count == 1
    assert measures.response("own").p99 is None
