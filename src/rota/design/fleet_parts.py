"""Servers of a fleet in two parts, improved in turns: pinned slots, and servers that each follow a rota.

The state is who is pinned to what, the rotas, and the split of every type over the pinned slots and the servers that turn of each kind.
One step finds the best split for these servers (`rota.design.best_split`); the other designs the servers anew for this split and keeps
what is better, part by part. Neither makes the mean response time longer, so the steps end where both gain nothing: a local optimum.

Values are exact for rotas of small processes (`SMALL_STATES`) and for pinned slots; for larger processes they are the prediction. Sizes are
taken as exponential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rota.analysis.means import SMALL_STATES, mean_queues_at, predicted_queues
from rota.analysis.queue import mean_waiting
from rota.arrays import Array, Bool, Int
from rota.capacity import FleetLoad
from rota.design.best_split import Place, best_split, jobs_at
from rota.design.deadline import Deadline
from rota.design.design import design_policy
from rota.design.pinned import PinnedSearch
from rota.errors import Infeasible, RotaError
from rota.model import Fleet, System
from rota.policy import MSR, PartlyPinned, Pinned
from rota.process import build_process

__all__ = ["Parts", "RotaDesigner", "alternated"]

_ROUNDS = 8
_GAIN = 1e-3  # relative: a round that gains less was the last
_NOTHING = 1e-9  # a smaller part of a type is none
_LEAST_S = 0.2  # for a design, whatever is left of the time


@dataclass(frozen=True, eq=False)
class Parts:
    """`turning[c]` servers of each kind follow `rotas[c]`, others hold schedules as `pinned` says.

    `split` (2C, K): the parts of each type for the pinned slots of each kind, and below them for the servers of each kind that turn. Kinds
    on which a type has the same speed share its pinned queue; the row of the first of them stands for it.
    """

    fleet: Fleet
    pinned: Pinned
    turning: Int
    rotas: tuple[MSR | None, ...]
    split: Array

    @cached_property
    def places(self) -> list[Place]:
        """How many jobs there are at each place, given what arrives there."""
        fleet, C = self.fleet, len(self.fleet.kinds)
        slots = _slots(fleet, self.pinned)
        still = [_pinned_place(fleet, c, slots[c]) for c in range(C)]
        return [*still, *(_turning_place(fleet, c, int(self.turning[c]), self.rotas[c]) for c in range(C))]

    @property
    def allowed(self) -> Bool:
        """Where a type may go (2C, K)."""
        slots = _slots(self.fleet, self.pinned)
        turn = [self.fleet.runs[c] & bool(n) & (rota is not None) for c, (n, rota) in enumerate(zip(self.turning, self.rotas, strict=True))]
        return np.vstack([slots > 0, turn])

    @cached_property
    def jobs(self) -> Array:
        """E[Q_i] at every place (2C, K)."""
        return jobs_at(self.places, self.fleet.arrival_rate, self.split)

    @property
    def value(self) -> float:
        """Σ E[Q_i]."""
        return float(self.jobs.sum())

    def policy(self) -> PartlyPinned:
        """These servers as a policy."""
        C = len(self.fleet.kinds)
        parts = np.where(self.split > _NOTHING, self.split, 0.0)
        parts = parts / parts.sum(axis=0)
        still, turn = parts[:C], parts[C:]
        pinned = Pinned(self.pinned.kind, self.pinned.candidates, self.pinned.servers, still)
        return PartlyPinned(pinned, self.turning, self.rotas, turn)


def _slots(fleet: Fleet, pinned: Pinned) -> Int:
    """Slots of each pinned queue (C, K), in the row of the first kind of its speed."""
    table = np.zeros((len(fleet.kinds), len(fleet.names)), dtype=np.int64)
    for queue in pinned.queues(fleet):
        table[queue.kinds[0], queue.type] = queue.slots
    return table


def _pinned_place(fleet: Fleet, c: int, slots: Int) -> Place:
    rate = fleet.service_rate * fleet.speed[c]

    def jobs(arrivals: Array) -> Array:
        offered = (arrivals / rate).tolist()
        return np.array([a + mean_waiting(int(k), a) for k, a in zip(slots, offered, strict=True)])

    return jobs


def _turning_place(fleet: Fleet, c: int, servers: int, rota: MSR | None) -> Place:
    if rota is None or servers == 0:
        return lambda arrivals: np.where(arrivals > 0, np.inf, 0.0)
    system = fleet.server(c)
    here = np.flatnonzero(fleet.runs[c])
    process = build_process(system, rota)

    def jobs(arrivals: Array) -> Array:
        total = np.where(arrivals > 0, np.inf, 0.0)
        rate = arrivals[here] / servers
        if len(process) <= SMALL_STATES:
            means = mean_queues_at(process, rate, system.service_rate)
        else:
            means = predicted_queues(system.replace(arrival_rate=rate), process)
        total[here] = servers * np.where(np.isnan(means), np.inf, means)
        return total

    return jobs


# ------------------------------------------------------------------------------------------------------------ the steps

RotaDesigner = Callable[[System, Deadline], MSR | None]


def design_within(system: System, deadline: Deadline) -> MSR | None:
    """A rota for a server, in the time that is left; None if none was found."""
    try:
        return design_policy(system, time_limit_s=max(deadline.left_s, _LEAST_S))
    except RotaError:
        return None


def alternated(parts: Parts, load: FleetLoad, deadline: Deadline, designer: RotaDesigner = design_within) -> Parts:
    """Split and servers improved in turns, until a round gains nothing more or the time is over. Never worse than `parts`."""
    for _ in range(_ROUNDS):
        before = parts.value
        parts = _with_best_split(parts, deadline)
        if deadline.left_s < 0:
            break
        parts = _with_new_rotas(_with_new_pinned(parts, load, deadline), deadline, designer)
        if not parts.value < before * (1 - _GAIN):
            break
    return _with_best_split(parts, deadline)


def _with_best_split(parts: Parts, deadline: Deadline) -> Parts:
    if not np.isfinite(parts.value):
        raise Infeasible("these servers do not serve what is sent to them")
    split = best_split(parts.places, parts.fleet.arrival_rate, parts.split, parts.allowed, deadline)
    return _better(parts, replace(parts, split=split))


def _with_new_pinned(parts: Parts, load: FleetLoad, deadline: Deadline) -> Parts:
    """Other schedules for the servers that do not turn."""
    C, count = len(parts.fleet.kinds), parts.fleet.count - parts.turning
    if not (parts.split[:C] > _NOTHING).any() or not count.any():
        return parts
    search = PinnedSearch(parts.fleet, load, deadline.began + deadline.budget_s, count=count, split=parts.split[:C])
    search.relax()
    return _better(parts, replace(parts, pinned=search.pinned(search.whole_numbers())))


def _with_new_rotas(parts: Parts, deadline: Deadline, designer: RotaDesigner) -> Parts:
    """Other rotas for the servers that turn, kind by kind."""
    fleet, C = parts.fleet, len(parts.fleet.kinds)
    busy = [c for c in range(C) if parts.turning[c] and (fleet.arrival_rate * parts.split[C + c]).any()]
    for at, c in enumerate(busy):
        if deadline.left_s < 0:
            break
        sent = np.where(parts.split[C + c] > _NOTHING, parts.split[C + c], 0.0)
        server = fleet.server(c, fleet.arrival_rate * sent / parts.turning[c])
        found = designer(server, Deadline.after(deadline.left_s / (len(busy) - at)))
        if found is not None:
            parts = _better(parts, replace(parts, rotas=(*parts.rotas[:c], found, *parts.rotas[c + 1 :])))
    return parts


def _better(old: Parts, new: Parts) -> Parts:
    return new if new.value < old.value else old
