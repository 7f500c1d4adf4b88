"""The heap of running jobs, the next to end first, with the place of every job known.

`Body.heap` and `Body.ends` are the jobs and when they end; `Body.numbers[0]` is how many. Two shortcuts keep it cheap. The job that ends
leaves a hole at the top (`numbers[8]`), which the next job to start fills in one go. And while many jobs stop and start at once the heap is
a mere bag (`numbers[9]`), put in order at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.kernel import kernel

if TYPE_CHECKING:
    from rota.simulation.engine import Body

__all__ = ["close_hole", "insert", "order", "remove"]


@kernel
def insert(body: Body, job: int, end: float) -> None:
    """Puts a job into the heap of running jobs."""
    numbers = body.numbers
    if numbers[8] == 1:
        numbers[8] = 0
        settle(body, 0, numbers[0], job, end)
        return
    place = numbers[0]
    numbers[0] += 1
    if numbers[9] == 1:
        body.ends[place], body.heap[place], body.position[job] = end, job, place
    else:
        rise(body, place, job, end)


@kernel
def remove(body: Body, job: int) -> None:
    """Takes a job out of the heap, wherever it is; the heap has no hole."""
    place = body.position[job]
    body.position[job] = -1
    if body.numbers[9] == 1:
        body.numbers[0] -= 1
        if place < body.numbers[0]:
            move(body, body.numbers[0], place)
    else:
        take_out(body, place)


@kernel
def order(body: Body) -> None:
    """Makes a heap of the running jobs (Floyd 1964)."""
    body.numbers[9] = 0
    size = body.numbers[0]
    for k in range(size // 2):
        place = size // 2 - 1 - k
        sink(body, place, size)


@kernel
def sink(body: Body, place: int, size: int) -> None:
    """Lets the job at a place of the heap sink to where it belongs."""
    job, end = body.heap[place], body.ends[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            child += int(body.ends[child + 1] < body.ends[child])
        if body.ends[child] >= end:
            break
        move(body, child, place)
        place = child
    body.ends[place], body.heap[place], body.position[job] = end, job, place


@kernel
def close_hole(body: Body) -> None:
    """Makes the heap whole if the job at its top has left."""
    if body.numbers[8] == 1:
        body.numbers[8] = 0
        take_out(body, 0)


@kernel
def take_out(body: Body, place: int) -> None:
    """The last job of the heap takes a place that became free."""
    body.numbers[0] -= 1
    size = body.numbers[0]
    if place < size:
        settle(body, place, size, body.heap[size], body.ends[size])


@kernel
def settle(body: Body, place: int, size: int, job: int, end: float) -> None:
    """Fills the hole at a place of the heap: it sinks to a leaf, always towards the child that ends first, and the job rises from there.

    A job mostly belongs near the leaves, so this takes fewer comparisons, and fewer surprises for the processor, than sinking with it.
    """
    while 2 * place + 2 < size:
        child = 2 * place + 1
        child += int(body.ends[child + 1] < body.ends[child])
        move(body, child, place)
        place = child
    if 2 * place + 1 < size:
        move(body, 2 * place + 1, place)
        place = 2 * place + 1
    rise(body, place, job, end)


@kernel
def rise(body: Body, place: int, job: int, end: float) -> None:
    """Places a job at `place` or above it."""
    while place > 0:
        parent = (place - 1) >> 1
        if body.ends[parent] <= end:
            break
        move(body, parent, place)
        place = parent
    body.ends[place], body.heap[place], body.position[job] = end, job, place


@kernel
def move(body: Body, origin: int, place: int) -> None:
    """Copies an entry of the heap to another place."""
    body.ends[place] = body.ends[origin]
    body.heap[place] = body.heap[origin]
    body.position[body.heap[place]] = place
