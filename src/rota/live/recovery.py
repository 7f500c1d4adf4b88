"""Recovery: what the database says of the jobs of an earlier daemon is held against what the machine says of them.

The crew is open, so an attempt without a record was never run and never will be, unless it is ordered anew.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rota.live.attempts import Attempt
from rota.live.messages import BEFORE_START
from rota.live.store import Job

if TYPE_CHECKING:
    from rota.live.queue import Queue

__all__ = ["is_unwanted", "recover"]

_SERVED = ("starting", "running")


def recover(queue: Queue, jobs: list[Job], same_boot: bool) -> list[tuple[Job, Attempt]]:
    """Puts the jobs of an earlier daemon on the floor, and has done again what may not have been; returns those whose attempt is over."""
    queue.here = {job.id: job for job in jobs}
    over: list[tuple[Job, Attempt]] = []
    found = {job.id: _found(queue, job, same_boot) for job in jobs if job.sequence is not None and not is_unwanted(job)}
    queue.crew.tidy({(id, queue.here[id].attempt) for id, (seen, _) in found.items() if seen is not None})
    for id in sorted(found, key=lambda id: (found[id][1] != "running", queue.here[id].sequence)):
        job, (seen, state) = queue.here[id], found[id]
        queue.put_on_floor(job, state)
        if seen is None:
            continue
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
    if jobs:
        states = Counter(job.state for job in jobs)
        queue.tell(f"found {len(jobs)} jobs: {', '.join(f'{count} {state}' for state, count in states.items())}")
    return over


def is_unwanted(job: Job) -> bool:
    """Whether a job was cancelled before it started, and the daemon that accepted that died before it could do it."""
    return bool(job.cancel) and job.state in BEFORE_START


def _found(queue: Queue, job: Job, same_boot: bool) -> tuple[Attempt | None, Any]:
    """What the machine has of a job that an earlier daemon had in its queue, and the job's state on the floor."""
    if not same_boot:
        job.since_boot = None
    if job.state == "waiting":
        return None, "waiting"
    seen = queue.crew.find(job.id, job.attempt, queue.store.request(job.request).token)
    if not same_boot and (seen.state == "lost" or (seen.state == "absent" and job.state != "starting")):
        seen = Attempt("lost", boot="another")  # what the record said may not have reached the disk
    if seen.state == "absent" and job.cancel:
        seen = Attempt("ended", boot=queue.boot)  # it was never run, and is not wanted any more
    elif seen.state == "absent" and job.state not in _SERVED:
        job.state, job.cores, job.gpus = "waiting", None, None
        return None, "waiting"
    # One that is being cancelled is still running for the floor.
    return seen, "running" if job.state in _SERVED or (job.cancel and job.state == "stopping") else job.state
