"""What the lifecycle does with the jobs of an earlier daemon: the event `Recovered`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rota.errors import BadSpec
from rota.live.actions import Do
from rota.live.jobs import BEFORE_START, IN_SERVICE, Cancel, Job, JobState, Request, is_unwanted
from rota.live.processes.records import Attempt
from rota.live.scheduling.job_class import class_again
from rota.live.scheduling.scheduler import list_order
from rota.live.stimuli import AttemptRunning, Found, Recovered, was_stopped
from rota.model.live import OWN_TYPE

if TYPE_CHECKING:
    from rota.live.lifecycle import Lifecycle

__all__ = ["TOO_LARGE", "recover"]

TOO_LARGE = "it is too large for the server of this plan"


def recover(lifecycle: Lifecycle, event: Recovered) -> None:
    """Continues with the jobs of an earlier daemon, and repeats actions that may not have been carried out.

    An attempt that has ended is not given to the scheduler: it cannot be stopped any more. A lost attempt keeps what it holds until
    none of its processes is left; then the executor reports its end.
    """
    lifecycle.announce()
    lifecycle.jobs = {job.id: job for job in event.jobs}
    lifecycle.scheduler.state.clock[0] = lifecycle.now
    found = dict(event.found)
    over: list[tuple[Job, Attempt]] = []
    for id, (seen, _, since_known) in event.found.items():
        job = lifecycle.jobs[id]
        if job.since_boot is not None and not since_known:
            job.since_boot = None
            lifecycle.changed(job)
        if seen is None and job.state != JobState.WAITING:  # it was about to start or to stop, and never ran
            job.state, job.share, job.since_boot = JobState.WAITING, {}, None
            lifecycle.changed(job)
        if seen is not None and seen.state == "ended":
            job.share = {}  # it is free again
            if was_stopped(job, seen):
                lifecycle.over(id, job.attempt, seen)
                found[id] = Found(None, JobState.WAITING)
    _refit(lifecycle, [job for job in event.jobs if job.state in BEFORE_START and not is_unwanted(job)])
    found = {id: seen for id, seen in found.items() if lifecycle.jobs[id].sequence is not None}
    for id in sorted(found, key=lambda id: list_order(found[id].state, lifecycle.jobs[id].sequence or 0)):
        job, (seen, state, _) = lifecycle.jobs[id], found[id]
        if seen is not None and seen.state == "ended":
            over.append((job, seen))
            continue
        _put(lifecycle, job, state)
        if seen is not None:
            _go_on(lifecycle, job, seen)
    for id, (seen, _, _) in found.items():  # suspended jobs come last: others may have their cores by now
        if seen is not None and lifecycle.jobs[id].state == JobState.SUSPENDED:
            lifecycle.allocation.hold(lifecycle.jobs[id])
    _ask_policy(lifecycle, event.policy_state, over)
    for job in list(lifecycle.jobs.values()):
        if is_unwanted(job):
            lifecycle.end(job, JobState.CANCELLED, job.reason)
        elif job.state == JobState.BLOCKED:
            lifecycle.try_to_queue(job)  # it may depend on nothing any more: a daemon can die before it checks
    for job, seen in over:
        lifecycle.over(job.id, job.attempt, seen)


def _put(lifecycle: Lifecycle, job: Job, state: JobState) -> None:
    """Gives the scheduler a job in this state."""
    request = lifecycle.request(job)
    kind, units = lifecycle.kind_and_units(job, request)
    served = (job.served_s + (0.0 if job.since_boot is None else lifecycle.at.boot - job.since_boot)) / lifecycle.unit_s
    estimate = lifecycle.estimate(request)
    lifecycle.scheduler.put(job.id, kind, estimate=estimate, demand=units, sequence=job.sequence, state=state, served=served)


def _go_on(lifecycle: Lifecycle, job: Job, seen: Attempt) -> None:
    """Continues with a job that an earlier daemon started and whose end is not known."""
    if job.state != JobState.SUSPENDED:
        lifecycle.allocation.hold(job)
    if seen.state == "absent":
        lifecycle.act(Do.START, job)
    elif seen.state == "alive":
        lifecycle.running(AttemptRunning(job.id, job.attempt, seen.supervisor or 0))
        # The signal may not have been sent; sending it twice does no harm.
        if job.cancel:
            lifecycle.scheduler.will_end(job.id)
            lifecycle.act(Do.KILL if job.cancel == Cancel.NOW else Do.END, job)
        elif job.state == JobState.SUSPENDED:
            lifecycle.act(Do.SUSPEND, job)
        elif job.state == JobState.STOPPING:
            lifecycle.act(Do.REQUEUE, job)
        elif seen.suspended:
            lifecycle.act(Do.RESUME, job)


def _ask_policy(lifecycle: Lifecycle, state: dict[str, Any] | None, over: list[tuple[Job, Attempt]]) -> None:
    """Restores the saved state of the policy, or lets the policy begin anew."""
    if state is not None:
        try:
            lifecycle.scheduler.remember(state)
        except (KeyError, TypeError, ValueError, OverflowError):
            lifecycle.out.remarks.append("the saved state of the policy cannot be read: the policy begins anew")
            state = None
    if state is None:
        lifecycle.apply(lifecycle.scheduler.begin(lifecycle.now))
        return
    for job, _ in over:  # first, the end of jobs that the policy counts as running
        if job.state in IN_SERVICE:
            lifecycle.apply(lifecycle.scheduler.left(lifecycle.kind_and_units(job, lifecycle.request(job))[0], lifecycle.now))
    lifecycle.apply(lifecycle.scheduler.look_again(lifecycle.now))


def _refit(lifecycle: Lifecycle, jobs: Iterable[Job]) -> None:
    """Gives jobs that do not run the demand of their types under this plan. A job that is too large for the server is held.

    Running jobs keep what they have. So the others get a new request, as if they had been submitted anew.
    """
    again: dict[int, Request | str] = {}
    for job in jobs:
        if job.request not in again:
            again[job.request] = _again(lifecycle, lifecycle.request(job))
        new, was_too_large = again[job.request], job.reason.startswith(TOO_LARGE)
        if isinstance(new, str):
            if not was_too_large:
                lifecycle.out.remarks.append(f"job {job.id} is held: {new}")
            job.state, job.reason, job.sequence = JobState.HELD, new, None
        elif new.id != job.request or was_too_large:
            job.request, job.type = new.id, new.type
            if was_too_large:
                job.state, job.reason = JobState.BLOCKED, ""  # it joins the queue when the policy is asked
        else:
            continue
        lifecycle.changed(job)


def _again(lifecycle: Lifecycle, request: Request) -> Request | str:
    """A request under this plan: the same, a new one, or a text that says why there is none."""
    try:
        type, demand = class_again(request, lifecycle.system)
    except BadSpec as error:
        return f"{TOO_LARGE}: {'; '.join(map(str, error.problems))}"
    demand = lifecycle.allocation.whole(demand) if type == OWN_TYPE else demand
    if (type, demand) == (request.type, request.demand):
        return request
    lifecycle.last_request += 1
    new = replace(request, id=lifecycle.last_request, type=type, demand=demand)
    lifecycle.out.requests[new.id] = new
    return new
