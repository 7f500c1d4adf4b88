"""What the exact methods return: the law of the number of jobs of one type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array

__all__ = ["QueueLength"]


@dataclass(frozen=True)
class QueueLength:
    """The number Q of jobs of a type in the system, in steady state.

    `mean` comes from the exact identity in `rota.analysis.queue`, `mean_by_sum` from summing the distribution; `accuracy` is the relative
    difference of the two or the largest residual, whichever is larger. `decay_rate` η: P(Q > n) ~ const·ηⁿ. `method`: how it was found.
    `unused_average`: E_U[q − Δ(s⁺)] of the identity, over the rings that find no job; not a number where it was not needed.
    """

    mean: float
    variance: float
    decay_rate: float
    mean_by_sum: float
    residual: float
    method: str
    probabilities: Callable[[int], Array]
    unused_average: float = np.nan

    @property
    def accuracy(self) -> float:
        """An estimate of the relative error of the mean."""
        return max(abs(self.mean_by_sum - self.mean) / max(self.mean, 1e-300), self.residual) if self.mean != 0 else 0.0


def empty_queue() -> QueueLength:
    """The law of a queue without arrivals."""
    return QueueLength(0.0, 0.0, 0.0, 0.0, 0.0, "no arrivals", lambda n: np.eye(1, max(n, 1))[0][:n])
