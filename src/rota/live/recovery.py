"""Recovery: what the database says of the jobs of an earlier daemon is held against what the machine says of them.

The supervisors is open, so an attempt without a record that was never claimed was never run and never will be, unless it is ordered anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rota.errors import BadSpec
from rota.live.jobs import Job, Request
from rota.live.messages import BEFORE_START
from rota.live.processes.records import Attempt
from rota.live.processes.supervisors import VANISHED
from rota.live.scheduling.job_class import class_again
from rota.model.live import OWN_TYPE

if TYPE_CHECKING:
    from rota.live.queue import Queue

__all__ = ["TOO_LARGE", "is_unwanted", "recover"]

TOO_LARGE = "it is too large for the server of this plan"
_SERVED = ("starting", "running")


def recover(queue: Queue, jobs: list[Job], same_boot: bool) -> list[tuple[Job, Attempt]]:
    """Puts the jobs of an earlier daemon on the scheduler, and has done again what may not have been; returns those whose attempt is over.

    Of these, one that has ended is not on the scheduler: there is nothing left that could be stopped. One that is lost holds what it has
    until it is sure that nothing of it is left.
    """
    queue.here = {job.id: job for job in jobs}
    over: list[tuple[Job, Attempt]] = []
    wanted = [job for job in jobs if not is_unwanted(job)]
    found = _look(queue, [job for job in wanted if job.sequence is not None], same_boot)
    attempts = {(id, queue.here[id].attempt) for id, (seen, _) in found.items() if seen is not None}
    for id, (seen, _) in found.items():
        if seen is not None and seen.state == "ended":
            job = queue.here[id]
            job.cores = job.gpus = None  # nobody has them any more
            if queue.was_stopped(job, seen):
                queue.over(id, job.attempt, seen)
                found[id] = (None, "waiting")
    _refit(queue, (job for job in wanted if job.state in BEFORE_START))
    found = {id: seen for id, seen in found.items() if queue.here[id].sequence is not None}
    queue.supervisors.tidy(attempts)
    for id in sorted(found, key=lambda id: (found[id][1] != "running", queue.here[id].sequence)):
        job, (seen, state) = queue.here[id], found[id]
        if seen is not None and seen.state == "ended":
            over.append((job, seen))
            continue
        queue.put_on_scheduler(job, state)
        if seen is None:
            continue
        if job.state != "suspended":
            queue.allocation.hold(job)
        if seen.state == "absent":
            queue.writes.act("start", job)
        elif seen.state == "alive":
            queue.running(id, job.attempt, seen.supervisor or 0)
            # The signal may not have been sent; sent twice it does no harm.
            told = {"cancel": "end", "cancel now": "kill"}.get(job.cancel, "resume" if job.state in _SERVED else job.state)
            if told != "resume" or seen.suspended:
                queue.writes.act(told, job)
        else:
            over.append((job, seen))
    for id, (seen, _) in found.items():
        if seen is not None and queue.here[id].state == "suspended":
            queue.allocation.hold(queue.here[id])
    if jobs:
        states = Counter(job.state for job in jobs)
        queue.tell(f"found {len(jobs)} jobs: {', '.join(f'{count} {state}' for state, count in states.items())}")
    return over


def is_unwanted(job: Job) -> bool:
    """Whether a job was cancelled before it started, and the daemon that accepted that died before it could do it."""
    return bool(job.cancel) and job.state in BEFORE_START


def _look(queue: Queue, jobs: list[Job], same_boot: bool) -> dict[int, tuple[Attempt | None, Any]]:
    """What the machine has of each job: its attempt, if it has one, and its state on the scheduler."""
    token = {job.id: queue.database.request(job.request).token for job in jobs if job.state != "waiting"}
    seen = {id: queue.supervisors.find(id, queue.here[id].attempt, token[id]) for id in token}
    missing = [(id, queue.here[id].attempt) for id, attempt in seen.items() if attempt.state == "absent"]
    there = {id for id, _ in queue.supervisors.find_marked(missing)} if same_boot else set[int]()
    return {job.id: _found(queue, job, seen.get(job.id), same_boot, job.pid is not None or job.id in there) for job in jobs}


def _found(queue: Queue, job: Job, seen: Attempt | None, same_boot: bool, began: bool) -> tuple[Attempt | None, Any]:
    """What the machine has of a job that an earlier daemon had in its queue. `began`: it was started, whatever became of its record."""
    if not same_boot:
        job.since_boot = None
    if seen is None:
        return None, "waiting"
    if not same_boot and (seen.state == "lost" or (seen.state == "absent" and (began or job.state != "starting"))):
        seen = Attempt("lost", boot="another")  # what the record said may not have reached the disk
    elif seen.state == "absent" and began:
        seen = Attempt("lost", error=VANISHED)
    if seen.state == "lost":
        job.since_boot = None  # nobody knows how long it ran
        return seen, "stopping"
    if seen.state == "absent" and job.cancel:
        seen = Attempt("ended", boot=queue.boot)  # it was never run, and is not wanted any more
    elif seen.state == "absent" and job.state not in _SERVED:
        job.state, job.cores, job.gpus = "waiting", None, None
        return None, "waiting"
    # One that is being cancelled is still running for the scheduler.
    return seen, "running" if job.state in _SERVED or (job.cancel and job.state == "stopping") else job.state


def _refit(queue: Queue, jobs: Iterable[Job]) -> None:
    """Gives jobs that do not run what their types need under this plan; who is too large for its server is held until another plan.

    The ones that run keep what they have. So the others get a request of their own, as if they had been submitted anew.
    """
    again: dict[int, Request | str] = {}
    changed: list[Job] = []
    for job in jobs:
        if job.request not in again:
            again[job.request] = _again(queue, queue.database.request(job.request), len(again))
        new, was_too_large = again[job.request], job.reason.startswith(TOO_LARGE)
        if isinstance(new, str):
            if not was_too_large:
                queue.tell(f"job {job.id} is held: {new}")
            job.state, job.reason, job.sequence = "held", new, None
        elif new.id != job.request or was_too_large:
            job.request, job.type = new.id, new.type
            if was_too_large:
                job.state, job.reason = "blocked", ""  # it joins the queue when the scheduler is ready
        else:
            continue
        changed.append(job)
    requests = [new for old, new in again.items() if isinstance(new, Request) and new.id != old]
    queue.last_request = max((queue.last_request, *(request.id for request in requests)))
    if changed:
        queue.database.write(jobs=changed, requests=requests)


def _again(queue: Queue, request: Request, number: int) -> Request | str:
    """A request under this plan: the same, another one, or why there is none."""
    try:
        type, demand = class_again(request, queue.system)
    except BadSpec as error:
        return f"{TOO_LARGE}: {'; '.join(map(str, error.problems))}"
    demand = queue.allocation.limits.whole(demand) if type == OWN_TYPE else demand
    if (type, demand) == (request.type, request.demand):
        return request
    return replace(request, id=queue.last_request + 1 + number, type=type, demand=demand)
