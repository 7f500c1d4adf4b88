"""Random splitting over the servers of a fleet, exactly: servers of a kind are independent copies of one (`rota.policy.split`), so

E[Q_i] = Σ_c n_c E[Q_i on a server of kind c],   each by the exact analysis of one server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rota.analysis.analyze import Analysis
from rota.analysis.fleet_means import FleetMeans
from rota.arrays import Array, Int
from rota.display import html_lines, html_title, number
from rota.model import Fleet
from rota.policy.split import Split

__all__ = ["SplitAnalysis", "copies_load", "copies_queues"]


def copies_load(fleet: Fleet, servers: Sequence[Analysis | None]) -> Array:
    """The highest load of a type on one of these servers, one for each kind or None (K,)."""
    loads = np.zeros(len(fleet.names))
    for c, server in enumerate(servers):
        if server is not None:
            np.maximum.at(loads, np.flatnonzero(fleet.runs[c]), server.load)
    return loads


def copies_queues(fleet: Fleet, servers: Sequence[Analysis | None], copies: Int) -> Array:
    """E[Q_i] in `copies[c]` independent servers like that of each kind (K,)."""
    total = np.zeros(len(fleet.names))
    for c, server in enumerate(servers):
        if server is not None:
            server.require_stable()
            total[np.flatnonzero(fleet.runs[c])] += copies[c] * server.exact
    return total


@dataclass(frozen=True, repr=False)
class SplitAnalysis(FleetMeans):
    """Random splitting, analysed. Arrays have one entry per type of the fleet (K,). `servers`: one of each kind, None if it is idle."""

    design: Split
    servers: tuple[Analysis | None, ...]

    @property
    def load(self) -> Array:
        """The highest load of a type on a server."""
        return copies_load(self.fleet, self.servers)

    @property
    def exact(self) -> Array:
        """E[Q_i] in the whole fleet."""
        return copies_queues(self.fleet, self.servers, self.fleet.count)

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        return "\n".join(
            [
                f"With jobs spread at random over servers that turn the mean response time is {number(self.mean_response_time)}, exactly.",
                f"No dispatcher and no policy can have less than {number(self.lower_bound)}.",
            ]
        )

    def _repr_html_(self) -> str:
        return html_title("Random splitting") + (html_lines(self.explain()) if self.stable else "")
