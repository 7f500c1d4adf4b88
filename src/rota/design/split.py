"""Random splitting: a rota for a server of each kind and the split of each type over the kinds, chosen together.

The split of the load (`FleetLoad.split`) gives every server at most the load of the fleet, so with it everything is stable: the start. From
there split and rotas are improved in turns (`rota.design.fleet_parts`), each on the mean response time. What one kind lacks at the start,
a rota with slots for a type, it can only get if some jobs of that type go there, so there is a second start in which a part of every type
goes everywhere.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rota.arrays import Array
from rota.capacity import FleetLoad, system_load
from rota.design.deadline import Deadline
from rota.design.design import LOAD_S, design_policy
from rota.design.fleet_load import checked_fleet_load
from rota.design.fleet_parts import Parts, alternated
from rota.model import Fleet
from rota.policy import MSR, Pinned, Split

__all__ = ["design_split"]

_BLENDS = (0.5, 0.2, 0.05)  # how much of every type the second start spreads over all servers; the first that is stable
_FIRST = 0.5  # the part of the time for the rotas of the load's split


def design_split(fleet: Fleet, *, load: FleetLoad | None = None, joint: bool = True, time_limit_s: float = 30.0) -> Split:
    """Random splitting with a rota for each kind of server (`rota.design_policy`): the split of each type over the kinds and the rotas are
    chosen together, on the mean response time; sizes are taken as exponential. `joint=False` keeps the split of `rota.system_load`, under
    which every server has at most the load of the fleet; the answer is never worse than that. `time_limit_s` is for all of it.
    """
    best = checked_fleet_load(fleet, load, time_limit_s)
    deadline = Deadline.after(time_limit_s)
    split = best.split.copy()
    for i in np.flatnonzero(fleet.arrival_rate == 0):  # a type that does not arrive goes wherever it can
        split[:, i] = fleet.runs[:, i] / fleet.runs[:, i].sum()
    choice = joint and bool((fleet.runs[:, fleet.arrival_rate > 0].sum(axis=0) > 1).any()) and not fleet.bursty
    first = _designed(fleet, split, (_FIRST if choice else 1.0) * time_limit_s)
    if not choice:
        return Split(first, split / split.sum(axis=0))
    found = alternated(_parts(fleet, first, split), best, Deadline.after(deadline.left_s / 2))
    blended = _blended(fleet, best, split)
    if blended is not None and deadline.left_s > 0:
        rotas = _designed(fleet, blended, deadline.left_s / 2)
        other = _parts(fleet, rotas, blended)
        if np.isfinite(other.value):
            found = min(found, alternated(other, best, deadline), key=lambda parts: parts.value)
    policy = found.policy()
    rotas = [rota if part.any() else None for rota, part in zip(found.rotas, fleet.arrival_rate * policy.split, strict=True)]
    return Split(rotas, np.where(fleet.arrival_rate > 0, policy.split, split / split.sum(axis=0)))


def _designed(fleet: Fleet, split: Array, time_limit_s: float) -> list[MSR | None]:
    """A rota for each kind to which jobs go."""
    busy = [bool((fleet.arrival_rate * part).any()) for part in split]
    design = partial(design_policy, time_limit_s=time_limit_s / sum(busy))
    return [design(fleet.server(c, fleet.arrival_rate * split[c] / fleet.count[c])) if busy[c] else None for c in range(len(fleet.kinds))]


def _parts(fleet: Fleet, rotas: list[MSR | None], split: Array) -> Parts:
    """All servers turn."""
    nothing = np.zeros((0, len(fleet.names)), dtype=np.int64)
    return Parts(fleet, Pinned([], nothing, [], np.zeros_like(split)), fleet.count, tuple(rotas), np.vstack([np.zeros_like(split), split]))


def _blended(fleet: Fleet, best: FleetLoad, split: Array) -> Array | None:
    """A split under which all kinds get some of every type that can run there, no server with a load beyond half way to 1."""
    even = np.where(fleet.runs, fleet.count[:, None] * fleet.speed, 0.0)
    even = even / even.sum(axis=0)
    for part in _BLENDS:
        blended: Array = (1 - part) * split + part * even
        servers = [
            fleet.server(c, fleet.arrival_rate * blended[c] / fleet.count[c]) for c in np.flatnonzero(fleet.runs.any(axis=1)).tolist()
        ]
        if all(system_load(server, time_limit_s=LOAD_S).load <= (1 + best.load) / 2 for server in servers):
            return blended
    return None
