"""The states of all jobs, as a state machine: `handle(event, at)` changes the jobs and returns what is to be done.

It is pure: it has no clock, reads and writes no files, and starts no processes. The time comes with each event. Two functions that it is
given look up ended jobs and requests. What is to be done outside is its answer, an `Outcome`:

    changed   jobs to write                    events   lines for the log
    actions   what to do on the machine        …        and what the statistics and the planner learn from

The executor writes an outcome to the database and then carries out its actions. After a crash, recovery is one more event (`Recovered`).
`rota.live.jobs.NEXT_STATES` lists the possible changes of state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rota import __version__
from rota.arrays import Int
from rota.errors import BadSpec, Problem
from rota.events import Eligible, End, Event, Requeue, Resume, Serve, Start, Suspend, Swap
from rota.live.actions import Action, Do
from rota.live.errors import NoSuchJob, Refused
from rota.live.jobs import BEFORE_START, IN_SERVICE, Cancel, Job, JobState, Request
from rota.live.messages import JobRequest
from rota.live.new_jobs import HELD_BY_REQUEST, new_jobs
from rota.live.outcome import EndedJob, Observation, Outcome
from rota.live.processes.records import Attempt
from rota.live.recovered import TOO_LARGE, recover
from rota.live.resources.allocation import Allocation
from rota.live.resources.kinds import texts_of
from rota.live.scheduling.dependencies import Dependencies
from rota.live.scheduling.scheduler import OWN, Decision, Scheduler
from rota.live.stimuli import (
    At,
    AttemptOver,
    AttemptRunning,
    Change,
    ChangeJobs,
    HandedOver,
    NewJobs,
    PlanInstalled,
    Recovered,
    RetryStart,
    Stimulus,
    TimerRang,
    was_stopped,
)
from rota.model.live import OWN_TYPE
from rota.policy import PlanFile, policy_name

__all__ = ["Lifecycle"]

_MOST_NAMED = 20
_CANCELLED = "cancelled by request"


class Lifecycle:
    """All jobs that have not ended. `find_ended` and `find_request` look up what is in the database."""

    def __init__(
        self,
        plan: PlanFile,
        number: int,
        random: NDArray[np.uint64],
        allocation: Allocation,
        *,
        boot: str,
        find_ended: Callable[[int], Job | None],
        find_request: Callable[[int], Request],
        last_job: int = 0,
        last_request: int = 0,
    ) -> None:
        self.plan_number, self.system, self.settings = number, plan.system, plan.live
        self.unit_s, self.boot, self.allocation = plan.live.unit_s, boot, allocation
        self.scheduler = Scheduler(self.system, plan.policy, random, **self._stopping())
        self.jobs: dict[int, Job] = {}
        self.last_job, self.last_request = last_job, last_request
        self._find_ended, self._find_request = find_ended, find_request
        self._dependencies = Dependencies(self.find)
        self._unblocked: deque[int] | None = None  # jobs to be queued after an end, while that is under way
        self._together = False  # whether several jobs are changed at once
        self._to_start: set[Action] = set()  # starts that are not handed to the executor yet
        self.at, self.out = At(0.0, 0.0), Outcome()

    def handle(self, event: Stimulus, at: At) -> Outcome:
        """Changes the jobs as the event says, and returns the outcome."""
        self.at, self.out = at, Outcome()
        match event:
            case NewJobs():
                self._take_in(event)
            case ChangeJobs():
                self._change_jobs(event)
            case TimerRang():
                self.apply(self.scheduler.tick(self.now))
            case AttemptRunning():
                self.running(event)
            case AttemptOver():
                self.over(event.job, event.attempt, event.seen)
            case RetryStart():
                self._retry(event)
            case HandedOver():
                self._to_start.difference_update(event.actions)
            case PlanInstalled():
                self._install(event)
            case Recovered():
                recover(self, event)
        return self.out

    @property
    def now(self) -> float:
        """The time in the plan's unit."""
        return self.at.boot / self.unit_s

    @property
    def wake_boot(self) -> float:
        """When the policy wants to be asked again, on the clock of `At.boot`; infinite if it only waits for the next event."""
        return float(self.scheduler.wake) * self.unit_s

    # ------------------------------------------------------------------------------------------------------------ questions

    def find(self, id: int) -> Job | None:
        """A job, ended or not."""
        return self.jobs.get(id) or self.out.changed.get(id) or self._find_ended(id)

    def request(self, job: Job) -> Request:
        """The request of a job."""
        return self.out.requests.get(job.request) or self._find_request(job.request)

    def kind_of(self, type: str) -> int:
        """The number of a type; OWN for one that the plan does not have."""
        return self.system.names.index(type) if type in self.system.names else OWN

    def scheduled_kind(self, job: Job) -> int:
        """The type that a job counts as; OWN also for a job that started when its type had another demand."""
        entry = self.scheduler.jobs.get(job.id)
        return self.kind_of(job.type) if entry is None else entry.kind

    def changeable(self, change: Change, id: int) -> Job:
        """The job, if this change is possible; `NoSuchJob` or `Refused` if not."""
        if (job := self.jobs.get(id)) is None:
            if (ended := self.find(id)) is None:
                raise NoSuchJob(f"there is no job {id}")
            raise Refused(f"job {id} has ended: {ended.state}")
        if change == Change.HOLD and job.state not in BEFORE_START:
            raise Refused(f"job {id} is {job.state}: only a job that waits can be held")
        if change == Change.RELEASE and job.state != JobState.HELD:
            raise Refused(f"job {id} is {job.state}, not held")
        if change == Change.RELEASE and job.reason.startswith(TOO_LARGE):
            raise Refused(f"job {id} is held because {job.reason}: cancel it, or serve a plan of a larger server")
        return job

    def intended(self, change: Change, jobs: Iterable[Job], now: bool) -> list[Job]:
        """Jobs as they are written before they are changed: if the daemon dies in between, the next one finds what is to be done."""
        wanted: dict[Change, dict[str, Any]] = {
            Change.CANCEL: {"cancel": Cancel.NOW if now else Cancel.GRACEFUL, "reason": _CANCELLED},
            Change.HOLD: {"state": JobState.HELD, "reason": HELD_BY_REQUEST, "sequence": None},
            Change.RELEASE: {"state": JobState.BLOCKED},  # the next daemon finds that nothing blocks it
        }
        return [replace(job, **wanted[change]) for job in jobs]

    def due(self, action: Action) -> Job | None:
        """The job of an action that is to be carried out now; None if the action has become pointless meanwhile."""
        job = self.jobs.get(action.job)
        if job is None or job.attempt != action.attempt:
            return None
        if action.do == Do.SUSPEND:
            return job if job.state == JobState.SUSPENDED else None
        if action.do == Do.RESUME:  # it may have been preempted again, in the same turn
            return job if job.state in IN_SERVICE else None
        return job

    # ------------------------------------------------------------------------------------------------------------ jobs come

    def accept(self, asked: JobRequest, token: str, at: At) -> NewJobs:
        """The jobs of a request, to be written before the answer that they are accepted. Changes nothing."""
        new = new_jobs(asked, self.system, token=token, at=at, boot=self.boot, job=self.last_job + 1, request=self.last_request + 1)
        if new.request.type == OWN_TYPE:
            self.allocation.check(new.request.demand)
        if missing := [id for id in (*asked.after, *asked.after_any) if self.find(id) is None]:
            more = [Problem("after", f"and {len(missing) - _MOST_NAMED:,} more")] * (len(missing) > _MOST_NAMED)
            raise BadSpec([*(Problem("after", f"there is no job {id}") for id in missing[:_MOST_NAMED]), *more])
        return new

    def _take_in(self, new: NewJobs) -> None:
        self.last_job, self.last_request = new.jobs[-1].id, new.request.id
        for job in new.jobs:
            self.jobs[job.id] = job
            if job.state != JobState.HELD:
                self.try_to_queue(job)

    def try_to_queue(self, job: Job) -> None:
        """Lets a job join the queue if it depends on no other job any more."""
        request = self.request(job)
        why_never = self._dependencies.verdict(request)
        if why_never:
            self.end(job, JobState.CANCELLED, why_never)
            return
        if why_never is None:
            job.state = JobState.BLOCKED
            self._dependencies.block(request, job.id)
            self.changed(job)
            return
        was_held_back = job.reason or request.after or request.after_any
        job.state, job.reason, job.sequence = JobState.WAITING, "", self.scheduler.next_sequence()
        self.changed(job)
        if was_held_back:
            self.out.events.append(Eligible(job.id))
        kind, units = self.kind_and_units(job, request)
        self._observe("arrived", job)
        self.apply(self.scheduler.arrive(job.id, kind, self.now, estimate=self.estimate(request), demand=units))

    def kind_and_units(self, job: Job, request: Request) -> tuple[int, Int | None]:
        """A job's type and demand for the scheduler: its type, if its demand is that of the type now; otherwise OWN and its demand."""
        kind = self.kind_of(job.type)
        if kind != OWN and np.array_equal(self.system.demand[kind], request.demand):
            return kind, None
        return OWN, self.scheduler.units_of(request.demand)

    def estimate(self, request: Request) -> float | None:
        """The estimated size of a job, in the plan's unit of time."""
        return None if request.estimate_s is None else request.estimate_s / self.unit_s

    # ------------------------------------------------------------------------------------------------------------ users change their mind

    def _change_jobs(self, event: ChangeJobs) -> None:
        if not event.together:
            for id in event.ids:
                self._change(event.change, id, event.now)
            return

        def last_first(id: int) -> tuple[bool, float, int]:
            job = self.jobs[id]
            return job.state not in BEFORE_START, -np.inf if job.sequence is None else -job.sequence, -id

        self._together = True
        for id in event.ids if event.change == Change.RELEASE else sorted(event.ids, key=last_first):
            try:
                self._change(event.change, id, event.now)
            except Refused as error:  # it ended together with another of these jobs, on which it depends
                self.out.refused[id] = str(error)
        self._together = False
        self.apply(self.scheduler.look_again(self.now))

    def _change(self, change: Change, id: int, now: bool) -> None:
        job = self.changeable(change, id)
        if change == Change.RELEASE:
            self.try_to_queue(job)
        elif change == Change.CANCEL and job.state not in BEFORE_START:
            job.cancel, job.reason = Cancel.NOW if now else Cancel.GRACEFUL, _CANCELLED
            if job.state != JobState.SUSPENDED:  # a suspended job stays suspended until it ends: others may have its cores by now
                job.state = JobState.STOPPING
            self.scheduler.will_end(id)
            self.act(Do.KILL if now else Do.END, job)
        else:
            if job.state == JobState.WAITING:
                self._observe("withdrawn", job)
            if change == Change.CANCEL:
                self.end(job, JobState.CANCELLED, _CANCELLED)
                return
            if job.state == JobState.WAITING:
                job.sequence = None
                self._leave_scheduler(id)
            job.state, job.reason = JobState.HELD, HELD_BY_REQUEST
            self.changed(job)

    def _leave_scheduler(self, id: int) -> None:
        if self._together:
            self.scheduler.take(id)
        else:
            self.apply(self.scheduler.leave(id, self.now))

    # ------------------------------------------------------------------------------------------------------------ the policy decides

    def apply(self, decision: Decision) -> None:
        """Carries out a decision: on the jobs now, on the machine after the next write."""
        out, ask_again = self.out, False
        out.decisions_s.append(self.scheduler.decision_s)
        suspends = self.settings.preemption == "suspend"
        never_begun: list[Job] = []  # cancelled before their start was carried out
        for id in decision.stop:
            job = self.jobs[id]
            if job.cancel:  # it is ending already
                if self._withdraw_start(job):
                    never_begun.append(job)
                continue
            stopped: Event = Suspend(id) if suspends else Requeue(id)
            out.events.append(stopped)
            if self._withdraw_start(job):  # its start was decided, but not carried out yet
                self._never_began(job)
                ask_again = True
                continue
            self._out_of_service(job, self.at.boot)
            out.preemptions += 1
            if suspends:
                job.state = JobState.SUSPENDED
                self.allocation.suspend(job)
                self.act(Do.SUSPEND, job)
            else:
                job.state = JobState.STOPPING
                self.act(Do.REQUEUE, job)
        for id in decision.resume:
            job = self.jobs[id]
            job.state, job.since_boot = JobState.RUNNING, self.at.boot
            self.allocation.resume(job)
            out.events.append(Resume(id))
            self.act(Do.RESUME, job)
        for id in decision.start:
            job = self.jobs[id]
            self.allocation.take(job, self.request(job).demand)
            job.state, job.attempt, job.pid = JobState.STARTING, job.attempt + 1, None
            job.since_boot, job.started = self.at.boot, job.started or self.at.wall
            out.starts += 1
            out.events.append(Start(id, job.attempt, texts_of(job.share)))
            self.act(Do.START, job)
        for job in never_begun:
            self._undo_start(job)
            self.end(job, JobState.CANCELLED, job.reason)
        if ask_again:
            self.apply(self.scheduler.look_again(self.now))

    def _withdraw_start(self, job: Job) -> bool:
        """Withdraws the start of a job. Returns whether that was possible: it was not handed over yet."""
        start = Action(Do.START, job.id, job.attempt)
        if start not in self._to_start:
            return False
        self._to_start.discard(start)
        if start in self.out.actions:
            self.out.actions.remove(start)
        else:
            self.out.withdrawn.append(start)
        return True

    def _never_began(self, job: Job) -> None:
        """Preempts a job whose start is not carried out yet: it stays in the queue and is not started."""
        self._undo_start(job)
        job.state = JobState.WAITING
        self.changed(job)
        self.scheduler.never_began(job.id)

    def _undo_start(self, job: Job) -> None:
        """Takes back what a start gave to a job: its share and its time in service."""
        self.allocation.release(job)
        job.since_boot = None
        if job.attempt == 1:
            job.started = None

    # ------------------------------------------------------------------------------------------------------------ supervisors report

    def running(self, event: AttemptRunning) -> None:
        """The supervisor of an attempt has reported."""
        job = self.jobs.get(event.job)
        if job is not None and job.attempt == event.attempt:
            job.state, job.pid = JobState.RUNNING if job.state == JobState.STARTING else job.state, event.supervisor
            self.out.minor[job.id] = job

    def over(self, id: int, attempt: int, seen: Attempt) -> None:
        """An attempt is over: the job ends, or waits again if it was stopped."""
        job = self.jobs.get(id)
        if job is None or job.attempt != attempt:
            return
        if seen.state == "absent":  # nothing was run: no space for its record, or no process could be created
            self.out.remarks.append(f"job {id} could not be started: the disk is full, or no process can be created; trying again")
            self.out.actions.append(Action(Do.RETRY, id, attempt))
            return
        ended = seen.ended_boottime if seen.ended_boottime is not None and seen.boot == self.boot else self.at.boot
        if job.since_boot is not None and seen.started_boottime is not None and seen.boot == self.boot and job.served_s == 0:
            job.since_boot = seen.started_boottime  # the start of the program, not of the decision to start it
        stopped = was_stopped(job, seen)
        self._out_of_service(job, ended)
        self.allocation.release(job)
        self.act(Do.FORGET, job)
        if stopped:
            job.state, job.restarts = JobState.WAITING, job.restarts + (seen.pid is not None)
            if id in self.scheduler.jobs:
                self.apply(self.scheduler.stopped(id, self.now))
            return
        job.exit_code, reason = seen.exit_code, seen.error
        if seen.state == "lost":
            same = seen.boot in ("", self.boot)
            reason = reason or ("its supervisor was killed" if same else "the machine went down while it ran")
        elif job.exit_code and not reason:
            reason = f"ended by signal {job.exit_code - 128}" if seen.how == "signal" else f"exit code {job.exit_code}"
        outcome = JobState.CANCELLED if job.cancel else JobState.DONE if job.exit_code == 0 else JobState.FAILED
        self.end(job, outcome, job.reason if job.cancel else reason, ended, known=seen.state != "lost")

    def _retry(self, event: RetryStart) -> None:
        job = self.jobs.get(event.job)
        if job is None or job.attempt != event.attempt:
            return
        if job.cancel or job.state not in IN_SERVICE:  # it was never run, so it can leave or wait at once
            self.over(job.id, job.attempt, Attempt("ended", boot=self.boot, asked_to_end=True))
        else:
            self.act(Do.START, job)

    # ------------------------------------------------------------------------------------------------------------ jobs end

    def _out_of_service(self, job: Job, boot: float) -> None:
        if job.since_boot is not None:
            job.served_s += max(boot - job.since_boot, 0.0)
            job.since_boot = None
        self.changed(job)

    def end(self, job: Job, outcome: JobState, reason: str, ended: float | None = None, known: bool = True) -> None:
        """Ends a job. `known`: its run time is known."""
        boot = self.at.boot if ended is None else ended
        job.ended = self.at.wall - (self.at.boot - boot)
        job.response_s = boot - job.submitted_boot if job.boot == self.boot else max(job.ended - job.submitted, 0.0)
        ran, job.state, job.reason = job.started is not None, outcome, reason if outcome != JobState.DONE else ""
        self.changed(job)
        del self.jobs[job.id]
        self.out.ended.append(EndedJob(job, ran and known))
        if ran and known:
            self._observe("finished", job, boot)
        self.out.events.append(End(job.id, str(outcome), job.exit_code, job.response_s, job.served_s if ran else None))
        if job.id in self.scheduler.jobs:
            self._leave_scheduler(job.id)
        self._unblock(self._dependencies.ended(job))

    def _unblock(self, ids: list[int]) -> None:
        """Queues jobs that depend on a job that ended. If one of these ends at once, its dependents are added here: a chain may be long."""
        if self._unblocked is not None:
            self._unblocked += ids
            return
        self._unblocked = deque(ids)
        while self._unblocked:
            if (job := self.jobs.get(self._unblocked.popleft())) is not None and job.state == JobState.BLOCKED:
                self.try_to_queue(job)
        self._unblocked = None

    # ------------------------------------------------------------------------------------------------------------ plans

    def _stopping(self) -> dict[str, Any]:
        """How the scheduler may stop jobs."""
        released = [self.settings.releases(name) for name in self.system.resources]
        return {"stop": self.settings.preemption, "releasable": released}

    def _install(self, event: PlanInstalled) -> None:
        """Switches to another plan. Running jobs are not affected."""
        self.plan_number, self.system, self.settings = event.number, event.plan.system, event.plan.live
        before, self.allocation = self.allocation, event.allocation
        self.allocation.take_over(before, [job for job in self.jobs.values() if job.state == JobState.SUSPENDED])
        decision = self.scheduler.swap(self.system, event.plan.policy, event.random, self.now, **self._stopping())
        self.out.swaps += 1
        self.out.events.append(Swap(event.number, event.reason))
        self.announce()
        self.apply(decision)

    def announce(self) -> None:
        """Logs the server, its types and its policy."""
        types = {job.name: job.demand for job in self.system.job_types}
        resources = dict(zip(self.system.resources, self.system.capacity.tolist(), strict=True))
        self.out.events.append(Serve(__version__, resources, types, policy_name(self.scheduler.policy), self.unit_s))

    # ------------------------------------------------------------------------------------------------------------ the outcome

    def changed(self, job: Job) -> None:
        """A job is to be written."""
        self.out.changed[job.id] = job

    def act(self, do: Do, job: Job) -> None:
        """Something is to be done with the attempt of a job, once the job is written."""
        action = Action(do, job.id, job.attempt)
        self.out.actions.append(action)
        if do == Do.START:
            self._to_start.add(action)
        self.changed(job)

    def _observe(self, what: Literal["arrived", "withdrawn", "finished"], job: Job, boot: float | None = None) -> None:
        self.out.observations.append(Observation(what, job, self.scheduled_kind(job), self.at.boot if boot is None else boot))
