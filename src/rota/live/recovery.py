"""Recovery: what the database says of the jobs of an earlier daemon is held against what the machine says of them.

The crew is open, so an attempt without a record was never run and never will be, unless it is ordered anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rota.errors import BadSpec
from rota.live.attempts import Attempt
from rota.live.intake import class_again
from rota.live.store import Job, Request
from rota.model.live import OWN_TYPE

if TYPE_CHECKING:
    from rota.live.queue import Queue

__all__ = ["TOO_LARGE", "recover"]

TOO_LARGE = "it is too large for the server of this plan"
_SERVED = ("starting", "running")


def recover(queue: Queue, jobs: list[Job], same_boot: bool) -> list[tuple[Job, Attempt]]:
    """Puts the jobs of an earlier daemon on the floor, and has done again what may not have been; returns those whose attempt is over."""
    queue.here = {job.id: job for job in jobs}
    over: list[tuple[Job, Attempt]] = []
    found = {job.id: _found(queue, job, same_boot) for job in jobs if job.sequence is not None}
    _refit(queue, (job for job in jobs if job.state in ("held", "blocked", "waiting")))
    found = {id: seen for id, seen in found.items() if queue.here[id].sequence is not None}
    queue.crew.tidy({(id, queue.here[id].attempt) for id, (seen, _) in found.items() if seen is not None})
    for id in sorted(found, key=lambda id: (found[id][1] != "running", queue.here[id].sequence)):
        job, (seen, state) = queue.here[id], found[id]
        queue.put_on_floor(job, state)
        if seen is None:
            continue
        if job.state != "suspended":
            queue.shares.hold(job)
        if seen.state == "absent":
            queue.turns.act("start", job)
        elif seen.state == "alive":
            queue.running(id, job.attempt)
            # The signal may not have been sent; sent twice it does no harm.
            told = {"cancel": "end", "cancel now": "kill"}.get(job.cancel, "resume" if job.state in _SERVED else job.state)
            if told != "resume" or seen.suspended:
                queue.turns.act(told, job)
        else:
            over.append((job, seen))
    for id, (seen, _) in found.items():
        if seen is not None and queue.here[id].state == "suspended":
            queue.shares.hold(queue.here[id])
    if jobs:
        states = Counter(job.state for job in jobs)
        queue.tell(f"found {len(jobs)} jobs: {', '.join(f'{count} {state}' for state, count in states.items())}")
    return over


def _found(queue: Queue, job: Job, same_boot: bool) -> tuple[Attempt | None, Any]:
    """What the machine has of a job that an earlier daemon had in its queue, and the job's state on the floor."""
    if not same_boot:
        job.since_boot = None
    if job.state == "waiting":
        return None, "waiting"
    seen = queue.crew.find(job.id, job.attempt)
    if not same_boot and (seen.state == "lost" or (seen.state == "absent" and job.state != "starting")):
        seen = Attempt("lost", boot="another")  # what the record said may not have reached the disk
    if seen.state == "absent" and job.cancel:
        seen = Attempt("ended", boot=queue.boot)  # it was never run, and is not wanted any more
    elif seen.state == "absent" and job.state not in _SERVED:
        job.state, job.cores, job.gpus = "waiting", None, None
        return None, "waiting"
    # One that is being cancelled is still running for the floor.
    return seen, "running" if job.state in _SERVED or (job.cancel and job.state == "stopping") else job.state


def _refit(queue: Queue, jobs: Iterable[Job]) -> None:
    """Gives jobs that do not run what their types need under this plan; who is too large for its server is held until another plan.

    The ones that run keep what they have. So the others get a request of their own, as if they had been submitted anew.
    """
    again: dict[int, Request | str] = {}
    changed: list[Job] = []
    for job in jobs:
        if job.request not in again:
            again[job.request] = _again(queue, queue.store.request(job.request), len(again))
        new, was_too_large = again[job.request], job.reason.startswith(TOO_LARGE)
        if isinstance(new, str):
            if not was_too_large:
                queue.tell(f"job {job.id} is held: {new}")
            job.state, job.reason, job.sequence = "held", new, None
        elif new.id != job.request or was_too_large:
            job.request, job.type = new.id, new.type
            if was_too_large:
                job.state, job.reason = "blocked", ""  # it joins the queue when the floor is ready
        else:
            continue
        changed.append(job)
    requests = [new for old, new in again.items() if isinstance(new, Request) and new.id != old]
    queue.last_request = max((queue.last_request, *(request.id for request in requests)))
    if changed:
        queue.store.write(jobs=changed, requests=requests)


def _again(queue: Queue, request: Request, number: int) -> Request | str:
    """A request under this plan: the same, another one, or why there is none."""
    try:
        type, demand = class_again(request, queue.system)
    except BadSpec as error:
        return f"{TOO_LARGE}: {'; '.join(map(str, error.problems))}"
    demand = queue.shares.limits.whole(demand) if type == OWN_TYPE else demand
    if (type, demand) == (request.type, request.demand):
        return request
    return replace(request, id=queue.last_request + 1 + number, type=type, demand=demand)
