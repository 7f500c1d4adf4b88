"""The scheduler: its jobs, what each holds, and what the policy decides. It has no clock and knows no processes.

Each event (a job arrives, leaves, has stopped; the policy's timer rings) goes to the decision function of the simulator. The function says
how many jobs of each type should run. This becomes a `Decision` about jobs: of each type, the oldest waiting job starts first and the
youngest running job is stopped first. While every decision can be carried out at once, this equals the simulator event by event.

Five things happen on a real server only:

- A job may take some time to stop (`STOPPING`: it got a signal and may write a checkpoint). It holds everything until it has ended.
- A suspended job gives back only what a stop releases (`releasable`), and keeps its memory. A decision that needs what suspended jobs keep
  is carried out in part: no job is stopped, and of the jobs that should start, those start that fit beside the running ones. Suspended jobs
  resume when enough is free, so that they end and give back what they keep.
- Another plan may say that suspended jobs keep what they gave back under the plan that suspended them. All of them together may then keep
  more than there is. Each resumes when it fits beside the jobs that run, and until they have ended nothing else starts that needs it.
- If jobs cannot be stopped, or the policy never stops any, a job that it would no longer run (after a change of plan) runs to its end.
- Jobs that no type encloses (`own`) are unknown to the policy. After each decision they start in order of arrival, if they fit.

If for one of these reasons a decision was not carried out in full, the policy is asked again after the next event, with `CHANGE`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Int
from rota.decide import ARRIVAL, CHANGE, COMPLETION, START, TIMER, State, decider_of, new_state, rule_of
from rota.decide.job_lists import link, link_behind, unlink
from rota.decide.state import KIND, TYPE
from rota.errors import BadSpec, Problem
from rota.live.jobs import JobState
from rota.live.scheduling.own_jobs import OwnJobs
from rota.live.scheduling.units import fine_units
from rota.model import System
from rota.policy import Policy, policy_name, preempts
from rota.simulation.compiled import asked_directly
from rota.simulation.server import new_places, with_places

__all__ = ["OWN", "Decision", "Scheduler", "Stop", "list_order"]

Stop = Literal["none", "suspend", "requeue"]
OWN = -1  # the type of a job that no type encloses
_PLACES = 256  # for jobs, to begin with
_RINGS = 100  # late rings handled at once, at most: a machine may have slept for hours


@dataclass
class Decision:
    """What to do now, by job numbers: suspended jobs to resume, waiting jobs to start, running jobs to stop."""

    start: list[int] = field(default_factory=list)
    resume: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.start or self.resume or self.stop)

    def __add__(self, later: Decision) -> Decision:
        return Decision(self.start + later.start, self.resume + later.resume, self.stop + later.stop)


@dataclass(slots=True)
class Entry:
    """A job as the scheduler sees it: what it needs, its place in the queue, and what it holds."""

    id: int
    kind: int
    demand: Int  # (R,) in units
    estimate: float
    sequence: int
    place: int = -1  # in the arrays of the state; −1 for an own job
    state: JobState = JobState.WAITING  # WAITING, RUNNING, SUSPENDED or STOPPING
    ending: bool = False  # its user cancelled it: it cannot be suspended any more, and does not start again


def list_order(state: str, sequence: int) -> tuple[int, int]:
    """Sorts the jobs of a type: those that run, those that have started and do not run, those that wait; each from old to new."""
    return (0 if state == JobState.RUNNING else 2 if state == JobState.WAITING else 1), sequence


class Scheduler:
    """The jobs of one server under one policy. Times are in the system's unit of time."""

    def __init__(
        self, system: System, policy: Policy, random: NDArray[np.uint64], *, stop: Stop = "none", releasable: Sequence[bool] | None = None
    ) -> None:
        R = len(system.capacity)
        self.stop: Stop = stop
        self.kept_when_suspended: Int = np.array([not x for x in releasable or [True] * R], dtype=np.int64)
        self.jobs: dict[int, Entry] = {}
        self._own: dict[int, Entry] = {}  # in order of arrival
        self._own_ready = OwnJobs(R)  # the own jobs that start as soon as they fit
        self._own_held: Int = np.zeros(R, dtype=np.int64)  # by all own jobs
        self._by_place: dict[int, Entry] = {}
        self._next = 0
        self.decisions, self.decision_s = 0, 0.0
        self.wake = np.inf  # when the policy wants to be asked again
        self._install(system, policy, random)

    def _install(self, system: System, policy: Policy, random: NDArray[np.uint64]) -> None:
        if self.stop == "none" and preempts(policy):
            rule = f"{policy_name(policy)} stops running jobs, and preemption is 'none': choose suspend or requeue"
            raise BadSpec([Problem("preemption", f"{rule} (--preemption, or [live] in the file), or another policy")])
        self.decider = decider_of(system, policy)  # raises where the policy does not suit the system
        self.system, self.policy = system, policy
        self._may_stop = self.stop != "none" and preempts(policy)
        self._ask = asked_directly(self.decider.decide)
        state = new_state(system, self.decider, random)
        demand, capacity, self.unit = fine_units(system)
        if rule_of(policy).exact_capacity:  # such a policy needs the capacity of the plan, not more
            capacity = state.capacity * (demand.max() // state.demand.max())
        state = state._replace(demand=demand, capacity=capacity, free=capacity.copy())
        self.state: State = with_places(state, new_places(_PLACES))
        self._unused = list(range(_PLACES - 1, -1, -1))
        self.target: Int = np.zeros(len(system.names), dtype=np.int64)
        self._undone = False  # whether the last decision could not be carried out in full

    # ------------------------------------------------------------------------------------------------------------ events

    def begin(self, now: float) -> Decision:
        """The first decision, with the jobs that were put on the scheduler."""
        self._undone = True
        return self._decide(START, 0, now)

    def arrive(self, id: int, kind: int, now: float, *, estimate: float | None = None, demand: Int | None = None) -> Decision:
        """A job joins the end of its type's queue. An own job (kind OWN) brings its demand, in units (see `units_of`)."""
        before = self._late_rings(now)
        self.put(id, kind, estimate=estimate, demand=demand)
        return before + self._decide(*((CHANGE, 0) if kind == OWN else (ARRIVAL, kind)), now)

    def leave(self, id: int, now: float) -> Decision:
        """A job has ended, or was withdrawn while it waited; none of its processes is left on the machine."""
        job = self.jobs[id]
        ran = job.state == JobState.RUNNING
        before = self._late_rings(now) if ran else Decision()  # a waiting job that leaves must not be started by a late ring
        self.take(id)
        return before + self.left(job.kind, now, ran)

    def left(self, kind: int, now: float, ran: bool = True) -> Decision:
        """Decides after a job of this type was taken off the scheduler."""
        if kind == OWN or not ran:
            self._undone = True
            return self._decide(CHANGE, max(kind, 0), now)
        return self._decide(COMPLETION, kind, now)

    def stopped(self, id: int, now: float) -> Decision:
        """A job that was asked to stop has ended on the machine. It waits again, before the younger jobs of its type that wait."""
        job = self.jobs[id]
        self._wait_again(job)
        self._undone = True
        return self._decide(CHANGE, max(job.kind, 0), now)

    def tick(self, now: float) -> Decision:
        """Asks the policy if its timer is due."""
        before = self._late_rings(now)
        return before + self._decide(TIMER, 0, now) if now >= self.wake else before

    def _late_rings(self, now: float) -> Decision:
        """Handles late rings of the timer, each with the time at which it was due, so that a busy machine changes no decision.

        Not if jobs can be stopped: a late decision might stop the job that the present event is about.
        """
        decision, rings = Decision(), 0
        while self.wake <= now and self.stop == "none" and rings < _RINGS:
            decision, rings = decision + self._decide(TIMER, 0, self.wake), rings + 1
        return decision

    def look_again(self, now: float) -> Decision:
        """Asks the policy again without an event."""
        self._undone = True
        return self._decide(CHANGE, 0, now)

    def swap(
        self,
        system: System,
        policy: Policy,
        random: NDArray[np.uint64],
        now: float,
        *,
        stop: Stop | None = None,
        releasable: Sequence[bool] | None = None,
    ) -> Decision:
        """Switches to another plan for the same resources and types, with other rules of stopping if given. Running jobs go on."""
        here, finish = sorted(self.jobs.values(), key=lambda job: list_order(job.state, job.sequence)), self.state.finish
        self.stop = self.stop if stop is None else stop
        if releasable is not None:
            self.kept_when_suspended = np.array([not x for x in releasable], dtype=np.int64)
        self._install(system, policy, random)
        self._own, self._by_place, self.jobs = {}, {}, {}
        self._own_ready, self._own_held = OwnJobs(len(system.capacity)), np.zeros_like(self._own_held)
        for old in here:
            job = self._add(old.id, old.kind, old.estimate, old.demand, old.sequence, old.state)
            job.ending = old.ending
            if job.place >= 0:
                self.state.finish[job.place] = finish[old.place]
        may_stop, self._may_stop = self._may_stop, False  # this decision stops no job; the next one may
        try:
            return self.begin(now)
        finally:
            self._may_stop = may_stop

    # ------------------------------------------------------------------------------------------------------------ jobs come and go

    def put(
        self,
        id: int,
        kind: int,
        *,
        estimate: float | None = None,
        demand: Int | None = None,
        sequence: int | None = None,
        state: JobState = JobState.WAITING,
        served: float = 0.0,
    ) -> None:
        """Puts a job on the scheduler without asking the policy, to begin from a given state. `served`: its time in service so far.

        Put jobs in the order of `list_order`.
        """
        if id in self.jobs:
            raise ValueError(f"job {id} is on the scheduler already")
        if kind == OWN:
            assert demand is not None
            units = demand
        else:
            units = self.state.demand[kind]
        expected = 1 / float(self.state.service_rate[kind]) if estimate is None and kind != OWN else estimate or 0.0
        job = self._add(id, kind, expected, units, self._next if sequence is None else sequence, state)
        self._next = max(self._next, job.sequence + 1)
        if job.place >= 0:
            self.state.finish[job.place] = self.state.clock[0] + max(expected - served, 0.0)

    def _add(self, id: int, kind: int, estimate: float, demand: Int, sequence: int, state: Any) -> Entry:
        job = Entry(id, kind, demand, estimate, sequence)
        self.jobs[id] = job
        if kind == OWN:
            self._own[id] = job
            self._own_ready.add(id, sequence, demand)
        else:
            self._link(job)
        if state != JobState.WAITING:
            self._hold(job, state)
        return job

    def _link(self, job: Entry) -> None:
        if not self._unused:
            self._grow()
        s, i, place = self.state, job.kind, self._unused.pop()
        job.place = place
        self._by_place[place] = job
        s.sequence[place], s.estimate[place] = job.sequence, job.estimate
        link(s, place, i)
        s.system[i] += 1

    def take(self, id: int) -> None:
        """Takes a job off the scheduler without asking the policy."""
        job = self.jobs.pop(id)
        if job.state == JobState.RUNNING and job.kind != OWN:
            self.state.running[job.kind] -= 1
        held = self._held(job, job.state)
        self.state.free[:] += held
        if job.kind == OWN:
            self._own_held -= held
            self._own_ready.discard(id)
            del self._own[id]
            return
        s, i, place = self.state, job.kind, job.place
        unlink(s, place, i)
        s.system[i] -= 1
        del self._by_place[place]
        self._unused.append(place)

    def _grow(self) -> None:
        have = len(self.state.newer)
        self.state = _moved(self.state, new_places(2 * have))
        self._unused += range(2 * have - 1, have - 1, -1)

    def _held(self, job: Entry, state: str) -> Int:
        """The units (R,) that a job holds in a state."""
        if state in (JobState.RUNNING, JobState.STOPPING):
            return job.demand
        return job.demand * self.kept_when_suspended if state == JobState.SUSPENDED else 0 * job.demand

    def _hold(self, job: Entry, state: JobState) -> None:
        """Changes the state of a job. Callers ensure that the running jobs of a type are its oldest."""
        s = self.state
        before, after = self._held(job, job.state), self._held(job, state)
        s.free[:] += before - after
        if job.kind == OWN:
            self._own_held += after - before
            self._own_ready.discard(job.id)
            if state in (JobState.WAITING, JobState.SUSPENDED):
                self._own_ready.add(job.id, job.sequence, job.demand - after)
        elif (job.state == JobState.RUNNING) != (state == JobState.RUNNING):
            if state == JobState.RUNNING:
                s.running[job.kind] += 1
                s.first_waiting[job.kind] = s.newer[job.place]
            else:
                s.running[job.kind] -= 1
                s.first_waiting[job.kind] = job.place
        job.state = state

    def _wait_again(self, job: Entry) -> None:
        """A job that was to stop waits again: behind the suspended ones of its type, which resume first, and before the younger."""
        self._hold(job, JobState.WAITING)
        if job.kind == OWN:
            return
        s, here = self.state, self._by_place
        last, place = job.place, int(s.newer[job.place])
        while place >= 0 and here[place].state != JobState.WAITING:
            last, place = place if here[place].state == JobState.SUSPENDED else last, int(s.newer[place])
        if last == job.place:
            return
        while (place := int(s.newer[last])) >= 0 and here[place].state == JobState.WAITING and here[place].sequence < job.sequence:
            last = place
        unlink(s, job.place, job.kind)
        link_behind(s, job.place, job.kind, last)

    # ------------------------------------------------------------------------------------------------------------ decisions

    def _decide(self, kind: int, i: int, now: float) -> Decision:
        s, target = self.state, self.target
        s.clock[0] = max(now, s.clock[0])
        began = time.perf_counter()
        if kind != CHANGE or not self._undone:
            target[:] = s.running  # the last decision, unless it could not be carried out
            target[i] += kind == COMPLETION
            s.event[KIND], s.event[TYPE] = kind, i
            self.wake = self._ask(s, target)
        if self._undone:
            target[:] = s.running
            s.event[KIND], s.event[TYPE] = CHANGE, i
            self.wake = self._ask(s, target)
        self.decision_s = time.perf_counter() - began
        self.decisions += 1
        return self._obey()

    def _obey(self) -> Decision:
        """Turns the part of the target that can be carried out into a decision. Marks jobs as running, suspended or stopping at once."""
        s, decision = self.state, Decision()
        if not self._may_stop:
            self._resume(decision)  # jobs that another plan suspended, before others take what is free
        want = np.minimum(self.target, s.system)
        yielding = s.running > want
        if self._may_stop and yielding.any() and self._fits(want):
            for i in np.flatnonzero(yielding):
                for _ in range(int(s.running[i] - want[i])):
                    job = self._by_place[int(s.older[s.first_waiting[i]] if s.first_waiting[i] >= 0 else s.newest[i])]
                    self._hold(job, JobState.SUSPENDED if self.stop == "suspend" and not job.ending else JobState.STOPPING)
                    decision.stop.append(job.id)
        for i in np.flatnonzero(s.running < want):
            for _ in range(int(want[i] - s.running[i])):
                if not self._start(self._by_place[int(s.first_waiting[i])], decision):
                    break
        while (own := self._own_ready.first(s.free)) is not None:  # also a suspended job that had a type under another plan
            self._start(self._own[own], decision)
        if (s.free < 0).any():
            for job in self._own.values():
                if job.state == JobState.SUSPENDED:
                    self._start(job, decision)
        if self._may_stop and not decision.stop and (s.running < want).any():
            self._resume(decision)
        self._undone = bool((s.running != want).any())
        return decision

    def _resume(self, decision: Decision) -> None:
        """Resumes suspended jobs that fit; in each type they are the oldest jobs that do not run."""
        for place in self.state.first_waiting.tolist():
            while place >= 0 and (job := self._by_place[place]).state == JobState.SUSPENDED and self._start(job, decision):
                place = int(self.state.newer[place])

    def _fits(self, want: Int) -> bool:
        """Whether the jobs of a decision fit beside what own and suspended jobs hold; what stopping jobs hold counts as free."""
        s = self.state
        used = want @ s.demand + self._own_held
        for i in range(len(want)):
            place, rank = s.oldest[i], 0
            while place >= 0:
                job = self._by_place[int(place)]
                if rank >= want[i]:
                    if job.state == JobState.WAITING:
                        break  # the started ones are the oldest
                    if job.state == JobState.SUSPENDED or (job.state == JobState.RUNNING and self.stop == "suspend" and not job.ending):
                        used = used + job.demand * self.kept_when_suspended
                place, rank = s.newer[place], rank + 1
        return bool((used <= s.capacity).all())

    def _start(self, job: Entry, decision: Decision) -> bool:
        if job.state == JobState.STOPPING or not self._has_room(job):
            return False
        (decision.resume if job.state == JobState.SUSPENDED else decision.start).append(job.id)
        self._hold(job, JobState.RUNNING)
        if job.place >= 0:
            self.state.finish[job.place] = self.state.clock[0] + job.estimate
        return True

    def _has_room(self, job: Entry) -> bool:
        """Whether a job can run beside what is held; where suspended jobs keep more than there is, one of them beside those in service."""
        s, need = self.state, job.demand - self._held(job, job.state)
        short = need > s.free
        if not short.any():
            return True
        if job.state != JobState.SUSPENDED or (need[short] > 0).any():
            return False
        in_service = [one.demand for one in self.jobs.values() if one.state in (JobState.RUNNING, JobState.STOPPING)]
        return bool((sum(in_service, job.demand) <= s.capacity)[short].all())

    # ------------------------------------------------------------------------------------------------------------ what others ask

    def units_of(self, demand: Sequence[float]) -> Int:
        """A demand in units, rounded up; the server must be able to meet it."""
        units: Int = np.ceil(np.asarray(demand, dtype=float) / self.unit * (1 - 1e-12)).astype(np.int64)
        return np.minimum(units, self.state.capacity)

    def next_sequence(self) -> int:
        """The place in the queue that the next job to arrive gets."""
        return self._next

    def waiting(self, kind: int) -> Iterable[int]:
        """Jobs of a type that do not run, oldest first."""
        if kind == OWN:
            yield from (job.id for job in self._own.values() if job.state != JobState.RUNNING)
            return
        place = int(self.state.first_waiting[kind])
        while place >= 0:
            yield self._by_place[place].id
            place = int(self.state.newer[place])

    def own(self) -> Sequence[Entry]:
        """Jobs that no type encloses, in order of arrival."""
        return list(self._own.values())

    def typed(self) -> Iterable[Entry]:
        """Jobs of types."""
        return self._by_place.values()

    def started(self) -> Iterable[Entry]:
        """Jobs that may hold resources: all that are not waiting."""
        return (job for job in self.jobs.values() if job.state != JobState.WAITING)

    def is_behind(self) -> bool:
        """Whether the last decision could not be carried out in full."""
        return self._undone

    def copy(self) -> Scheduler:
        """An independent scheduler in the same state; what never changes is shared."""
        twin = copy.copy(self)
        twin.jobs = {
            job.id: Entry(job.id, job.kind, job.demand, job.estimate, job.sequence, job.place, job.state, job.ending)
            for job in self.jobs.values()
        }
        twin._own = {id: twin.jobs[id] for id in self._own}
        twin._own_ready, twin._own_held = self._own_ready.copy(), self._own_held.copy()
        twin._by_place = {place: twin.jobs[job.id] for place, job in self._by_place.items()}
        twin._unused, twin.target = self._unused.copy(), self.target.copy()
        state = State._make(part if part is self.decider.data else part.copy() for part in self.state)
        twin.state, twin._ask = _moved(state, new_places(len(state.newer))), asked_directly(self.decider.decide)
        return twin

    def save(self) -> dict[str, Any]:
        """The state of the policy, for a later `remember`."""
        s = self.state
        return {
            "clock": float(s.clock[0]),
            "wake": None if np.isinf(self.wake) else float(self.wake),
            "memory": [None if np.isinf(x) else float(x) for x in s.memory],
            "counters": s.counters.tolist(),
            "mode": s.mode.tolist(),
            "random": [int(x) for x in s.random],
        }

    def will_end(self, id: int) -> None:
        """A job was cancelled while it ran. For the policy it still runs; if it is to stop, it holds what it has until it is gone."""
        self.jobs[id].ending = True

    def never_began(self, id: int) -> None:
        """A job that the policy stopped had not started on the machine: it waits again, and holds nothing."""
        self._wait_again(self.jobs[id])
        self._undone = True

    def remember(self, saved: dict[str, Any]) -> None:
        """Restores the saved state of the policy without asking it."""
        s = self.state
        known = {name: np.array(saved[name], dtype=getattr(s, name).dtype) for name in ("counters", "mode", "random")}
        known["memory"] = np.array([np.inf if x is None else x for x in saved["memory"]], dtype=s.memory.dtype)
        if any(values.shape != getattr(s, name).shape for name, values in known.items()):
            raise ValueError("the saved state belongs to another policy")
        for name, values in known.items():  # all or nothing: checked above
            getattr(s, name)[:] = values


def _moved(state: State, places: Any) -> State:
    """The state with its jobs in new places. These are as in the simulator, so that the machine code of decisions is the same."""
    new = with_places(state, places)
    for name in ("newer", "older", "sequence", "finish", "estimate"):
        getattr(new, name)[: len(state.newer)] = getattr(state, name)
    return new
