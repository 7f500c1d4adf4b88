"""The law of a time: tails, quantiles, and how they come from the steps of a uniformised chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from rota.arrays import Array
from rota.errors import BadSpec, Problem

__all__ = ["TimeLaw", "poisson_mixture", "poisson_range", "poisson_weights"]

_WIDTH = 9.0  # standard deviations of a Poisson law that count


@dataclass(frozen=True, kw_only=True)
class TimeLaw:
    """The law of a time T ≥ 0. `tails`: P(T > t) for an array of times t ≥ 0. `jumps`: times > 0 that T takes with positive probability."""

    mean: float
    tails: Callable[[Array], Array]
    jumps: tuple[float, ...] = ()

    def tail(self, t: float | Array) -> Array:
        """P(T > t), for one time or an array of them; to about 1e-11."""
        times = np.asarray(t, dtype=np.float64)
        if np.isnan(times).any():
            raise BadSpec([Problem("t", "must be a number", t)])
        return np.where(times >= 0, self.tails(np.maximum(times, 0.0).ravel()).reshape(times.shape), 1.0)[()]

    def cdf(self, t: float | Array) -> Array:
        """P(T ≤ t), for one time or an array of them."""
        return 1.0 - self.tail(t)

    def quantile(self, p: float) -> float:
        """The first time t with P(T ≤ t) ≥ p."""
        if not 0 <= p < 1:
            raise BadSpec([Problem("p", "must be at least 0 and below 1", p)])
        if p == 0 or float(self.tail(0.0)) <= 1 - p:
            return 0.0
        for jump in self.jumps:
            if float(self.tail(jump)) <= 1 - p < float(self.tail(np.nextafter(jump, 0.0))):
                return jump
        longest = 1.01 * self.mean / (1 - p)  # Markov's inequality: P(T > t) ≤ E[T]/t
        return float(scipy.optimize.brentq(lambda t: float(self.tail(t)) - (1 - p), 0.0, longest, xtol=1e-14 * longest, rtol=1e-13))


def poisson_range(a: float) -> tuple[int, int]:
    """From and below which values the weights of a Poisson law of mean a count."""
    reach = _WIDTH * np.sqrt(a) + 40.0
    return max(int(a - reach), 0), int(a + reach) + 1


def poisson_weights(a: float, first: int, last: int) -> Array:
    """e^{−a} aⁿ/n! for n from `first` on, below `last`."""
    n = np.arange(first, last)
    if a == 0:
        return np.where(n == 0, 1.0, 0.0)
    weights: Array = np.exp(n * np.log(a) - a - scipy.special.gammaln(n + 1.0))
    return weights


def poisson_mixture(w: Array, r: float, a: float) -> float:
    """Σ_n e^{−a} aⁿ/n! w_n with w_{M+m} = w_M rᵐ; from M on the sum is w_M r^{−M} e^{−a(1−r)} P(Poisson(ar) ≥ M)."""
    M = len(w) - 1
    if a == 0 or np.isinf(a):
        return 1.0 if a == 0 else 0.0
    first, last = poisson_range(a)
    last = min(last, M)
    head = float(poisson_weights(a, first, last) @ w[first:last]) if first < last else 0.0
    beyond = float(scipy.special.gammainc(M, a * r))
    if beyond == 0 or w[M] <= 0:
        return head
    return head + float(np.exp(np.log(w[M]) - M * np.log(r) - a * (1 - r) + np.log(beyond)))
