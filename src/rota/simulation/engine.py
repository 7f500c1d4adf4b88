"""The event engine: jobs arrive, run, yield and end; after each event the policy's decision function is asked and obeyed.

Compiled by numba for each policy, and the same code runs uncompiled for a decision function in plain Python. All state is in arrays, so
the engine can stop between any two events and go on: arrivals come in chunks, and memory is bounded by the jobs present.

Jobs of a type are a doubly linked list from old to new; the running ones are its front. Running jobs are in a binary heap by the time they
end, with their positions known, so that one that yields can be taken out. Of events at the same time, completions come first, then the
policy's timer, then arrivals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.decide.state import ALL, ARRIVAL, COMPLETION, NONE, START, TIMER, State, youngest_running
from rota.kernel import kernel, prefetch
from rota.simulation.heap import close_hole, insert, order, remove
from rota.simulation.tally import CLOSED, LIMIT, SHIFT, Tally, bucket

__all__ = ["ARRIVE", "FINISH", "FULL_LOG", "PREEMPT", "STARTED", "WANTS_JOBS", "Body", "engine"]

WANTS_JOBS, FULL_LOG = 0, 1  # why the engine stopped
ARRIVE, STARTED, PREEMPT, FINISH = 0, 1, 2, 3  # kinds of log entries


class Body(NamedTuple):
    """What the engine keeps beside the `State` that decisions see."""

    kind: Int  # (jobs,) type of a job
    arrival: Array  # (jobs,)
    size: Array  # (jobs,)
    remaining: Array  # (jobs,) of jobs that do not run
    position: Int  # (jobs,) place in the heap, −1: not running
    heap: Int  # (jobs,) running jobs, the next to end first
    ends: Array  # (jobs,) when the job at this place of the heap ends
    unused: Int  # (jobs,) stack of free places
    # 0 heap size, 1 free places, 2 next sequence number, 3 started, 4 log entries, 5 events, 6 next arrival of the chunk, 7 jobs in batch,
    # 8 whether the top of the heap is a hole: its job has left, and the next to start takes its place; 9 whether the heap has no order now
    numbers: Int
    times: Array  # 0 the policy's timer, 1 when to stop draining
    log: Array  # (n, 4) time, kind, type, sequence number


def decide(state: State, target: Int) -> float:
    """Stands for the policy: `rota.simulation.compiled` puts the decision function in its place."""
    raise NotImplementedError


def engine(
    state: State,
    target: Int,
    body: Body,
    tally: Tally,
    arrivals: Array,
    kinds: Int,
    sizes: Array,
    estimates: Array,
    drain: bool,
    logging: bool,
    checking: bool,
) -> int:
    """Runs until the chunk of arrivals is used up (`drain`: until no job is left, or the time to stop has come) or the log is full."""
    numbers = body.numbers
    n = arrivals.shape[0]
    if numbers[3] == 0:
        numbers[3] = 1
        state.event[0], state.event[1] = START, 0
        state.scope[0] = ALL
        body.times[0] = decide(state, target)
        obey(state, target, body, tally, logging)
    while True:
        k = numbers[6]
        if k == n and not (drain and numbers[2] > 0 and present(state) > 0):
            return WANTS_JOBS
        if logging and numbers[4] + 2 * present(state) + 4 > body.log.shape[0]:
            return FULL_LOG
        arrival = arrivals[k] if k < n else np.inf
        ending = body.ends[0] if numbers[0] > 0 else np.inf
        timer = body.times[0]
        if drain:
            following = min(ending, timer, arrival)
            if following > body.times[1] or following == np.inf:
                return WANTS_JOBS  # the time to stop has come, or jobs are left but nothing will ever happen
        numbers[5] += 1
        if ending <= timer and ending <= arrival:
            finish(state, body, tally, ending, logging)
        elif timer <= arrival:
            state.clock[0] = timer
            state.event[0], state.event[1] = TIMER, 0
        else:
            state.clock[0] = arrival
            arrive(state, body, tally, kinds[k], sizes[k], estimates[k], logging)
            numbers[6] = k + 1
            if 0 < numbers[2] <= tally.numbers[LIMIT]:  # the job that came counts
                numbers[7] += 1
                if numbers[7] == 1 << tally.numbers[SHIFT]:
                    numbers[7] = 0
                    close_batch(state, tally)
        tally.times[2] += (state.clock[0] - tally.times[1]) * state.mode[0]
        tally.times[1] = state.clock[0]
        state.scope[0] = ALL
        body.times[0] = decide(state, target)
        obey(state, target, body, tally, logging)
        close_hole(body)
        if checking:
            check(state, target, body)


@kernel
def present(state: State) -> int:
    """The number of jobs in the system."""
    count = 0
    for i in range(state.system.shape[0]):
        count += state.system[i]
    return count


@kernel
def arrive(state: State, body: Body, tally: Tally, i: int, size: float, estimate: float, logging: bool) -> None:
    """A job joins the end of its type's list."""
    numbers, now = body.numbers, state.clock[0]
    numbers[1] -= 1
    job = body.unused[numbers[1]]
    body.kind[job], body.arrival[job], body.size[job], body.remaining[job] = i, now, size, size
    state.sequence[job], state.estimate[job] = numbers[2], estimate
    numbers[2] += 1
    body.position[job] = -1
    state.newer[job], state.older[job] = -1, state.newest[i]
    if state.newest[i] >= 0:
        state.newer[state.newest[i]] = job
    else:
        state.oldest[i] = job
    state.newest[i] = job
    if state.first_waiting[i] < 0:
        state.first_waiting[i] = job
    count_area(state, tally, i)
    state.system[i] += 1
    tally.arrived[i] += 1
    state.event[0], state.event[1] = ARRIVAL, i
    if logging:
        write(body, now, ARRIVE, i, state.sequence[job])


@kernel
def finish(state: State, body: Body, tally: Tally, now: float, logging: bool) -> None:
    """The running job that ends first leaves."""
    job = body.heap[0]
    i = body.kind[job]
    state.clock[0] = now
    body.position[job] = -1
    body.numbers[8] = 1
    before, behind = state.older[job], state.newer[job]
    if before >= 0:
        state.newer[before] = behind
    else:
        state.oldest[i] = behind
    if behind >= 0:
        state.older[behind] = before
    else:
        state.newest[i] = before
    count_area(state, tally, i)
    state.system[i] -= 1
    state.running[i] -= 1
    for r in range(state.free.shape[0]):
        state.free[r] += state.demand[i, r]
    body.unused[body.numbers[1]] = job
    body.numbers[1] += 1
    record(tally, i, state.sequence[job], now - body.arrival[job], body.size[job])
    state.event[0], state.event[1] = COMPLETION, i
    if logging:
        write(body, now, FINISH, i, state.sequence[job])


@kernel
def obey(state: State, target: Int, body: Body, tally: Tally, logging: bool) -> None:
    """Makes the running jobs match the target: first the youngest yield, then the oldest waiting start."""
    scope = state.scope[0]
    if scope == NONE:
        return
    if scope != ALL:
        if state.running[scope] > target[scope]:
            preempt(state, body, tally, scope, state.running[scope] - target[scope], logging)
        elif state.running[scope] < target[scope]:
            start(state, body, tally, scope, target[scope] - state.running[scope], logging)
        return
    yielding = 0
    for i in range(target.shape[0]):
        yielding += max(state.running[i] - target[i], 0)
    if yielding > 0:
        body.numbers[9] = int(8 * yielding > body.numbers[0])  # with many changes, ordering the heap once is cheaper
        for i in range(target.shape[0]):
            if state.running[i] > target[i]:
                preempt(state, body, tally, i, state.running[i] - target[i], logging)
    for i in range(target.shape[0]):
        if state.running[i] < target[i]:
            start(state, body, tally, i, target[i] - state.running[i], logging)
    if body.numbers[9] == 1:
        order(body)


@kernel
def start(state: State, body: Body, tally: Tally, i: int, count: int, logging: bool) -> None:
    """The oldest waiting jobs of a type start, or go on."""
    now = state.clock[0]
    count = min(count, state.system[i] - state.running[i])
    count_area(state, tally, i)
    state.running[i] += count
    for r in range(state.free.shape[0]):
        state.free[r] -= count * state.demand[i, r]
    job = state.first_waiting[i]
    for _ in range(count):
        behind = state.newer[job]
        if behind >= 0:
            prefetch(body.arrival, behind)  # it starts next, and may have waited for long
        remaining, size, estimate = body.remaining[job], body.size[job], state.estimate[job]
        insert(body, job, now + remaining)
        state.finish[job] = now + (estimate if remaining >= size else estimate * (remaining / size))
        if logging:
            write(body, now, STARTED, i, state.sequence[job])
        job = behind
    state.first_waiting[i] = job


@kernel
def preempt(state: State, body: Body, tally: Tally, i: int, count: int, logging: bool) -> None:
    """The youngest running jobs of a type yield; they go on later where they stopped."""
    close_hole(body)
    now = state.clock[0]
    count_area(state, tally, i)
    state.running[i] -= count
    for r in range(state.free.shape[0]):
        state.free[r] += count * state.demand[i, r]
    tally.preemptions[i] += count
    waiting, job = state.first_waiting[i], youngest_running(state, i)
    for _ in range(count):
        body.remaining[job] = max(body.ends[body.position[job]] - now, 0.0)
        remove(body, job)
        if logging:
            write(body, now, PREEMPT, i, state.sequence[job])
        waiting, job = job, state.older[job]
    state.first_waiting[i] = waiting


# ---------------------------------------------------------------------------------------------------------------- counting


@kernel
def count_area(state: State, tally: Tally, i: int) -> None:
    """Adds what type i's counts have been since they last changed to their time integrals."""
    now = state.clock[0]
    span = now - tally.since[i]
    tally.area[0, i] += span * state.system[i]
    tally.area[1, i] += span * state.running[i]
    tally.since[i] = now


@kernel
def close_batch(state: State, tally: Tally) -> None:
    """Ends the time of a batch: its integrals go into a row of their own."""
    row = tally.numbers[CLOSED]
    for i in range(state.system.shape[0]):
        count_area(state, tally, i)
        for c in range(2):
            tally.areas[row, c, i] = tally.area[c, i]
            tally.area[c, i] = 0.0
    tally.span[row, 0], tally.span[row, 1] = tally.times[0], state.clock[0]
    tally.times[0] = state.clock[0]
    tally.numbers[CLOSED] = row + 1


@kernel
def record(tally: Tally, i: int, sequence: int, response: float, size: float) -> None:
    """Counts a job that is done, in the batch of its arrival: response time, waiting time (all of it but the size) and slowdown."""
    if sequence < 0 or sequence >= tally.numbers[LIMIT]:
        return
    waiting = max(response - size, 0.0)
    slowdown = response / size
    rows, row = tally.rows, sequence >> tally.numbers[SHIFT]
    rows[row, i, 0] += 1.0
    rows[row, i, 1] += response
    rows[row, i, 2] += response * response
    rows[row, i, 3] += waiting
    rows[row, i, 4] += waiting * waiting
    rows[row, i, 5] += slowdown
    rows[row, i, 6] += slowdown * slowdown
    place = min(i, tally.buckets.shape[1] - 1)
    tally.buckets[0, place, bucket(tally, response)] += 1
    tally.buckets[1, place, bucket(tally, waiting)] += 1
    tally.buckets[2, place, bucket(tally, slowdown)] += 1


@kernel
def write(body: Body, now: float, what: int, i: int, sequence: int) -> None:
    """A line of the log."""
    n = body.numbers[4]
    body.log[n, 0], body.log[n, 1], body.log[n, 2], body.log[n, 3] = now, what, i, sequence
    body.numbers[4] = n + 1


@kernel
def check(state: State, target: Int, body: Body) -> None:
    """The laws that hold after every event; used in tests."""
    running = 0
    for i in range(target.shape[0]):
        if state.running[i] != min(target[i], state.system[i]) or target[i] < 0:
            raise AssertionError("the running jobs do not match the decision")
        running += state.running[i]
        count, job, waits = 0, state.oldest[i], False
        while job >= 0:
            if job == state.first_waiting[i]:
                waits = True
            if (body.position[job] >= 0) == waits:
                raise AssertionError("a waiting job is older than a running one of its type")
            count += 1
            job = state.newer[job]
        if count != state.system[i]:
            raise AssertionError("a job was lost")
    if running != body.numbers[0]:
        raise AssertionError("the heap does not hold the running jobs")
    for r in range(state.free.shape[0]):
        used = 0
        for i in range(target.shape[0]):
            used += state.running[i] * state.demand[i, r]
        if used > state.capacity[r] or used + state.free[r] != state.capacity[r]:
            raise AssertionError("the running jobs do not fit the server")
