"""Pinned servers, exactly: each queue of a type is an M/M/k queue.

A type's jobs wait in one queue for the k = Σ servers · schedule slots that the fleet holds for it, so with a = λ/(μ v) and Erlang's C

    E[Q] = a + C(k, a) a / (k − a)

and jobs that arrive choose between the queues of a type at random, which leaves each of them a Poisson process.

For comparison, a bound that holds for every dispatcher and every policy, preemptive or not: a type never has more jobs in service than fit
the whole fleet, k⁺ = Σ_c n_c max_{u ∈ 𝒮_c} u_i of them, none faster than at its highest speed, so E[Q_i] is at least that of M/M/k⁺.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rota.analysis.queue import erlang_c
from rota.arrays import Array
from rota.capacity import largest_counts
from rota.display import html_lines, html_title, number
from rota.errors import Infeasible, Unstable
from rota.model import Exponential, Fleet
from rota.policy import Pinned
from rota.policy.pinned import PinnedQueue

__all__ = ["PinnedAnalysis", "analyze_pinned", "mean_waiting"]


def mean_waiting(slots: int, offered: float) -> float:
    """The mean number of waiting jobs of an M/M/k queue, C(k, a) a/(k − a); infinite unless a < k."""
    if offered <= 0:
        return 0.0
    return erlang_c(slots, offered) * offered / (slots - offered) if offered < slots else float("inf")


@dataclass(frozen=True)
class PinnedAnalysis:
    """Pinned servers of a fleet, analysed. Arrays have one entry per type (K,); all values are exact for exponential sizes.

    `exact` is E[Q_i], `waiting` the mean number of waiting jobs, `load` the highest load of a queue of the type, `response_time` E[T_i].
    `pooled` is a lower bound on E[Q_i] of every dispatcher and policy, and `lower_bound` the one on the mean response time.
    """

    fleet: Fleet
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

    @property
    def stable(self) -> bool:
        """Whether every load is below 1."""
        return bool((self.load < 1).all())

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
    def pooled(self) -> Array:
        """A lower bound on E[Q_i], whatever the dispatcher and the policies."""
        fleet, runs = self.fleet, self.fleet.runs
        most = np.zeros(len(fleet.names))
        for c in range(len(fleet.kinds)):
            if runs[c].any():
                most[runs[c]] += fleet.count[c] * largest_counts(fleet.server(c))
        offered = fleet.offered_work / np.where(runs, fleet.speed, 0.0).max(axis=0)
        return np.array([a + mean_waiting(int(k), a) if a < k else np.inf for a, k in zip(offered.tolist(), most, strict=True)])

    @property
    def lower_bound(self) -> float:
        """No dispatcher and no policy has a lower mean response time."""
        return float(self.pooled.sum() / self.fleet.arrival_rate.sum())

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

    def __repr__(self) -> str:
        return f"<PinnedAnalysis: {'stable' if self.stable else 'unstable'}, load {self.load.max():.4g}>"

    def _repr_html_(self) -> str:
        return html_title("Pinned servers") + (html_lines(self.explain()) if self.stable else "")


def analyze_pinned(fleet: Fleet, design: Pinned, *, exponential: bool = False) -> PinnedAnalysis:
    """Exact values of pinned servers, for Poisson arrivals. Sizes must be exponential; `exponential` takes them as exponential."""
    for name, size in zip(fleet.names, fleet.sizes, strict=True):
        if not (exponential or isinstance(size, Exponential)):
            raise Infeasible(f'type {name!r} does not have exponential sizes: take them as exponential with sizes="exponential"')
    design.check(fleet)
    return PinnedAnalysis(fleet, design)
