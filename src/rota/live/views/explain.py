"""Why a job is not running, and when it can be expected to."""

from __future__ import annotations

import numpy as np

from rota.decide import describe
from rota.display import jobs_together, rough_duration
from rota.live.executor import Executor
from rota.live.jobs import Job, Request
from rota.live.messages import Explanation
from rota.live.scheduling.scheduler import OWN
from rota.live.views.phase import phase_of
from rota.policy import policy_name

__all__ = ["why_not", "with_futures"]

_MOST_NAMED = 20
_FUTURES = 10  # the fewest futures for which the 90 % quantile is given


def why_not(executor: Executor, job: Job, request: Request) -> tuple[str, int | None]:
    """Why a job is not running, and how many jobs of its type are before it."""
    if job.state == "held":
        return f"It is held ({job.reason}): rota release {job.id} lets it join the queue.", None
    if job.state == "blocked":
        ids = [str(id) for id in (*request.after, *request.after_any) if id in executor.lifecycle.jobs]
        more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
        return f"It waits for job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_MOST_NAMED])}{more} to end.", None
    if job.state in ("starting", "running"):
        return "It runs.", None
    if job.state == "stopping" and job.cancel:
        return f"It was cancelled and asked to end; after {executor.lifecycle.settings.grace_s:g} s it is killed.", None
    if job.state == "stopping":
        return f"It was asked to stop and has {executor.lifecycle.settings.grace_s:g} s to do so; it starts again later.", None
    if job.state not in ("waiting", "suspended"):
        return f"It has ended: {job.state}{f' ({job.reason})' if job.reason else ''}.", None
    scheduler, kind = executor.lifecycle.scheduler, executor.lifecycle.scheduled_kind(job)
    ahead = 0
    for id in scheduler.waiting(kind):
        if id == job.id:
            break
        ahead += 1
    sentences = []
    if job.state == "suspended":
        sentences.append("It is suspended: other jobs run in its place.")
    if ahead:
        sentences.append(f"{ahead} job{'s' if ahead > 1 else ''} of type {job.type} {'are' if ahead > 1 else 'is'} before it.")
    here = scheduler.jobs[job.id]
    short = np.flatnonzero(here.demand > scheduler.state.free)
    if len(short):
        need, free = here.demand * scheduler.unit, scheduler.state.free * scheduler.unit
        parts = [f"{need[r]:g} {executor.lifecycle.system.resources[r]} ({free[r]:g} free)" for r in short]
        sentences.append(f"It needs {', '.join(parts)}.")
    says = describe(scheduler.policy, scheduler.state)
    if kind == OWN:
        sentences.append("No type of the plan encloses it, so it starts only when the policy leaves enough free capacity.")
    elif says.slots is not None:
        slots, running = says.slots[kind], int(scheduler.state.running[kind])
        phase, until = phase_of(executor)
        if slots == 0:
            served = [jobs_together(schedule, executor.lifecycle.system.names) for schedule in says.with_place_for(kind)]
            sentences.append(f"The rota now has {phase}, without a place for its type; it has one in: {'; '.join(served) or 'none'}.")
        elif running >= slots:
            sentences.append(f"The rota now has {phase}: {slots} place{'s' if slots > 1 else ''} for its type, all taken.")
        elif not short.size and not ahead:
            sentences.append("It is about to start.")
        if until is not None:
            sentences.append(f"The rota moves on in about {rough_duration(until)}.")
    elif not short.size and not ahead:
        sentences.append(f"There is enough free capacity for it, but {policy_name(scheduler.policy)} keeps that for others.")
    return " ".join(sentences), ahead


def with_futures(now: Explanation, starts_s: list[float]) -> Explanation:
    """Adds the forecast to an explanation."""
    if not starts_s:
        return now
    median, late = (float(np.quantile(starts_s, level)) for level in (0.5, 0.9))
    if len(starts_s) < _FUTURES:
        futures = f"{len(starts_s)} simulated future{'s' * (len(starts_s) > 1)}"
        rough = f" By {futures} (there was no time for more), it starts in about {rough_duration(median)}."
        return now.model_copy(update={"text": now.text + rough, "start_median_s": median, "runs": len(starts_s)})
    soon = f"it starts in about {rough_duration(median)}, in nine of ten futures within {rough_duration(late)}"
    expected = f" By {len(starts_s)} futures simulated from now, {soon}."
    return now.model_copy(update={"text": now.text + expected, "start_median_s": median, "start_p90_s": late, "runs": len(starts_s)})
