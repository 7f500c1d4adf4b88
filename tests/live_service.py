"""The scheduler in this process, for tests: real jobs, no HTTP.

A test is a coroutine that uses `open_service`, and `play` runs it: so that no job is left behind, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import rota
from rota.live.messages import Job, JobRequest
from rota.live.processes.records import look
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.policy import PlanFile, as_policy

PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE_S = 15.0


def slots(capacity: float = 2, **demand: float) -> rota.System:
    """A server with one resource that is only counted; types small (1) and large (2) unless others are given."""
    types = demand or {"small": 1, "large": 2}
    K = len(types)
    return rota.System([capacity], [[need] for need in types.values()], [0.5] * K, [5.0] * K, names=tuple(types), resources=("slots",))


def plan_of(system: rota.System, policy: Any = "fcfs", **live: Any) -> PlanFile:
    """A plan with predictions, so that no process is started to make them."""
    predicted = {name: {"mean": 1.0, "p95": 3.0} for name in system.names}
    return PlanFile(system, as_policy(policy), LiveSettings(**{"grace_s": 1.0, **live}), 0.5, predicted)


@asynccontextmanager
async def open_service(
    directory: Path, plan: PlanFile | None = None, *, leave: bool = False, recover: bool = False
) -> AsyncIterator[Service]:
    """A service from its start to its end. `leave`: its jobs go on; else they are killed. `service.told` holds what it said."""
    told: list[str] = []
    directory.mkdir(exist_ok=True)
    service = Service(directory, plan, recover=recover, log_line=told.append)
    service.told = told  # type: ignore[attr-defined]
    await service.open()
    try:
        yield service
        if not leave:
            for id in list(service.executor.lifecycle.jobs):
                if id in service.executor.lifecycle.jobs:
                    service.cancel(id, now=True)
            await until(lambda: not service.executor.lifecycle.jobs)
    finally:
        await service.close()


def play(directory: Path, story: Awaitable[None]) -> None:
    """Runs a story to its end. Whatever becomes of it, no job is left behind in this directory or those in it."""
    try:
        asyncio.run(asyncio.wait_for(story, 90))
    finally:
        for record in directory.glob("**/run/*.*"):
            job, attempt = record.name.split(".")
            if (seen := look(str(record.parent), int(job), int(attempt))).state == "alive" and seen.supervisor is not None:
                os.kill(seen.supervisor, signal.SIGQUIT)  # it kills its job


def run(service: Service, script: str, **request: Any) -> int:
    """Submits a shell script; the number of its (first) job."""
    env = {"PATH": PATH, **request.pop("env", {})}
    return service.submit(JobRequest(argv=["/bin/sh", "-c", script], env=env, **request)).ids[0]


async def finished(service: Service, id: int) -> Job:
    """The job when it has ended."""
    job = await service.wait(id, PATIENCE_S)
    assert job.ended is not None, f"job {id} is {job.state}"
    return job


async def until(true: Callable[[], object]) -> None:
    """Lets the loop turn until something is so."""
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, "it did not come to pass"
        await asyncio.sleep(0.005)


def is_stopped(pid: int | None) -> bool:
    """Whether a process is stopped (T), or waits in vfork for a child that is (D)."""
    return state_of(pid) in ("T", "D")


def state_of(pid: int | None) -> str:
    """The letter of /proc: R, S, T (stopped) …; "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cores_of(pid: int | None) -> set[int]:
    """The cores that a process may use."""
    assert pid is not None
    return os.sched_getaffinity(pid)
