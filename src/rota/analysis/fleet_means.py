"""What the exact analyses of a fleet have in common: from E[Q_i] to response times, by Little's law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rota.analysis.pooled import least_mean_response_time
from rota.arrays import Array
from rota.errors import Unstable
from rota.model import Fleet

__all__ = ["FleetMeans"]


@dataclass(frozen=True, repr=False)
class FleetMeans(ABC):
    """A fleet whose loads and mean queues are known, with one entry per type (K,)."""

    fleet: Fleet

    @property
    @abstractmethod
    def load(self) -> Array:
        """The highest load of a type anywhere."""

    @property
    @abstractmethod
    def exact(self) -> Array:
        """E[Q_i] in the whole fleet."""

    @property
    def stable(self) -> bool:
        """Whether every load is below 1."""
        return bool((self.load < 1).all())

    @property
    def response_time(self) -> Array:
        """E[T_i] = E[Q_i]/λ_i; not a number for a type that never arrives."""
        rate = self.fleet.arrival_rate
        times: Array = np.divide(self.exact, rate, out=np.full(len(rate), np.nan), where=rate > 0)
        return times

    @property
    def mean_response_time(self) -> float:
        """Σ E[Q_i] / Σ λ_i by Little's law."""
        return float(self.exact.sum() / self.fleet.arrival_rate.sum())

    @cached_property
    def lower_bound(self) -> float:
        """No dispatcher and no policy has a lower mean response time (`rota.analysis.pooled`)."""
        return least_mean_response_time(self.fleet)

    @property
    def largest_scaling(self) -> float:
        """The factor by which all arrivals can grow: every load grows with them, so it is 1 / the highest."""
        return float(1.0 / self.load.max())

    def require_stable(self) -> None:
        """Raises `Unstable` unless every load is below 1."""
        if not self.stable:
            i = int(np.argmax(self.load))
            raise Unstable(
                f"load {self.load[i]:.4g} of type {self.fleet.names[i]!r} is not below 1: scale arrivals by less than "
                f"{self.largest_scaling:.4g}, or design servers for this fleet (rota design)"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {'stable' if self.stable else 'unstable'}, load {self.load.max():.4g}>"
