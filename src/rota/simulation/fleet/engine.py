"""The event engine of a fleet: the next completion of all servers, the next timer, failure or arrival; and what follows at one server.

The running jobs of all servers are in one heap (`rota.simulation.heap`), and their records in one array. What happens at a server is done
by the functions of the engine of one server (`rota.simulation.engine`), on a copy of the server's row (`rota.simulation.fleet.state`). Of
events at the same time, completions come first, then timers, then failures and repairs, then jobs that reach their server, then arrivals;
of several servers that of lowest number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.arrays import Array, Int
from rota.decide.state import ALL, CHANGE, KIND, START, SWITCHING, TIMER, exponential, uniform
from rota.decide.state import TYPE as OF_TYPE
from rota.kernel import compiled, kernel, large_kernel
from rota.simulation.engine import ARRIVE, FULL_LOG, WANTS_JOBS, arrive, count_area, finish, obey, unlink, write
from rota.simulation.fleet.state import (
    CENTRAL,
    DELAY,
    DOWN,
    INSIDE,
    LINES,
    LINES_PER_JOB,
    NEXT_LOOK,
    PERIOD,
    QUEUE,
    RUNS,
    SERVER,
    SINCE,
    STALE,
    SWITCHED,
    SYSTEM,
    TIMERS,
    TRANSIT_FIRST,
    TRANSIT_LAST,
    TYPE,
    UP,
    FleetState,
)
from rota.simulation.fleet.tournament import best, set_key
from rota.simulation.heap import bring_near, close_hole, remove
from rota.simulation.server import (
    BACK,
    BEGUN,
    EVENTS,
    HORIZON,
    IN_BATCH,
    LOGGED,
    NEXT_ARRIVAL,
    NEXT_JOB,
    RUNNING,
    STOP,
    UNUSED,
    WAKE,
    Server,
)
from rota.simulation.tally import BATCH_BEGAN, CLOSED, LIMIT, PRESENT, SERVED, SHIFT
from rota.views import call_code, view_at

__all__ = ["BACK_AGAIN", "SENT", "fleet_engine"]

SENT, BACK_AGAIN = 4, 5  # kinds of log entries: a job that was held back reaches a server; a job comes back from one that failed


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
        begin(fleet, looking, state_like, server, tally_like, logging)
    while True:
        k = numbers[NEXT_ARRIVAL]
        if k == n and not (drain and numbers[NEXT_JOB] > 0 and fleet.numbers[INSIDE] > 0):
            return WANTS_JOBS
        if logging and numbers[LOGGED] + fleet.numbers[LINES] + fleet.numbers[LINES_PER_JOB] * fleet.numbers[INSIDE] > server.log.shape[0]:
            return FULL_LOG
        arrival = arrivals[k] if k < n else np.inf
        ending = server.ends[0] if numbers[RUNNING] > 0 else np.inf
        timer_at = best(fleet.keys, fleet.winners, TIMERS)
        timer = fleet.keys[TIMERS, timer_at]
        sent = fleet.numbers[TRANSIT_FIRST]
        reaching = server.jobs[sent]["finish"] if sent >= 0 else np.inf
        following = min(min(ending, timer), min(reaching, arrival))
        if drain and (following > server.times[STOP] or following == np.inf):
            return WANTS_JOBS
        if following >= fleet.times[NEXT_LOOK]:
            look_again(fleet, looking, following)
        numbers[EVENTS] += 1
        fleet.clock[0] = following
        if ending <= following:
            m = int(fleet.place[server.heap[0]])
            complete(fleet, looking, state_like, server, tally_like, m, logging)
        elif timer <= following:
            if fleet.switch_time[timer_at] <= following:
                fail_or_repair(fleet, looking, state_like, server, tally_like, timer_at, logging)
            else:
                ring(fleet, looking, state_like, server, tally_like, timer_at, logging)
        elif reaching <= following:
            reach(fleet, looking, state_like, server, tally_like, sent, logging)
        else:
            numbers[NEXT_ARRIVAL] = k + 1
            admit(fleet, looking, state_like, server, tally_like, kinds[k], sizes[k], estimates[k], logging)
        close_hole(server)
        if checking:
            check_all(fleet, state_like, server)


# ---------------------------------------------------------------------------------------------------------------- one server


@kernel
def load(fleet: FleetState, state_like: Any, m: int) -> Any:
    """Shows the row of a server in the state of its kind."""
    c = fleet.kind[m]
    row, current = fleet.rows[m], fleet.current[c]
    for k in range(row.shape[0]):
        current[k] = row[k]
    return view_at(state_like, fleet.states[c])


@kernel
def keep(fleet: FleetState, m: int) -> None:
    """Copies what happened at a server back into its row."""
    row, current = fleet.rows[m], fleet.current[fleet.kind[m]]
    for k in range(row.shape[0]):
        row[k] = current[k]


@large_kernel
def decided(fleet: FleetState, state: Any, server: Server, tally: Any, m: int, logging: bool) -> None:
    """The policy of a server is asked and obeyed, and its row is kept."""
    now = fleet.clock[0]
    fleet.times[SWITCHED] += (now - fleet.last_event[m]) * state.mode[SWITCHING]
    fleet.last_event[m] = now
    state.scope[0] = ALL
    server.times[WAKE] = call_code(state)
    obey(state, state.target, server, tally, logging)
    keep(fleet, m)
    fleet.wake[m] = server.times[WAKE]
    set_key(fleet.keys, fleet.winners, TIMERS, m, min(fleet.wake[m], fleet.switch_time[m]))


@kernel
def noted(fleet: FleetState, server: Server, m: int, before: int) -> None:
    """The lines of the log from `before` on are of this server."""
    for line in range(before, server.numbers[LOGGED]):
        fleet.log_place[line] = m


@kernel
def look(fleet: FleetState, looking: FleetState, m: int) -> None:
    """The rule looks at a server, at once or when it looks next."""
    if fleet.keys.shape[0] == 1:
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


@large_kernel
def begin(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, logging: bool) -> None:
    """Asks the policy of every server for the first time."""
    for m in range(fleet.kind.shape[0]):
        c = fleet.kind[m]
        state = load(fleet, state_like, m)
        state.event[KIND], state.event[OF_TYPE] = START, 0
        mean = fleet.mean_time[c, UP]
        fleet.switch_time[m] = exponential(fleet.fails, 1.0 / mean) if mean < np.inf else np.inf
        decided(fleet, state, server, view_at(tally_like, fleet.tallies[c]), m, logging)
        fleet.asked[SERVER] = m
        if fleet.keys.shape[0] > 1:
            call_code(looking)


@large_kernel
def complete(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, logging: bool) -> None:
    """A job ends at a server."""
    c, before = fleet.kind[m], server.numbers[LOGGED]
    state, tally = load(fleet, state_like, m), view_at(tally_like, fleet.tallies[c])
    job = server.heap[0]
    i = fleet.types[c, server.jobs[job]["kind"]]
    finish(state, server, tally, fleet.clock[0], logging)
    fleet.place[job] = -1
    fleet.present[m, i] -= 1
    fleet.total[m] -= 1
    fleet.numbers[INSIDE] -= 1
    decided(fleet, state, server, tally, m, logging)
    noted(fleet, server, m, before)
    look(fleet, looking, m)
    take(fleet, looking, state_like, server, tally_like, m, logging)


@large_kernel
def ring(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, logging: bool) -> None:
    """The timer of a server's policy rings."""
    before = server.numbers[LOGGED]
    state = load(fleet, state_like, m)
    state.event[KIND], state.event[OF_TYPE] = TIMER, 0
    decided(fleet, state, server, view_at(tally_like, fleet.tallies[fleet.kind[m]]), m, logging)
    noted(fleet, server, m, before)
    look(fleet, looking, m)
    take(fleet, looking, state_like, server, tally_like, m, logging)


# ---------------------------------------------------------------------------------------------------------------- dispatch


@large_kernel
def admit(
    fleet: FleetState,
    looking: FleetState,
    state_like: Any,
    server: Server,
    tally_like: Any,
    i: int,
    size: float,
    estimate: float,
    logging: bool,
) -> None:
    """A job arrives at the fleet."""
    fleet.arrived[i] += 1
    fleet.numbers[INSIDE] += 1
    q = queue_of(fleet, i)
    m = chosen(fleet, i, q)
    if m >= 0 and fleet.times[DELAY] == 0.0:
        before = server.numbers[LOGGED]
        state, tally = load(fleet, state_like, m), view_at(tally_like, fleet.tallies[fleet.kind[m]])
        join(fleet, state, server, tally, m, i, size, estimate, logging)
        if ends_batch(fleet, server, tally_like):
            keep(fleet, m)
            close_batch(fleet, tally_like)
            load(fleet, state_like, m)
        decided(fleet, state, server, tally, m, logging)
        noted(fleet, server, m, before)
        look(fleet, looking, m)
        take(fleet, looking, state_like, server, tally_like, m, logging)
        return
    job = hold(fleet, server, i, size, estimate, logging)
    if ends_batch(fleet, server, tally_like):
        close_batch(fleet, tally_like)
    if m >= 0:
        send(fleet, looking, server, job, m)
    else:
        wait_for_server(fleet, server, job, q)


@kernel
def chosen(fleet: FleetState, i: int, q: int) -> int:
    """The server that the rule chooses, or −1."""
    fleet.asked[TYPE], fleet.asked[QUEUE] = i, q
    return int(call_code(fleet))


@kernel
def queue_of(fleet: FleetState, i: int) -> int:
    """The queue of an arriving job: the only one of its type, or one of them by their parts."""
    q, last = fleet.first_queue[i], fleet.first_queue[i + 1] - 1
    if q < last:
        part = uniform(fleet.random)
        while q < last and part >= fleet.queue_part[q]:
            q += 1
    return int(q)


@large_kernel
def join(fleet: FleetState, state: Any, server: Server, tally: Any, m: int, i: int, size: float, estimate: float, logging: bool) -> int:
    """A job joins the jobs of a server; its running time is its size by the speed there."""
    c = fleet.kind[m]
    speed = fleet.speed[c, i]
    job = int(server.unused[server.numbers[UNUSED] - 1])
    arrive(state, server, tally, fleet.local[c, i], size / speed, estimate / speed, logging)
    fleet.place[job] = m
    fleet.present[m, i] += 1
    fleet.total[m] += 1
    return job


@large_kernel
def hold(fleet: FleetState, server: Server, i: int, size: float, estimate: float, logging: bool) -> int:
    """An arriving job is at no server for now; it keeps its size at speed 1 and its type of the fleet."""
    numbers, now = server.numbers, fleet.clock[0]
    numbers[UNUSED] -= 1
    job = int(server.unused[numbers[UNUSED]])
    new = server.jobs[job]
    new["kind"], new["position"], new["sequence"], new["newer"] = i, -1, numbers[NEXT_JOB], -1
    new["arrival"], new["size"], new["remaining"], new["estimate"] = now, size, size, estimate
    fleet.place[job] = -1
    count_held(fleet, i, 1)
    if logging:
        fleet.log_place[numbers[LOGGED]] = -1
        write(server, now, ARRIVE, i, numbers[NEXT_JOB])
    numbers[NEXT_JOB] += 1
    return job


@kernel
def wait_for_server(fleet: FleetState, server: Server, job: int, q: int) -> None:
    """A job joins a queue for servers, in order of arrival: mostly at the end; near the front if it comes back from a server."""
    jobs, last, number = server.jobs, fleet.held_last[q], server.jobs[job]["sequence"]
    before = last
    if last >= 0 and jobs[last]["sequence"] > number:
        before, following = -1, fleet.held_first[q]
        while jobs[following]["sequence"] < number:
            before, following = following, jobs[following]["newer"]
    jobs[job]["newer"] = jobs[before]["newer"] if before >= 0 else fleet.held_first[q]
    if before >= 0:
        jobs[before]["newer"] = job
    else:
        fleet.held_first[q] = job
    if before == last:
        fleet.held_last[q] = job


@kernel
def send(fleet: FleetState, looking: FleetState, server: Server, job: int, m: int) -> None:
    """A job goes on its way to a server. All take equally long, so the first is the first to reach its server."""
    count_coming(fleet, m, server.jobs[job]["kind"], 1)
    look(fleet, looking, m)
    fleet.place[job] = m
    server.jobs[job]["finish"] = fleet.clock[0] + fleet.times[DELAY]
    server.jobs[job]["newer"] = -1
    last = fleet.numbers[TRANSIT_LAST]
    if last >= 0:
        server.jobs[last]["newer"] = job
    else:
        fleet.numbers[TRANSIT_FIRST] = job
    fleet.numbers[TRANSIT_LAST] = job


@kernel
def count_held(fleet: FleetState, i: int, change: int) -> None:
    """Counts jobs of a type that are at no server, and how long."""
    now = fleet.clock[0]
    fleet.held_area[i] += (now - fleet.held_since[i]) * fleet.held[i]
    fleet.held_since[i] = now
    fleet.held[i] += change


@large_kernel
def deliver(
    fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, job: int, m: int, logging: bool
) -> None:
    """A job that was at no server joins one: as a new job there, with its number and the time of its arrival."""
    numbers, before, c = server.numbers, server.numbers[LOGGED], fleet.kind[m]
    one = server.jobs[job]
    i, sequence, arrival, size, estimate = int(one["kind"]), one["sequence"], one["arrival"], one["size"], one["estimate"]
    count_held(fleet, i, -1)
    server.unused[numbers[UNUSED]] = job
    numbers[UNUSED] += 1
    following = numbers[NEXT_JOB]
    numbers[NEXT_JOB] = sequence
    state, tally = load(fleet, state_like, m), view_at(tally_like, fleet.tallies[c])
    join(fleet, state, server, tally, m, i, size, estimate, logging)
    numbers[NEXT_JOB] = following
    one["arrival"] = arrival
    if logging:
        server.log[before, 1] = SENT
    decided(fleet, state, server, tally, m, logging)
    noted(fleet, server, m, before)
    look(fleet, looking, m)


@large_kernel
def take(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, logging: bool) -> None:
    """Where servers share a queue: a server takes the oldest jobs that fit it at once, one after the other."""
    while fleet.numbers[CENTRAL] == 1:
        chosen_queue = -1
        for q in range(fleet.held_first.shape[0]):
            job = fleet.held_first[q]
            if job >= 0 and fleet.keys[1 + q, m] < np.inf:  # noqa: SIM102
                if chosen_queue < 0 or server.jobs[job]["sequence"] < server.jobs[fleet.held_first[chosen_queue]]["sequence"]:
                    chosen_queue = q
        if chosen_queue < 0:
            return
        deliver(fleet, looking, state_like, server, tally_like, next_held(fleet, server, chosen_queue), m, logging)


@kernel
def next_held(fleet: FleetState, server: Server, q: int) -> int:
    """Takes the oldest job out of a queue for servers."""
    job = fleet.held_first[q]
    fleet.held_first[q] = server.jobs[job]["newer"]
    if fleet.held_first[q] < 0:
        fleet.held_last[q] = -1
    return int(job)


@kernel
def count_coming(fleet: FleetState, m: int, i: int, change: int) -> None:
    """Counts a job that is on its way to a server."""
    fleet.coming[m] += change
    fleet.total[m] += change
    fleet.present[m, i] += change


@large_kernel
def reach(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, job: int, logging: bool) -> None:
    """The first job on its way reaches its server; if that has failed meanwhile, it is dispatched again."""
    fleet.numbers[TRANSIT_FIRST] = server.jobs[job]["newer"]
    if fleet.numbers[TRANSIT_FIRST] < 0:
        fleet.numbers[TRANSIT_LAST] = -1
    m = int(fleet.place[job])
    count_coming(fleet, m, server.jobs[job]["kind"], -1)
    if fleet.up[m] == 1:
        deliver(fleet, looking, state_like, server, tally_like, job, m, logging)
    else:
        dispatch_again(fleet, looking, state_like, server, tally_like, job, logging)


@large_kernel
def dispatch_again(
    fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, job: int, logging: bool
) -> None:
    """The rule chooses a server for a job that is at none."""
    i = int(server.jobs[job]["kind"])
    fleet.place[job] = -1
    q = queue_of(fleet, i)
    m = chosen(fleet, i, q)
    if m < 0:
        wait_for_server(fleet, server, job, q)
    elif fleet.times[DELAY] == 0.0:
        deliver(fleet, looking, state_like, server, tally_like, job, m, logging)
    else:
        send(fleet, looking, server, job, m)


# ---------------------------------------------------------------------------------------------------------------- failures


@large_kernel
def fail_or_repair(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, m: int, logging: bool) -> None:
    """A server fails: its jobs lose what was done and are dispatched again. Or it works again, empty."""
    c, now = fleet.kind[m], fleet.clock[0]
    tally = view_at(tally_like, fleet.tallies[c])
    if fleet.up[m] == 0:
        fleet.up[m] = 1
        fleet.working[c] += 1
        fleet.switch_time[m] = now + exponential(fleet.fails, 1.0 / fleet.mean_time[c, UP])
        change(fleet, looking, state_like, server, tally, m, logging)
        for q in range(fleet.held_first.shape[0] if fleet.numbers[CENTRAL] == 0 else 0):
            while fleet.held_first[q] >= 0 and fleet.local[c, fleet.queue_type[q]] >= 0:
                dispatch_again(fleet, looking, state_like, server, tally_like, next_held(fleet, server, q), logging)
        take(fleet, looking, state_like, server, tally_like, m, logging)
        return
    fleet.up[m] = 0
    fleet.working[c] -= 1
    fleet.switch_time[m] = now + exponential(fleet.fails, 1.0 / fleet.mean_time[c, DOWN])
    if server.times[HORIZON] < np.inf:
        close_hole(server)
        bring_near(server, np.inf)
    first = evict(fleet, state_like, server, tally, m, logging)
    change(fleet, looking, state_like, server, tally, m, logging)
    fleet.wake[m] = np.inf
    set_key(fleet.keys, fleet.winners, TIMERS, m, fleet.switch_time[m])
    while first >= 0:
        behind = server.jobs[first]["newer"]
        dispatch_again(fleet, looking, state_like, server, tally_like, first, logging)
        first = behind


@large_kernel
def change(fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally: Any, m: int, logging: bool) -> None:
    """The policy of a server is asked anew, as something else happened; the rule sees at once whether it works."""
    state = load(fleet, state_like, m)
    state.event[KIND], state.event[OF_TYPE] = CHANGE, 0
    for i in range(state.target.shape[0]):
        state.target[i] = state.running[i]
    decided(fleet, state, server, tally, m, logging)
    if fleet.keys.shape[0] > 1:
        fleet.asked[SERVER] = m
        call_code(looking)


@large_kernel
def evict(fleet: FleetState, state_like: Any, server: Server, tally: Any, m: int, logging: bool) -> int:
    """Takes all jobs off a server, as those at no server are kept; returns the first of them, in order of arrival, by their links."""
    c, now = fleet.kind[m], fleet.clock[0]
    state = load(fleet, state_like, m)
    first, last = -1, -1
    while True:
        job, local = -1, -1
        for k in range(state.oldest.shape[0]):
            one = state.oldest[k]
            if one >= 0 and (job < 0 or server.jobs[one]["sequence"] < server.jobs[job]["sequence"]):
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
    keep(fleet, m)
    return int(first)


# ---------------------------------------------------------------------------------------------------------------- counting


@kernel
def ends_batch(fleet: FleetState, server: Server, tally_like: Any) -> bool:
    """Counts the job that arrived; says whether it is the last of its batch."""
    numbers, tally = server.numbers, view_at(tally_like, fleet.tallies[0])
    if 0 < numbers[NEXT_JOB] <= tally.numbers[LIMIT]:
        numbers[IN_BATCH] += 1
        if numbers[IN_BATCH] == 1 << tally.numbers[SHIFT]:
            numbers[IN_BATCH] = 0
            return True
    return False


@large_kernel
def close_batch(fleet: FleetState, tally_like: Any) -> None:
    """Ends the time of a batch: the integrals of each kind, and of the jobs at no server, go into rows of their own."""
    now, shared = fleet.clock[0], view_at(tally_like, fleet.tallies[0])
    row = shared.numbers[CLOSED]
    flush(fleet, tally_like)
    for c in range(fleet.states.shape[0]):
        tally = view_at(tally_like, fleet.tallies[c])
        for k in range(tally.arrived.shape[0]):
            for what in range(2):
                tally.areas[row, what, k] = tally.area[what, k]
                tally.area[what, k] = 0.0
    for i in range(fleet.held.shape[0]):
        fleet.held_areas[row, i] = fleet.held_area[i]
        fleet.held_area[i] = 0.0
    shared.span[row, 0], shared.span[row, 1] = shared.times[BATCH_BEGAN], now
    shared.times[BATCH_BEGAN] = now
    shared.numbers[CLOSED] = row + 1


@large_kernel
def flush(fleet: FleetState, tally_like: Any) -> None:
    """Adds what the counts have been since they last changed to their time integrals, up to now, on all servers."""
    now = fleet.clock[0]
    system, running, since = fleet.at[SYSTEM], fleet.at[RUNS], fleet.at[SINCE]
    for c in range(fleet.states.shape[0]):
        tally = view_at(tally_like, fleet.tallies[c])
        for m in range(fleet.first[c], fleet.first[c + 1]):
            for k in range(tally.arrived.shape[0]):
                span = now - fleet.row_floats[m, since + k]
                tally.area[PRESENT, k] += span * fleet.rows[m, system + k]
                tally.area[SERVED, k] += span * fleet.rows[m, running + k]
                fleet.row_floats[m, since + k] = now
    for i in range(fleet.held.shape[0]):
        count_held(fleet, i, 0)


@large_kernel
def check_lists(state: Any, target: Int, server: Server) -> int:
    """Checks what belongs to one server; returns how many jobs run there."""
    running = 0
    for i in range(target.shape[0]):
        if state.running[i] != min(target[i], state.system[i]) or target[i] < 0:
            raise AssertionError("the running jobs do not match the decision")
        running += state.running[i]
        count, job, waits = 0, state.oldest[i], False
        while job >= 0:
            if job == state.first_waiting[i]:
                waits = True
            if (server.jobs[job]["position"] >= 0) == waits:
                raise AssertionError("a waiting job is older than a running one of its type")
            count += 1
            job = state.newer[job]
        if count != state.system[i]:
            raise AssertionError("a job was lost")
    for r in range(state.free.shape[0]):
        used = 0
        for i in range(target.shape[0]):
            used += state.running[i] * state.demand[i, r]
        if used > state.capacity[r] or used + state.free[r] != state.capacity[r]:
            raise AssertionError("the running jobs do not fit the server")
    return running


@kernel
def in_service(server: Server) -> int:
    """The running jobs of all servers."""
    heap, size = server.numbers[RUNNING], server.heap.shape[0]
    for place in range(size - server.numbers[BACK], size):
        heap += int(server.ends[place] < np.inf)
    return int(heap)


@large_kernel
def check_all(fleet: FleetState, state_like: Any, server: Server) -> None:
    """Checks the invariants of all servers after an event; used in tests."""
    running, inside = 0, 0
    for m in range(fleet.kind.shape[0]):
        state = load(fleet, state_like, m)
        running += check_lists(state, state.target, server)
        here = 0
        for k in range(state.target.shape[0]):
            here += state.system[k]
            if fleet.present[m, fleet.types[fleet.kind[m], k]] < state.system[k]:
                raise AssertionError("the dispatcher's count of jobs is wrong")
            job = state.oldest[k]
            while job >= 0:
                if fleet.place[job] != m:
                    raise AssertionError("a job is at another server")
                job = state.newer[job]
        if fleet.total[m] != here + fleet.coming[m] or (here > 0 and fleet.up[m] == 0):
            raise AssertionError("jobs are at a server that has failed, or were not counted")
        inside += here
    if running != in_service(server):
        raise AssertionError("the heap does not hold the running jobs")
    held = 0
    for q in range(fleet.held_first.shape[0]):
        job = fleet.held_first[q]
        while job >= 0:
            held += 1
            job = server.jobs[job]["newer"]
    job = fleet.numbers[TRANSIT_FIRST]
    while job >= 0:
        held += 1
        job = server.jobs[job]["newer"]
    counted = 0
    for i in range(fleet.held.shape[0]):
        counted += fleet.held[i]
    if held != counted or inside + held != fleet.numbers[INSIDE]:
        raise AssertionError("a job was lost")


fleet_engine = compiled(_engine, _nrt=False)
