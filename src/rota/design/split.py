"""Random splitting: the types are split over the kinds as the load of the fleet says, and a rota is designed for a server of each kind."""

from __future__ import annotations

import numpy as np

from rota.capacity import FleetLoad, system_load
from rota.design.design import design_policy
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import Fleet
from rota.policy import MSR, Split

__all__ = ["design_split"]


def design_split(fleet: Fleet, *, load: FleetLoad | None = None, time_limit_s: float = 30.0) -> Split:
    """Random splitting with a rota for each kind of server (`rota.design_policy`). The split is that of `rota.system_load`, under which
    every server has at most the load of the fleet; `time_limit_s` is for all kinds together.
    """
    if not isinstance(fleet, Fleet):
        raise BadSpec([Problem("fleet", "must be a rota.Fleet (rota.Fleet.equal makes one of a system)", fleet)])
    best = system_load(fleet, time_limit_s=time_limit_s) if load is None else load
    if not isinstance(best, FleetLoad) or best.fleet != fleet:
        raise BadSpec([Problem("load", "is of another fleet: give rota.system_load(fleet), or leave it out")])
    if best.load >= 1:
        raise Unstable(f"the load {best.load:.4g} of the fleet is not below 1: scale arrivals by less than {1 / best.load:.4g}")
    if best.load == 0:
        raise Infeasible("no jobs arrive: there is nothing to design for")
    C = len(fleet.kinds)
    split = best.split.copy()
    for i in np.flatnonzero(fleet.arrival_rate == 0):  # a type that does not arrive goes wherever it can
        split[:, i] = fleet.runs[:, i] / fleet.runs[:, i].sum()
    busy = [bool((split[c] * fleet.arrival_rate).any()) for c in range(C)]
    policies: list[MSR | None] = []
    for c in range(C):
        server = fleet.server(c, fleet.arrival_rate * split[c] / fleet.count[c]) if busy[c] else None
        policies.append(None if server is None else design_policy(server, time_limit_s=time_limit_s / sum(busy)))
    return Split(policies, split / split.sum(axis=0))
