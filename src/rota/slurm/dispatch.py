"""To which node a waiting job goes.

A rule is a function of what the nodes look like. The rule here takes the fullest node on which the job fits at once and before which no job
of its type waits (best fit); if there is none, the node with the least work before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array, Bool, Int

__all__ = ["DispatchRule", "Nodes", "best_fit", "fits_at_once"]


@dataclass(frozen=True)
class Nodes:
    """The N nodes as a rule sees them; K types, R resources."""

    free: Int  # (N, R) in units
    demand: Int  # (K, R) in units
    capacity: Int  # (R,) in units
    waiting: Int  # (N, K) jobs
    work: Array  # (N,) shares of the node × time, of all jobs there


DispatchRule = Callable[[Nodes, int], int]


def fits_at_once(nodes: Nodes, kind: int) -> Bool:
    """Where a job of this type could start at once (N,): it fits, and none of its type waits there."""
    return np.asarray((nodes.free >= nodes.demand[kind]).all(axis=1) & (nodes.waiting[:, kind] == 0))


def best_fit(nodes: Nodes, kind: int) -> int:
    """The number of a node for a job of this type."""
    fits = np.flatnonzero(fits_at_once(nodes, kind))
    if len(fits):
        left = ((nodes.free[fits] - nodes.demand[kind]) / nodes.capacity).sum(axis=1)
        return int(fits[np.argmin(left)])
    return int(np.argmin(nodes.work))
