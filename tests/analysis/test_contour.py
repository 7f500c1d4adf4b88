"""Power series by their values on a circle: against geometric series and polynomials, whose values are known everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.analysis.contour import around

gaps = st.floats(-9, -0.05).map(lambda exponent: 10**exponent)  # 1 − η


def geometric(contour, eta):
    """The values of (1 − η) Σ (ηz)^m; 1 − ηz = 1 − η − η (z − 1)."""
    return (1 - eta) / (1 - eta - eta * contour.beyond_one)


@given(gaps)
def test_moments_of_a_geometric_series(gap):
    """S(1) = 1, S′(1) = η/(1−η) and S″(1) = 2η²/(1−η)², from the shortest queues to those of a billion jobs."""
    eta = 1 - gap
    contour = around(eta, 10.0)
    zero, one, two = contour.moments(geometric(contour, eta))
    odds = eta / (1 - eta)
    assert zero == pytest.approx(1, rel=1e-12)
    assert one == pytest.approx(odds, rel=1e-11)
    assert two == pytest.approx(2 * odds**2, rel=1e-9)


@given(gaps, st.floats(0, 0.999))
def test_values_inside(gap, share):
    """Cauchy's integral gives the value at a point of [0, 1), and no point at all has a part in 1/(z − r) that is outside."""
    eta, r = 1 - gap, share
    contour = around(eta, 10.0)
    inside = (contour.weight * geometric(contour, eta) / (contour.beyond_one + 1 - r)).real.sum()
    assert inside == pytest.approx((1 - eta) / (1 - eta * r), rel=1e-12)
    beyond = 1 / eta - 1
    assert (contour.weight / (contour.beyond_one - beyond)).real.sum() == pytest.approx(0, abs=1e-11)


@given(gaps, st.integers(0, 400))
def test_coefficients_of_a_geometric_series(gap, count):
    """One after the other, however many there are."""
    eta = 1 - gap
    contour = around(eta, 10.0)
    assert contour.coefficients(geometric(contour, eta), count) == pytest.approx((1 - eta) * eta ** np.arange(count), rel=1e-9, abs=1e-17)


def test_coefficients_of_a_polynomial():
    """A few numbers, and zeros after them."""
    contour = around(0.9, 20.0)
    z = 1 + contour.beyond_one
    assert contour.coefficients(3 + z - 2 * z**2 + 7 * z**5, 8) == pytest.approx([3, 1, -2, 0, 0, 7, 0, 0], abs=1e-12)


def test_points_grow_with_the_logarithm():
    """A queue a thousand times as long takes a constant number of points more."""
    points = [len(around(1 - gap, 10.0)) for gap in (1e-2, 1e-5, 1e-8, 1e-11)]
    more = np.diff(points)
    assert more.max() - more.min() <= 1
    assert points[-1] < 250


def test_points_lie_on_the_circle():
    """All of them between 1 and 1/η, in the upper half, each nearer to −1 than the one before."""
    for eta in (1e-6, 0.5, 1 - 1e-7):
        z = 1 + around(eta, 10.0).beyond_one
        assert np.abs(z) == pytest.approx(np.full(len(z), eta**-0.5), rel=1e-12)
        assert (np.diff(np.angle(z)) > 0).all()
        assert (z.imag > 0).all()
