"""The simulated server: the arrays that the engine keeps beside the `State` that decisions see."""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
from numba.core.types import NoneType
from numba.extending import overload

from rota.arrays import Array, Int
from rota.decide.state import State
from rota.views import by_reference

__all__ = [
    "ACTIVE",
    "BACK",
    "BEGUN",
    "CHANGED",
    "CHUNK",
    "EVENTS",
    "FIRST_CHUNK",
    "GROUPS",
    "HOLE",
    "HORIZON",
    "IN_BATCH",
    "IN_GROUPS",
    "JOB",
    "LOGGED",
    "NEXT_ARRIVAL",
    "NEXT_JOB",
    "NUMBERS",
    "PAUSED",
    "PAUSED_JOBS",
    "RUNNING",
    "STOP",
    "TIMES",
    "UNUSED",
    "VACANT",
    "WAKE",
    "WITH_JOBS",
    "YOUNGEST_PAUSED",
    "Server",
    "heap_base",
    "moved_to",
    "new_places",
    "with_places",
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
BACK = 9  # places behind the heap, in chunks
PAUSED_JOBS = 10  # stopped jobs that have such places
IN_GROUPS = 11  # whether jobs of a type may stop and go on together: the expected ends that decisions see are then not kept
NUMBERS = 12

# Columns of `Server.groups`.
VACANT = 0  # the first vacant place of the type behind the heap, each of which holds the next; −1: none
FIRST_CHUNK = 1  # its first chunk of such places, −1: none
PAUSED = 2  # its stopped jobs that have such places: the first that wait
YOUNGEST_PAUSED = 3  # of which the youngest
ACTIVE = 4  # 0 if none of the jobs that have such places runs
GROUPS = 5

CHUNK = 64  # places

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
        ),  # its place among the running and paused jobs; else −2 − a job that probably starts soon after it, or −1
        ("older", np.int32),
        ("newer", np.int32),
        ("sequence", np.int64),
        ("arrival", np.float64),
        ("size", np.float64),
        ("remaining", np.float64),  # while it neither runs nor is paused
        ("estimate", np.float64),
        ("finish", np.float64),
    ]
)


_LARGE = 1 << 22  # bytes from which memory is asked for in huge pages, and moved at a time: a multiple of any page
_OWN: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


@by_reference
class Server(NamedTuple):
    """Jobs in service, places for jobs, and the engine's own numbers."""

    jobs: Any  # (jobs,) records of JOB
    heap: Int  # (places,) running jobs: a heap, the next to end first; from place `jobs` on those at the back (`rota.simulation.back`)
    ends: Array  # (places,) when the job at this place ends; at the back infinite where none runs
    left: Array  # (places,) at the back: how much is left of the stopped job at this place; infinite where none is
    chunks: Int  # (chunks,) the next chunk of the same type, −1: none
    groups: Int  # (K, GROUPS) the places at the back of each type
    unused: Int  # (jobs,) stack of free places
    numbers: Int  # (NUMBERS,)
    times: Array  # (TIMES,)
    log: Array  # (n, 4) time, kind, type, sequence number
    base: Any = None  # (1,) where the heap begins, of several in the same arrays; None: at place 0


def heap_base(server: Server) -> int:
    """Where the heap begins: places of jobs in it count from there."""
    return 0 if server.base is None else int(server.base[0])


@overload(heap_base, inline="always")
def _heap_base_compiled(server: Any) -> Any:
    """Where there is one heap only, compiled code adds nothing."""

    def first(server: Any) -> Any:
        return 0

    def shared(server: Any) -> Any:
        return server.base[0]

    # Compiled by itself a kernel is given the named tuple, called from another one a reference to it (`rota.views`).
    fields = server.fields
    base = fields["base"].type if isinstance(fields, dict) else server.types[fields.index("base")]
    return first if isinstance(base, NoneType) else shared


def new_places(count: int) -> Any:
    """Places for this many jobs (records of JOB), each in a cache line of its own. A page that is never used takes no memory."""
    space = mmap.mmap(-1, max(count, 1) * JOB.itemsize, **_OWN)
    if len(space) >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        space.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(space, dtype=JOB, count=count)


def moved_to(new: Any, old: Any) -> None:
    """Moves all jobs from places that are not used any more: their memory is given back on the way, so that no job takes it twice."""
    space = old.base if isinstance(old.base, mmap.mmap) else getattr(old.base, "obj", None)
    source, target = old.view(np.uint8), new.view(np.uint8)  # record by record it takes ten times as long
    for first in range(0, len(source), _LARGE):
        end = min(first + _LARGE, len(source))
        target[first:end] = source[first:end]
        if isinstance(space, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            space.madvise(mmap.MADV_DONTNEED, first, end - first)


def with_places(state: State, jobs: Any) -> State:
    """The state with these places for jobs: it has its part of their data, and scratch for as many."""
    seen = {name: jobs[name] for name in ("newer", "older", "sequence", "finish", "estimate")}
    return state._replace(**seen, keys=np.zeros(len(jobs)), places=np.zeros(len(jobs), dtype=np.int64))
