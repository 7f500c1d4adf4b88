"""The queue of one machine: takes jobs in, asks the scheduler what to do, has the supervisors do it, and follows every job to its end.

One thread, one event loop. What happens changes the state in memory at once; `turns` writes it down and then has it done.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rota import __version__
from rota.arrays import Int
from rota.decide import policy_name, seeded
from rota.errors import BadSpec, Problem
from rota.live.clock import boot_now
from rota.live.errors import DiskFull, NoSuchJob, Refused
from rota.live.jobs import Job, Request
from rota.live.messages import BEFORE_START, JobRequest, Submitted
from rota.live.processes.launcher import Order
from rota.live.processes.records import Attempt, boot_id
from rota.live.processes.supervisors import END, KILL, RESUME, Supervisors
from rota.live.rebuild import last_used
from rota.live.recovery import TOO_LARGE, is_unwanted, recover
from rota.live.resources.allocation import Allocation
from rota.live.scheduling.dependencies import Dependencies
from rota.live.scheduling.job_class import class_of, remark_on_directory
from rota.live.scheduling.scheduler import OWN, Orders, Scheduler
from rota.live.storage.database import Database
from rota.live.storage.event_log import EventLog
from rota.live.storage.write_ahead import Act, WriteAhead
from rota.live.tasks import Tasks
from rota.live.views.measures import Measures
from rota.live.views.metrics import Counters
from rota.model.live import OWN_TYPE
from rota.policy import PlanFile

__all__ = ["Queue", "boot_now"]

_MOST_TOLD = 20
_AGAIN_S = 1.0  # after a start that found no room
_SERVED = ("starting", "running")
Action = Literal["cancel", "hold", "release"]


class Queue:
    """Jobs and what becomes of them. `on_change(what, job, boot)` is told of arrivals, withdrawals and ends, `on_orders(boot)` when others
    may be in service than before: what the planner learns from.
    """

    def __init__(
        self, directory: Path, database: Database, plan: PlanFile, number: int, *, seed: int = 0, tell: Callable[[str], None] = print
    ) -> None:
        self.database, self.plan_number, self.seed = database, number, seed
        self.directory, self.settings, self.system, self.unit_s, self.tell = directory, plan.live, plan.system, plan.live.unit_s, tell
        self.boot, self.began = boot_id(), boot_now()
        self.allocation = Allocation(self.system, self.settings)
        random = seeded(np.random.SeedSequence(seed).spawn(2)[1])  # what the simulator gives a policy under this seed
        self.scheduler = Scheduler(self.system, plan.policy, random, **self._stopping())
        self._log = EventLog(directory / "events.jsonl")
        self.supervisors = Supervisors(directory, self.running, self.over, tell)
        self.writes = WriteAhead(self.database, self._log, self._carry_out, self._notes, tell)
        self.counters, self.measures = Counters(), Measures()
        self.on_change: Callable[[str, Job, float], None] = lambda what, job, boot: None
        self.on_orders: Callable[[float], None] = lambda boot: None
        self.here: dict[int, Job] = {}  # those that have not ended
        self.ended = Counter(self.database.counts())  # the others, by state
        self._ended: dict[int, set[asyncio.Event]] = {}  # who waits for which
        self._dependencies = Dependencies(self.find)
        self._to_follow: deque[int] | None = None  # jobs that an end lets go, while that is under way
        self._last_job = max(self.database.last("jobs"), self.database.note("last_job") or 0, last_used(directory))
        self.last_request = max(self.database.last("requests"), self.database.note("last_request") or 0)
        self._together = False  # whether several jobs are changed at once
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks(tell)

    # ------------------------------------------------------------------------------------------------------------ begin and end

    async def open(self) -> None:
        """Finds every job that was there and goes on with it."""
        self.loop = asyncio.get_running_loop()
        await self.supervisors.open()
        self.writes.open()
        self.announce()
        if (kept := self.database.note("measures")) is not None:
            try:
                self.measures = Measures.restored(kept)
            except (AttributeError, KeyError, TypeError, ValueError):
                self.tell("what was measured before cannot be read: it begins anew")
        saved, now = self.database.note("floor"), self.now()
        saved = saved if isinstance(saved, dict) else {}
        self.scheduler.state.clock[0] = now
        over = recover(self, self.database.live(), saved.get("boot") == self.boot)
        if saved.get("boot") == self.boot and saved.get("plan") == self.plan_number and self._remembers(saved):
            for job, _ in over:  # the policy hears first of whom it still takes for running
                if job.id not in self.scheduler.jobs and job.state in _SERVED:
                    self._do(self.scheduler.left(self._kind_and_units(job, self.database.request(job.request))[0], now))
            self._do(self.scheduler.look_again(now))
        else:
            self._do(self.scheduler.begin(now))
        for job in list(self.here.values()):
            if is_unwanted(job):
                self._end(job, "cancelled", job.reason)
            elif job.state == "blocked":
                self._try_to_queue(job)  # nothing may hold it back any more, or ever did: a daemon died before it could look
        for job, seen in over:
            if seen.state == "lost":
                self.supervisors.clear(job.id, job.attempt, seen)
            else:
                self.over(job.id, job.attempt, seen)

    def _remembers(self, saved: dict[str, Any]) -> bool:
        """Whether what was saved of the policy could be read; it is where it was then."""
        try:
            self.scheduler.remember(saved)
        except (KeyError, TypeError, ValueError, OverflowError):
            self.tell("where the policy was cannot be read: it begins anew")
            return False
        return True

    def put_on_scheduler(self, job: Job, state: Any) -> None:
        """A job of an earlier daemon is here, in this state."""
        request = self.database.request(job.request)
        kind, units = self._kind_and_units(job, request)
        served = (job.served_s + (0.0 if job.since_boot is None else boot_now() - job.since_boot)) / self.unit_s
        estimate = self._estimate(request)
        self.scheduler.put(job.id, kind, estimate=estimate, demand=units, sequence=job.sequence, state=state, served=served)

    async def close(self) -> None:
        """Writes what is to be written. Jobs go on, and the next daemon finds them."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()
        await self.supervisors.close()
        self.writes.close()
        self._log.close()

    def swap(self, plan: PlanFile, number: int, random: NDArray[np.uint64], reason: str) -> None:
        """Goes on under another plan for the same server, and its settings. No running job is touched."""
        self.plan_number, self.system, self.settings = number, plan.system, plan.live
        before, self.allocation = self.allocation, Allocation(self.system, self.settings)
        self.allocation.take_over(before, [job for job in self.here.values() if job.state == "suspended"])
        orders = self.scheduler.swap(plan.system, plan.policy, random, self.now(), **self._stopping())
        self.counters.plan_swaps += 1
        self.writes.event("swap", plan=number, reason=reason)
        self.announce()
        self._do(orders)

    def _stopping(self) -> dict[str, Any]:
        """What the scheduler is told of stopping jobs."""
        released = [self.settings.releases(name) for name in self.system.resources]
        return {"stop": self.settings.preemption, "releasable": released}

    def announce(self) -> None:
        """Logs what this server is and does."""
        types = {job.name: job.demand for job in self.system.job_types}
        resources = dict(zip(self.system.resources, self.system.capacity.tolist(), strict=True))
        policy = policy_name(self.scheduler.policy)
        self.writes.event("serve", version=__version__, resources=resources, types=types, policy=policy, time_unit_s=self.unit_s)

    def now(self) -> float:
        """The time in the plan's unit."""
        return boot_now() / self.unit_s

    # ------------------------------------------------------------------------------------------------------------ jobs come

    def submit(self, request: JobRequest) -> Submitted:
        """Takes a job, or an array of them, into the queue."""
        type, demand, remark = class_of(request, self.system)
        if type == OWN_TYPE:
            self.allocation.limits.check(demand)
        missing = [id for id in (*request.after, *request.after_any) if self.find(id) is None]
        if missing:
            more = [Problem("after", f"and {len(missing) - _MOST_TOLD:,} more")] * (len(missing) > _MOST_TOLD)
            raise BadSpec([*(Problem("after", f"there is no job {id}") for id in missing[:_MOST_TOLD]), *more])
        remark = "; ".join(filter(None, (remark, remark_on_directory(request.cwd))))
        asked = Request(
            id=self.last_request + 1,
            name=request.name,
            argv=request.argv,
            cwd=request.cwd,
            env=request.env,
            type=type,
            demand=demand,
            estimate_s=request.estimate_s,
            after=list(request.after),
            after_any=list(request.after_any),
            asked=None if request.demand is None else [request.demand.get(name, 0.0) for name in self.system.resources],
            token=secrets.token_hex(8),
        )
        indices: list[int | None] = [None] if request.array is None else list(range(request.array[0], request.array[1] + 1))
        first, wall, boot = self._last_job + 1, time.time(), boot_now()
        array = None if request.array is None else first
        held: tuple[Any, str] = ("held", "held by request") if request.hold else ("blocked", "")
        jobs = [
            Job(first + k, asked.id, request.name, type, held[0], wall, boot, self.boot, array=array, idx=index, reason=held[1])
            for k, index in enumerate(indices)
        ]
        told = {"what": "submit", "type": type, "demand": dict(zip(self.system.resources, demand, strict=True)), "name": request.name}
        self.writes.write_new(jobs, asked, [{**told, "job": job.id, "estimate_s": request.estimate_s} for job in jobs])
        self._last_job, self.last_request = jobs[-1].id, asked.id
        for job in jobs:
            self.here[job.id] = job
            if not request.hold:
                self._try_to_queue(job, boot)
        return Submitted(ids=[job.id for job in jobs], type=type, remark=remark)

    def kind_of(self, type: str) -> int:
        """The number of a type; OWN for one that the plan does not have."""
        return self.system.names.index(type) if type in self.system.names else OWN

    def scheduled_kind(self, job: Job) -> int:
        """The type that a job counts as: OWN also for one that started when its type needed something else."""
        here = self.scheduler.jobs.get(job.id)
        return self.kind_of(job.type) if here is None else here.kind

    def _kind_and_units(self, job: Job, request: Request) -> tuple[int, Int | None]:
        """What a job is on the scheduler: of its type, if it has what the type needs now, else with what it has."""
        kind = self.kind_of(job.type)
        if kind != OWN and np.array_equal(self.system.demand[kind], request.demand):
            return kind, None
        return OWN, self.scheduler.units_of(request.demand)

    def _estimate(self, request: Request) -> float | None:
        return None if request.estimate_s is None else request.estimate_s / self.unit_s

    def _try_to_queue(self, job: Job, boot: float | None = None) -> None:
        """Lets a job join the queue, now or as of then (those of an array together), if nothing holds it back."""
        request = self.database.request(job.request)
        why_never = self._dependencies.verdict(request)
        if why_never:
            self._end(job, "cancelled", why_never)
            return
        if why_never is None:
            job.state = "blocked"
            self._dependencies.block(request, job.id)
            self.writes.changed(job)
            return
        was_held_back = job.reason or request.after or request.after_any
        job.state, job.reason, job.sequence = "waiting", "", self.scheduler.next_sequence()
        self.writes.changed(job)
        if was_held_back:
            self.writes.event("eligible", job=job.id)
        kind, units = self._kind_and_units(job, request)
        now = self.now()
        self.on_change("arrived", job, boot_now() if boot is None else boot)
        self._do(self.scheduler.arrive(job.id, kind, now, estimate=self._estimate(request), demand=units))

    def find(self, id: int) -> Job | None:
        """A job that is here, or was."""
        return self.here.get(id) or self.writes.pending(id) or self.database.job(id)

    # ------------------------------------------------------------------------------------------------------------ users change their mind

    def cancel(self, id: int, now: bool = False) -> Job:
        """Ends a job: one that waits at once, one that runs by SIGTERM and, after its grace, SIGKILL (`now`: SIGKILL)."""
        return self._change_one("cancel", id, now)

    def hold(self, id: int) -> Job:
        """Takes a waiting job out of the queue until it is released."""
        return self._change_one("hold", id)

    def release(self, id: int) -> Job:
        """Lets a held job join the queue, behind those that are there."""
        return self._change_one("release", id)

    def _change_one(self, action: Action, id: int, now: bool = False) -> Job:
        self._write_ahead(action, [self._changeable(action, id)], now)
        return self._change(action, id, now)

    def _changeable(self, action: Action, id: int) -> Job:
        """A job to which this can be done; `NoSuchJob` or `Refused` if not."""
        job = self._live(id)
        if action == "hold" and job.state not in BEFORE_START:
            raise Refused(f"job {id} is {job.state}: only a job that waits can be held")
        if action == "release" and job.state != "held":
            raise Refused(f"job {id} is {job.state}, not held")
        if action == "release" and job.reason.startswith(TOO_LARGE):
            raise Refused(f"job {id} is held because {job.reason}: cancel it, or serve a plan of a larger server")
        return job

    def _write_ahead(self, action: Action, jobs: list[Job], now: bool) -> None:
        """Writes first what is wanted of jobs, so that it is done even if the daemon dies now. `DiskFull`: nothing is changed."""
        wanted: dict[Action, dict[str, Any]] = {
            "cancel": {"cancel": "cancel now" if now else "cancel", "reason": "cancelled by request"},
            "hold": {"state": "held", "reason": "held by request", "sequence": None},
            "release": {"state": "blocked"},  # the next daemon finds that nothing blocks it
        }
        try:
            self.writes.write_ahead([replace(job, **wanted[action]) for job in jobs])
        except DiskFull as error:
            said = {"cancel": "cancelled", "hold": "held", "release": "released"}[action]
            raise DiskFull(
                f"{error}: nothing was {said}; make room first (a job that fills the disk ends by: kill PROCESS, see rota show)"
            ) from error

    def _change(self, action: Action, id: int, now: bool) -> Job:
        """Does what is written already."""
        job = self._changeable(action, id)
        if action == "release":
            self._try_to_queue(job)
        elif action == "cancel" and job.state not in BEFORE_START:
            job.cancel, job.reason = "cancel now" if now else "cancel", "cancelled by request"
            job.state = "suspended" if job.state == "suspended" else "stopping"  # its cores may be others' by now
            self.writes.act("kill" if now else "end", job)
        else:
            if job.state == "waiting":
                self.on_change("withdrawn", job, boot_now())
            if action == "cancel":
                self._end(job, "cancelled", "cancelled by request")
                return job
            if job.state == "waiting":
                job.sequence = None
                self._leave_scheduler(id)
            job.state, job.reason = "held", "held by request"
            self.writes.changed(job)
        return job

    def change(self, action: Action, ids: Iterable[int], now: bool = False) -> tuple[list[Job], list[str]]:
        """Does the same to several jobs: those that are changed, and why others are not.

        The policy is asked once, when all have left that are to: none starts in the place of one that goes before it. (A job that came
        after one of them may be let in meanwhile; so the last of the queue leave first, and those that run are told last.)
        """

        def last_first(id: int) -> tuple[bool, float, int]:
            job = self.here[id]
            return job.state not in BEFORE_START, -np.inf if job.sequence is None else -job.sequence, -id

        ids = list(dict.fromkeys(ids))
        done: dict[int, Job] = {}
        refused: dict[int, str] = {}
        for id in ids:
            try:
                done[id] = self._changeable(action, id)
            except (NoSuchJob, Refused) as error:
                refused[id] = str(error)
        self._write_ahead(action, list(done.values()), now)
        self._together = True
        try:
            for id in list(done) if action == "release" else sorted(done, key=last_first):
                try:
                    self._change(action, id, now)
                except Refused as error:  # it ended with another of them, which it comes after
                    refused[id] = str(error)
                    del done[id]
        finally:
            self._together = False
        self._do(self.scheduler.look_again(self.now()))
        return [done[id] for id in ids if id in done], [refused[id] for id in ids if id in refused]

    def _leave_scheduler(self, id: int) -> None:
        if self._together:
            self.scheduler.take(id)
        else:
            self._do(self.scheduler.leave(id, self.now()))

    async def wait(self, id: int, timeout_s: float) -> Job:
        """A job when it has ended, or as it is after the timeout."""
        if id in self.here:
            ended = asyncio.Event()
            self._ended.setdefault(id, set()).add(ended)
            try:
                await asyncio.wait_for(ended.wait(), timeout_s)
            except TimeoutError:
                pass
            finally:
                if id in self._ended:
                    self._ended[id].discard(ended)
                    if not self._ended[id]:
                        del self._ended[id]
        job = self.find(id)
        if job is None:
            raise NoSuchJob(f"there is no job {id}")
        return job

    def _live(self, id: int) -> Job:
        if id in self.here:
            return self.here[id]
        job = self.find(id)
        if job is None:
            raise NoSuchJob(f"there is no job {id}")
        raise Refused(f"job {id} has ended: {job.state}")

    # ------------------------------------------------------------------------------------------------------------ what the scheduler orders

    def _do(self, orders: Orders) -> None:
        """Puts orders into effect: in memory now, on the machine after the next write."""
        self.counters.decided(self.scheduler.decision_s)
        boot, ask_again = boot_now(), False
        for id in orders.stop:
            job = self.here[id]
            if self.writes.withdraw("start", job):  # it was decided to start it, and nothing was done yet
                self._never_began(job)
                ask_again = True
                continue
            self._out_of_service(job, boot)
            self.counters.preemptions += 1
            if self.settings.preemption == "suspend":
                job.state = "suspended"
                self.allocation.suspend(job)
            else:
                job.state = "stopping"
            self.writes.event("suspend" if job.state == "suspended" else "requeue", job=id)
            self.writes.act(job.state, job)
        for id in orders.resume:
            job = self.here[id]
            job.state, job.since_boot = "running", boot
            self.allocation.resume(job)
            self.writes.event("resume", job=id)
            self.writes.act("resume", job)
        for id in orders.start:
            job = self.here[id]
            self.allocation.take(job, self.database.request(job.request).demand)
            job.state, job.attempt, job.pid = "starting", job.attempt + 1, None
            job.since_boot, job.started = boot, job.started or time.time()
            self.counters.starts += 1
            self.writes.event("start", job=id, attempt=job.attempt, cores=job.cores, gpus=job.gpus)
            self.writes.act("start", job)
        self.on_orders(boot)
        if ask_again:
            self._do(self.scheduler.look_again(self.now()))
        else:
            self._set_timer()

    def _never_began(self, job: Job) -> None:
        """A job is to yield whose start is not carried out yet: it stays in the queue, and is at no time on the machine beside others."""
        self.writes.event("suspend" if self.settings.preemption == "suspend" else "requeue", job=job.id)
        self.allocation.give_back(job)
        job.state, job.since_boot = "waiting", None
        if job.attempt == 1:
            job.started = None
        self.writes.changed(job)
        self.scheduler.never_began(job.id)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if np.isfinite(self.scheduler.wake):
            delay = max(self.scheduler.wake * self.unit_s - boot_now(), 0.0)
            self._timer = self.loop.call_later(min(delay, 3600.0), self._tick)  # a machine that slept is noticed within the hour

    def _tick(self) -> None:
        self._do(self.scheduler.tick(self.now()))

    # -------------------------------------------------------------------------------------------------------- reports of the supervisors

    def running(self, id: int, attempt: int, supervisor: int) -> None:
        """An attempt has its supervisor, so from now on it is never one that was not started."""
        job = self.here.get(id)
        if job is not None and job.attempt == attempt:
            job.state, job.pid = "running" if job.state == "starting" else job.state, supervisor
            self.writes.changed_by_the_way(job)  # after a crash, its record tells

    def over(self, id: int, attempt: int, seen: Attempt) -> None:
        """An attempt is over, and nothing of it is left on the machine."""
        job = self.here.get(id)
        if job is None or job.attempt != attempt:
            return
        if seen.state == "absent":  # nothing was run: no room for its record, or no process to be had
            self.tell(f"job {id} could not be started: the disk is full, or no process is to be had; trying again")
            self.loop.call_later(_AGAIN_S, self._start_again, id, attempt)
            return
        ended = seen.ended_boottime if seen.ended_boottime is not None and seen.boot == self.boot else boot_now()
        if job.since_boot is not None and seen.started_boottime is not None and seen.boot == self.boot and job.served_s == 0:
            job.since_boot = seen.started_boottime  # the program, not the wish to start it
        stopped = self.was_stopped(job, seen)
        self._out_of_service(job, ended)
        self.allocation.give_back(job)
        self.writes.act("forget", job)
        if stopped:
            job.state, job.restarts = "waiting", job.restarts + (seen.pid is not None)
            self.writes.changed(job)
            if id in self.scheduler.jobs:
                self._do(self.scheduler.stopped(id, self.now()))
            return
        job.exit_code, reason = seen.exit_code, seen.error
        if seen.state == "lost":
            same = seen.boot in ("", self.boot)
            reason = reason or ("its supervisor was killed" if same else "the machine went down while it ran")
        elif job.exit_code and not reason:
            reason = f"ended by signal {job.exit_code - 128}" if seen.how == "signal" else f"exit code {job.exit_code}"
        outcome = "cancelled" if job.cancel else "done" if job.exit_code == 0 else "failed"
        self._end(job, outcome, job.reason if job.cancel else reason, ended, known=seen.state != "lost")

    @staticmethod
    def was_stopped(job: Job, seen: Attempt) -> bool:
        """Whether an attempt that is over is to be followed by another. One that ended before it heard that it should stop has ended."""
        return seen.state == "ended" and seen.told and not job.cancel and (job.state == "stopping" or seen.pid is None)

    def _start_again(self, id: int, attempt: int) -> None:
        job = self.here.get(id)
        if job is None or job.attempt != attempt:
            return
        if job.cancel or job.state not in _SERVED:  # it was never run: it can simply leave, or wait
            self.over(id, attempt, Attempt("ended", boot=self.boot, told=True))
        else:
            self.writes.act("start", job)

    def _out_of_service(self, job: Job, boot: float) -> None:
        if job.since_boot is not None:
            job.served_s += max(boot - job.since_boot, 0.0)
            job.since_boot = None
        self.writes.changed(job)

    def _end(self, job: Job, outcome: Any, reason: str, ended: float | None = None, known: bool = True) -> None:
        """A job is over, for whatever reason. `known`: how long it took is."""
        boot = boot_now() if ended is None else ended
        job.ended = time.time() - (boot_now() - boot)
        job.response_s = boot - job.submitted_boot if job.boot == self.boot else max(job.ended - job.submitted, 0.0)
        ran, job.state, job.reason = job.started is not None, outcome, reason if outcome != "done" else ""
        self.writes.changed(job)
        del self.here[job.id]
        self.ended[outcome] += 1
        self.counters.job_ended(job.type, outcome, job.response_s)
        if ran and known and outcome != "cancelled":
            self.measures.ended(job.type, job.response_s, job.served_s)
        if ran and known:
            self.on_change("finished", job, boot)
        served = {"run_s": job.served_s} if ran else {"run_s": None}
        self.writes.event("end", job=job.id, outcome=outcome, exit_code=job.exit_code, response_s=job.response_s, **served)
        if job.id in self.scheduler.jobs:
            self._leave_scheduler(job.id)
        for event in self._ended.pop(job.id, ()):
            event.set()
        self._let_follow(self._dependencies.ended(job))

    def _let_follow(self, ids: list[int]) -> None:
        """Those that came after a job that ended. Their own ends come back here and are added: a chain may be long, and end as a whole."""
        if self._to_follow is not None:
            self._to_follow += ids
            return
        self._to_follow = deque(ids)
        try:
            while self._to_follow:
                if (job := self.here.get(self._to_follow.popleft())) is not None and job.state == "blocked":
                    self._try_to_queue(job)
        finally:
            self._to_follow = None

    # ------------------------------------------------------------------------------------------------------------ on the machine

    def _carry_out(self, acts: list[Act]) -> None:
        """Does what was decided and is written by now. Who starts may need the cores of who is suspended: one after the other."""
        stops = [act for act in acts if act.what == "suspended" and act.job in self.here and self.here[act.job].state == "suspended"]
        rest = [act for act in acts if act.what != "suspended"]
        if stops:
            self.writes.pause()
            self._tasks.start(self._after(stops, rest))
        else:
            self._act_on(rest)

    async def _after(self, stops: list[Act], rest: list[Act]) -> None:
        try:
            await asyncio.gather(*(self.supervisors.suspend(act.job, act.attempt) for act in stops))
            self._act_on(rest)
        finally:
            self.writes.go_on()

    def _act_on(self, acts: list[Act]) -> None:
        for what, id, attempt in acts:
            if what == "forget":
                self.supervisors.forget(id, attempt)
            elif (job := self.here.get(id)) is None or job.attempt != attempt:
                continue
            elif what == "start" and job.cancel:
                self.over(id, attempt, Attempt("ended", boot=self.boot))  # before it began
            elif what == "start":
                self.supervisors.start(self._order(job))
            elif what != "resume" or job.state in _SERVED:  # it may have been told to yield again, in the same turn
                if what == "resume" and (cores := self.allocation.cores(job)) is not None:
                    self.supervisors.move(id, attempt, cores)
                self.supervisors.send(id, attempt, {"resume": RESUME, "stopping": END, "end": END, "kill": KILL}[what])

    def _order(self, job: Job) -> Order:
        request = self.database.request(job.request)
        return Order(
            job=job.id,
            attempt=job.attempt,
            argv=request.argv,
            env=request.env,
            cwd=request.cwd,
            type=job.type,
            restart=job.restarts,
            index=job.idx,
            grace_s=self.settings.grace_s,
            token=request.token,
            **self.allocation.terms(job, request.demand),
        )

    def _notes(self) -> dict[str, Any]:
        scheduler = {**self.scheduler.save(), "boot": self.boot, "plan": self.plan_number}
        return {"floor": scheduler, "last_job": self._last_job, "last_request": self.last_request}
