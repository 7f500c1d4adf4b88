"""Pinned servers, exactly: each queue of a type is an M/M/k queue.

A type's jobs wait in one queue for the k = Σ servers · schedule slots that the fleet holds for it, so with a = λ/(μ v) and Erlang's C

    E[Q] = a + C(k, a) a / (k − a)

and jobs that arrive choose between the queues of a type at random, which leaves each of them a Poisson process.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rota.analysis.fleet_means import FleetMeans
from rota.analysis.pooled import pooled_queues
from rota.analysis.queue import mean_waiting
from rota.arrays import Array
from rota.display import html_lines, html_title, number
from rota.errors import Infeasible, Unstable
from rota.model import Exponential, Fleet
from rota.policy import Pinned
from rota.policy.pinned import PinnedQueue

__all__ = ["PinnedAnalysis", "analyze_pinned"]


@dataclass(frozen=True, repr=False)
class PinnedAnalysis(FleetMeans):
    """Pinned servers of a fleet, analysed. Arrays have one entry per type (K,); all values are exact for exponential sizes.

    `exact` is E[Q_i], `waiting` the mean number of waiting jobs, `load` the highest load of a queue of the type, `response_time` E[T_i].
    `pooled` is a lower bound on E[Q_i] of every dispatcher and policy, and `lower_bound` the one on the mean response time.
    """

    design: Pinned

    @cached_property
    def queues(self) -> tuple[PinnedQueue, ...]:
        """The queues, by type and speed."""
        return self.design.queues(self.fleet)

    def _offered(self, queue: PinnedQueue) -> float:
        return float(self.fleet.offered_work[queue.type]) * queue.share / queue.speed

    @cached_property
    def load(self) -> Array:
        """a/k, the highest of the queues of a type."""
        loads = np.zeros(len(self.fleet.names))
        for queue in self.queues:
            offered = self._offered(queue)
            if offered > 0:
                loads[queue.type] = max(loads[queue.type], offered / queue.slots if queue.slots else np.inf)
        return loads

    @cached_property
    def waiting(self) -> Array:
        """The mean number of waiting jobs of each type."""
        if not self.stable:
            i = int(np.argmax(self.load))
            raise Unstable(
                f"load {self.load[i]:.4g} of type {self.fleet.names[i]!r} on its pinned slots is not below 1: give it more of them"
            )
        total = np.zeros(len(self.fleet.names))
        for queue in self.queues:
            total[queue.type] += mean_waiting(queue.slots, self._offered(queue))
        return total

    @cached_property
    def exact(self) -> Array:
        """E[Q_i]: the jobs in service and those that wait."""
        total = self.waiting.copy()
        for queue in self.queues:
            total[queue.type] += self._offered(queue)
        return total

    @cached_property
    def pooled(self) -> Array:
        """A lower bound on E[Q_i], whatever the dispatcher and the policies."""
        return pooled_queues(self.fleet)

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        i = int(np.nanargmax(self.load))
        return "\n".join(
            [
                f"With pinned servers the mean response time is {number(self.mean_response_time)}, exactly.",
                f"No dispatcher and no policy can have less than {number(self.lower_bound)}.",
                f"The busiest slots are those of type {self.fleet.names[i]!r}: {self.load[i]:.1%} in use.",
            ]
        )

    def _repr_html_(self) -> str:
        return html_title("Pinned servers") + (html_lines(self.explain()) if self.stable else "")


def analyze_pinned(fleet: Fleet, design: Pinned, *, exponential: bool = False) -> PinnedAnalysis:
    """Exact values of pinned servers, for Poisson arrivals. Sizes must be exponential; `exponential` takes them as exponential."""
    for name, size in zip(fleet.names, fleet.sizes, strict=True):
        if not (exponential or isinstance(size, Exponential)):
            raise Infeasible(f'type {name!r} does not have exponential sizes: take them as exponential with sizes="exponential"')
    design.check(fleet)
    return PinnedAnalysis(fleet, design)
