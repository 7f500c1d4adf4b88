"""What people see: a job, the state of the scheduler, and why a job is not running."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rota import __version__
from rota.decide import policy_name
from rota.decide.msr import MSRData
from rota.display import jobs_together, rough_duration
from rota.live.floor import OWN
from rota.live.messages import Explanation, ResourceUse, Status, TypeStatus
from rota.live.messages import Job as JobMessage
from rota.live.metrics import Histogram
from rota.live.queue import Queue, boot_now
from rota.live.shares import numbers
from rota.live.store import Job, Request
from rota.model.live import OWN_TYPE

if TYPE_CHECKING:
    from rota.live.planner import Planner

__all__ = ["job_message", "phase_of", "status_of", "why_not", "with_futures"]

_MOST_NAMED = 20
_FUTURES = 10  # so many, or nothing is said about nine of ten


def job_message(queue: Queue, job: Job, request: Request) -> JobMessage:
    """A job as its owner sees it."""
    since = 0.0 if job.since_boot is None else max(boot_now() - job.since_boot, 0.0)
    pid = queue.crew.look(job.id, job.attempt).pid if job.state in ("running", "suspended", "stopping") else None
    return JobMessage(
        id=job.id,
        name=job.name,
        type=job.type,
        demand=dict(zip(queue.system.resources, request.demand, strict=False)),
        state=job.state,
        argv=request.argv,
        cwd=request.cwd,
        array=job.array,
        index=job.idx,
        after=request.after,
        after_any=request.after_any,
        submitted=job.submitted,
        started=job.started,
        ended=job.ended,
        response_s=job.response_s,
        run_s=None if job.started is None else job.served_s + since,
        exit_code=job.exit_code,
        restarts=job.restarts,
        cores=_listed(job.cores),
        gpus=_listed(job.gpus),
        pid=pid,
        reason=job.reason,
        output=f"{queue.directory}/output/{job.id}.log",
        cut=list(request.cut),
    )


def _listed(text: str | None) -> list[int] | None:
    found = numbers(text)
    return None if found is None else list(found)


# ---------------------------------------------------------------------------------------------------------------- status


def status_of(queue: Queue, planner: Planner) -> Status:
    """The scheduler at this moment."""
    floor, system = queue.floor, queue.system
    estimate = planner.estimate()
    counts = queue.ended + Counter(job.state for job in queue.here.values())
    counter = queue.counters.decision
    n = sum(counter.counts)
    warnings = list(queue.shares.limits.remarks())
    if estimate.overload:
        warnings.append(estimate.overload)
    if queue.turns.out_of_room:
        warnings.append(queue.turns.out_of_room)
    phase, until = phase_of(queue)
    return Status(
        version=__version__,
        policy=policy_name(floor.policy),
        plan=queue.plan_number,
        pinned=planner.pinned,
        preemption=queue.settings.preemption,
        uptime_s=boot_now() - queue.began,
        now=time.time(),
        resources=_resources(queue),
        types=[_type_status(queue, planner, i, estimate) for i in range(len(system.names))],
        own=_own_status(queue),
        counts=dict(counts),
        phase=phase,
        next_switch_s=until,
        load=estimate.load,
        load_error=estimate.load_error,
        load_basis=estimate.basis,
        planned_load=planner.load,
        warnings=warnings,
        starts=queue.counters.starts,
        decisions=n,
        decision_us=1e6 * counter.total / n if n else None,
        decision_p99_us=_quantile(counter, 0.99),
        redesigning=planner.redesigning,
    )


def _resources(queue: Queue) -> list[ResourceUse]:
    floor, system = queue.floor, queue.system
    used = np.zeros(len(system.capacity))
    kept = np.zeros(len(system.capacity))
    for job in floor.jobs.values():
        if job.state == "running":
            used += job.demand
        elif job.state == "stopping":
            kept += job.demand
        elif job.state == "suspended":
            kept += job.demand * floor.kept_when_suspended
    enforced = queue.shares.limits.enforcement()
    return [
        ResourceUse(
            name=name,
            capacity=float(system.capacity[r]),
            used=float(used[r] * floor.unit[r]),
            kept=float(kept[r] * floor.unit[r]),
            enforced=enforced[name],
        )
        for r, name in enumerate(system.resources)
    ]


def _type_status(queue: Queue, planner: Planner, i: int, estimate: object) -> TypeStatus:
    floor, name, unit_s = queue.floor, queue.system.names[i], queue.unit_s
    response, predicted = queue.measures.response(name), planner.plan.predicted.get(name, {})
    seen = planner.estimate() if estimate is None else estimate
    data = floor.state.data
    slots = int(data.schedules[floor.state.counters[0], i]) if isinstance(data, MSRData) else None
    return TypeStatus(
        name=name,
        demand=dict(zip(queue.system.resources, queue.system.demand[i].tolist(), strict=True)),
        waiting=int(floor.state.system[i] - floor.state.running[i]),
        running=int(floor.state.running[i]),
        slots=slots,
        ended=response.count,
        arrival_rate=seen.arrival_rate[i],  # type: ignore[attr-defined]
        planned_arrival_rate=float(queue.system.arrival_rate[i] / unit_s),
        mean_size_s=seen.mean_size_s[i],  # type: ignore[attr-defined]
        planned_mean_size_s=float(unit_s / queue.system.service_rate[i]),
        mean_response_s=response.mean,
        p95_response_s=response.p95,
        predicted_mean_response_s=_seconds(predicted.get("mean"), unit_s),
        predicted_p95_response_s=_seconds(predicted.get("p95"), unit_s),
    )


def _own_status(queue: Queue) -> TypeStatus | None:
    own = [job for job in queue.floor.jobs.values() if job.kind == OWN]
    response = queue.measures.response(OWN_TYPE)
    if not own and not response.count:
        return None
    running = sum(job.state == "running" for job in own)
    return TypeStatus(
        name=OWN_TYPE,
        waiting=len(own) - running,
        running=running,
        ended=response.count,
        planned_arrival_rate=0.0,
        planned_mean_size_s=0.0,
        mean_response_s=response.mean,
        p95_response_s=response.p95,
    )


def _seconds(value: float | None, unit_s: float) -> float | None:
    return None if value is None else value * unit_s


def _quantile(histogram: Histogram, level: float) -> float | None:
    """The upper end of the bucket that a quantile lies in, in microseconds."""
    total, seen = sum(histogram.counts), 0
    for bound, count in zip((*histogram.bounds, np.inf), histogram.counts, strict=True):
        seen += count
        if total and seen >= level * total:
            return 1e6 * float(bound) if np.isfinite(bound) else None
    return None


def phase_of(queue: Queue) -> tuple[str, float | None]:
    """What the rota does now, in words, and the seconds to its next move by the clock; ('', …) for other policies."""
    floor = queue.floor
    until = max(floor.wake * queue.unit_s - boot_now(), 0.0) if np.isfinite(floor.wake) else None
    data = floor.state.data
    if not isinstance(data, MSRData):
        return "", until
    s = int(floor.state.counters[0])
    names = queue.system.names
    if data.working[s]:
        return jobs_together(data.schedules[s], names), until
    return f"switching to {jobs_together(data.schedules[data.goal[s]], names)}", until


# ---------------------------------------------------------------------------------------------------------------- explain


def why_not(queue: Queue, job: Job, request: Request) -> tuple[str, int | None]:
    """Why a job is not running, and how many of its type are before it."""
    if job.state == "held":
        return f"It is held ({job.reason}): rota release {job.id} lets it join the queue.", None
    if job.state == "blocked":
        ids = [str(id) for id in (*request.after, *request.after_any) if id in queue.here]
        more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
        return f"It waits for job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_MOST_NAMED])}{more} to end.", None
    if job.state in ("starting", "running"):
        return "It runs.", None
    if job.state == "stopping" and job.cancel:
        return f"It was cancelled and is told to end; after {queue.settings.grace_s:g} s it is killed.", None
    if job.state == "stopping":
        return f"It was told to stop and has {queue.settings.grace_s:g} s to do so; it starts again later.", None
    if job.state not in ("waiting", "suspended"):
        return f"It has ended: {job.state}{f' ({job.reason})' if job.reason else ''}.", None
    floor, kind = queue.floor, queue.kind_on_floor(job)
    ahead = 0
    for id in floor.waiting(kind):
        if id == job.id:
            break
        ahead += 1
    sentences = []
    if job.state == "suspended":
        sentences.append("It is suspended: others have its turn.")
    if ahead:
        sentences.append(f"{ahead} job{'s' if ahead > 1 else ''} of type {job.type} {'are' if ahead > 1 else 'is'} before it.")
    here = floor.jobs[job.id]
    short = np.flatnonzero(here.demand > floor.state.free)
    if len(short):
        need, free = here.demand * floor.unit, floor.state.free * floor.unit
        parts = [f"{need[r]:g} {queue.system.resources[r]} ({free[r]:g} free)" for r in short]
        sentences.append(f"It needs {', '.join(parts)}.")
    data = floor.state.data
    if kind == OWN:
        sentences.append("No type of the plan encloses it, so it starts only when the policy leaves enough room.")
    elif isinstance(data, MSRData):
        s = int(floor.state.counters[0])
        slots, running = int(data.schedules[s, kind]), int(floor.state.running[kind])
        phase, until = phase_of(queue)
        if slots == 0:
            rows = floor.policy.candidates  # type: ignore[union-attr]
            served = dict.fromkeys(jobs_together(row, queue.system.names) for row in rows if row[kind] > 0)
            sentences.append(f"The rota now has {phase}, without a place for its type; it has one in: {'; '.join(served) or 'none'}.")
        elif running >= slots:
            sentences.append(f"The rota now has {phase}: {slots} place{'s' if slots > 1 else ''} for its type, all taken.")
        elif not short.size and not ahead:
            sentences.append("It is about to start.")
        if until is not None:
            sentences.append(f"The rota moves on in about {rough_duration(until)}.")
    elif not short.size and not ahead:
        sentences.append(f"There is room for it, but {policy_name(floor.policy)} keeps it for others.")
    return " ".join(sentences), ahead


def with_futures(now: Explanation, starts_s: list[float]) -> Explanation:
    """An answer with what the futures say."""
    if not starts_s:
        return now
    median, late = (float(np.quantile(starts_s, level)) for level in (0.5, 0.9))
    if len(starts_s) < _FUTURES:
        futures = f"{len(starts_s)} simulated future{'s' * (len(starts_s) > 1)}"
        rough = f" By {futures}, all there was time for, it starts in about {rough_duration(median)}."
        return now.model_copy(update={"text": now.text + rough, "start_median_s": median, "runs": len(starts_s)})
    soon = f"it starts in about {rough_duration(median)}, in nine of ten by {rough_duration(late)}"
    expected = f" By {len(starts_s)} futures simulated from now, {soon}."
    return now.model_copy(update={"text": now.text + expected, "start_median_s": median, "start_p90_s": late, "runs": len(starts_s)})
