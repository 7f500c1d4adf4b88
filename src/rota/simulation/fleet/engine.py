"""The event engine of a fleet: the next completion of all servers, the next timer, failure or arrival; and what follows at one server.

The running jobs of each server are in a heap of its own (`rota.simulation.heap`), all of them in one array, and a tournament tree knows
which server's next job ends first (`rota.simulation.fleet.tournament`). The records of all jobs are in one array. What happens at a
server is done by the functions of the engine of one server (`rota.simulation.engine`), on a copy of the server's row
(`rota.simulation.fleet.state`). Of events at the same time, completions come first, then timers, then failures and repairs, then jobs
that reach their server, then arrivals; of several servers that of lowest number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.arrays import Array, Int
from rota.decide.state import KIND, TIMER, exponential
from rota.decide.state import TYPE as OF_TYPE
from rota.kernel import compiled, kernel, large_kernel
from rota.simulation.engine import FULL_LOG, WANTS_JOBS, finish
from rota.simulation.fleet.checking import check_all
from rota.simulation.fleet.dispatching import admit, reach, take
from rota.simulation.fleet.failing import begin, fail_or_repair, see
from rota.simulation.fleet.one_server import decided, load, look, look_again, noted
from rota.simulation.fleet.state import (
    ENDS,
    GONE,
    INSIDE,
    LINES,
    LINES_PER_JOB,
    NEXT_LOOK,
    TIMERS,
    TRANSIT_FIRST,
    UP,
    FleetState,
)
from rota.simulation.fleet.tournament import best, best_key
from rota.simulation.server import (
    BEGUN,
    EVENTS,
    LOGGED,
    NEXT_ARRIVAL,
    NEXT_JOB,
    STOP,
    Server,
    heap_base,
)
from rota.views import view_at

__all__ = ["fleet_engine"]


def _engine(
    fleet: FleetState,
    looking: FleetState,
    state_like: Any,
    server: Server,
    tally_like: Any,
    arrivals: Array,
    kinds: Int,
    sizes: Array,
    estimates: Array,
    drain: bool,
    logging: bool,
    checking: bool,
) -> int:
    """Runs until the chunk of arrivals is used up (`drain`: until no job is left) or the log is full.

    `looking`: the same as `fleet`, with the function that gives keys in place of the one that chooses.
    """
    numbers, n = server.numbers, arrivals.shape[0]
    if numbers[BEGUN] != 1:
        numbers[BEGUN] = 1
        for m in range(fleet.kind.shape[0]):
            c = fleet.kind[m]
            mean = fleet.mean_time[c, UP]
            fleet.switch_time[m] = exponential(fleet.fails, 1.0 / mean) if mean < np.inf else np.inf
            begin(fleet, state_like, server, view_at(tally_like, fleet.tallies[c]), m, logging)
            see(fleet, looking, m)
    while True:
        k = numbers[NEXT_ARRIVAL]
        if k == n and not (drain and numbers[NEXT_JOB] > 0 and fleet.numbers[INSIDE] > 0):
            return WANTS_JOBS
        if logging and numbers[LOGGED] + fleet.numbers[LINES] + fleet.numbers[LINES_PER_JOB] * fleet.numbers[INSIDE] > server.log.shape[0]:
            return FULL_LOG
        arrival = arrivals[k] if k < n else np.inf
        ending = best_key(fleet.keys, fleet.levels, ENDS)
        timer = best_key(fleet.keys, fleet.levels, TIMERS)
        sent = fleet.numbers[TRANSIT_FIRST]
        reaching = server.jobs[sent]["finish"] if sent >= 0 else np.inf
        following = min(min(ending, timer), min(reaching, arrival))
        if drain and (following > server.times[STOP] or following == np.inf):
            return WANTS_JOBS
        if following >= fleet.times[NEXT_LOOK]:
            look_again(fleet, looking, following)
        numbers[EVENTS] += 1
        fleet.clock[0] = following
        ends = ending <= following
        if ends or timer <= following:
            m = best(fleet.winners, fleet.levels, ENDS if ends else TIMERS)
            if not ends and fleet.switch_time[m] <= following:
                fail_or_repair(fleet, looking, state_like, server, tally_like, m, logging)
            else:
                serve(fleet, looking, state_like, server, tally_like, m, ends, logging)
        elif reaching <= following:
            reach(fleet, looking, state_like, server, tally_like, sent, logging)
        else:
            numbers[NEXT_ARRIVAL] = k + 1
            admit(fleet, looking, state_like, server, tally_like, kinds[k], sizes[k], estimates[k], logging)
        if checking:
            check_all(fleet, state_like, server)


@large_kernel
def serve(
    fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, ends: bool, logging: bool
) -> None:
    """At a server a job ends, or the timer of its policy rings."""
    before, tally = server.numbers[LOGGED], view_at(tally_like, fleet.tallies[fleet.kind[m]])
    state = load(fleet, server, state_like, m)
    if ends:
        leave(fleet, state, server, tally, m, logging)
    else:
        state.event[KIND], state.event[OF_TYPE] = TIMER, 0
    decided(fleet, state, server, tally, m, logging)
    noted(fleet, server, m, before)
    look(fleet, looking, m)
    take(fleet, looking, state_like, server, tally_like, m, logging)


@kernel
def leave(fleet: FleetState, state: Any, server: Server, tally: Any, m: int, logging: bool) -> None:
    """The job of a server that ends first leaves the fleet."""
    job = server.heap[heap_base(server)]
    i = fleet.types[fleet.kind[m], server.jobs[job]["kind"]]
    finish(state, server, tally, fleet.clock[0], logging)
    server.jobs[job]["sequence"], fleet.place[job] = GONE, -1
    fleet.present[m, i] -= 1
    fleet.total[m] -= 1
    fleet.numbers[INSIDE] -= 1


fleet_engine = compiled(_engine, _nrt=False)
