"""Recovery: compares what the database says of an earlier daemon's jobs with what is found on the machine.

The result is one event for the lifecycle (`Recovered`). The launcher is open by then. So an attempt that has no record and was never
claimed was never run, and will not run unless it is started anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rota.live.jobs import IN_SERVICE, Job, JobState, Request, is_unwanted
from rota.live.processes.records import Attempt
from rota.live.processes.supervisors import VANISHED, Supervisors
from rota.live.stimuli import Found

__all__ = ["describe_found", "find_attempts", "saved_policy_state"]


def find_attempts(
    supervisors: Supervisors, jobs: Sequence[Job], find_request: Callable[[int], Request], boot: str, same_boot: bool
) -> dict[int, Found]:
    """What the machine has of each job in the queue of an earlier daemon. `same_boot`: the machine was not restarted since.

    Supervisors that are alive are watched from now on. Records that no job needs are removed.
    """
    queued = [job for job in jobs if job.sequence is not None and not is_unwanted(job)]
    token = {job.id: find_request(job.request).token for job in queued if job.state != JobState.WAITING}
    started = {job.id: job for job in queued if job.id in token}
    seen = {id: supervisors.find(id, job.attempt, token[id]) for id, job in started.items()}
    missing = [(id, started[id].attempt) for id, attempt in seen.items() if attempt.state == "absent"]
    there = {id for id, _ in supervisors.find_marked(missing)} if same_boot else set[int]()
    found = {job.id: _interpret(job, seen.get(job.id), boot, same_boot, job.pid is not None or job.id in there) for job in queued}
    supervisors.remove_others({(job.id, job.attempt) for job in queued if found[job.id].seen is not None})
    return found


def _interpret(job: Job, seen: Attempt | None, boot: str, same_boot: bool, began: bool) -> Found:
    """What is found of one job. `began`: it was started, even if its record is missing."""
    if seen is None:
        return Found(None, JobState.WAITING, same_boot)
    if not same_boot and (seen.state == "lost" or (seen.state == "absent" and (began or job.state != JobState.STARTING))):
        seen = Attempt("lost", boot="another")  # what the record said may not have reached the disk
    elif seen.state == "absent" and began:
        seen = Attempt("lost", error=VANISHED)
    if seen.state == "lost":
        return Found(seen, JobState.STOPPING, since_known=False)  # its run time is unknown
    if seen.state == "absent" and job.cancel:
        seen = Attempt("ended", boot=boot)  # it was never run, and was cancelled
    elif seen.state == "absent" and job.state not in IN_SERVICE:
        return Found(None, JobState.WAITING, same_boot)
    # For the scheduler, a job that is being cancelled still runs.
    runs = job.state in IN_SERVICE or (job.cancel and job.state == JobState.STOPPING)
    return Found(seen, JobState.RUNNING if runs else job.state, same_boot)


def saved_policy_state(note: Any, boot: str, plan: int) -> tuple[bool, dict[str, Any] | None]:
    """Whether the machine was not restarted since the last daemon, and the saved state of the policy if it can still be used."""
    saved = note if isinstance(note, dict) else {}
    same_boot = saved.get("boot") == boot
    return same_boot, saved if same_boot and saved.get("plan") == plan else None


def describe_found(jobs: Sequence[Job]) -> str:
    """A line for the log."""
    states = Counter(job.state for job in jobs)
    return f"found {len(jobs)} jobs: {', '.join(f'{count} {state}' for state, count in states.items())}"
