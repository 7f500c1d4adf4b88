"""MSR policies with backfilling: what the schedule leaves free is filled First-Fit from the queue.

The three models of preemption differ in what happens to a backfilled job when the schedule needs its resources. With full preemption it
gives way. Without preemption it runs to its end. With setups it also runs to its end, unless a switch begins: then jobs that are in the way
are stopped, backfilled or not, and each holds its resources for a setup.
"""

from __future__ import annotations

from rota.arrays import Int
from rota.decide.msr import NEXT, PLACE, describe_msr, follow, go, msr_data, msr_keeps, next_ring, own_rate
from rota.decide.rule import Rule
from rota.decide.state import (
    ALL,
    ARRIVAL,
    COMPLETION,
    KIND,
    SWITCHING,
    TIMER,
    TYPE,
    State,
    first_fit,
    fits_one,
    oldest_next,
    take_next,
    uniform,
    youngest_running,
)
from rota.kernel import kernel

__all__ = [
    "FULL_RULE",
    "HOLD_RULE",
    "NONE_RULE",
    "SETUPS",
    "SETUP_RULE",
    "end_setup",
    "fill",
    "serve_preemptive",
    "serve_slots",
    "setups_under_way",
]

SETUPS = 1  # counters from here on: setups of each type under way (sMSR)
SETTLED = 1  # counter of the others: 1 if the state works and no waiting job fits into what the last decision left, else 0


@kernel
def backfill_full(state: State, target: Int) -> float:
    """pMSR with backfilling: backfilled jobs give way, the youngest first, as soon as the schedule needs their resources."""
    if _changes_one(state, target, True):
        return float(state.memory[NEXT])
    if state.event[KIND] == TIMER:
        follow(state, target)
    serve_preemptive(state, target)
    state.counters[SETTLED] = 1
    for k in range(target.shape[0]):
        if target[k] < state.running[k]:
            state.counters[SETTLED] = 0  # it may fit again beside those that start in its place
    return next_ring(state, own_rate(state, target))


@kernel
def backfill_none(state: State, target: Int) -> float:
    """nMSR with backfilling: backfilled jobs run to their end, and the schedule's own jobs start when they fit.

    A switch ends when all running jobs fit together with the jobs present that have a slot in the schedule ahead. Until then slots are
    drained one by one as without backfilling, and a job starts if it has a slot: one that is still open, or one ahead.
    """
    if _changes_one(state, target, False):
        return float(state.memory[NEXT])
    _serve_and_fill(state, target, False)
    return next_ring(state, own_rate(state, target))


@kernel
def backfill_hold(state: State, target: Int) -> float:
    """nMSR with backfilling that holds: when the clock rings, the schedule is kept unless another one of the rota weighs more."""
    if _changes_one(state, target, False):
        return float(state.memory[NEXT])
    _serve_and_fill(state, target, state.event[KIND] == TIMER and not _outweighed(state))
    return next_ring(state, own_rate(state, target))


@kernel
def backfill_setup(state: State, target: Int) -> float:
    """sMSR with backfilling: jobs are stopped when a switch begins, and only then; each of them holds its resources for a setup.

    Those are stopped that have no slot in the schedule ahead and hold what is short, the youngest first, until the rest fits together with
    the jobs present that have a slot. If all fit, no job is stopped, and the switch takes no time. Slots open as resources become free. The
    clock of the new schedule starts, and jobs are backfilled, when all setups are done.
    """
    data = state.data
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    if state.event[KIND] == TIMER:
        if setups_under_way(state) > 0:
            end_setup(state)
        elif follow(state, target):
            state.counters[PLACE] = data.goal[state.counters[PLACE]]
            _prepare(state, target)
            while _overfull(state):
                k = _give_way(state, target, True)
                state.counters[SETUPS + k] += 1
            for k in range(target.shape[0]):
                target[k] = min(target[k], state.running[k])  # those that wait start when they fit
    setups = setups_under_way(state)
    state.mode[SWITCHING] = 1 if setups > 0 else 0
    _free_room(state, target)
    for k in range(target.shape[0]):
        for r in range(state.residual.shape[0]):
            state.residual[r] -= state.counters[SETUPS + k] * state.demand[k, r]
    _fill_slots(state, target, state.counters[PLACE])
    if setups == 0:
        fill(state, target)
    return next_ring(state, setups * data.setup_rate if setups > 0 else own_rate(state, target))


FULL_RULE = Rule(backfill_full, constants=msr_data, keeps=msr_keeps, describe=describe_msr)
NONE_RULE = Rule(backfill_none, constants=msr_data, keeps=msr_keeps, describe=describe_msr)
HOLD_RULE = Rule(backfill_hold, constants=msr_data, keeps=msr_keeps, describe=describe_msr)
SETUP_RULE = Rule(backfill_setup, constants=msr_data, keeps=msr_keeps, describe=describe_msr)


# ---------------------------------------------------------------------------------------------------------------- starting


@kernel
def _changes_one(state: State, target: Int, preemptive: bool) -> bool:
    """Takes in a completion. True if it was found that nothing changes but the target of the type that arrived or completed.

    Where no waiting job fitted before, only the job that came can start, or one in the place of the job that left.
    """
    kind, i = state.event[KIND], state.event[TYPE]
    if kind == COMPLETION:
        target[i] -= 1
    if state.counters[SETTLED] == 0 or (kind != ARRIVAL and kind != COMPLETION):
        return False
    slots = state.data.schedules[state.counters[PLACE], i]
    state.scope[0] = i
    if kind == COMPLETION and preemptive and target[i] < min(state.system[i], slots):
        target[i] += 1  # with full preemption all that have a slot run: only this one is without a job
        return True
    _free_room(state, target)
    if kind == ARRIVAL:
        if state.system[i] - target[i] == 1 and fits_one(state.demand, state.residual, i):
            target[i] += 1
        elif preemptive and target[i] < slots:
            state.scope[0] = ALL
            return False
        return True
    for k in range(target.shape[0]):
        if state.system[k] > target[k] and fits_one(state.demand, state.residual, k):
            state.scope[0] = ALL
            return False
    return True


@kernel
def _serve_and_fill(state: State, target: Int, held: bool) -> None:
    """Without preemption: serves the slots, and fills the residual while the state works."""
    works = serve_slots(state, target, held)
    if works:
        fill(state, target)
    state.counters[SETTLED] = int(works)


@kernel
def serve_preemptive(state: State, target: Int) -> None:
    """With full preemption: the jobs that have a slot, those that run beside them and fit, the oldest first, and then First-Fit."""
    _prepare(state, target)
    while _overfull(state):
        _give_way(state, target, False)
    fill(state, target)


@kernel
def serve_slots(state: State, target: Int, held: bool) -> bool:
    """Without preemption: moves the process (`held`: but not out of a schedule whose clock rang), and starts the jobs that have a slot.

    True if the state works, False during a switch.
    """
    data = state.data
    if state.event[KIND] == TIMER and not (held and data.working[state.counters[PLACE]]):
        follow(state, target)
    if _fits_beside_goal(state, target):
        state.counters[PLACE] = data.goal[state.counters[PLACE]]
        state.mode[SWITCHING] = 0
    else:
        _drain(state, target)
    s = state.counters[PLACE]
    _free_room(state, target)
    _fill_slots(state, target, s)
    if not data.working[s]:
        _fill_slots(state, target, data.goal[s])  # their types are not drained, so they do not hold up the switch
    return bool(data.working[s])


@kernel
def _free_room(state: State, target: Int) -> None:
    """`residual` := what the jobs decided so far leave."""
    for r in range(state.residual.shape[0]):
        state.residual[r] = state.capacity[r]
        for k in range(target.shape[0]):
            state.residual[r] -= target[k] * state.demand[k, r]


@kernel
def fill(state: State, target: Int) -> None:
    """Fills the residual First-Fit from the queue."""
    for k in range(target.shape[0]):
        state.next_up[k] = _after(state, k, target[k])
    first_fit(state, target)


@kernel
def _fill_slots(state: State, target: Int, s: int) -> None:
    """Starts jobs that have a slot in the schedule of state s, oldest first, while they fit."""
    slots = state.data.schedules
    for k in range(target.shape[0]):
        state.next_up[k] = _after(state, k, target[k]) if target[k] < slots[s, k] else -1
    while True:
        k = oldest_next(state, True)
        if k < 0:
            return
        take_next(state, target, k)
        if target[k] >= slots[s, k]:
            state.next_up[k] = -1


@kernel
def _after(state: State, k: int, count: int) -> int:
    """The next job of type k once `count` of them run; none if some of them give way now."""
    if count < state.running[k]:
        return -1
    job = state.first_waiting[k]
    for _ in range(count - state.running[k]):
        job = state.newer[job]
    return int(job)


# ---------------------------------------------------------------------------------------------------------------- giving way


@kernel
def _prepare(state: State, target: Int) -> None:
    """Sets the target to the jobs with a slot and all others that run; `chosen` counts the others, `next_up` is the youngest of a type."""
    slots, s = state.data.schedules, state.counters[PLACE]
    for k in range(target.shape[0]):
        own = min(state.system[k], slots[s, k])
        state.chosen[k] = max(state.running[k] - own, 0)
        state.next_up[k] = youngest_running(state, k) if state.chosen[k] > 0 else -1
        target[k] = own + state.chosen[k]
    _free_room(state, target)


@kernel
def _overfull(state: State) -> bool:
    for r in range(state.residual.shape[0]):  # noqa: SIM110 (numba has no any())
        if state.residual[r] < 0:
            return True
    return False


@kernel
def _give_way(state: State, target: Int, sparing: bool) -> int:
    """Takes back the youngest job that has no slot (`sparing`: and holds some of what is short); returns its type."""
    youngest = -1
    for k in range(target.shape[0]):
        if state.chosen[k] > 0 and (youngest < 0 or state.sequence[state.next_up[k]] > state.sequence[state.next_up[youngest]]):  # noqa: SIM102
            if not sparing or _in_the_way(state, k):
                youngest = k
    state.next_up[youngest] = state.older[state.next_up[youngest]]
    target[youngest] -= 1
    state.chosen[youngest] -= 1
    for r in range(state.residual.shape[0]):
        state.residual[r] += state.demand[youngest, r]
    return youngest


@kernel
def _in_the_way(state: State, k: int) -> bool:
    for r in range(state.residual.shape[0]):  # noqa: SIM110 (numba has no any())
        if state.residual[r] < 0 and state.demand[k, r] > 0:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------- switching


@kernel
def _outweighed(state: State) -> bool:
    """Whether some schedule of the rota weighs more than that of the state."""
    data, here = state.data, _weight(state, state.counters[PLACE])
    for s in range(data.working.shape[0]):  # noqa: SIM110 (numba has no any())
        if data.working[s] and _weight(state, s) > here:
            return True
    return False


@kernel
def _weight(state: State, s: int) -> int:
    """The weight of a schedule u: Σ_i min(Q_i, u_i) Q_i."""
    total = 0
    for k in range(state.system.shape[0]):
        total += min(state.system[k], state.data.schedules[s, k]) * state.system[k]
    return total


@kernel
def _fits_beside_goal(state: State, target: Int) -> bool:
    """Whether the jobs that run fit together with those present that have a slot in the schedule that the process goes to."""
    K, R = state.demand.shape
    data, s = state.data, state.counters[PLACE]
    ahead = data.goal[s]
    if ahead == s:
        return False
    for r in range(R):
        used = 0
        for k in range(K):
            used += max(target[k], min(state.system[k], data.schedules[ahead, k])) * state.demand[k, r]
        if used > state.capacity[r]:
            return False
    return True


@kernel
def _drain(state: State, target: Int) -> None:
    """Without preemption: a state that waits for type i to shrink is left as soon as fewer jobs of it run than it has slots."""
    data = state.data
    while True:
        s = state.counters[PLACE]
        chosen = -1
        for move in range(data.start[s], data.start[s + 1]):
            i = data.trigger[move]
            if i >= 0 and target[i] < data.schedules[s, i] and (data.skip or (state.event[KIND] == COMPLETION and state.event[TYPE] == i)):
                chosen = move
                break
        if chosen < 0:
            return
        go(state, chosen)
        if not data.skip:
            return  # one completion, one slot


@kernel
def setups_under_way(state: State) -> int:
    """How many setups are under way."""
    count = 0
    for k in range(state.system.shape[0]):
        count += state.counters[SETUPS + k]
    return count


@kernel
def end_setup(state: State) -> None:
    """One of the setups under way is done, each as likely as any other."""
    draw = uniform(state.random) * setups_under_way(state)
    chosen = -1
    for k in range(state.system.shape[0]):
        if state.counters[SETUPS + k] > 0:
            chosen = k
            draw -= state.counters[SETUPS + k]
            if draw < 0.0:
                break
    state.counters[SETUPS + chosen] -= 1
