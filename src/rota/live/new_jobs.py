"""Makes the jobs of a request: one, or one for each index of an array."""

from __future__ import annotations

from rota.events import Event, Submit
from rota.live.jobs import Job, JobState, Request
from rota.live.messages import JobRequest
from rota.live.scheduling.job_class import class_of
from rota.live.stimuli import At, NewJobs
from rota.model import System

__all__ = ["HELD_BY_REQUEST", "new_jobs", "submit_events"]

HELD_BY_REQUEST = "held by request"


def new_jobs(asked: JobRequest, system: System, *, token: str, at: At, boot: str, job: int, request: int) -> NewJobs:
    """The jobs of a request, numbered from `job` on; `BadSpec` if the server cannot run them."""
    type, demand, remark = class_of(asked, system)
    wanted = Request(
        id=request,
        name=asked.name,
        argv=asked.argv,
        cwd=asked.cwd,
        env=asked.env,
        type=type,
        demand=demand,
        estimate_s=asked.estimate_s,
        after=list(asked.after),
        after_any=list(asked.after_any),
        asked=None if asked.demand is None else [asked.demand.get(name, 0.0) for name in system.resources],
        token=token,
    )
    indices: list[int | None] = [None] if asked.array is None else list(range(asked.array[0], asked.array[1] + 1))
    array = None if asked.array is None else job
    state, reason = (JobState.HELD, HELD_BY_REQUEST) if asked.hold else (JobState.BLOCKED, "")
    jobs = [
        Job(job + k, request, asked.name, type, state, at.wall, at.boot, boot, array=array, idx=index, reason=reason)
        for k, index in enumerate(indices)
    ]
    return NewJobs(wanted, jobs, remark)


def submit_events(new: NewJobs, resources: tuple[str, ...]) -> list[Event]:
    """The log events of new jobs."""
    demand = dict(zip(resources, new.request.demand, strict=True))
    return [Submit(job.id, job.type, demand, job.name, new.request.estimate_s) for job in new.jobs]
