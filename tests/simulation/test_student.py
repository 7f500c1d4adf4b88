"""Quantiles of Student's t."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as reference

from rota.simulation.student import student_quantile, student_tail


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 3, 4.7, 7, 19, 100, 1234.5])
@pytest.mark.parametrize("beyond", [0.4, 0.1, 0.025, 0.005, 0.0005, 1e-6, 1e-9])
def test_the_quantile_is_that_of_scipy(freedom, beyond):
    """Another implementation gives the same, to eleven digits."""
    probability = 1 - beyond
    assert student_quantile(probability, freedom) == pytest.approx(reference.isf(1 - probability, freedom), rel=1e-11)


@given(st.floats(0.5, 1 - 1e-9), st.floats(1.0, 1000.0))
def test_the_tail_beyond_the_quantile(probability, freedom):
    """P(T > t) at the quantile of p is 1 − p; at 0 it is one half."""
    assert student_tail(student_quantile(probability, freedom), freedom) == pytest.approx(1 - probability, rel=1e-9)
    assert student_tail(0.0, freedom) == 0.5


@given(st.floats(0.0, 1e6))
def test_one_degree_of_freedom_is_cauchy(t):
    """P(T > t) = ½ − arctan(t)/π = arctan(1/t)/π, also far out."""
    assert student_tail(t, 1.0) == pytest.approx(math.atan2(1.0, t) / math.pi, rel=1e-12)


def test_what_is_not_a_number_ends():
    """No answer is waited for in vain."""
    assert math.isnan(student_tail(1.0, math.nan))
