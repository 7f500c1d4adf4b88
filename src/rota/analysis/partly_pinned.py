"""Servers of which most are pinned and some turn, exactly: arrivals are split at random, so each part is analyzed by itself.

E[Q_i] = E[Q_i in the pinned slots] + Σ_c turning_c E[Q_i on a server of kind c that turns]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rota.analysis.analyze import Analysis
from rota.analysis.fleet_means import FleetMeans
from rota.analysis.pinned import PinnedAnalysis
from rota.analysis.split import copies_load, copies_queues
from rota.arrays import Array
from rota.display import html_lines, html_title, number
from rota.policy.partly_pinned import PartlyPinned

__all__ = ["PartlyPinnedAnalysis"]


@dataclass(frozen=True, repr=False)
class PartlyPinnedAnalysis(FleetMeans):
    """Partly pinned servers, analysed. Arrays have one entry per type of the fleet (K,); all values are exact for exponential sizes.

    `slots`: the pinned slots, with their part of the arrivals. `servers`: of each kind one server that turns, None if there is none.
    """

    design: PartlyPinned
    slots: PinnedAnalysis
    servers: tuple[Analysis | None, ...]

    @cached_property
    def load(self) -> Array:
        """The highest load of a type, in its pinned slots or on a server that turns."""
        return np.maximum(self.slots.load, copies_load(self.fleet, self.servers))

    @cached_property
    def exact(self) -> Array:
        """E[Q_i] in the whole fleet."""
        return self.slots.exact + copies_queues(self.fleet, self.servers, self.design.turning)

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        held, turn = int(self.design.pinned.servers.sum()), int(self.design.turning.sum())
        rate = self.fleet.arrival_rate
        sent = float(rate @ (1 - self.design.pinned_share) / rate.sum())
        return "\n".join(
            [
                f"With {held:,} pinned servers and {turn:,} that turn the mean response time is "
                f"{number(self.mean_response_time)}, exactly.",
                f"The servers that turn get {sent:.1%} of the jobs.",
                f"No dispatcher and no policy can have less than {number(self.lower_bound)}.",
            ]
        )

    def _repr_html_(self) -> str:
        return html_title("Partly pinned servers") + (html_lines(self.explain()) if self.stable else "")
