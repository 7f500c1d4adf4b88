"""What the exact analyses of a fleet have in common: from E[Q_i] to response times, by Little's law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {'stable' if self.stable else 'unstable'}, load {self.load.max():.4g}>"
