"""The simulated server: the arrays that the engine keeps beside the `State` that decisions see."""

from __future__ import annotations

from typing import NamedTuple

from rota.arrays import Array, Int
from rota.views import by_reference

__all__ = [
    "BEGUN",
    "CHANGED",
    "EVENTS",
    "HOLE",
    "IN_BATCH",
    "LOGGED",
    "NEXT_ARRIVAL",
    "NEXT_JOB",
    "NUMBERS",
    "RUNNING",
    "STOP",
    "TIMES",
    "UNORDERED",
    "UNUSED",
    "WAKE",
    "WITH_JOBS",
    "Server",
]

# Places in `Server.numbers`.
RUNNING = 0  # jobs in the heap
UNUSED = 1  # free places for jobs
NEXT_JOB = 2  # the sequence number of the next job
BEGUN = 3  # 1 if the policy was asked for the first time, 0 before; or what follows
LOGGED = 4  # entries of the log
EVENTS = 5
NEXT_ARRIVAL = 6  # in the chunk
IN_BATCH = 7  # jobs in the batch that is open
HOLE = 8  # whether the job at the top of the heap has left, and the next to start takes its place
UNORDERED = 9  # whether the heap has no order now
NUMBERS = 10

# Values of BEGUN, with jobs that are here before the policy is asked: it is asked with START, and then with CHANGE, as a live server does.
WITH_JOBS, CHANGED = -2, -1

# Places in `Server.times`.
WAKE = 0  # when the policy is to be asked again
STOP = 1  # when to stop draining
TIMES = 2


@by_reference
class Server(NamedTuple):
    """Jobs in service, places for jobs, and the engine's own numbers."""

    kind: Int  # (jobs,) type of a job
    arrival: Array  # (jobs,)
    size: Array  # (jobs,)
    remaining: Array  # (jobs,) of jobs that do not run
    position: Int  # (jobs,) place in the heap, −1: not running
    heap: Int  # (jobs,) running jobs, the next to end first
    ends: Array  # (jobs,) when the job at this place of the heap ends
    unused: Int  # (jobs,) stack of free places
    numbers: Int  # (NUMBERS,)
    times: Array  # (TIMES,)
    log: Array  # (n, 4) time, kind, type, sequence number
