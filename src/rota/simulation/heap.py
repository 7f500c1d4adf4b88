"""The running jobs: a heap of those that end next, and the others, with the place of every job known.

`Server.heap` and `Server.ends` are the jobs and when they end. The heap is at the front, `numbers[RUNNING]` jobs. Those that end after
`times[HORIZON]` are at the back, in any order (`rota.simulation.back`). Mostly there are none, and the horizon is infinite. But where many
jobs stop and start whenever a timer rings, few of them end before it rings again, and only those have to be in order. If there is no place
at the back, a job that ends later is in the heap too.

Where several servers share the arrays, each has a heap of its own there, which begins at `heap_base`, and nothing at the back.

A place has eight children. Their comparisons go side by side and mispredict no branch, and there are a third as many levels as with two.

The job that ends leaves a hole at the top of the heap (`numbers[HOLE]`), which the next job to start mostly fills directly.
"""

from __future__ import annotations

import numpy as np

from rota.kernel import kernel
from rota.simulation.back import forget_paused, set_aside, vacate
from rota.simulation.server import ACTIVE, BACK, CHUNK, FIRST_CHUNK, HOLE, HORIZON, PAUSED_JOBS, RUNNING, VACANT, Server, heap_base

__all__ = ["bring_near", "close_hole", "insert", "move_back", "put_aside", "remove"]


@kernel
def insert(server: Server, job: int, end: float) -> None:
    """Puts a job among the running ones."""
    numbers = server.numbers
    if end > server.times[HORIZON] and set_aside(server, job, end):
        return
    if numbers[HOLE] == 1:
        numbers[HOLE] = 0
        settle(server, 0, numbers[RUNNING], job, end)
    else:
        numbers[RUNNING] += 1
        rise(server, numbers[RUNNING] - 1, job, end)


@kernel
def remove(server: Server, job: int) -> None:
    """Takes a running job out, wherever it is; the heap has no hole."""
    place = server.jobs[job]["position"]
    if place < server.numbers[RUNNING]:
        take_out(server, place)
    else:
        vacate(server, place, server.jobs[job]["kind"])
    server.jobs[job]["position"] = -1


@kernel
def move_back(server: Server, job: int, i: int) -> bool:
    """Moves a running job of type i from the heap, which has no hole, to the back; if there is no place, no job of the type is paused."""
    place = server.jobs[job]["position"]
    end = server.ends[place]
    if set_aside(server, job, end):
        take_out(server, place)
        return True
    forget_paused(server, i)
    return False


@kernel
def put_aside(server: Server) -> None:
    """Puts all jobs of the heap, which has no hole, at the back, while there are places; it stays empty until `bring_near`."""
    numbers = server.numbers
    while numbers[RUNNING] > 0 and set_aside(server, server.heap[numbers[RUNNING] - 1], server.ends[numbers[RUNNING] - 1]):
        numbers[RUNNING] -= 1
    server.times[HORIZON] = -np.inf


@kernel
def bring_near(server: Server, horizon: float) -> None:
    """Moves the horizon on, and puts the jobs that end before it into the heap, which has no hole."""
    server.times[HORIZON] = horizon
    for i in range(server.groups.shape[0]):
        chunk = server.groups[i, FIRST_CHUNK] if server.groups[i, ACTIVE] == 1 else -1
        while chunk >= 0:
            first = server.jobs.shape[0] + chunk * CHUNK
            ends = server.ends[first : first + CHUNK]
            near = 0
            for k in range(CHUNK):  # most chunks have none, and counting takes less time than testing each
                near += int(ends[k] <= horizon)
            for k in range(CHUNK if near > 0 else 0):
                end = ends[k]
                if end <= horizon and end < np.inf:
                    job = server.heap[first + k]
                    vacate(server, first + k, i)
                    server.numbers[RUNNING] += 1
                    rise(server, server.numbers[RUNNING] - 1, job, end)
            chunk = server.chunks[chunk]
    if horizon == np.inf and server.numbers[PAUSED_JOBS] == 0:
        server.numbers[BACK] = 0
        for i in range(server.groups.shape[0]):
            server.groups[i, VACANT], server.groups[i, FIRST_CHUNK] = -1, -1


@kernel
def close_hole(server: Server) -> None:
    """Makes the heap whole if the job at its top has left."""
    if server.numbers[HOLE] == 1:
        server.numbers[HOLE] = 0
        take_out(server, 0)


@kernel
def take_out(server: Server, place: int) -> None:
    """The last job of the heap takes a place that became free."""
    server.numbers[RUNNING] -= 1
    size = server.numbers[RUNNING]
    if place < size:
        settle(server, place, size, server.heap[heap_base(server) + size], server.ends[heap_base(server) + size])


@kernel
def settle(server: Server, place: int, size: int, job: int, end: float) -> None:
    """Fills the hole at a place of the heap: it sinks to a leaf, always towards the child that ends first, and the job rises from there.

    A job mostly belongs near the leaves, so this takes fewer comparisons, and mispredicts fewer branches, than sinking with it.
    """
    base = heap_base(server)
    while 8 * place + 1 < size:
        first = 8 * place + 1
        child = first_to_end(server, base + first, base + min(first + 7, size - 1)) - base
        move(server, child, place)
        place = child
    rise(server, place, job, end)


@kernel
def first_to_end(server: Server, first: int, last: int) -> int:
    """The place from `first` to `last`, eight at most, whose job ends first."""
    if last - first == 7:
        return earlier(server, first_of_four(server, first), first_of_four(server, first + 4))
    found, others = first, first + 1
    if last - first >= 3:
        found, others = first_of_four(server, first), first + 4
    for place in range(others, last + 1):
        found = earlier(server, found, place)
    return found


@kernel
def first_of_four(server: Server, first: int) -> int:
    """The place, of four neighbours, whose job ends first."""
    return earlier(server, earlier(server, first, first + 1), earlier(server, first + 2, first + 3))


@kernel
def earlier(server: Server, one: int, other: int) -> int:
    """The place whose job ends first, of two; without a branch."""
    return other if server.ends[other] < server.ends[one] else one


@kernel
def rise(server: Server, place: int, job: int, end: float) -> None:
    """Places a job at `place` or above it."""
    base = heap_base(server)
    while place > 0:
        parent = (place - 1) >> 3
        if server.ends[base + parent] <= end:
            break
        move(server, parent, place)
        place = parent
    server.ends[base + place], server.heap[base + place], server.jobs[job]["position"] = end, job, place


@kernel
def move(server: Server, origin: int, place: int) -> None:
    """Copies an entry of the heap to another place."""
    base = heap_base(server)
    job = server.heap[base + origin]
    server.ends[base + place], server.heap[base + place] = server.ends[base + origin], job
    server.jobs[job]["position"] = place
