"""The dispatch rules as small compiled functions: which server an arriving job goes to.

A rule is `choose(fleet) -> float`, the number of a server for a job of type `fleet.asked[TYPE]`, or −1 to hold the job back. It names only
servers that work and on which the type can run. Rules that compare all servers do not look at all of them: a function `look(fleet)`
gives the server `fleet.asked[SERVER]` a key for each queue after an event there, and the tournament tree knows the smallest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rota.decide.state import uniform
from rota.kernel import kernel
from rota.simulation.fleet.state import (
    ANY_SERVER,
    BY_SLOT,
    CHOICES,
    FIRST_QUEUE,
    QUEUE,
    SERVER,
    TYPE,
    FleetState,
    fits_at_once,
    left_over,
    runs_on,
    work_there,
)
from rota.simulation.fleet.tournament import best, best_key, set_key

__all__ = ["BEST_FIT", "JSQ", "LEAST_WAIT", "PINNED", "POWER_OF_D", "PULL", "RANDOM", "ROUND_ROBIN", "Rule", "any_working", "give_key"]

_TIE = 2.0**-20  # of the number of jobs, where a smaller number of another kind decides first


@dataclass(frozen=True, eq=False)
class Rule:
    """A dispatch rule: `choose`, and `look` if it keeps a key for each server."""

    choose: Callable[[Any], float]
    look: Callable[[Any], float] | None = None
    own: bool = False  # written by a user, and checked


@kernel
def give_key(fleet: FleetState, q: int, m: int, key: float) -> None:
    """The key of a server for a queue."""
    set_key(fleet.keys, fleet.winners, fleet.levels, FIRST_QUEUE + q, m, key)


@kernel
def any_working(fleet: FleetState, i: int) -> bool:
    """Whether there is a server that works and on which the type can run."""
    for c in range(fleet.local.shape[0]):  # noqa: SIM110 (numba has no any())
        if fleet.local[c, i] >= 0 and fleet.working[c] > 0:
            return True
    return False


@kernel
def smallest_key(fleet: FleetState) -> float:
    """The server of smallest key for the queue, of equal ones that of lower number; −1 if none has a finite one."""
    tree = FIRST_QUEUE + fleet.asked[QUEUE]
    return float(best(fleet.winners, fleet.levels, tree)) if best_key(fleet.keys, fleet.levels, tree) < np.inf else -1.0


# ---------------------------------------------------------------------------------------------------------------- without looking


@kernel
def choose_random(fleet: FleetState) -> float:
    """A kind by the parts of the type, and there any server alike; both are drawn again as long as the server has failed."""
    i = fleet.asked[TYPE]
    if not any_working(fleet, i):
        return -1.0
    C = fleet.local.shape[0]
    for _ in range(1000):  # where the parts go to kinds that all failed, to any server after that
        part = uniform(fleet.random)
        c = 0
        while c < C - 1 and (part >= fleet.parts[i, c] or fleet.local[c, i] < 0):
            c += 1
        if fleet.working[c] > 0 and fleet.local[c, i] >= 0:
            return float(any_of_kind(fleet, c))
    return float(any_server(fleet, i))


@kernel
def any_of_kind(fleet: FleetState, c: int) -> int:
    """Any server of a kind that works; there is one."""
    n = fleet.first[c + 1] - fleet.first[c]
    while True:
        m = fleet.first[c] + min(int(uniform(fleet.random) * n), n - 1)
        if fleet.up[m] == 1:
            return int(m)


@kernel
def any_server(fleet: FleetState, i: int) -> int:
    """Any server that works and on which the type can run; there is one."""
    M = fleet.kind.shape[0]
    while True:
        m = min(int(uniform(fleet.random) * M), M - 1)
        if runs_on(fleet, m, i):
            return int(m)


@kernel
def choose_in_turn(fleet: FleetState) -> float:
    """Each type goes round the servers on which it can run, in their order."""
    i, M = fleet.asked[TYPE], fleet.kind.shape[0]
    if not any_working(fleet, i):
        return -1.0
    m = fleet.turn[i]
    while not runs_on(fleet, m, i):
        m = m + 1 if m + 1 < M else 0
    fleet.turn[i] = m + 1 if m + 1 < M else 0
    return float(m)


RANDOM = Rule(choose_random)
ROUND_ROBIN = Rule(choose_in_turn)


# ---------------------------------------------------------------------------------------------------------------- by numbers of jobs


@kernel
def length(fleet: FleetState, m: int, i: int) -> float:
    """(jobs of the type there + 1) / speed, and of equal ones the fewest jobs of all types; infinite where it cannot run."""
    if not runs_on(fleet, m, i):
        return np.inf
    return float((fleet.present[m, i] + 1) / fleet.speed[fleet.kind[m], i] + fleet.total[m] * _TIE)


@kernel
def look_at_lengths(fleet: FleetState) -> float:
    """The keys of `length`."""
    m = fleet.asked[SERVER]
    for q in range(fleet.queue_type.shape[0]):
        give_key(fleet, q, m, length(fleet, m, fleet.queue_type[q]))
    return 0.0


JSQ = Rule(smallest_key, look_at_lengths)


@kernel
def choose_of_d(fleet: FleetState) -> float:
    """Of d servers on which the type can run, drawn alike (one may be drawn twice), that of least `length`; of equal ones the first."""
    i = fleet.asked[TYPE]
    if not any_working(fleet, i):
        return -1.0
    tree, chosen = FIRST_QUEUE + fleet.asked[QUEUE], -1
    for _ in range(fleet.numbers[CHOICES]):
        m = any_server(fleet, i)
        if chosen < 0 or fleet.keys[tree, m] < fleet.keys[tree, chosen]:
            chosen = m
    return float(chosen)


POWER_OF_D = Rule(choose_of_d, look_at_lengths)


# ---------------------------------------------------------------------------------------------------------------- by what is free


@kernel
def look_for_fit(fleet: FleetState) -> float:
    """Where the job fits at once: what is left over, below 1. Elsewhere 1 + `length`."""
    m = fleet.asked[SERVER]
    for q in range(fleet.queue_type.shape[0]):
        i = fleet.queue_type[q]
        key = np.inf
        if runs_on(fleet, m, i):
            key = left_over(fleet, m, i) if fits_at_once(fleet, m, i) else 1.0 + length(fleet, m, i)
        give_key(fleet, q, m, key)
    return 0.0


BEST_FIT = Rule(smallest_key, look_for_fit)


@kernel
def look_at_work(fleet: FleetState) -> float:
    """The mean running time there, and unless the job fits at once, the work that is there."""
    m = fleet.asked[SERVER]
    c, work = fleet.kind[m], work_there(fleet, m)
    for q in range(fleet.queue_type.shape[0]):
        i = fleet.queue_type[q]
        key = np.inf
        if runs_on(fleet, m, i):
            key = fleet.run_time[c, i] + (0.0 if fits_at_once(fleet, m, i) else work) + work * _TIE
        give_key(fleet, q, m, key)
    return 0.0


LEAST_WAIT = Rule(smallest_key, look_at_work)


# ---------------------------------------------------------------------------------------------------------------- central queues


@kernel
def look_where_it_fits(fleet: FleetState) -> float:
    """Where the job fits at once: the fastest, and of equal ones that with the least left over. Elsewhere none."""
    m = fleet.asked[SERVER]
    for q in range(fleet.queue_type.shape[0]):
        i = fleet.queue_type[q]
        key = np.inf
        if runs_on(fleet, m, i) and fits_at_once(fleet, m, i):
            key = 1.0 / fleet.speed[fleet.kind[m], i] + left_over(fleet, m, i) * _TIE
        give_key(fleet, q, m, key)
    return 0.0


PULL = Rule(smallest_key, look_where_it_fits)


@kernel
def look_for_slot(fleet: FleetState) -> float:
    """Servers of the queue's kinds with a free slot of the type, all alike; or all that work, if they turn."""
    m = fleet.asked[SERVER]
    for q in range(fleet.queue_type.shape[0]):
        i, how = fleet.queue_type[q], fleet.queue_kind[q, fleet.kind[m]]
        free = how == ANY_SERVER or (how == BY_SLOT and fleet.present[m, i] < fleet.slots[m, i])
        give_key(fleet, q, m, 0.0 if free and fleet.up[m] == 1 else np.inf)
    return 0.0


@kernel
def choose_slot(fleet: FleetState) -> float:
    """The first server with a free slot; of a queue for servers that turn, any of them that works, alike."""
    q = fleet.asked[QUEUE]
    for c in range(fleet.local.shape[0]):
        if fleet.queue_kind[q, c] == ANY_SERVER:
            return float(any_of_kind(fleet, c)) if fleet.working[c] > 0 else -1.0
    return smallest_key(fleet)


PINNED = Rule(choose_slot, look_for_slot)
