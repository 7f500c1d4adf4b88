"""The heap of running jobs, the next to end first, with the place of every job known.

`Server.heap` and `Server.ends` are the jobs and when they end; `Server.numbers[RUNNING]` is how many. Two shortcuts keep it cheap. The job
that ends leaves a hole at the top (`numbers[HOLE]`), which the next job to start fills directly. And while many jobs stop and start at
once the heap is unordered (`numbers[UNORDERED]`) and is put in order at the end.
"""

from __future__ import annotations

from rota.kernel import kernel
from rota.simulation.server import HOLE, RUNNING, UNORDERED, Server

__all__ = ["close_hole", "insert", "order", "remove"]


@kernel
def insert(server: Server, job: int, end: float) -> None:
    """Puts a job into the heap of running jobs."""
    numbers = server.numbers
    if numbers[HOLE] == 1:
        numbers[HOLE] = 0
        settle(server, 0, numbers[RUNNING], job, end)
        return
    place = numbers[RUNNING]
    numbers[RUNNING] += 1
    if numbers[UNORDERED] == 1:
        server.ends[place], server.heap[place], server.position[job] = end, job, place
    else:
        rise(server, place, job, end)


@kernel
def remove(server: Server, job: int) -> None:
    """Takes a job out of the heap, wherever it is; the heap has no hole."""
    place = server.position[job]
    server.position[job] = -1
    if server.numbers[UNORDERED] == 1:
        server.numbers[RUNNING] -= 1
        if place < server.numbers[RUNNING]:
            move(server, server.numbers[RUNNING], place)
    else:
        take_out(server, place)


@kernel
def order(server: Server) -> None:
    """Makes a heap of the running jobs (Floyd 1964)."""
    server.numbers[UNORDERED] = 0
    size = server.numbers[RUNNING]
    for k in range(size // 2):
        place = size // 2 - 1 - k
        sink(server, place, size)


@kernel
def sink(server: Server, place: int, size: int) -> None:
    """Lets the job at a place of the heap sink to where it belongs."""
    job, end = server.heap[place], server.ends[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            child += int(server.ends[child + 1] < server.ends[child])
        if server.ends[child] >= end:
            break
        move(server, child, place)
        place = child
    server.ends[place], server.heap[place], server.position[job] = end, job, place


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
        settle(server, place, size, server.heap[size], server.ends[size])


@kernel
def settle(server: Server, place: int, size: int, job: int, end: float) -> None:
    """Fills the hole at a place of the heap: it sinks to a leaf, always towards the child that ends first, and the job rises from there.

    A job mostly belongs near the leaves, so this takes fewer comparisons, and mispredicts fewer branches, than sinking with it.
    """
    while 2 * place + 2 < size:
        child = 2 * place + 1
        child += int(server.ends[child + 1] < server.ends[child])
        move(server, child, place)
        place = child
    if 2 * place + 1 < size:
        move(server, 2 * place + 1, place)
        place = 2 * place + 1
    rise(server, place, job, end)


@kernel
def rise(server: Server, place: int, job: int, end: float) -> None:
    """Places a job at `place` or above it."""
    while place > 0:
        parent = (place - 1) >> 1
        if server.ends[parent] <= end:
            break
        move(server, parent, place)
        place = parent
    server.ends[place], server.heap[place], server.position[job] = end, job, place


@kernel
def move(server: Server, origin: int, place: int) -> None:
    """Copies an entry of the heap to another place."""
    server.ends[place] = server.ends[origin]
    server.heap[place] = server.heap[origin]
    server.position[server.heap[place]] = place
