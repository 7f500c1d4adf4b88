"""Why a job is not running, and when it can be expected to."""

from __future__ import annotations

import numpy as np

from rota.decide import describe
from rota.display import jobs_together, rough_duration
from rota.live.executor import Executor
from rota.live.jobs import Job, Request
from rota.live.messages import Explanation
from rota.live.scheduling.scheduler import OWN
from rota.live.scheduling.starts import Starts
from rota.live.views.phase import phase_of
from rota.policy import policy_name

__all__ = ["why_not", "with_forecast"]

_MOST_NAMED = 20
_SAID = (0.5, 0.8, 0.95)  # probabilities of a start


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


def with_forecast(now: Explanation, starts: Starts, as_of: float) -> Explanation:
    """Adds the forecast to an explanation. `as_of`: the moment from which its times count."""
    if starts.law is None and not starts.runs:
        return now
    names = {0.5: "start_median_s", 0.8: "start_p80_s", 0.9: "start_p90_s", 0.95: "start_p95_s"}
    found = {p: starts.quantile(p) for p in names}
    update = {names[p]: None if bound and time == 0 else time for p, (time, bound) in found.items()} | {
        "at_least": [names[p] for p, (time, bound) in found.items() if bound and time > 0],
        "as_of": as_of,
        "method": "simulation" if starts.law is None else "theory",
        "runs": starts.runs,
        "text": f"{now.text} {_in_words(starts)}",
    }
    return now.model_copy(update=update)


def _in_words(starts: Starts) -> str:
    futures = f"{starts.runs} simulated future{'s' * (starts.runs > 1)}"
    by = "by the exact law of the rota" if starts.law is not None else f"by {futures}"
    said = {f"{100 * p:g} %": starts.quantile(p) for p in _SAID}
    known = [
        f"{rough_duration(time)} with {'probability ' * (k == 0)}{p}" for k, (p, (time, bound)) in enumerate(said.items()) if not bound
    ]
    bounds = [f"{p} it is at least {rough_duration(time)}" for p, (time, bound) in said.items() if bound]
    if starts.law is None and not starts.times:
        reached, _ = starts.quantile(_SAID[0])
        followed = f", the shortest of which was followed for {rough_duration(reached)}" if reached > 0 else ""
        return f"It does not start in {futures}{followed}."
    if not known:
        return f"For a start with probability {bounds[0]} ({by}; there was no time for more)."
    listed = ", ".join(known[:-1]) + " and " * (len(known) > 1) + known[-1]
    return f"It starts within {listed}{f'; for {bounds[0]}' if bounds else ''} ({by})."
