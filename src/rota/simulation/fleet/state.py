"""The state of all servers of a fleet, in arrays that the compiled engine and the dispatch rules share.

What belongs to one server (its counts, lists of jobs, random stream, the policy's own numbers) is a row of words. Before an event at a
server its row is copied into the `State` of its kind, where the policy's decision function and the engine of one server find it, and
afterwards copied back. So the functions of one server run unchanged, and a server takes no more memory than its row.

Types and resources of a row are those of the server's kind: `local` (C, K) says where a type of the fleet is among them. What dispatch
rules look at (`present`, `waiting`, …) is by the types of the fleet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.kernel import kernel
from rota.views import by_reference

__all__ = [
    "ANY_SERVER",
    "BY_SLOT",
    "CAME",
    "CENTRAL",
    "CHOICES",
    "DELAY",
    "DOWN",
    "ENDS",
    "FIRST_QUEUE",
    "FREE",
    "GONE",
    "INSIDE",
    "LINE",
    "LINES",
    "LINES_PER_JOB",
    "MODE",
    "NEXT_LOOK",
    "OLDEST",
    "OWN",
    "PERIOD",
    "QUEUE",
    "RUNS",
    "SERVER",
    "SERVER_LINE",
    "SINCE",
    "STALE",
    "SWITCHED",
    "SYSTEM",
    "TIMERS",
    "TRANSIT_FIRST",
    "TRANSIT_LAST",
    "TYPE",
    "UP",
    "FleetState",
    "fits_at_once",
    "fits_now",
    "in_lines",
    "left_over",
    "runs_on",
    "waiting",
    "work_there",
]

# Places in `FleetState.asked`.
TYPE, QUEUE, SERVER = 0, 1, 2
# Places in `FleetState.at`: where the parts of a row begin.
SYSTEM, RUNS, FREE, OLDEST, MODE, SINCE, OWN = 0, 1, 2, 3, 4, 5, 6  # OWN: the numbers that the policy keeps, up to the end of the row
# Places in `FleetState.numbers`.
CENTRAL = 0  # whether servers take jobs from a queue that they share
CHOICES = 1  # servers that power-of-d compares
INSIDE = 2  # jobs that have come and not left
STALE = 3  # servers whose keys are out of date
TRANSIT_FIRST, TRANSIT_LAST = 4, 5  # jobs on their way to a server, or −1
CAME = 8  # how many jobs have come to a server; −1 where jobs come to servers in order of arrival, and none comes twice
LINES, LINES_PER_JOB = 6, 7  # lines that one event may add to the log, at most: so many, and so many for each job inside
# Places in `FleetState.times`.
SWITCHED = 0  # time spent switching, over all servers
PERIOD, NEXT_LOOK = 1, 2  # how often the dispatcher looks at the servers (0: always), and when it looks next
DELAY = 3  # how long a job is on its way to a server
# In `FleetState.queue_kind`: servers of the kind take jobs of the queue where they have a free slot; or they get them at random.
BY_SLOT, ANY_SERVER = 1, 2
# Trees: the next timer of each server, the next end of a job there, and one for each queue.
TIMERS, ENDS, FIRST_QUEUE = 0, 1, 2
# Places in a row of `FleetState.switch_time`.
UP, DOWN = 0, 1
GONE = 1 << 62  # the number of a job that has left, until another takes its place
LINE = 8  # words of a cache line

# The data of one server that are looked at whenever something happens there share a cache line. Rules and the engine see them as arrays.
SERVER_LINE = np.dtype(
    [(name, np.int64) for name in ("kind", "up", "total", "coming", "in_service")]
    + [(name, np.float64) for name in ("wake", "last_event", "switch_time")]
)


def in_lines(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of zeros that begins where a cache line does."""
    size = int(np.prod(shape)) * dtype.itemsize
    space = np.zeros(size + 8 * LINE, dtype=np.uint8)
    first = -space.ctypes.data % (8 * LINE)
    return space[first : first + size].view(dtype).reshape(shape)


@by_reference
class FleetState(NamedTuple):
    """What the engine keeps for the fleet, and what a dispatch rule sees of it.

    A rule reads `asked[TYPE]`, and `asked[QUEUE]` if types have several queues, and answers with a server; M servers, C kinds, K types.
    """

    clock: Array  # (1,) the time now
    asked: Int  # (3,) what a rule is asked about: TYPE of the job, QUEUE, or SERVER
    kind: Int  # (M,) the kind of a server
    first: Int  # (C+1,) servers of kind c are first[c] … first[c+1] − 1
    up: Int  # (M,) 1 unless it has failed
    working: Int  # (C,) servers of a kind that have not failed
    present: Int  # (M, K) jobs of a type at a server, and on their way there
    total: Int  # (M,) of all types
    coming: Int  # (M,) those on their way
    local: Int  # (C, K) the number of a type on a kind, −1 if it cannot run there
    types: Int  # (C, K) the type that has this number on a kind
    need: Int  # (C, K, R) what a job of a type needs of each resource of a kind, in the units of its server
    capacity: Int  # (C, R) in these units, rounded down …
    size: Array  # (C, R) … and not rounded; 0 for what a kind has not
    run_time: Array  # (C, K) the mean running time there
    share: Array  # (C, K) the largest part of a resource that a job holds there
    speed: Array  # (C, K)
    parts: Array  # (K, C) the sum of the parts of the type that go to this kind and those before it
    turn: Int  # (K,) round-robin: the next server
    slots: Int  # (M, K) of pinned servers; else (0, K)
    queue_type: Int  # (Q,)
    first_queue: Int  # (K+1,) queues of type i are first_queue[i] … first_queue[i+1] − 1
    queue_part: Array  # (Q,) the sum of the parts of the type that go to this queue and those before it
    queue_kind: Int  # (Q, C) 0 unless servers of the kind serve the queue: BY_SLOT, or ANY_SERVER
    keys: Array  # (2 + Q or 2, n) see `rota.simulation.fleet.tournament`
    winners: Int
    levels: Int
    numbers: Int
    times: Array
    random: NDArray[np.uint64]  # (4,) the dispatcher's random stream
    memory: Array  # numbers of a rule of your own
    counters: Int
    # Of the engine.
    at: Int  # where the parts of a row begin
    rows: Int  # (M, L)
    row_floats: Array  # (M, L) the same words as numbers
    current: Int  # (C, L) the row of the server at hand, which the `State` of its kind shows
    states: Int  # (C,) the addresses of the views of these states …
    tallies: Int  # (C,) … and of the tallies
    in_service: Int  # (M,) running jobs
    heap_first: Int  # (C,) where the heaps of the running jobs of a kind begin in `Server.heap` …
    heap_size: Int  # (C,) … and how many jobs of this kind of server can run at a time
    wake: Array  # (M,) when the policy of a server is to be asked again
    last_event: Array  # (M,)
    switch_time: Array  # (M,) when a server fails, or works again
    mean_time: Array  # (C, 2) mean times UP and DOWN; infinite and 0 if servers do not fail
    fails: NDArray[np.uint64]  # (4,) random stream of failures
    stale: Int  # (M,) servers to be looked at again, the first `numbers[STALE]`
    is_stale: Int  # (M,)
    arrived: Int  # (K,)
    held: Int  # (K,) jobs at no server: held back, or on their way
    held_since: Array  # (K,)
    held_area: Array  # (K,) of the batch that is open
    held_areas: Array  # (batches, K)
    held_first: Int  # (Q,) the oldest job that is held back, or −1
    held_last: Int  # (Q,)
    place: Any  # (jobs,) the server of a job, −1 if it is at none
    order: Any  # (jobs,) the number of a job in the order in which jobs came to servers: what policies see as its number
    log_place: Int  # (n,) the server of a line of the log


# ---------------------------------------------------------------------------------------------------------------- what rules look at


@kernel
def runs_on(fleet: FleetState, m: int, i: int) -> bool:
    """Whether a server works and jobs of a type can run there."""
    return bool(fleet.up[m] == 1 and fleet.local[fleet.kind[m], i] >= 0)


@kernel
def waiting(fleet: FleetState, m: int, i: int) -> int:
    """Jobs of a type that wait at a server."""
    local = fleet.local[fleet.kind[m], i]
    row = fleet.rows[m]
    return int(row[fleet.at[SYSTEM] + local] - row[fleet.at[RUNS] + local])


@kernel
def fits_now(fleet: FleetState, m: int, i: int) -> bool:
    """Whether one more job of a type fits beside the jobs that run on a server."""
    c, row = fleet.kind[m], fleet.rows[m]
    for r in range(fleet.need.shape[2]):  # noqa: SIM110 (numba has no all())
        if fleet.need[c, i, r] > row[fleet.at[FREE] + r]:
            return False
    return True


@kernel
def fits_at_once(fleet: FleetState, m: int, i: int) -> bool:
    """Whether one more job of a type fits a server, none of it waits there, and no job is on its way there."""
    return bool(fleet.coming[m] == 0 and waiting(fleet, m, i) == 0 and fits_now(fleet, m, i))


@kernel
def left_over(fleet: FleetState, m: int, i: int) -> float:
    """The part of a server that is free when a job of the type has been added: the mean over its resources."""
    c, row = fleet.kind[m], fleet.rows[m]
    total, resources = 0.0, 0
    for r in range(fleet.need.shape[2]):
        if fleet.capacity[c, r] > 0:
            used = fleet.capacity[c, r] - row[fleet.at[FREE] + r] + fleet.need[c, i, r]
            total += 1.0 - used / fleet.size[c, r]
            resources += 1
    return float(total / resources)


@kernel
def work_there(fleet: FleetState, m: int) -> float:
    """How long a server would be busy with its jobs, of mean sizes, if it were always full: Σ_i n_i E[S_i] d_i, d_i the largest share."""
    c, work = fleet.kind[m], 0.0
    for i in range(fleet.present.shape[1]):
        if fleet.present[m, i] > 0:
            work += fleet.present[m, i] * fleet.run_time[c, i] * fleet.share[c, i]
    return work
