"""To which node a waiting job goes.

The plan of one server says nothing about that. Every job then goes to the fullest node on which it fits at once and before which no job of
its type waits (best fit); if there is none, to the node with the least work before it. A job that waits where it does not fit moves to a
node where it would start at once. The plan of a fleet has a rule of its own: `rota.slurm.fleet_rule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rota.arrays import Array, Bool, Int
from rota.model import System
from rota.slurm.node_queue import NodeQueue

__all__ = ["BestFit", "Dispatcher"]


class Dispatcher(Protocol):
    """Says to which node a waiting job goes. What it knows is from the last `look`, and what was `changed` since."""

    def look(self, queues: Mapping[str, NodeQueue]) -> None:
        """The nodes as they are now."""

    def queue_of(self, kind: int) -> int:
        """The queue that a new job of this type joins, if it has to wait for a node."""

    def choose(self, kind: int, queue: int) -> str | None:
        """A node for a job of this type, or None if it has to wait."""

    def changed(self, name: str) -> None:
        """A job has come to this node, or left it."""

    def better(self, kind: int) -> tuple[str, str] | None:
        """A node from which a waiting job of this type should move, and the node to which."""

    def hopeless(self, kind: int, queue: int) -> bool:
        """Whether no node that works will ever take such a job."""


class BestFit:
    """The rule for nodes that are alike. N nodes, K types, R resources."""

    def __init__(self, system: System) -> None:
        demand = system.demand / system.capacity
        self._share: Array = demand.max(axis=1) / system.service_rate  # the work of a job: its largest share × its mean size
        self._queues: list[NodeQueue] = []

    def look(self, queues: Mapping[str, NodeQueue]) -> None:
        """The nodes as they are now."""
        self._queues = list(queues.values())
        self._number = {queue.name: n for n, queue in enumerate(self._queues)}
        if not self._queues:
            return
        states = [queue.scheduler.state for queue in self._queues]
        self._demand, self._capacity = states[0].demand, states[0].capacity  # (K, R) and (R,) in units
        self._free: Int = np.array([state.free for state in states])  # (N, R) in units
        self._waiting: Int = np.array([queue.waiting for queue in self._queues])  # (N, K) jobs
        self._work: Array = np.array([state.system for state in states]) @ self._share  # (N,) shares of the node × time

    def queue_of(self, kind: int) -> int:
        """There is one queue per type, and no job stays in it."""
        return kind

    def choose(self, kind: int, queue: int) -> str | None:
        """The fullest node where the job fits at once, or that with the least work."""
        if not self._queues:
            return None
        fits = np.flatnonzero(self._fits_at_once(kind))
        if len(fits):
            left = ((self._free[fits] - self._demand[kind]) / self._capacity).sum(axis=1)
            return self._queues[int(fits[np.argmin(left)])].name
        return self._queues[int(np.argmin(self._work))].name

    def changed(self, name: str) -> None:
        """Looks at this node again."""
        n = self._number[name]
        state = self._queues[n].scheduler.state
        self._free[n], self._waiting[n] = state.free, self._queues[n].waiting
        self._work[n] = state.system @ self._share

    def better(self, kind: int) -> tuple[str, str] | None:
        """From the node where most jobs of the type wait and none fits, to one where a job fits at once."""
        if len(self._queues) < 2:
            return None
        full = (self._free < self._demand[kind]).any(axis=1) & (self._waiting[:, kind] > 0)
        if not full.any() or not self._fits_at_once(kind).any():
            return None
        source, target = self._queues[int(np.argmax(np.where(full, self._waiting[:, kind], -1)))].name, self.choose(kind, kind)
        return (source, target) if target is not None and target != source else None

    def hopeless(self, kind: int, queue: int) -> bool:
        """Every node takes every job."""
        return False

    def _fits_at_once(self, kind: int) -> Bool:
        """Where a job of this type could start at once (N,): it fits, and none of its type waits there."""
        return np.asarray((self._free >= self._demand[kind]).all(axis=1) & (self._waiting[:, kind] == 0))
