"""What a decision function sees, and the small tools it may use.

A decision function has the form

    decide(state, target) -> float

It is called at the start and after every event, writes into `target` (K,) how many jobs of each type should run now, and returns the time
at which it is to be called again (`numpy.inf`: not before the next event). `target` keeps what was written last. The
simulator or live scheduler carries it out: of each type the oldest waiting job starts first and the youngest running one yields first.
So the running jobs of a type are always its oldest.

Jobs of a type form a list from old to new: `oldest[i]`, then `newer[job]`, up to `newest[i]`, and back by `older[job]`; −1 ends it.
`first_waiting[i]` is the first that does not run.

A live server has one more event, CHANGE: something else happened that may matter (a waiting job was withdrawn, capacity came free that no
job of the policy held), or the decision could not be carried out in full. `target` then holds what runs, and every entry is to be decided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.kernel import kernel
from rota.views import by_reference

__all__ = [
    "ALL",
    "ARRIVAL",
    "CHANGE",
    "COMPLETION",
    "KIND",
    "NONE",
    "START",
    "SWITCHES",
    "SWITCHING",
    "TIMER",
    "TYPE",
    "State",
    "copy_waiting",
    "exponential",
    "first_fit",
    "fits_one",
    "oldest_next",
    "seeded",
    "take_next",
    "uniform",
    "youngest_running",
]

# Indices and codes are module constants: numba compiles them in as numbers.
START, ARRIVAL, COMPLETION, TIMER, CHANGE = 0, 1, 2, 3, 4  # kinds of events
KIND, TYPE = 0, 1  # places in `State.event`
SWITCHING, SWITCHES = 0, 1  # places in `State.mode`
ALL, NONE = -1, -2  # scopes of a decision


@by_reference
class State(NamedTuple):
    """The state of the server, in arrays that the decision function shares with the simulator or live scheduler.

    A decision function may read everything and writes only what is marked as out, scratch or its own.
    """

    clock: Array  # (1,) the time now
    event: Int  # (2,) KIND and TYPE of the event that was
    mode: Int  # (2,) out: SWITCHING, 1 while a policy switches between schedules, else 0; SWITCHES, how often it has begun to
    scope: Int  # (1,) out: which targets may have changed; ALL is assumed unless the function says NONE or one type
    system: Int  # (K,) jobs present
    running: Int  # (K,) of which running
    free: Int  # (R,) units not held by running jobs
    demand: Int  # (K, R)
    capacity: Int  # (R,)
    service_rate: Array  # (K,)
    oldest: Int  # (K,) oldest job present, or −1
    first_waiting: Int  # (K,) oldest waiting job, or −1
    newest: Int  # (K,) newest job present, or −1
    newer: Int  # (jobs,) next newer job of the same type, or −1
    older: Int  # (jobs,) next older one, or −1
    sequence: Int  # (jobs,) number of the job in order of arrival
    finish: Array  # (jobs,) expected end of a running job by its estimate
    estimate: Array  # (jobs,) estimated size of a job
    memory: Array  # the function's own numbers
    counters: Int  # the function's own counters
    random: NDArray[np.uint64]  # (4,) the function's own random stream
    residual: Int  # (R,) scratch for the function
    next_up: Int  # (K,) scratch
    chosen: Int  # (K,) scratch
    keys: Array  # (jobs,) scratch
    places: Int  # (jobs,) scratch
    data: Any  # the policy's constants, in the form that the function needs


@kernel
def fits_one(demand: Int, free: Int, i: int) -> bool:
    """Whether one more job of type i fits into what is free."""
    for r in range(free.shape[0]):  # noqa: SIM110 (numba has no all())
        if demand[i, r] > free[r]:
            return False
    return True


@kernel
def youngest_running(state: State, i: int) -> int:
    """The youngest running job of type i, or −1."""
    waiting = state.first_waiting[i]
    return int(state.older[waiting] if waiting >= 0 else state.newest[i])


@kernel
def copy_waiting(state: State) -> None:
    """`next_up` := the first waiting job of each type, `residual` := what is free."""
    for i in range(state.next_up.shape[0]):
        state.next_up[i] = state.first_waiting[i]
    for r in range(state.residual.shape[0]):
        state.residual[r] = state.free[r]


@kernel
def take_next(state: State, target: Int, i: int) -> None:
    """The next job of type i is to run: the residual shrinks by its demand, and the one behind it is next."""
    target[i] += 1
    for r in range(state.residual.shape[0]):
        state.residual[r] -= state.demand[i, r]
    state.next_up[i] = state.newer[state.next_up[i]]


@kernel
def oldest_next(state: State, fitting: bool) -> int:
    """The type whose next job is the oldest (`fitting`: of those that fit into the residual), −1 if there is none."""
    best = -1
    for i in range(state.next_up.shape[0]):
        job = state.next_up[i]
        if job >= 0 and (best < 0 or state.sequence[job] < state.sequence[state.next_up[best]]):  # noqa: SIM102
            if not fitting or fits_one(state.demand, state.residual, i):
                best = i
    return best


@kernel
def first_fit(state: State, target: Int) -> int:
    """Adds the jobs that are next up to the target, the oldest that fits into the residual first, until none fits; returns how many."""
    count = 0
    while True:
        i = oldest_next(state, True)
        if i < 0:
            return count
        take_next(state, target, i)
        count += 1


# ---------------------------------------------------------------------------------------------------------------- randomness


def seeded(sequence: np.random.SeedSequence) -> NDArray[np.uint64]:
    """The start of a random stream."""
    return sequence.generate_state(4, np.uint64).astype(np.uint64)


@kernel
def _next(random: NDArray[np.uint64]) -> Any:
    """xoshiro256++ (Blackman and Vigna 2019)."""
    s0, s1, s2, s3 = random[0], random[1], random[2], random[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    random[0], random[1], random[2], random[3] = s0, s1, s2, s3
    return result


@kernel
def uniform(random: NDArray[np.uint64]) -> float:
    """A number in [0, 1)."""
    return float(_next(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def exponential(random: NDArray[np.uint64], rate: float) -> float:
    """An exponential time with this rate."""
    return float(-np.log(1.0 - uniform(random)) / rate)
