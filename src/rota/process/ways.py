"""Ways into a process: other schedules of the server as states that the process never enters, but leaves towards one of its candidates.

A process without preemption gets states (w, b): the schedule w, on the way to candidate b as a switch would go that drains in parallel and
opens early. With the slots above b's as its excess, Σ_i max(w_i − b_i, 0) > 0,

    completion i, w_i > b_i     closes a slot of type i, and those of b that fit now open: to (w', b), at rate w_i μ_i; to b itself with
                                the last of the excess

The process never enters these states by itself, so that all its long-run values stay as they are. A policy that looks at the queues may
(`rota.decide.improved`). A job in a slot of (w, b) has one in every state that it goes to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rota.arrays import Int
from rota.capacity import integer_units, is_maximal, list_schedules
from rota.errors import TooManySchedules
from rota.model import System
from rota.process.build import opened
from rota.process.process import ModulatingProcess

__all__ = ["Ways", "with_ways"]

_SCHEDULES = 2000  # if there are no more, all of them are tried; else those next to a candidate

State = tuple[tuple[int, ...], int]  # schedule, and the candidate's state


@dataclass(frozen=True, eq=False)
class Ways:
    """A process with ways into it: its own states first, then those of the ways; `excess` (N,) is that of each, 0 for its own."""

    process: ModulatingProcess
    excess: Int


def with_ways(system: System, process: ModulatingProcess, most_states: int) -> Ways:
    """The process with the ways of least excess, until it has about so many states."""
    found = _Found(system, process)
    for way in sorted(_starts(system, process), key=lambda way: (found.excess(way), way)):
        if len(process) + len(found.moves) >= most_states:
            break
        found.add((found.opened(np.array(way[0]), way[1]), way[1]))
    return found.finish()


class _Found:
    """Ways, each with the moves out of it."""

    def __init__(self, system: System, process: ModulatingProcess) -> None:
        self.system, self.process = system, process
        self.units = integer_units(system)
        self.moves: dict[State, list[tuple[State, float, int]]] = {}

    def over(self, way: State) -> list[int]:
        """Slots of each type above those of the candidate."""
        return [max(count - int(slots), 0) for count, slots in zip(way[0], self.process.schedules[way[1]], strict=True)]

    def excess(self, way: State) -> int:
        """All of them."""
        return sum(self.over(way))

    def opened(self, schedule: Int, b: int) -> tuple[int, ...]:
        """The schedule with all slots of the candidate that fit."""
        more = opened(schedule, self.process.schedules[b], self.units.demand, self.units.capacity)
        return tuple(int(count) for count in more)

    def add(self, way: State) -> None:
        """A way, and the states that it passes."""
        waiting = [way]
        while waiting:
            here = waiting.pop()
            if here in self.moves or self.excess(here) == 0:
                continue
            self.moves[here] = []
            schedule, b = np.array(here[0]), here[1]
            for i in np.flatnonzero(self.over(here)):
                fewer = schedule.copy()
                fewer[i] -= 1
                then = (self.opened(fewer, b), b)
                self.moves[here].append((then, float(schedule[i] * self.system.service_rate[i]), int(i)))
                waiting.append(then)

    def finish(self) -> Ways:
        """The process with the ways behind it, those of least excess first."""
        process, N = self.process, len(self.process)
        ways = sorted(self.moves, key=self.excess)
        place = {way: N + k for k, way in enumerate(ways)}
        moves = [(place[way], place.get(then, then[1]), rate, i) for way in ways for then, rate, i in self.moves[way]]
        if not moves:
            return Ways(process, np.zeros(N, dtype=np.int64))
        schedules = np.array([schedule for schedule, _ in ways], dtype=np.int64)
        source, target, rate, trigger = (np.array(column) for column in zip(*moves, strict=True))
        wider = ModulatingProcess(
            schedules=np.concatenate([process.schedules, schedules]),
            held=np.concatenate([process.held, schedules]),
            candidate=np.concatenate([process.candidate, np.full(len(ways), -1)]),
            source=np.concatenate([process.source, source]),
            target=np.concatenate([process.target, target]),
            rate=np.concatenate([process.rate, rate]),
            trigger=np.concatenate([process.trigger, trigger]),
            names=process.names,
        )
        return Ways(wider, np.concatenate([np.zeros(N, dtype=np.int64), np.array([self.excess(way) for way in ways], dtype=np.int64)]))


def _starts(system: System, process: ModulatingProcess) -> list[State]:
    """Schedules with a candidate to go to; only types that arrive exceed it."""
    working = np.flatnonzero(process.working)
    try:
        schedules = list_schedules(system, limit=_SCHEDULES)
    except TooManySchedules:
        schedules = _neighbours(system, process.schedules[working])
    full = schedules[np.asarray(is_maximal(system, schedules))]
    never = system.arrival_rate == 0
    return [
        (tuple(int(count) for count in schedule), int(b))
        for b in working
        for schedule in full
        if not (never & (schedule > process.schedules[b])).any()
    ]


def _neighbours(system: System, candidates: Int) -> Int:
    """Each candidate with one more job of some type, for which as few jobs as possible of one other type go."""
    units = integer_units(system)
    K = len(system.names)
    found: dict[tuple[int, ...], None] = {}
    for candidate in candidates:
        for i in range(K):
            for j in range(K):
                schedule = candidate.copy()
                schedule[i] += 1
                while j != i and schedule[j] > 0 and (schedule @ units.demand > units.capacity).any():
                    schedule[j] -= 1
                if (schedule @ units.demand <= units.capacity).all():
                    found[tuple(opened(schedule, candidate, units.demand, units.capacity).tolist())] = None
    return np.array(list(found) or np.zeros((0, K)), dtype=np.int64).reshape(-1, K)
