"""The executor: connects the lifecycle to the clock, the database and the machine.

One thread, one event loop. Everything that happens is an event for the lifecycle. The outcome is written to the database
(`write_ahead`), then the supervisors of the jobs carry it out. Their reports are the next events.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rota.decide import seeded
from rota.live.actions import Action, Do
from rota.live.clock import boot_now
from rota.live.counters import Counters
from rota.live.errors import DiskFull, NoSuchJob, Refused
from rota.live.jobs import Job, JobState
from rota.live.lifecycle import Lifecycle
from rota.live.measures import Measures
from rota.live.messages import JobRequest, Submitted
from rota.live.new_jobs import submit_events
from rota.live.outcome import Outcome
from rota.live.processes.launcher import Program
from rota.live.processes.records import Attempt, boot_id
from rota.live.processes.supervisors import END, KILL, RESUME, Supervisors
from rota.live.rebuild import last_used
from rota.live.recovery import describe_found, find_attempts, saved_policy_state
from rota.live.resources.allocation import Allocation
from rota.live.scheduling.job_class import remark_on_directory
from rota.live.stimuli import (
    At,
    AttemptOver,
    AttemptRunning,
    Change,
    ChangeJobs,
    HandedOver,
    PlanInstalled,
    Recovered,
    RetryStart,
    Stimulus,
    TimerRang,
)
from rota.live.storage.database import Database
from rota.live.storage.event_log import EventLog
from rota.live.storage.write_ahead import WriteAhead
from rota.live.tasks import Tasks
from rota.policy import PlanFile

__all__ = ["Executor"]

_AGAIN_S = 1.0  # after a start that failed
_LONGEST_SLEEP_S = 3600.0  # so that the end of a machine's sleep is noticed within an hour
_SIGNALS = {Do.RESUME: RESUME, Do.REQUEUE: END, Do.END: END, Do.KILL: KILL}
_DONE = {Change.CANCEL: "cancelled", Change.HOLD: "held", Change.RELEASE: "released"}


class Executor:
    """The jobs, and everything that happens to them. `on_outcome(outcome, boot)` is called for each outcome: the planner learns from it."""

    def __init__(
        self, directory: Path, database: Database, plan: PlanFile, number: int, *, seed: int = 0, log_line: Callable[[str], None] = print
    ) -> None:
        self.directory, self.database, self.seed, self.log_line = directory, database, seed, log_line
        self.began = boot_now()
        self._log = EventLog(directory / "events.jsonl")
        self.writes = WriteAhead(database, self._log, self._carry_out, self._notes, log_line)
        self.lifecycle = Lifecycle(
            plan,
            number,
            seeded(np.random.SeedSequence(seed).spawn(2)[1]),  # the same random numbers as the simulator gives a policy under this seed
            Allocation(plan.system, plan.live),
            boot=boot_id(),
            find_ended=lambda id: self.writes.job(id) or database.job(id),
            find_request=self.writes.request,
            last_job=max(database.last("jobs"), database.note("last_job") or 0, last_used(directory)),
            last_request=max(database.last("requests"), database.note("last_request") or 0),
        )
        self.supervisors = Supervisors(directory, self._running, self._over, log_line)
        self.counters, self.measures = Counters(), Measures()
        self.on_outcome: Callable[[Outcome, float], None] = lambda outcome, boot: None
        self.ended = Counter(database.counts())  # jobs that have ended, by state
        self._waiters: dict[int, set[asyncio.Event]] = {}  # by job
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks(log_line)

    async def open(self) -> None:
        """Finds all jobs of earlier daemons and continues with them."""
        self._loop = asyncio.get_running_loop()
        await self.supervisors.open()
        self.writes.open()
        if (kept := self.database.note("measures")) is not None:
            try:
                self.measures = Measures.restored(kept)
            except (AttributeError, KeyError, TypeError, ValueError):
                self.log_line("the saved measurements cannot be read: measuring begins anew")
        boot, jobs = self.lifecycle.boot, self.database.live()
        same_boot, policy_state = saved_policy_state(self.database.note("scheduler"), boot, self.lifecycle.plan_number)
        found = find_attempts(self.supervisors, jobs, self.database.request, boot, same_boot)
        if jobs:
            self.log_line(describe_found(jobs))
        self.handle(Recovered(jobs, found, policy_state))
        for id, (seen, _, _) in found.items():
            if seen is not None and seen.state == "lost":
                self.supervisors.clear(id, self.lifecycle.jobs[id].attempt, seen)

    async def close(self) -> None:
        """Writes what is not written yet. Jobs keep running, and the next daemon finds them."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()
        await self.supervisors.close()
        self.writes.close()
        self._log.close()

    # ------------------------------------------------------------------------------------------------------------ events

    def handle(self, event: Stimulus) -> Outcome:
        """Handles an event: its outcome is to be written and carried out."""
        at = At(time.time(), boot_now())
        outcome = self.lifecycle.handle(event, at)
        self.writes.gather(outcome, at.wall)
        for line in outcome.remarks:
            self.log_line(line)
        self._count(outcome)
        self.on_outcome(outcome, at.boot)
        for ended in outcome.ended:
            for waiter in self._waiters.pop(ended.job.id, ()):
                waiter.set()
        if outcome.decisions_s:
            self._set_timer()
        return outcome

    def _count(self, outcome: Outcome) -> None:
        counters = self.counters
        counters.starts += outcome.starts
        counters.preemptions += outcome.preemptions
        counters.plan_swaps += outcome.swaps
        for time_s in outcome.decisions_s:
            counters.decided(time_s)
        for job, known in outcome.ended:
            assert job.response_s is not None
            self.ended[job.state] += 1
            counters.job_ended(job.type, job.state, job.response_s)
            if known and job.state != JobState.CANCELLED:
                self.measures.ended(job.type, job.response_s, job.served_s)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if np.isfinite(wake := self.lifecycle.wake_boot):
            self._timer = self._loop.call_later(min(max(wake - boot_now(), 0.0), _LONGEST_SLEEP_S), self._ring)

    def _ring(self) -> None:
        self.handle(TimerRang())

    def _running(self, job: int, attempt: int, supervisor: int) -> None:
        self.handle(AttemptRunning(job, attempt, supervisor))

    def _over(self, job: int, attempt: int, seen: Attempt) -> None:
        self.handle(AttemptOver(job, attempt, seen))

    def _retry(self, job: int, attempt: int) -> None:
        self.handle(RetryStart(job, attempt))

    # ------------------------------------------------------------------------------------------------------------ what users ask for

    def submit(self, request: JobRequest) -> Submitted:
        """Takes a job, or an array of them, into the queue."""
        at = At(time.time(), boot_now())
        new = self.lifecycle.accept(request, secrets.token_hex(8), at)
        remark = "; ".join(filter(None, (new.remark, remark_on_directory(request.cwd))))
        self.writes.write_new(new.jobs, new.request, submit_events(new, self.lifecycle.system.resources), at.wall)
        self.handle(new)
        return Submitted(ids=[job.id for job in new.jobs], type=new.request.type, remark=remark)

    def change_one(self, change: Change, id: int, now: bool = False) -> Job:
        """Cancels, holds or releases a job. `now`: one that runs is killed at once, without its grace."""
        job = self.lifecycle.changeable(change, id)
        self._write_intended(change, [job], now)
        self.handle(ChangeJobs(change, [id], now))
        return job

    def change(self, change: Change, ids: Iterable[int], now: bool = False) -> tuple[list[Job], list[str]]:
        """Does the same to several jobs. Returns those that are changed, and why others are not."""
        ids = list(dict.fromkeys(ids))
        jobs: dict[int, Job] = {}
        refused: dict[int, str] = {}
        for id in ids:
            try:
                jobs[id] = self.lifecycle.changeable(change, id)
            except (NoSuchJob, Refused) as error:
                refused[id] = str(error)
        self._write_intended(change, jobs.values(), now)
        refused |= self.handle(ChangeJobs(change, list(jobs), now, together=True)).refused
        return [jobs[id] for id in ids if id not in refused], [refused[id] for id in ids if id in refused]

    def _write_intended(self, change: Change, jobs: Iterable[Job], now: bool) -> None:
        """Writes the requested change first, so that it is made even if the daemon dies now. `DiskFull`: nothing is changed."""
        try:
            self.writes.write_intended(self.lifecycle.intended(change, jobs, now))
        except DiskFull as error:
            raise DiskFull(
                f"{error}: nothing was {_DONE[change]}; make space first (to end a job that fills the disk: kill PROCESS, see rota show)"
            ) from error

    def install(self, plan: PlanFile, number: int, random: Any, reason: str) -> None:
        """Switches to another plan for the same server, with its settings. Running jobs are not affected."""
        self.handle(PlanInstalled(plan, number, random, reason, Allocation(plan.system, plan.live)))

    def find(self, id: int) -> Job:
        """A job, ended or not; `NoSuchJob` if there is none."""
        if (job := self.lifecycle.find(id)) is None:
            raise NoSuchJob(f"there is no job {id}")
        return job

    async def wait(self, id: int, timeout_s: float) -> Job:
        """A job when it has ended, or as it is after the timeout."""
        if id in self.lifecycle.jobs:
            ended = asyncio.Event()
            self._waiters.setdefault(id, set()).add(ended)
            try:
                await asyncio.wait_for(ended.wait(), timeout_s)
            except TimeoutError:
                pass
            finally:
                if id in self._waiters:
                    self._waiters[id].discard(ended)
                    if not self._waiters[id]:
                        del self._waiters[id]
        return self.find(id)

    # ------------------------------------------------------------------------------------------------------------ on the machine

    def _carry_out(self, actions: list[Action]) -> None:
        """Carries out what is written. Suspensions come first, because a job that starts may need the cores of a job that is suspended."""
        self.handle(HandedOver(actions))
        stops = [action for action in actions if action.do == Do.SUSPEND and self.lifecycle.due(action)]
        rest = [action for action in actions if action.do != Do.SUSPEND]
        if stops:
            self.writes.pause()
            self._tasks.start(self._after(stops, rest))
        else:
            self._act(rest)

    async def _after(self, stops: list[Action], rest: list[Action]) -> None:
        try:
            await asyncio.gather(*(self.supervisors.suspend(action.job, action.attempt) for action in stops))
            self._act(rest)
        finally:
            self.writes.go_on()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            do, id, attempt = action
            if do == Do.FORGET:
                self.supervisors.forget(id, attempt)
            elif do == Do.RETRY:
                self._loop.call_later(_AGAIN_S, self._retry, id, attempt)
            elif (job := self.lifecycle.due(action)) is None:
                continue
            elif do == Do.START and job.cancel:
                self._over(id, attempt, Attempt("ended", boot=self.lifecycle.boot))  # before it began
            elif do == Do.START:
                self.supervisors.start(self._program(job))
            else:
                if do == Do.RESUME and (moved := self.lifecycle.allocation.moves(job)):
                    self.supervisors.move(id, attempt, moved)
                self.supervisors.send(id, attempt, _SIGNALS[do])

    def _program(self, job: Job) -> Program:
        request, lifecycle = self.lifecycle.request(job), self.lifecycle
        return Program(
            job=job.id,
            attempt=job.attempt,
            argv=request.argv,
            env=request.env,
            cwd=request.cwd,
            type=job.type,
            restart=job.restarts,
            index=job.idx,
            grace_s=lifecycle.settings.grace_s,
            token=request.token,
            share=lifecycle.allocation.terms(job, request.demand),
        )

    def _notes(self) -> dict[str, Any]:
        """What is written with every turn: the state of the policy, and the last numbers that were assigned."""
        lifecycle = self.lifecycle
        policy_state = {**lifecycle.scheduler.save(), "boot": lifecycle.boot, "plan": lifecycle.plan_number}
        return {"scheduler": policy_state, "last_job": lifecycle.last_job, "last_request": lifecycle.last_request}
