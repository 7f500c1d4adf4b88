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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Int
from rota.decide import ARRIVAL, CHANGE, COMPLETION, START, TIMER, State, decider_of, new_state, rule_of
from rota.decide.state import KIND, TYPE
from rota.errors import BadSpec, Problem
from rota.live.jobs import JobState
from rota.live.scheduling.job_table import OWN, Entry, JobTable, list_order
from rota.live.scheduling.units import fine_units
from rota.model import System
from rota.policy import Policy, policy_name, preempts
from rota.simulation.compiled import asked_directly

__all__ = ["OWN", "Decision", "Scheduler", "Stop", "list_order"]

Stop = Literal["none", "suspend", "requeue"]
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


class Scheduler:
    """The jobs of one server under one policy. Times are in the system's unit of time."""

    def __init__(
        self, system: System, policy: Policy, random: NDArray[np.uint64], *, stop: Stop = "none", releasable: Sequence[bool] | None = None
    ) -> None:
        self.stop: Stop = stop
        self._next = 0
        self.decisions, self.decision_s = 0, 0.0
        self.wake = np.inf  # when the policy wants to be asked again
        self._install(system, policy, random, _kept(releasable or [True] * len(system.capacity)))

    def _install(self, system: System, policy: Policy, random: NDArray[np.uint64], kept_when_suspended: Int) -> None:
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
        self._table = JobTable(state, kept_when_suspended)
        self.target: Int = np.zeros(len(system.names), dtype=np.int64)
        self._undone = False  # whether the last decision could not be carried out in full

    @property
    def state(self) -> State:
        """What the policy is shown."""
        return self._table.state

    @property
    def jobs(self) -> Mapping[int, Entry]:
        """All jobs, by number."""
        return self._table.jobs

    @property
    def kept_when_suspended(self) -> Int:
        """(R,) 1 for resources that a suspended job does not give back."""
        return self._table.kept_when_suspended

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
        self._table.wait_again(job)
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
        before = self._table
        here = sorted(before.jobs.values(), key=lambda job: list_order(job.state, job.sequence))
        self.stop = self.stop if stop is None else stop
        self._install(system, policy, random, before.kept_when_suspended if releasable is None else _kept(releasable))
        for old in here:
            job = self._table.add(old.id, old.kind, old.estimate, old.demand, old.sequence, old.state)
            job.ending = old.ending
            if job.place >= 0:
                self.state.finish[job.place] = before.state.finish[old.place]
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
        job = self._table.add(id, kind, expected, units, self._next if sequence is None else sequence, state)
        self._next = max(self._next, job.sequence + 1)
        if job.place >= 0:
            self.state.finish[job.place] = self.state.clock[0] + max(expected - served, 0.0)

    def take(self, id: int) -> None:
        """Takes a job off the scheduler without asking the policy."""
        self._table.take(id)

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
        s, table, decision = self.state, self._table, Decision()
        if not self._may_stop:
            self._resume(decision)  # jobs that another plan suspended, before others take what is free
        want = np.minimum(self.target, s.system)
        yielding = s.running > want
        if self._may_stop and yielding.any() and table.fits(want, suspends=self.stop == "suspend"):
            for i in np.flatnonzero(yielding).tolist():
                for _ in range(int(s.running[i] - want[i])):
                    job = table.youngest_running(i)
                    table.hold(job, JobState.SUSPENDED if self.stop == "suspend" and not job.ending else JobState.STOPPING)
                    decision.stop.append(job.id)
        for i in np.flatnonzero(s.running < want).tolist():
            for _ in range(int(want[i] - s.running[i])):
                if not self._start(table.by_place[int(s.first_waiting[i])], decision):
                    break
        while (own := table.own_ready.first(s.free)) is not None:  # also a suspended job that had a type under another plan
            self._start(table.own[own], decision)
        if (s.free < 0).any():
            for job in table.own.values():
                if job.state == JobState.SUSPENDED:
                    self._start(job, decision)
        if self._may_stop and not decision.stop and (s.running < want).any():
            self._resume(decision)
        self._undone = bool((s.running != want).any())
        return decision

    def _resume(self, decision: Decision) -> None:
        """Resumes suspended jobs that fit; in each type they are the oldest jobs that do not run."""
        for place in self.state.first_waiting.tolist():
            while place >= 0 and (job := self._table.by_place[place]).state == JobState.SUSPENDED and self._start(job, decision):
                place = int(self.state.newer[place])

    def _start(self, job: Entry, decision: Decision) -> bool:
        if job.state == JobState.STOPPING or not self._table.has_room(job):
            return False
        (decision.resume if job.state == JobState.SUSPENDED else decision.start).append(job.id)
        self._table.hold(job, JobState.RUNNING)
        if job.place >= 0:
            self.state.finish[job.place] = self.state.clock[0] + job.estimate
        return True

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
        return (job.id for job in self._table.waiting(kind))

    def own(self) -> Sequence[Entry]:
        """Jobs that no type encloses, in order of arrival."""
        return list(self._table.own.values())

    def typed(self) -> Iterable[Entry]:
        """Jobs of types."""
        return self._table.by_place.values()

    def started(self) -> Iterable[Entry]:
        """Jobs that may hold resources: all that are not waiting."""
        return (job for job in self.jobs.values() if job.state != JobState.WAITING)

    def is_behind(self) -> bool:
        """Whether the last decision could not be carried out in full."""
        return self._undone

    def copy(self) -> Scheduler:
        """An independent scheduler in the same state; what never changes is shared."""
        twin = copy.copy(self)
        twin._table, twin.target = self._table.copy(), self.target.copy()
        twin._ask = asked_directly(self.decider.decide)
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
        self._table.wait_again(self.jobs[id])
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


def _kept(releasable: Sequence[bool]) -> Int:
    return np.array([not x for x in releasable], dtype=np.int64)
