"""The simulated server: the arrays that the engine keeps beside the `State` that decisions see."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.views import by_reference

__all__ = [
    "BACK",
    "BEGUN",
    "CHANGED",
    "EVENTS",
    "HOLE",
    "HORIZON",
    "IN_BATCH",
    "JOB",
    "LOGGED",
    "NEXT_ARRIVAL",
    "NEXT_JOB",
    "NUMBERS",
    "RUNNING",
    "STOP",
    "TIMES",
    "UNUSED",
    "VACANT",
    "WAKE",
    "WITH_JOBS",
    "Server",
]

# Places in `Server.numbers`.
RUNNING = 0  # running jobs in the heap
UNUSED = 1  # free places for jobs
NEXT_JOB = 2  # the sequence number of the next job
BEGUN = 3  # 1 if the policy was asked for the first time, 0 before; or what follows
LOGGED = 4  # entries of the log
EVENTS = 5
NEXT_ARRIVAL = 6  # in the chunk
IN_BATCH = 7  # jobs in the batch that is open
HOLE = 8  # whether the job at the top of the heap has left, and the next to start takes its place
BACK = 9  # places behind the heap for running jobs that end after the horizon
VACANT = 10  # the first of those that are vacant, each of which holds the next; −1: none
NUMBERS = 11

# Values of BEGUN, with jobs that are here before the policy is asked: it is asked with START, and then with CHANGE, as a live server does.
WITH_JOBS, CHANGED = -2, -1

# Places in `Server.times`.
WAKE = 0  # when the policy is to be asked again
STOP = 1  # when to stop draining
HORIZON = 2  # running jobs that end later are not in the heap
TIMES = 3


# The data of one job share one cache line: with many jobs waiting, memory access takes most of the time. A decision function sees its part
# of them as arrays; to the engine they are records, whose addresses take less to compute.
JOB = np.dtype(
    [
        ("kind", np.int32),  # its type
        (
            "position",
            np.int32,
        ),  # its place among the running jobs; while it does not run, −2 − a job that probably starts soon after it, or −1
        ("older", np.int32),
        ("newer", np.int32),
        ("sequence", np.int64),
        ("arrival", np.float64),
        ("size", np.float64),
        ("remaining", np.float64),  # while it does not run
        ("estimate", np.float64),
        ("finish", np.float64),
    ]
)


@by_reference
class Server(NamedTuple):
    """Jobs in service, places for jobs, and the engine's own numbers."""

    jobs: Any  # (jobs,) records of JOB
    heap: Int  # (2 jobs,) running jobs: from the front a heap, the next to end first; at the back those that end after the horizon
    ends: Array  # (2 jobs,) when the job at this place ends; infinite where it is vacant
    unused: Int  # (jobs,) stack of free places
    numbers: Int  # (NUMBERS,)
    times: Array  # (TIMES,)
    log: Array  # (n, 4) time, kind, type, sequence number
