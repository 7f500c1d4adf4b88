"""Quantiles of Student's t distribution, without scipy: its statistics take as much memory as all the rest of a simulation.

With ν degrees of freedom and t > 0,

    P(T > t) = ½ I_x(ν/2, ½),    x = ν / (ν + t²),

where I is the regularized incomplete beta function, here by its continued fraction (DLMF 8.17.22). The tail is convex and falls with t, so
Newton's method from 0 rises to the quantile and never passes it.
"""

from __future__ import annotations

from functools import cache
from math import exp, lgamma, log, log1p, pi

__all__ = ["student_quantile", "student_tail"]

_CLOSE = 1e-15
_TINY = 1e-300


@cache
def student_quantile(probability: float, freedom: float) -> float:
    """The value that T does not exceed with this probability, which is at least ½ and below 1."""
    beyond, t = 1 - probability, 0.0
    scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom * pi) / 2
    while True:
        density = exp(scale - (freedom + 1) / 2 * log1p(t * t / freedom))
        step = (student_tail(t, freedom) - beyond) / density
        if not step > 4e-16 * t:  # what is left is rounding
            return t
        t += step


def student_tail(t: float, freedom: float) -> float:
    """P(T > t), t ≥ 0."""
    square = t * t
    return _beta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5) / 2


def _beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b), with rest = 1 − x."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly: I_x(a, b) = 1 − I_{1−x}(b, a)
        return 1 - _beta(rest, x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    return front / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d₁/(1 + d₂/(1 + …)), d_{2m} = m(b−m)x/((a+2m−1)(a+2m)), d_{2m+1} = −(a+m)(a+b+m)x/((a+2m)(a+2m+1)), by Lentz's method."""
    value, above, below, k = 1.0, 1.0, 0.0, 0
    while True:
        k += 1
        m = k // 2
        d = (-(a + m) * (a + b + m) / (a + 2 * m + 1) if k % 2 else m * (b - m) / (a + 2 * m - 1)) * x / (a + 2 * m)
        below = 1 / (1 + d * below or _TINY)
        above = 1 + d / above or _TINY
        value *= above * below
        if not abs(above * below - 1) > _CLOSE:  # also if it is not a number
            return value
