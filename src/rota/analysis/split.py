"""Random splitting over the servers of a fleet, exactly: servers of a kind are independent copies of one (`rota.policy.split`), so

E[Q_i] = Σ_c n_c E[Q_i on a server of kind c],   each by the exact analysis of one server.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rota.analysis.analyze import Analysis
from rota.arrays import Array, Int
from rota.model import Fleet
from rota.policy.split import Split

__all__ = ["SplitAnalysis"]


@dataclass(frozen=True)
class SplitAnalysis:
    """Random splitting, analysed. Arrays have one entry per type of the fleet (K,). `servers`: one of each kind, None if it is idle."""

    fleet: Fleet
    design: Split
    servers: tuple[Analysis | None, ...]

    def _types(self, c: int) -> Int:
        return np.flatnonzero(self.fleet.runs[c]).astype(np.int64)

    @property
    def load(self) -> Array:
        """The highest load of a type on a server."""
        loads = np.zeros(len(self.fleet.names))
        for c, server in enumerate(self.servers):
            if server is not None:
                np.maximum.at(loads, self._types(c), server.load)
        return loads

    @property
    def stable(self) -> bool:
        """Whether every load is below 1."""
        return bool((self.load < 1).all())

    @property
    def exact(self) -> Array:
        """E[Q_i] in the whole fleet."""
        total = np.zeros(len(self.fleet.names))
        for c, server in enumerate(self.servers):
            if server is not None:
                server.require_stable()
                total[self._types(c)] += self.fleet.count[c] * server.exact
        return total

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
        return f"<SplitAnalysis: {'stable' if self.stable else 'unstable'}, load {self.load.max():.4g}>"
