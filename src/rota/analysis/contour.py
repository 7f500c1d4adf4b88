"""Power series known by their values on a circle: points that are dense where the series changes quickly.

The tail of a queue is a power series S(z) = Σ s_m z^m whose coefficients fall as ηᵐ, so it has no singularity within |z| < 1/η. Here it is
represented by its values on the circle of radius ϱ = η^{−1/2}, between 1 and 1/η. All that is asked of it is a Cauchy integral,

    S(r) = 1/(2πi) ∮ S(z)/(z − r) dz           for r inside,        S⁽ʲ⁾(1) = j!/(2πi) ∮ S(z)/(z − 1)^{j+1} dz

In a long queue 1 and 1/η differ by a millionth, and evenly spaced points would have to be closer to each other than that. But what makes
the integrands change quickly lies near the real axis, on [0, 1] and from 1/η on. The map ζ = (z − ϱ)/(z + ϱ) takes the circle to the
imaginary axis and these two parts to [−1, −k] and [k, 1], with k = (ϱ − 1)/(ϱ + 1). With Jacobi's function of modulus k, ζ = k sn(v)
takes a rectangle to the plane without both parts, and the line of imaginary v to the circle:

    z = ϱ (1 + iy)/(1 − iy),      y = k sc(t | 1 − k²),      −K′ < t ≤ K′,      K′ = K(1 − k²) ≈ log(4/k)

Evenly spaced t make the trapezoidal rule converge geometrically, the faster the more points per K′/K. So the number of points grows with
log 1/(1 − η) only. Points come in conjugate pairs, and so do the values: the upper half of them is kept, and 2 Re of their sum is the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from rota.arrays import Array
from rota.kernel import compiled

__all__ = ["Complex", "Contour", "around"]

Complex = NDArray[np.complex128]

_FEWEST = 4  # points more than the rate of convergence asks for


@dataclass(frozen=True, eq=False)
class Contour:
    """Points z on the upper half of a circle around 0, as z − 1, which stays accurate close to 1, and their weights.

    1/(2πi) ∮ F(z) dz = Σ Re(weight · F(z)), for F with F(z̄) = F̄(z).
    """

    beyond_one: Complex
    weight: Complex

    def __len__(self) -> int:
        return len(self.weight)

    def moments(self, values: Complex) -> tuple[float, float, float]:
        """S(1), S′(1) and S″(1)."""
        factors = ((1.0, 1), (1.0, 2), (2.0, 3))
        zero, one, two = (j * float((self.weight * values / self.beyond_one**power).real.sum()) for j, power in factors)
        return zero, one, two

    def coefficients(self, values: Complex, count: int) -> Array:
        """s_0, …, s_{count−1}."""
        return _coefficients(values.copy(), 1 / (1 + self.beyond_one), self.weight, count)


def around(decay_rate: float, density: float) -> Contour:
    """The points for series whose coefficients fall as powers of η; `density`: points per K′/K."""
    gap = (1 - decay_rate) / decay_rate  # 1/η − 1
    beyond = gap / (1 + np.sqrt(1 + gap))  # ϱ − 1
    radius = 1 + beyond
    k = beyond / (radius + 1)
    period = float(scipy.special.ellipkm1(k * k))  # K′
    half = int(np.ceil(density * period / float(scipy.special.ellipk(k * k)))) + _FEWEST
    step = period / half
    t = (np.arange(half) + 0.5) * step
    # sc(K′ − t) = 1/(k sc(t)): beyond the middle by symmetry, where the functions of a modulus close to 1 would lose digits
    far = t > period / 2
    sn, cn, dn, _ = scipy.special.ellipj(np.where(far, period - t, t), 1 - k * k)
    y, slope = k * sn / cn, k * dn / cn**2
    y, slope = np.where(far, k / y, y), np.where(far, k * slope / y**2, slope)
    beyond_one = (beyond + 1j * y * (radius + 1)) / (1 - 1j * y)
    return Contour(beyond_one, 2 * radius * slope / (1 - 1j * y) ** 2 * step / np.pi)


@compiled
def _coefficients(values: Complex, inverse: Complex, weight: Complex, count: int) -> Array:
    """s_m = S(0) = 1/(2πi) ∮ S(z)/z dz, then (S(z) − s_m)/z in place of S. (A power z^{−m} would change too quickly for the points.)"""
    out = np.empty(count)
    for m in range(count):
        first = 0.0
        for j in range(len(values)):
            first += (weight[j] * inverse[j] * values[j]).real
        out[m] = first
        for j in range(len(values)):
            values[j] = (values[j] - first) * inverse[j]
    return out
