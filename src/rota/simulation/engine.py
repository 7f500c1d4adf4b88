"""The event engine: jobs arrive, run, yield and end; after each event the policy's decision function decides what runs.

Compiled by numba for each policy, and the same code runs uncompiled for a decision function in plain Python. All state is in arrays, so
the engine can stop between any two events and go on: arrivals come in chunks, and memory is bounded by the jobs present.

Jobs of a type are a doubly linked list from old to new; the running ones are its front. Those that end next are in a heap, and one
that yields can be taken out wherever it is (`rota.simulation.heap`). Where many stop and go on again, they do so type by type
(`rota.simulation.back`). Of events at the same time, completions come first, then the policy's
timer, then arrivals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.arrays import Array, Int
from rota.decide import job_lists
from rota.decide.state import ALL, ARRIVAL, CHANGE, COMPLETION, KIND, START, SWITCHING, TIMER, TYPE, State, youngest_running
from rota.kernel import kernel, large_kernel, prefetch
from rota.simulation.back import continue_all, continue_one, pause_all, pause_one, take_back
from rota.simulation.heap import bring_near, close_hole, insert, move_back, put_aside, remove
from rota.simulation.server import (
    BACK,
    BEGUN,
    CHANGED,
    EVENTS,
    HOLE,
    HORIZON,
    IN_BATCH,
    IN_GROUPS,
    LOGGED,
    NEXT_ARRIVAL,
    NEXT_JOB,
    PAUSED,
    PAUSED_JOBS,
    RUNNING,
    STOP,
    UNUSED,
    WAKE,
    WITH_JOBS,
    Server,
    heap_base,
)
from rota.simulation.tally import (
    BATCH_BEGAN,
    CLOSED,
    COUNT,
    LAST_EVENT,
    LIMIT,
    PRESENT,
    RESPONSE,
    SERVED,
    SHIFT,
    SLOWDOWN,
    SQUARE,
    SWITCHED,
    WAITING,
    Tally,
    bucket,
)

__all__ = ["ARRIVE", "FINISH", "FULL_LOG", "PREEMPT", "STARTED", "WANTS_JOBS", "engine"]

link, unlink = kernel(job_lists.link), kernel(job_lists.unlink)

WANTS_JOBS, FULL_LOG = 0, 1  # why the engine stopped
ARRIVE, STARTED, PREEMPT, FINISH = 0, 1, 2, 3  # kinds of log entries


def decide(state: State, target: Int) -> float:
    """Stands for the policy: `rota.simulation.compiled` puts the decision function in its place."""
    raise NotImplementedError


def engine(
    state: Any,
    server: Server,
    tally: Tally,
    arrivals: Array,
    kinds: Int,
    sizes: Array,
    estimates: Array,
    drain: bool,
    logging: bool,
    checking: bool,
) -> int:
    """Runs until the chunk of arrivals is used up (`drain`: until no job is left, or the time to stop has come) or the log is full.

    `state` is a `State` that has the policy's `target` as well.
    """
    target, numbers = state.target, server.numbers
    n = arrivals.shape[0]
    if numbers[BEGUN] != 1:
        while numbers[BEGUN] != 1:
            changed = numbers[BEGUN] == CHANGED
            numbers[BEGUN] = CHANGED if numbers[BEGUN] == WITH_JOBS else 1
            state.event[KIND], state.event[TYPE] = CHANGE if changed else START, 0
            state.scope[0] = ALL
            for i in range(target.shape[0] if changed else 0):
                target[i] = state.running[i]
            server.times[WAKE] = decide(state, target)
        obey(state, target, server, tally, logging)
    while True:
        k = numbers[NEXT_ARRIVAL]
        if k == n and not (drain and numbers[NEXT_JOB] > 0 and present(state) > 0):
            return WANTS_JOBS
        if logging and numbers[LOGGED] + 2 * present(state) + 4 > server.log.shape[0]:
            return FULL_LOG
        arrival = arrivals[k] if k < n else np.inf
        ending = server.ends[0] if numbers[RUNNING] > 0 else np.inf
        timer = server.times[WAKE]
        if drain:
            following = min(ending, timer, arrival)
            if following > server.times[STOP] or following == np.inf:
                return WANTS_JOBS  # the time to stop has come, or jobs are left but nothing will ever happen
        numbers[EVENTS] += 1
        if ending <= timer and ending <= arrival:
            finish(state, server, tally, ending, logging)
        elif timer <= arrival:
            state.clock[0] = timer
            state.event[KIND], state.event[TYPE] = TIMER, 0
        else:
            state.clock[0] = arrival
            arrive(state, server, tally, kinds[k], sizes[k], estimates[k], logging)
            numbers[NEXT_ARRIVAL] = k + 1
            if 0 < numbers[NEXT_JOB] <= tally.numbers[LIMIT]:  # the job that arrived counts
                numbers[IN_BATCH] += 1
                if numbers[IN_BATCH] == 1 << tally.numbers[SHIFT]:
                    numbers[IN_BATCH] = 0
                    close_batch(state, tally)
        if state.mode[SWITCHING] != 0:
            tally.times[SWITCHED] += state.clock[0] - tally.times[LAST_EVENT]
        tally.times[LAST_EVENT] = state.clock[0]
        state.scope[0] = ALL
        server.times[WAKE] = decide(state, target)
        obey(state, target, server, tally, logging)
        close_hole(server)
        if checking:
            check(state, target, server)


@kernel
def present(state: State) -> int:
    """The number of jobs in the system."""
    count = 0
    for i in range(state.system.shape[0]):
        count += state.system[i]
    return count


@kernel
def arrive(state: State, server: Server, tally: Tally, i: int, size: float, estimate: float, logging: bool) -> None:
    """A job joins the end of its type's list."""
    numbers, now = server.numbers, state.clock[0]
    numbers[UNUSED] -= 1
    job = server.unused[numbers[UNUSED]]
    new = server.jobs[job]
    new["kind"], new["position"], new["sequence"] = i, -1, numbers[NEXT_JOB]
    new["arrival"], new["size"], new["remaining"], new["estimate"] = now, size, size, estimate
    link(state, job, i)
    count_area(state, tally, i)
    state.system[i] += 1
    tally.arrived[i] += 1
    state.event[KIND], state.event[TYPE] = ARRIVAL, i
    if logging:
        write(server, now, ARRIVE, i, numbers[NEXT_JOB])
    numbers[NEXT_JOB] += 1


@kernel
def finish(state: State, server: Server, tally: Tally, now: float, logging: bool) -> None:
    """The running job that ends first leaves."""
    job = server.heap[heap_base(server)]
    done = server.jobs[job]
    i = done["kind"]
    state.clock[0] = now
    done["position"] = -1
    server.numbers[HOLE] = 1
    unlink(state, job, i)
    count_area(state, tally, i)
    state.system[i] -= 1
    state.running[i] -= 1
    for r in range(state.free.shape[0]):
        state.free[r] += state.demand[i, r]
    server.unused[server.numbers[UNUSED]] = job
    server.numbers[UNUSED] += 1
    record(tally, i, done["sequence"], now - done["arrival"], done["size"])
    state.event[KIND], state.event[TYPE] = COMPLETION, i
    if logging:
        write(server, now, FINISH, i, done["sequence"])


@kernel
def obey(state: State, target: Int, server: Server, tally: Tally, logging: bool) -> None:
    """Makes the running jobs match the target: first the youngest yield, then the oldest waiting start."""
    scope, times = state.scope[0], server.times
    first, behind = 0, target.shape[0]
    if scope != ALL:
        first, behind = max(scope, 0), scope + 1  # of one type, or none
    for i in range(first, behind):
        if state.running[i] > target[i]:
            give_way(state, target, server, tally, first, behind, logging)
            break
    for i in range(first, behind):
        if state.running[i] < target[i]:
            start(state, server, tally, i, target[i] - state.running[i], logging)
    if times[HORIZON] < times[WAKE]:
        move_horizon(server)


@large_kernel
def give_way(state: State, target: Int, server: Server, tally: Tally, first: int, behind: int, logging: bool) -> None:
    """The youngest running jobs of types from `first` to `behind` yield, where more run than the target says."""
    times, numbers, yielding = server.times, server.numbers, 0
    for i in range(first, behind):
        yielding += max(state.running[i] - target[i], 0)
    close_hole(server)
    if not times[WAKE] <= times[HORIZON] < np.inf and 4 * yielding > numbers[RUNNING] and 256 * yielding > numbers[BACK]:
        put_aside(server)  # where so many yield, few end before the timer rings again: only those have to be in order
    for i in range(first, behind):
        if state.running[i] > target[i]:
            preempt(state, server, tally, i, state.running[i] - target[i], logging)


@large_kernel
def move_horizon(server: Server) -> None:
    """Puts the jobs that end before the timer rings into the heap; all of them if it rings later than was expected."""
    close_hole(server)
    bring_near(server, server.times[WAKE] if server.times[HORIZON] == -np.inf else np.inf)


@kernel
def start(state: State, server: Server, tally: Tally, i: int, count: int, logging: bool) -> None:
    """The oldest waiting jobs of a type start, or go on."""
    now = state.clock[0]
    count = min(count, state.system[i] - state.running[i])
    count_area(state, tally, i)
    state.running[i] += count
    for r in range(state.free.shape[0]):
        state.free[r] -= count * state.demand[i, r]
    if server.groups[i, PAUSED] > 0:
        count -= continue_paused(state, server, i, count, logging)
    job = state.first_waiting[i]
    for _ in range(count):
        one = server.jobs[job]
        behind, hint = one["newer"], one["position"]
        prefetch(server.jobs, -2 - hint if hint < -1 else max(behind, 0))  # it starts soon, and may have waited for long
        insert(server, job, now + one["remaining"])
        expect(server, job, now, one["remaining"], logging)
        job = behind
    state.first_waiting[i] = job


@kernel
def expect(server: Server, job: int, now: float, remaining: float, logging: bool) -> None:
    """Notes when a job that starts, or goes on, is expected to end by its estimate."""
    one = server.jobs[job]
    size, estimate = one["size"], one["estimate"]
    one["finish"] = now + (estimate if remaining >= size else estimate * (remaining / size))
    if logging:
        write(server, now, STARTED, one["kind"], one["sequence"])


@large_kernel
def continue_paused(state: State, server: Server, i: int, count: int, logging: bool) -> int:
    """The oldest paused jobs of a type go on, `count` at most; returns how many."""
    now, together = state.clock[0], server.times[HORIZON] == -np.inf and server.numbers[IN_GROUPS] == 1 and not logging
    count = min(count, server.groups[i, PAUSED])
    if together and count == server.groups[i, PAUSED]:
        state.first_waiting[i] = state.newer[continue_all(server, i, now)]
        return count
    job = state.first_waiting[i]
    for _ in range(count):
        if together:
            continue_one(server, job, i, now)
        else:
            remaining = take_back(server, job, i)
            insert(server, job, now + remaining)
            expect(server, job, now, remaining, logging)
        job = state.newer[job]
    state.first_waiting[i] = job
    return count


@kernel
def preempt(state: State, server: Server, tally: Tally, i: int, count: int, logging: bool) -> None:
    """The youngest running jobs of a type yield; they go on later where they stopped."""
    now, numbers = state.clock[0], server.numbers
    count_area(state, tally, i)
    state.running[i] -= count
    for r in range(state.free.shape[0]):
        state.free[r] += count * state.demand[i, r]
    tally.preemptions[i] += count
    waiting, job = state.first_waiting[i], youngest_running(state, i)
    if state.running[i] == 0 and numbers[RUNNING] == 0 and numbers[IN_GROUPS] == 1 and not logging:
        pause_all(server, i, now, count, job)
        state.first_waiting[i] = state.oldest[i]
        return
    one_newer, two_newer, three_newer = -1, -1, -1
    for _ in range(count):
        one = server.jobs[job]
        before = one["older"]
        if one["position"] >= numbers[RUNNING] or (server.groups[i, PAUSED] > 0 and move_back(server, job, i)):
            pause_one(server, job, i, now)
        else:
            one["remaining"] = max(server.ends[heap_base(server) + one["position"]] - now, 0.0)
            remove(server, job)
            one["position"] = -2 - three_newer
            one_newer, two_newer, three_newer = job, one_newer, two_newer
        if logging:
            write(server, now, PREEMPT, i, one["sequence"])
        waiting, job = job, before
    state.first_waiting[i] = waiting


# ---------------------------------------------------------------------------------------------------------------- counting


@kernel
def count_area(state: State, tally: Tally, i: int) -> None:
    """Adds what type i's counts have been since they last changed to their time integrals."""
    now = state.clock[0]
    span = now - tally.since[i]
    tally.area[PRESENT, i] += span * state.system[i]
    tally.area[SERVED, i] += span * state.running[i]
    tally.since[i] = now


@large_kernel
def close_batch(state: State, tally: Tally) -> None:
    """Ends the time of a batch: its integrals go into a row of their own."""
    row = tally.numbers[CLOSED]
    for i in range(state.system.shape[0]):
        count_area(state, tally, i)
        for c in range(2):
            tally.areas[row, c, i] = tally.area[c, i]
            tally.area[c, i] = 0.0
    tally.span[row, 0], tally.span[row, 1] = tally.times[BATCH_BEGAN], state.clock[0]
    tally.times[BATCH_BEGAN] = state.clock[0]
    tally.numbers[CLOSED] = row + 1


@kernel
def record(tally: Tally, i: int, sequence: int, response: float, size: float) -> None:
    """Counts a job that is done, in the batch of its arrival: response time, waiting time (all of it but the size) and slowdown."""
    if sequence < 0 or sequence >= tally.numbers[LIMIT]:
        return
    waiting = max(response - size, 0.0)
    slowdown = response / size
    rows, row = tally.rows, sequence >> tally.numbers[SHIFT]
    rows[row, i, COUNT] += 1.0
    rows[row, i, RESPONSE] += response
    rows[row, i, RESPONSE + SQUARE] += response * response
    rows[row, i, WAITING] += waiting
    rows[row, i, WAITING + SQUARE] += waiting * waiting
    rows[row, i, SLOWDOWN] += slowdown
    rows[row, i, SLOWDOWN + SQUARE] += slowdown * slowdown
    place = min(i, tally.buckets.shape[1] - 1)
    tally.buckets[0, place, bucket(tally, response)] += 1
    tally.buckets[1, place, bucket(tally, waiting)] += 1
    tally.buckets[2, place, bucket(tally, slowdown)] += 1


@kernel
def write(server: Server, now: float, what: int, i: int, sequence: int) -> None:
    """A line of the log."""
    n = server.numbers[LOGGED]
    server.log[n, 0], server.log[n, 1], server.log[n, 2], server.log[n, 3] = now, what, i, sequence
    server.numbers[LOGGED] = n + 1


@large_kernel
def check(state: State, target: Int, server: Server) -> None:
    """Checks the invariants after an event; used in tests."""
    running = check_lists(state, target, server)
    heap, first, paused = server.numbers[RUNNING], server.jobs.shape[0], 0
    for place in range(first, first + server.numbers[BACK]):
        heap += int(server.ends[place] < np.inf)
        paused += int(server.left[place] < np.inf)
    if running != heap:
        raise AssertionError("the heap does not hold the running jobs")
    if paused != server.numbers[PAUSED_JOBS]:
        raise AssertionError("a paused job was lost")


@large_kernel
def check_lists(state: State, target: Int, server: Server) -> int:
    """Checks the lists of jobs at one server, and that what runs fits; returns how many jobs run there."""
    running = 0
    for i in range(target.shape[0]):
        if state.running[i] != min(target[i], state.system[i]) or target[i] < 0:
            raise AssertionError("the running jobs do not match the decision")
        running += state.running[i]
        count, job, waits = 0, state.oldest[i], False
        while job >= 0:
            if job == state.first_waiting[i]:
                waits = True
            place = server.jobs[job]["position"]
            if (place >= 0 and server.ends[place] < np.inf) == waits:
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
