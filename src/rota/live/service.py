"""The service: the executor, the planner, and the methods that the HTTP interface offers to users."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from rota.errors import RotaError
from rota.live.clock import boot_now
from rota.live.errors import DiskFull
from rota.live.executor import Executor
from rota.live.faults import report_fault
from rota.live.jobs import Job as Kept
from rota.live.messages import ENDED, Changed, ChangeRequest, Explanation, Job, JobRequest, JobState, PlanVersion, Status, Submitted
from rota.live.planning.planner import Planner, choose_plan
from rota.live.rebuild import open_database, rebuild
from rota.live.scheduling.forecast import Outlook
from rota.live.stimuli import Change
from rota.live.storage.private_files import read_plain
from rota.live.storage.time_of_day import TimeOfDay
from rota.live.views.explain import why_not, with_forecast
from rota.live.views.job import job_message
from rota.live.views.metrics import exposition
from rota.live.views.status import status_of
from rota.policy import PlanFile

__all__ = ["Service"]

_PRUNE_S = 3600.0
_PATIENCE_S = 10.0  # how long to wait for the compiler before answering without a forecast
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _changes(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Marks a method that changes something: an unexpected error may leave the change half done, so it is reported as a fault."""

    @wraps(method)
    def watched(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(*arguments, **named)
        except RotaError:  # refused, with nothing changed
            raise
        except Exception as error:
            report_fault(error)
            raise

    return watched


class Service:
    """The scheduler of one state directory. `open` it in a running event loop; `close` ends it, and the jobs keep running."""

    def __init__(
        self,
        directory: Path,
        plan: PlanFile | None = None,
        *,
        seed: int = 0,
        recover: bool = False,
        log_line: Callable[[str], None] = print,
    ) -> None:
        self.directory = directory
        self._database = open_database(directory, recover, log_line)
        try:
            number, plan = choose_plan(self._database, plan)
            if recover:
                rebuild(self._database, directory, plan.system.resources, log_line)
            self.executor = Executor(directory, self._database, plan, number, seed=seed, log_line=log_line)
            self.planner = Planner(self.executor, plan, log_line)
        except BaseException:
            self._database.close()
            raise
        self._one_at_a_time = asyncio.Lock()
        self._preparing: asyncio.Future[None] | None = None
        self._time_of_day = TimeOfDay(self._database)

    async def open(self) -> None:
        """Finds all jobs of earlier daemons and continues with them."""
        await self.executor.open()
        self.planner.open()
        self._prune()

    async def close(self) -> None:
        """Ends the service. Jobs keep running, and the next daemon finds them."""
        self._pruning.cancel()
        await self.planner.close()
        await self.executor.close()
        self._database.close()

    # ------------------------------------------------------------------------------------------------------------ jobs

    @_changes
    def submit(self, request: JobRequest) -> Submitted:
        """Submits a job, or an array of jobs."""
        return self.executor.submit(request)

    def job(self, id: int) -> Job:
        """One job."""
        return self._message(self._found(id))

    def jobs(self, state: list[JobState] | None, type: str | None, name: str | None, limit: int, before: int | None) -> list[Job]:
        """Jobs, newest first, in brief. Changes of this turn are written first, so that the answer agrees with `job`."""
        self._write()
        return [
            self._in_brief(self.executor.lifecycle.jobs.get(job.id) or self.executor.writes.job(job.id) or job)
            for job in self._database.jobs(state, type, name, limit, before)
        ]

    @_changes
    def cancel(self, id: int, now: bool = False) -> Job:
        """Ends a job."""
        return self._message(self.executor.change_one(Change.CANCEL, id, now))

    @_changes
    def hold(self, id: int) -> Job:
        """Takes a waiting job out of the queue."""
        return self._message(self.executor.change_one(Change.HOLD, id))

    @_changes
    def release(self, id: int) -> Job:
        """Lets a held job join the queue."""
        return self._message(self.executor.change_one(Change.RELEASE, id))

    @_changes
    def change(self, request: ChangeRequest) -> Changed:
        """Cancels, holds or releases several jobs together."""
        jobs, refused = self.executor.change(Change(request.action), request.ids, request.now)
        return Changed(jobs=[self._in_brief(job) for job in jobs], refused=refused)

    async def wait(self, id: int, timeout_s: float) -> Job:
        """The job when it has ended, or as it is after the timeout."""
        return self._message(await self.executor.wait(id, timeout_s))

    def _message(self, job: Kept) -> Job:
        return job_message(self.executor, job, self.executor.lifecycle.request(job))

    def _in_brief(self, job: Kept) -> Job:
        return job_message(self.executor, job, self._database.brief(job.request))

    def log(self, id: int, offset: int, limit: int) -> tuple[bytes, int, bool]:
        """A part of a job's output, the offset of the next part, and whether the output is complete."""
        over = self._found(id).state in ENDED  # checked before reading, so that nothing that is written in between is missed
        data = read_plain(self.directory / "output" / f"{id}.log", offset, limit)
        return data, offset + len(data), over and len(data) < limit

    async def explain(self, id: int) -> Explanation:
        """Why a job is not running, and when it can be expected to."""
        if self._found(id).state in ("waiting", "suspended"):
            async with self._one_at_a_time:
                return await self._explain_with_forecast(id)
        return self._explain(id)

    def _found(self, id: int) -> Kept:
        return self.executor.find(id)

    def _explain(self, id: int) -> Explanation:
        """The explanation from the present state, without a forecast."""
        job = self._found(id)
        text, ahead = why_not(self.executor, job, self.executor.lifecycle.request(job))
        return Explanation(id=id, state=job.state.value, text=text, ahead=ahead)

    async def _explain_with_forecast(self, id: int) -> Explanation:
        """The explanation with a forecast from the present state; without a forecast if the job no longer waits by then."""
        lifecycle, now = self.executor.lifecycle, self._explain(id)
        if now.state not in ("waiting", "suspended"):  # this request had to wait for other requests
            return now
        boot = boot_now()
        served = {
            here.id: (here.served_s + (0.0 if here.since_boot is None else boot - here.since_boot)) / lifecycle.unit_s
            for here in lifecycle.jobs.values()
            if here.served_s or here.since_boot is not None
        }
        outlook = Outlook(lifecycle.scheduler, served, id, boot / lifecycle.unit_s, self.planner.learnt())
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.ensure_future(asyncio.to_thread(outlook.prepare))
        await asyncio.wait([self._preparing], timeout=_PATIENCE_S)
        if not self._preparing.done():
            later = " Ask again in a minute for an estimate of its start: it is being prepared."
            return now.model_copy(update={"text": now.text + later})
        self._preparing.result()
        starts = await asyncio.to_thread(outlook.starts)
        as_of, passed_s = time.time(), boot_now() - boot  # the answer counts from this moment on, not from when it is read
        known = starts.in_seconds(lifecycle.unit_s, passed_s)
        if known.law is None:
            found = with_forecast(now, known, as_of)
        else:  # its quantiles take some milliseconds
            found = await asyncio.to_thread(with_forecast, now, known, as_of)
        return found if self._found(id).state == now.state else self._explain(id)

    # ------------------------------------------------------------------------------------------------------------ the scheduler

    def status(self) -> Status:
        """The scheduler at this moment."""
        return status_of(self.executor, self.planner)

    def plans(self) -> list[PlanVersion]:
        """Every plan that was in use."""
        return self.planner.plans()

    @_changes
    def use_plan(self, number: int) -> PlanVersion:
        """Returns to a plan and pins it."""
        return self.planner.use(number)

    @_changes
    def pin(self, pinned: bool) -> Status:
        """Keeps the plan in use, or lets it change."""
        self.planner.pin(pinned)
        return self.status()

    def events(self, after: int, limit: int) -> list[dict[str, Any]]:
        """The newest events; all are in the file `events.jsonl`."""
        self._write()
        return self._database.events(after, limit)

    def _write(self) -> None:
        with suppress(DiskFull):  # reading works with a full disk, too: the answer is what was written before
            self.executor.writes.write()

    def metrics(self) -> str:
        """The metrics, for Prometheus."""
        return exposition(self.status(), self.executor.counters)

    def _prune(self) -> None:
        self._pruning = asyncio.get_running_loop().call_later(_PRUNE_S, self._prune)
        try:
            if (doubt := self._time_of_day.doubt()) is not None:
                self.executor.log_line(doubt) if doubt else None
                return
            old = self._database.prune(time.time() - 86_400 * self.executor.lifecycle.settings.keep_days)
        except DiskFull as error:
            self.executor.log_line(str(error))
            return
        self.executor.ended = Counter(self._database.counts()) if old else self.executor.ended
        for id in old:
            (self.directory / "output" / f"{id}.log").unlink(missing_ok=True)
