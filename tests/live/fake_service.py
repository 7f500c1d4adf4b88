"""A small scheduler without a plan, a clock or recovery: enough to test the HTTP interface and the client without the real one.

Jobs live in a dictionary and run as real processes, first come first served on two cores. `start_service` is what tests use: it can be
replaced by one that starts the real service with the same types.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rota.errors import BadSpec, Problem
from rota.live.errors import NoSuchJob, NoSuchPlan, Refused
from rota.live.messages import (
    ENDED,
    Changed,
    ChangeRequest,
    Explanation,
    Job,
    JobRequest,
    JobState,
    PlanVersion,
    ResourceUse,
    Status,
    Submitted,
)

TYPES = {"small": {"cores": 1.0}, "large": {"cores": 2.0}}
CAPACITY = {"cores": 2.0}


class FakeService:
    """The methods of the service, in memory."""

    def __init__(self) -> None:
        self.requests: dict[int, JobRequest] = {}
        self.known: dict[int, Job] = {}
        self.outputs: dict[int, bytes] = {}
        self.log_of_events: list[dict[str, Any]] = []
        self.changed = asyncio.Event()
        self.running: dict[int, asyncio.Task[None]] = {}
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.pinned = False
        self.plan = 1

    def submit(self, request: JobRequest) -> Submitted:
        """One job for each index."""
        type = request.type if request.type is not None else self._enclosing(request.demand or {})
        if type not in TYPES:
            raise BadSpec([Problem("type", f"is none of {', '.join(TYPES)}", type)])
        for earlier in (*request.after, *request.after_any):
            self.job(earlier)
        first, last = request.array or (0, 0)
        ids = list(range(len(self.known) + 1, len(self.known) + 2 + last - first))
        for index, id in enumerate(ids, first):
            self.requests[id], self.outputs[id] = request, b""
            self.known[id] = Job(
                id=id,
                name=request.name,
                type=type,
                demand=TYPES[type],
                state="held" if request.hold else "waiting",
                argv=request.argv,
                cwd=request.cwd,
                array=None if request.array is None else ids[0],
                index=None if request.array is None else index,
                after=request.after,
                after_any=request.after_any,
                submitted=time.time(),
                reason="held by its user" if request.hold else "",
            )
            self._note(id)
        self._start()
        return Submitted(ids=ids, type=type)

    def job(self, id: int) -> Job:
        """The job, or NoSuchJob."""
        if id not in self.known:
            raise NoSuchJob(f"there is no job {id}: see rota jobs")
        return self.known[id]

    def jobs(self, state: list[JobState] | None, type: str | None, name: str | None, limit: int, before: int | None) -> list[Job]:
        """Newest first."""
        found = [
            job
            for job in reversed(self.known.values())
            if (state is None or job.state in state)
            and (type is None or job.type == type)
            and (name is None or job.name == name)
            and (before is None or job.id < before)
        ]
        return found[:limit]

    def cancel(self, id: int, now: bool = False) -> Job:
        """Ends it."""
        job = self.job(id)
        if job.state in ENDED:
            raise Refused(f"job {id} has ended ({job.state})")
        if id in self.processes:
            self.processes[id].kill()
        self._set(id, state="cancelled", ended=time.time(), reason="cancelled by its user")
        return self.known[id]

    def hold(self, id: int) -> Job:
        """Only a waiting job."""
        return self._move(id, "waiting", "held")

    def release(self, id: int) -> Job:
        """Only a held job."""
        self._move(id, "held", "waiting")
        self._start()
        return self.known[id]

    def change(self, request: ChangeRequest) -> Changed:
        """One after the other, the last one first."""
        jobs, refused = [], []
        for id in reversed(request.ids):
            try:
                jobs.append(self.cancel(id, request.now) if request.action == "cancel" else getattr(self, request.action)(id))
            except (NoSuchJob, Refused) as error:
                refused.append(str(error))
        return Changed(jobs=jobs, refused=refused)

    async def wait(self, id: int, timeout_s: float) -> Job:
        """Long poll."""
        until = time.monotonic() + timeout_s
        while self.job(id).state not in ENDED and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self.changed.wait(), left)
            except TimeoutError:
                break
        return self.job(id)

    def log(self, id: int, offset: int, limit: int) -> tuple[bytes, int, bool]:
        """A piece of the output."""
        ended = self.job(id).state in ENDED
        data = self.outputs[id][offset : offset + limit]
        following = min(offset, len(self.outputs[id])) + len(data)
        return data, following, ended and following >= len(self.outputs[id])

    async def explain(self, id: int) -> Explanation:
        """Nothing wise."""
        job = self.job(id)
        return Explanation(id=id, state=job.state, text=f"job {id} is {job.state}")

    def status(self) -> Status:
        """The bare minimum."""
        counts: dict[str, int] = {}
        for job in self.known.values():
            counts[job.state] = counts.get(job.state, 0) + 1
        use = [ResourceUse(name=name, capacity=capacity, used=self._used()) for name, capacity in CAPACITY.items()]
        return Status(
            version="0",
            policy="FCFS",
            plan=self.plan,
            pinned=self.pinned,
            preemption="none",
            uptime_s=1,
            now=time.time(),
            resources=use,
            types=[],
            counts=counts,
            phase="",
            planned_load=0.5,
        )

    def plans(self) -> list[PlanVersion]:
        """There is one."""
        return [
            PlanVersion(
                number=1,
                time=0,
                policy="FCFS",
                reason="the first",
                load=0.5,
                in_use=True,
                pinned=self.pinned,
                arrival_rate=dict.fromkeys(TYPES, 1.0),
                mean_size_s=dict.fromkeys(TYPES, 1.0),
            )
        ]

    def use_plan(self, number: int) -> PlanVersion:
        """Only the first."""
        if number != 1:
            raise NoSuchPlan(f"there is no plan {number}: see rota plan-history")
        return self.plans()[0]

    def pin(self, pinned: bool) -> Status:
        """Remembers it."""
        self.pinned = pinned
        return self.status()

    def events(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Oldest first."""
        return self.log_of_events[after : after + limit]

    def metrics(self) -> str:
        """One number."""
        return f"# TYPE rota_jobs gauge\nrota_jobs {len(self.known)}\n"

    # ----------------------------------------------------------------------------------------------------------------------

    def _enclosing(self, demand: dict[str, float]) -> str:
        if unknown := sorted(set(demand) - set(CAPACITY)):
            raise BadSpec([Problem(f"demand.{name}", "is no resource of this server") for name in unknown])
        if demand.get("cores", 0) > CAPACITY["cores"]:
            raise BadSpec([Problem("demand.cores", "is more than the server has", demand["cores"])])
        return "small" if demand.get("cores", 0) <= 1 else "large"

    def _move(self, id: int, before: JobState, to: JobState) -> Job:
        if (job := self.job(id)).state != before:
            raise Refused(f"job {id} is {job.state}, not {before}")
        self._set(id, state=to)
        return self.known[id]

    def _used(self) -> float:
        return sum(self.known[id].demand["cores"] for id in self.running)

    def _start(self) -> None:
        for job in list(self.known.values()):
            if job.state == "waiting" and self._ready(job):
                if self._used() + job.demand["cores"] > CAPACITY["cores"]:
                    return
                self._set(job.id, state="running", started=time.time())
                self.running[job.id] = asyncio.ensure_future(self._run(job.id))

    def _ready(self, job: Job) -> bool:
        return all(self.known[id].state in ENDED for id in (*job.after, *job.after_any))

    async def _run(self, id: int) -> None:
        job, pipe = self.requests[id], asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *job.argv, cwd=job.cwd, env=job.env, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT
            )
        except (OSError, ValueError) as error:
            code, self.outputs[id] = 127, f"{error}\n".encode()
        else:
            self.processes[id] = process
            if self.known[id].state in ENDED:  # cancelled while it was started
                process.kill()
            assert process.stdout is not None
            while data := await process.stdout.read(65536):
                self.outputs[id] += data
            code = await process.wait()
        if self.known[id].state not in ENDED:
            now = time.time()
            self._set(id, state="done" if code == 0 else "failed", exit_code=code if code >= 0 else 128 - code, ended=now)
        del self.running[id]
        self.processes.pop(id, None)
        self._start()

    def _set(self, id: int, **changes: Any) -> None:
        self.known[id] = self.known[id].model_copy(update=changes)
        self._note(id)
        self.changed.set()
        self.changed = asyncio.Event()

    def _note(self, id: int) -> None:
        self.log_of_events.append({"number": len(self.log_of_events) + 1, "job": id, "state": self.known[id].state})


@asynccontextmanager
async def start_service(directory: Path) -> AsyncIterator[FakeService]:
    """A service with `TYPES` on `CAPACITY`, whose state lives in `directory`; at the end no process of it is left."""
    assert os.path.isdir(directory)
    service = FakeService()
    try:
        yield service
    finally:
        for id, job in list(service.known.items()):
            if job.state not in ENDED:
                service.cancel(id, now=True)
        await asyncio.gather(*service.running.values())
