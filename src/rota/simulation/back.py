"""Places behind the heap: for running jobs that end late, and for stopped jobs that are likely to go on soon.

Each type has *chunks* of neighbouring places. `Server.ends` says when the running job at a place ends, `Server.left` how much is left of
the stopped one; both are infinite where a place is vacant, and one of them is where it is not. So all jobs of a type stop, or go on, in one
pass over its chunks, and no data of a job is touched:

    all stop at t:   left := min(left, ends − t),  ends := ∞
    all go on at t:  ends := min(ends, t + left),  left := ∞

The stopped jobs here (*paused*) are always the first that wait of their type. `Server.groups` has what is known of a type.
"""

from __future__ import annotations

import numpy as np

from rota.kernel import kernel
from rota.simulation.server import ACTIVE, BACK, CHUNK, FIRST_CHUNK, PAUSED, PAUSED_JOBS, VACANT, YOUNGEST_PAUSED, Server

__all__ = ["continue_all", "continue_one", "forget_paused", "pause_all", "pause_one", "set_aside", "take_back", "vacate"]


@kernel
def set_aside(server: Server, job: int, end: float) -> bool:
    """Puts a running job at the back, into a vacant place of its type; False if there is no place."""
    i = server.jobs[job]["kind"]
    place = server.groups[i, VACANT]
    if place < 0:
        if not _take_chunk(server, i):
            return False
        place = server.groups[i, VACANT]
    server.groups[i, VACANT] = server.heap[place]
    server.ends[place], server.heap[place], server.jobs[job]["position"] = end, job, place
    server.groups[i, ACTIVE] = 1
    return True


@kernel
def _take_chunk(server: Server, i: int) -> bool:
    """Gives a type, which has no vacant place, one more chunk; False if there is none."""
    used = server.numbers[BACK]
    first = server.jobs.shape[0] + used
    if first + CHUNK > server.heap.shape[0]:
        return False
    server.chunks[used // CHUNK], server.groups[i, FIRST_CHUNK] = server.groups[i, FIRST_CHUNK], used // CHUNK
    for place in range(first, first + CHUNK):
        server.ends[place], server.left[place], server.heap[place] = np.inf, np.inf, place + 1
    server.heap[first + CHUNK - 1] = -1
    server.groups[i, VACANT] = first
    server.numbers[BACK] = used + CHUNK
    return True


@kernel
def vacate(server: Server, place: int, i: int) -> None:
    """Makes the place of a job of type i vacant."""
    server.ends[place], server.left[place], server.heap[place] = np.inf, np.inf, server.groups[i, VACANT]
    server.groups[i, VACANT] = place


@kernel
def pause_one(server: Server, job: int, i: int, now: float) -> None:
    """A job of type i, which has a place here and runs, stops; of its type it is now the first that waits."""
    place = server.jobs[job]["position"]
    server.left[place], server.ends[place] = max(server.ends[place] - now, 0.0), np.inf
    _count_paused(server, i, 1, job)


@kernel
def pause_all(server: Server, i: int, now: float, count: int, youngest: int) -> None:
    """All running jobs of type i stop, all of which have places here; `youngest` of them, and their `count`, are known."""
    chunk = server.groups[i, FIRST_CHUNK]
    while chunk >= 0:
        first = server.jobs.shape[0] + chunk * CHUNK
        ends, left = server.ends[first : first + CHUNK], server.left[first : first + CHUNK]
        for k in range(CHUNK):
            left[k] = min(left[k], max(ends[k] - now, 0.0))
        for k in range(CHUNK):
            ends[k] = np.inf
        chunk = server.chunks[chunk]
    server.groups[i, ACTIVE] = 0
    _count_paused(server, i, count, youngest)


@kernel
def continue_all(server: Server, i: int, now: float) -> int:
    """All paused jobs of type i go on; returns the youngest of them."""
    chunk = server.groups[i, FIRST_CHUNK]
    while chunk >= 0:
        first = server.jobs.shape[0] + chunk * CHUNK
        ends, left = server.ends[first : first + CHUNK], server.left[first : first + CHUNK]
        for k in range(CHUNK):
            ends[k] = min(ends[k], now + left[k])
        for k in range(CHUNK):
            left[k] = np.inf
        chunk = server.chunks[chunk]
    server.groups[i, ACTIVE] = 1
    _count_paused(server, i, -server.groups[i, PAUSED], -1)
    return int(server.groups[i, YOUNGEST_PAUSED])


@kernel
def continue_one(server: Server, job: int, i: int, now: float) -> None:
    """The oldest paused job of type i goes on, in its place."""
    place = server.jobs[job]["position"]
    server.ends[place], server.left[place] = now + server.left[place], np.inf
    server.groups[i, ACTIVE] = 1
    _count_paused(server, i, -1, -1)


@kernel
def take_back(server: Server, job: int, i: int) -> float:
    """A paused job of type i, the oldest or youngest, gives up its place; returns what is left of it."""
    place = server.jobs[job]["position"]
    left = server.left[place]
    vacate(server, place, i)
    _count_paused(server, i, -1, -1)
    return float(left)


@kernel
def forget_paused(server: Server, i: int) -> None:
    """The paused jobs of type i give up their places: what is left of them is kept with their data."""
    job = server.groups[i, YOUNGEST_PAUSED]
    for _ in range(server.groups[i, PAUSED]):
        one = server.jobs[job]
        one["remaining"] = take_back(server, job, i)
        one["position"], job = -1, one["older"]


@kernel
def _count_paused(server: Server, i: int, more: int, youngest: int) -> None:
    if server.groups[i, PAUSED] == 0:
        server.groups[i, YOUNGEST_PAUSED] = youngest
    server.groups[i, PAUSED] += more
    server.numbers[PAUSED_JOBS] += more
