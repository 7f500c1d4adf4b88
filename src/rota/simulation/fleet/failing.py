"""Servers that fail and are repaired. The jobs of a server that fails come back to the dispatcher."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.decide.state import KIND, START, SWITCHING, exponential
from rota.decide.state import TYPE as OF_TYPE
from rota.kernel import kernel, large_kernel
from rota.simulation.engine import count_area, unlink, write
from rota.simulation.fleet.counting import count_held
from rota.simulation.fleet.dispatching import BACK_AGAIN, dispatch_all, take
from rota.simulation.fleet.one_server import count_switching, decided, keep, load
from rota.simulation.fleet.state import (
    CENTRAL,
    DOWN,
    FIRST_QUEUE,
    OWN,
    SERVER,
    TIMERS,
    UP,
    FleetState,
)
from rota.simulation.fleet.tournament import set_key
from rota.simulation.heap import remove
from rota.simulation.server import (
    LOGGED,
    Server,
)
from rota.views import call_code, view_at

__all__ = ["begin", "fail_or_repair", "see"]


@large_kernel
def fail_or_repair(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, logging: bool) -> None:
    """A server fails: its jobs lose what was done and are dispatched again, in the order in which they came to it. Or it works again."""
    c, now = fleet.kind[m], fleet.clock[0]
    tally = view_at(tally_like, fleet.tallies[c])
    if fleet.up[m] == 0:
        fleet.up[m] = 1
        fleet.working[c] += 1
        fleet.switch_time[m] = now + exponential(fleet.fails, 1.0 / fleet.mean_time[c, UP])
        begin(fleet, state_like, server, tally, m, logging)
        see(fleet, looking, m)
        for q in range(fleet.held_first.shape[0] if fleet.numbers[CENTRAL] == 0 else 0):
            if fleet.local[c, fleet.queue_type[q]] >= 0:
                first = fleet.held_first[q]
                fleet.held_first[q], fleet.held_last[q] = -1, -1
                dispatch_all(fleet, looking, state_like, server, tally_like, first, logging)
        take(fleet, looking, state_like, server, tally_like, m, logging)
        return
    fleet.up[m] = 0
    fleet.working[c] -= 1
    fleet.switch_time[m] = now + exponential(fleet.fails, 1.0 / fleet.mean_time[c, DOWN])
    first = evict(fleet, state_like, server, tally, m, logging)
    fleet.wake[m] = np.inf
    set_key(fleet.keys, fleet.winners, fleet.levels, TIMERS, m, fleet.switch_time[m])
    see(fleet, looking, m)
    dispatch_all(fleet, looking, state_like, server, tally_like, first, logging)


@large_kernel
def begin(fleet: FleetState, state_like: Any, server: Server, tally: Any, m: int, logging: bool) -> None:
    """The policy of a server begins, at the start of the run or when the server works again; its random stream goes on."""
    for k in range(fleet.at[OWN], fleet.rows.shape[1]):
        fleet.rows[m, k] = 0
    state = load(fleet, server, state_like, m)
    state.event[KIND], state.event[OF_TYPE] = START, 0
    decided(fleet, state, server, tally, m, logging)


@kernel
def see(fleet: FleetState, looking: FleetState, m: int) -> None:
    """The rule sees at once whether a server works, however seldom it looks."""
    if fleet.keys.shape[0] > FIRST_QUEUE:
        fleet.asked[SERVER] = m
        call_code(looking)


@large_kernel
def evict(fleet: FleetState, state_like: Any, server: Server, tally: Any, m: int, logging: bool) -> int:
    """Takes all jobs off a server, as those at no server are kept; returns the first, in the order in which they came, by their links."""
    c, now = fleet.kind[m], fleet.clock[0]
    state = load(fleet, server, state_like, m)
    count_switching(fleet, state, m)
    state.mode[SWITCHING] = 0
    first, last = -1, -1
    while True:
        job, local = -1, -1
        for k in range(state.oldest.shape[0]):
            one = state.oldest[k]
            if one >= 0 and (job < 0 or state.sequence[one] < state.sequence[job]):
                job, local = one, k
        if job < 0:
            break
        i = fleet.types[c, local]
        one_job = server.jobs[job]
        count_area(state, tally, local)
        if one_job["position"] >= 0:
            remove(server, job)
            state.running[local] -= 1
            for r in range(state.free.shape[0]):
                state.free[r] += state.demand[local, r]
        unlink(state, job, local)
        state.system[local] -= 1
        fleet.present[m, i] -= 1
        fleet.total[m] -= 1
        speed = fleet.speed[c, i]
        one_job["kind"], one_job["position"], one_job["newer"] = i, -1, -1
        one_job["size"] *= speed
        one_job["estimate"] *= speed
        one_job["remaining"] = one_job["size"]
        fleet.place[job] = -1
        count_held(fleet, i, 1)
        if logging:
            fleet.log_place[server.numbers[LOGGED]] = m
            write(server, now, BACK_AGAIN, local, one_job["sequence"])
        if last >= 0:
            server.jobs[last]["newer"] = job
        else:
            first = job
        last = job
    for k in range(state.target.shape[0]):
        state.target[k] = 0
    keep(fleet, server, m)
    return int(first)
