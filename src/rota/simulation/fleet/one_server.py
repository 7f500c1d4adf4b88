"""What the engine of a fleet does at one server: its row is shown, its policy is asked, and the dispatch rule looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.decide.state import ALL, SWITCHING
from rota.kernel import kernel, large_kernel
from rota.simulation.engine import obey
from rota.simulation.fleet.state import (
    ENDS,
    FIRST_QUEUE,
    NEXT_LOOK,
    PERIOD,
    SERVER,
    STALE,
    SWITCHED,
    TIMERS,
    FleetState,
)
from rota.simulation.fleet.tournament import set_key
from rota.simulation.heap import close_hole
from rota.simulation.server import (
    LOGGED,
    RUNNING,
    WAKE,
    Server,
)
from rota.views import call_code, view_at

__all__ = ["count_switching", "decided", "keep", "load", "look", "look_again", "noted"]


@kernel
def load(fleet: FleetState, server: Server, state_like: Any, m: int) -> Any:
    """Shows the row of a server in the state of its kind, and its running jobs as the heap."""
    c = fleet.kind[m]
    server.base[0] = fleet.heap_first[c] + (m - fleet.first[c]) * fleet.heap_size[c]
    server.numbers[RUNNING] = fleet.in_service[m]
    row, current = fleet.rows[m], fleet.current[c]
    for k in range(row.shape[0]):
        current[k] = row[k]
    return view_at(state_like, fleet.states[c])


@kernel
def keep(fleet: FleetState, server: Server, m: int) -> None:
    """Copies what happened at a server back into its row; notes when the next of its jobs ends."""
    close_hole(server)
    fleet.in_service[m] = server.numbers[RUNNING]
    ending = server.ends[server.base[0]] if server.numbers[RUNNING] > 0 else np.inf
    set_key(fleet.keys, fleet.winners, fleet.levels, ENDS, m, ending)
    row, current = fleet.rows[m], fleet.current[fleet.kind[m]]
    for k in range(row.shape[0]):
        row[k] = current[k]


@large_kernel
def decided(fleet: FleetState, state: Any, server: Server, tally: Any, m: int, logging: bool) -> None:
    """The policy of a server is asked and obeyed, and its row is kept."""
    count_switching(fleet, state, m)
    state.scope[0] = ALL
    server.times[WAKE] = call_code(state)
    obey(state, state.target, server, tally, logging)
    keep(fleet, server, m)
    fleet.wake[m] = server.times[WAKE]
    set_key(fleet.keys, fleet.winners, fleet.levels, TIMERS, m, min(fleet.wake[m], fleet.switch_time[m]))


@kernel
def count_switching(fleet: FleetState, state: Any, m: int) -> None:
    """Counts the time since the last event at a server, if its policy was switching."""
    now = fleet.clock[0]
    fleet.times[SWITCHED] += (now - fleet.last_event[m]) * state.mode[SWITCHING]
    fleet.last_event[m] = now


@kernel
def noted(fleet: FleetState, server: Server, m: int, before: int) -> None:
    """The lines of the log from `before` on are of this server."""
    for line in range(before, server.numbers[LOGGED]):
        fleet.log_place[line] = m


@kernel
def look(fleet: FleetState, looking: FleetState, m: int) -> None:
    """The rule looks at a server, at once or when it looks next."""
    if fleet.keys.shape[0] == FIRST_QUEUE:
        return
    if fleet.times[PERIOD] == 0.0:
        fleet.asked[SERVER] = m
        call_code(looking)
    elif fleet.is_stale[m] == 0:
        fleet.is_stale[m] = 1
        fleet.stale[fleet.numbers[STALE]] = m
        fleet.numbers[STALE] += 1


@large_kernel
def look_again(fleet: FleetState, looking: FleetState, now: float) -> None:
    """The dispatcher looks at all servers at which something has happened, as they were at the last of its times before now."""
    for k in range(fleet.numbers[STALE]):
        fleet.asked[SERVER] = fleet.stale[k]
        fleet.is_stale[fleet.stale[k]] = 0
        call_code(looking)
    fleet.numbers[STALE] = 0
    period = fleet.times[PERIOD]
    fleet.times[NEXT_LOOK] += period * (np.floor((now - fleet.times[NEXT_LOOK]) / period) + 1.0)
