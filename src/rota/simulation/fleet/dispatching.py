"""From the arrival of a job at a fleet to its server: at once, on its way, or from a queue for servers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.decide.state import uniform
from rota.kernel import kernel, large_kernel
from rota.simulation.engine import ARRIVE, arrive, write
from rota.simulation.fleet.counting import close_batch, count_coming, count_held, ends_batch
from rota.simulation.fleet.one_server import decided, keep, load, look, noted
from rota.simulation.fleet.state import (
    CAME,
    CENTRAL,
    DELAY,
    FIRST_QUEUE,
    INSIDE,
    QUEUE,
    TRANSIT_FIRST,
    TRANSIT_LAST,
    TYPE,
    FleetState,
)
from rota.simulation.server import (
    LOGGED,
    NEXT_JOB,
    UNUSED,
    Server,
)
from rota.views import call_code, view_at

__all__ = ["BACK_AGAIN", "SENT", "admit", "dispatch_all", "next_held", "queue_of", "reach", "take"]

SENT, BACK_AGAIN = 4, 5  # kinds of log entries: a job that was held back reaches a server; a job comes back from one that failed


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
        state, tally = load(fleet, server, state_like, m), view_at(tally_like, fleet.tallies[fleet.kind[m]])
        join(fleet, state, server, tally, m, i, size, estimate, logging)
        if ends_batch(fleet, server, tally_like):
            keep(fleet, server, m)
            close_batch(fleet, tally_like)
            load(fleet, server, state_like, m)
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
    if fleet.numbers[CAME] >= 0:  # a job that came back, or waited in a queue for servers, is the last here though it arrived before others
        fleet.order[job] = fleet.numbers[CAME]
        fleet.numbers[CAME] += 1
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
    state, tally = load(fleet, server, state_like, m), view_at(tally_like, fleet.tallies[c])
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
            if job >= 0 and fleet.keys[FIRST_QUEUE + q, m] < np.inf:  # noqa: SIM102
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
        server.jobs[job]["newer"] = -1
        dispatch_all(fleet, looking, state_like, server, tally_like, job, logging)


@large_kernel
def dispatch_all(
    fleet: FleetState, looking: FleetState, state_like: Any, server: Server, tally_like: Any, first: int, logging: bool
) -> None:
    """The rule chooses servers for jobs at none, one after the other by their links. It may hold some of them back again."""
    job = first
    while job >= 0:
        behind, i = server.jobs[job]["newer"], int(server.jobs[job]["kind"])
        fleet.place[job] = -1
        q = queue_of(fleet, i)
        m = chosen(fleet, i, q)
        if m < 0:
            wait_for_server(fleet, server, job, q)
        elif fleet.times[DELAY] == 0.0:
            deliver(fleet, looking, state_like, server, tally_like, job, m, logging)
        else:
            send(fleet, looking, server, job, m)
        job = behind
