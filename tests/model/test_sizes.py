"""The size distributions: moments, sampling, fitting, and what they refuse."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import integrate, stats

import rota
from systems import size_distributions

START, LOOPS = np.array([0.2, 0.5, 0.3]), np.array([[-3.0, 1.0, 1.0], [2.0, -2.5, 0.0], [0.0, 4.0, -5.0]])
RATES, VECTORS = np.linalg.eig(LOOPS)
PARTS = (START @ VECTORS) * np.linalg.solve(VECTORS, np.ones(3))  # a exp(Tx) 1 as a sum of exponentials

# A distribution of each continuous family, and P(X > x) written down independently.
CONTINUOUS = {
    "exponential": (rota.Exponential(mean=2.5), stats.expon(scale=2.5).sf),
    "erlang": (rota.Erlang(mean=2.0, phases=3), stats.gamma(3, scale=2 / 3).sf),
    "hyperexponential": (
        rota.Hyperexponential(probabilities=(0.3, 0.7), means=(5.0, 0.5)),
        lambda x: 0.3 * math.exp(-x / 5) + 0.7 * math.exp(-x / 0.5),
    ),
    "coxian": (
        rota.Coxian(rates=(2.0, 3.0), proceed=(0.4,)),
        lambda x: 0.6 * math.exp(-2 * x) + 0.4 * (3 * math.exp(-2 * x) - 2 * math.exp(-3 * x)),
    ),
    "fitted, cv² = 1/2": (rota.Fitted(mean=2.0, cv=0.5**0.5), stats.gamma(2, scale=1.0).sf),
    "fitted, cv = 1": (rota.Fitted(mean=2.0, cv=1.0), stats.expon(scale=2.0).sf),
    # Balanced means: p = (1 ± √½)/2 for cv² = 3, with means 1/p each.
    "fitted, cv² = 3": (
        rota.Fitted(mean=2.0, cv=3**0.5),
        lambda x: sum(p * math.exp(-p * x) for p in (0.5 + 0.125**0.5, 0.5 - 0.125**0.5)),
    ),
    "phase-type": (
        rota.PhaseType(initial=tuple(START.tolist()), generator=tuple(map(tuple, LOOPS.tolist()))),
        lambda x: float((PARTS * np.exp(RATES * x)).sum().real),
    ),
    "lognormal": (rota.LogNormal(mean=2.0, cv=1.5), stats.lognorm(math.log(3.25) ** 0.5, scale=2 / 3.25**0.5).sf),
    "bounded-pareto": (
        rota.BoundedPareto(shape=1.2, low=0.5, high=50.0),
        lambda x: 1.0 if x < 0.5 else max(((0.5 / x) ** 1.2 - 0.01**1.2) / (1 - 0.01**1.2), 0.0),
    ),
    "weibull": (rota.Weibull(mean=2.0, shape=0.6), stats.weibull_min(0.6, scale=2 / math.gamma(1 + 1 / 0.6)).sf),
}
DISCRETE = {
    "deterministic": rota.Deterministic(mean=3.0),
    "empirical": rota.Empirical(values=(1.0, 2.0, 5.0)),
    "empirical, weighted": rota.Empirical(values=(1.0, 2.0, 5.0), weights=(1.0, 0.0, 3.0)),
}
continuous = pytest.mark.parametrize(("size", "survival"), CONTINUOUS.values(), ids=CONTINUOUS)


@continuous
@pytest.mark.parametrize("k", [1, 2, 3])
def test_moments_are_the_integral_of_the_tail(size, survival, k):
    """E[X^k] = ∫ k x^(k−1) P(X > x) dx, integrated on a logarithmic scale."""
    breaks = np.log([1e-15, 0.5, 50.0, 1e5, 1e12])
    parts = [
        integrate.quad(lambda t: k * math.exp(k * t) * survival(math.exp(t)), low, high, epsabs=1e-12, epsrel=1e-11, limit=500)[0]
        for low, high in pairwise(breaks)
    ]
    assert size.moment(k) == pytest.approx(sum(parts), rel=1e-8)


@given(size=size_distributions(), factor=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
def test_scaling(size, factor, seed):
    """factor · X is of the same kind, has moments E[X^k] factor^k, and the same seed gives the sample times the factor."""
    scaled = size.scaled(factor)
    assert type(scaled) is type(size)
    for k in (1, 2, 3):
        assert scaled.moment(k) == pytest.approx(size.moment(k) * factor**k, rel=1e-8)
    samples = [each.sample(np.random.default_rng(seed), 100) for each in (size, scaled)]
    np.testing.assert_allclose(samples[1], samples[0] * factor, rtol=1e-9)
    assert size.scaled(1.0) == size


def test_every_distribution_can_be_scaled():
    """Each one says which of its fields are times and which are rates; one of your own that does not is refused."""
    for size in [*(size for size, _ in CONTINUOUS.values()), *DISCRETE.values()]:
        assert size.scaled(3.0).moment(2) == pytest.approx(9 * size.moment(2))

    class Own(rota.Deterministic):
        time_fields = ()

    with pytest.raises(rota.Infeasible, match="Own cannot be scaled"):
        Own(mean=1.0).scaled(2.0)
    for factor in (0.0, -1.0, math.inf, math.nan, "2"):
        with pytest.raises(rota.BadSpec, match="factor: must be positive and finite"):
            rota.Exponential(mean=1.0).scaled(factor)


@continuous
def test_samples_follow_the_law(size, survival):
    """Of 200,000 samples the part above x is P(X > x), within 4.5 standard errors of at most 0.0012, at nine points of the law."""
    n = 200_000
    sample = size.sample(np.random.default_rng(7), n)
    assert sample.shape == (n,)
    assert (sample > 0).all()
    for x in np.quantile(sample, np.linspace(0.1, 0.9, 9)):
        p = survival(float(x))
        assert abs(np.mean(sample > x) - p) <= 4.5 * math.sqrt(p * (1 - p) / n)


@pytest.mark.parametrize("size", [size for size, _ in CONTINUOUS.values()] + list(DISCRETE.values()), ids=[*CONTINUOUS, *DISCRETE])
def test_samples_have_the_mean(size):
    """The mean of 400,000 samples is E[X] within 4.5 standard errors, which are narrow, and the seed decides the samples."""
    n = 400_000
    sample = size.sample(np.random.default_rng(11), n)
    error = math.sqrt(size.variance / n)
    assert error < 0.005 * size.moment(1)
    assert sample.mean() == pytest.approx(size.moment(1), abs=4.5 * error + 1e-12)
    assert np.array_equal(sample[:10], size.sample(np.random.default_rng(11), n)[:10])


def test_moments_of_discrete_sizes():
    """Deterministic and empirical moments are plain (weighted) averages of powers."""
    assert [DISCRETE["deterministic"].moment(k) for k in (1, 2, 3)] == [3, 9, 27]
    assert DISCRETE["empirical"].moment(2) == pytest.approx((1 + 4 + 25) / 3, rel=1e-15)
    assert DISCRETE["empirical, weighted"].moment(2) == pytest.approx((1 + 3 * 25) / 4, rel=1e-15)


def test_a_value_of_weight_zero_is_never_drawn():
    """Empirical sampling keeps to the weights, also where one is zero."""
    assert set(DISCRETE["empirical, weighted"].sample(np.random.default_rng(3), 10_000)) == {1.0, 5.0}


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(0.05, 10))
def test_fitted_meets_mean_and_cv(mean, cv):
    """A fit has the mean and the coefficient of variation asked for."""
    size = rota.Fitted(mean=mean, cv=cv)
    assert size.moment(1) == pytest.approx(mean, rel=1e-12)
    assert size.scv == pytest.approx(cv**2, rel=1e-10)


@pytest.mark.parametrize("cv", [0.05, 1 / math.sqrt(7), 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 10.0, 1e3, 1e6])
def test_fitted_at_the_borders(cv):
    """A fit is a proper phase-type distribution and meets its cv also where the number of phases changes, and far out."""
    size = rota.Fitted(mean=3.0, cv=cv)
    a, T = size.representation
    assert a.sum() == pytest.approx(1, abs=1e-15)
    assert (a >= 0).all()
    assert len(a) <= max(math.ceil(1 / cv**2 - 1e-9), 2)
    assert (T.sum(axis=1) <= 1e-12).all()
    assert size.scv == pytest.approx(cv**2, rel=1e-10)


@given(size_distributions())
def test_moments_are_consistent(size):
    """E[X²] ≥ E[X]², `mean` is E[X], and scv is the variance over the squared mean."""
    assert size.moment(1) == pytest.approx(size.mean, rel=1e-12)
    assert size.second_moment >= size.moment(1) ** 2 * (1 - 1e-12)
    assert size.scv * size.moment(1) ** 2 == pytest.approx(size.variance, rel=1e-12)
    assert size.moment(0) == pytest.approx(1, rel=1e-12)


@given(st.floats(0.2, 4), st.integers(1, 4))
def test_bounded_pareto_moments_are_smooth_where_shape_meets_the_power(distance, k):
    """At shape = k the moment is the limit of its neighbours."""
    high = 1 + distance

    def moment(shape):
        return rota.BoundedPareto(shape=shape, low=1.0, high=high).moment(k)

    assert moment(float(k)) == pytest.approx((moment(k - 1e-6) + moment(k + 1e-6)) / 2, rel=1e-10)


def test_phase_type_helpers_are_special_cases():
    """Erlang, hyperexponential and Coxian have the moments of the general distribution with the same representation."""
    for name in ("erlang", "hyperexponential", "coxian"):
        size = CONTINUOUS[name][0]
        a, T = size.representation
        general = rota.PhaseType(initial=tuple(a.tolist()), generator=tuple(map(tuple, T.tolist())))
        assert [size.moment(k) for k in (1, 2, 3)] == pytest.approx([general.moment(k) for k in (1, 2, 3)], rel=1e-13)


@given(size_distributions())
def test_equality_is_by_parameters(size):
    """Two distributions with the same parameters are equal and hash alike, whatever was computed of one of them."""
    twin = type(size)(**size.model_dump())
    size.moment(2)
    assert size == twin
    assert hash(size) == hash(twin)
    assert size != rota.Deterministic(mean=1e9)
    assert size != "size"


def test_distributions_are_frozen():
    """A distribution and its representation cannot be changed."""
    size = rota.Erlang(mean=1.0, phases=2)
    with pytest.raises(ValidationError, match="frozen"):
        size.mean = 2.0
    with pytest.raises(ValueError, match="read-only"):
        size.representation[0][0] = 0.5


@pytest.mark.parametrize(
    ("family", "fields", "rule"),
    [
        (rota.Exponential, {"mean": 0}, "greater than 0"),
        (rota.Exponential, {"mean": math.nan}, "finite"),
        (rota.Exponential, {"mean": math.inf}, "finite"),
        (rota.Exponential, {"mean": "1"}, "must be a number"),
        (rota.Exponential, {"mean": True}, "must be a number"),
        (rota.Exponential, {"mean": 1, "rate": 1}, "is not a known key"),
        (rota.Deterministic, {"mean": -1}, "greater than 0"),
        (rota.Erlang, {"mean": 1, "phases": 0}, "at least|greater than or equal to 1"),
        (rota.Erlang, {"mean": 1, "phases": 2.5}, "must be a whole number"),
        (rota.Erlang, {"mean": 1, "phases": 1001}, "must be at most 1000"),
        (rota.Hyperexponential, {"probabilities": (0.5, 0.4), "means": (1, 2)}, "sum to 1, not 0.9"),
        (rota.Hyperexponential, {"probabilities": (1.0,), "means": (1, 2)}, "same length"),
        (rota.Hyperexponential, {"probabilities": (), "means": ()}, "at least 1"),
        (rota.Coxian, {"rates": (1, 2), "proceed": ()}, "n − 1 probabilities"),
        (rota.Coxian, {"rates": (1, 2), "proceed": (1.5,)}, "must be at most 1"),
        (rota.Coxian, {"rates": (), "proceed": ()}, "n − 1 probabilities"),
        (rota.Fitted, {"mean": 1, "cv": 0.01}, "must be at least 0.03"),
        (rota.Fitted, {"mean": 1, "cv": 1e7}, r"must be at most 1e\+06"),
        (rota.LogNormal, {"mean": 1, "cv": 0}, "greater than 0"),
        (rota.LogNormal, {"mean": 1, "cv": 1e200}, r"must be at most 1e\+06"),
        (rota.BoundedPareto, {"shape": 1, "low": 2, "high": 2}, "low must be below high"),
        (rota.Weibull, {"mean": 1, "shape": 0.01}, "must be at least 0.05"),
        (rota.Empirical, {"values": ()}, "must have at least 1 entries"),
        (rota.Empirical, {"values": (1, 2), "weights": (1,)}, "length of values"),
        (rota.Empirical, {"values": (1, 2), "weights": (0, 0)}, "positive sum"),
        (rota.Empirical, {"values": (1, -2)}, "greater than 0"),
        (rota.PhaseType, {"initial": (), "generator": ()}, "1 to 1000 phases"),
        (rota.PhaseType, {"initial": (1,), "generator": ((-1, 0), (0, -1))}, "must be 1 × 1"),
        (rota.PhaseType, {"initial": (1, 0), "generator": ((-1, 0), (0,))}, "must be 2 × 2"),
        (rota.PhaseType, {"initial": (0.5, 0.4), "generator": ((-1, 0), (0, -1))}, "initial must sum to 1"),
        (rota.PhaseType, {"initial": (1, 0), "generator": ((-1, -1), (0, -1))}, "no other negative entry"),
        (rota.PhaseType, {"initial": (1, 0), "generator": ((1, 0), (0, -1))}, "negative diagonal"),
        (rota.PhaseType, {"initial": (1, 0), "generator": ((-1, 2), (0, -1))}, "sum to at most 0"),
        (rota.PhaseType, {"initial": (1, 0), "generator": ((-1, 1), (1, -1))}, "never left for good"),
        (rota.PhaseType, {"initial": (1,), "generator": ((-math.inf,),)}, "finite"),
    ],
)
def test_broken_parameters_are_refused(family, fields, rule):
    """A distribution that does not exist is refused with the rule it breaks."""
    with pytest.raises(rota.BadSpec, match=rule):
        family(**fields)
