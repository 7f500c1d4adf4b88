"""What people see: a job, the state of the scheduler, and why a job is not running."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rota import __version__
from rota.decide import policy_name
from rota.decide.msr import MSRData
from rota.display import jobs_together
from rota.live.clock import boot_now
from rota.live.executor import Executor
from rota.live.jobs import Job, Request
from rota.live.messages import Explanation, ResourceUse, Status, TypeStatus
from rota.live.messages import Job as JobMessage
from rota.live.planning.learning import duration
from rota.live.resources.allocation import numbers
from rota.live.scheduling.scheduler import OWN
from rota.live.views.metrics import Histogram
from rota.model.live import OWN_TYPE

if TYPE_CHECKING:
    from rota.live.planning.planner import Planner

__all__ = ["job_message", "phase_of", "status_of", "why_not", "with_futures"]

_MOST_NAMED = 20
_FUTURES = 10  # so many, or nothing is said about nine of ten


def job_message(executor: Executor, job: Job, request: Request) -> JobMessage:
    """A job as its owner sees it."""
    since = 0.0 if job.since_boot is None else max(boot_now() - job.since_boot, 0.0)
    pid = executor.supervisors.look(job.id, job.attempt).pid if job.state in ("running", "suspended", "stopping") else None
    return JobMessage(
        id=job.id,
        name=job.name,
        type=job.type,
        demand=dict(zip(executor.lifecycle.system.resources, request.demand, strict=False)),
        state=job.state.value,
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
        output=f"{executor.directory}/output/{job.id}.log",
        cut=list(request.cut),
    )


def _listed(text: str | None) -> list[int] | None:
    found = numbers(text)
    return None if found is None else list(found)


# ---------------------------------------------------------------------------------------------------------------- status


def status_of(executor: Executor, planner: Planner) -> Status:
    """The scheduler at this moment."""
    scheduler, system = executor.lifecycle.scheduler, executor.lifecycle.system
    estimate = planner.estimate()
    counts = executor.ended + Counter(job.state for job in executor.lifecycle.jobs.values())
    counter = executor.counters.decision
    n = sum(counter.counts)
    warnings = list(executor.lifecycle.allocation.limits.remarks())
    if estimate.overload:
        warnings.append(estimate.overload)
    if executor.writes.disk_full:
        warnings.append(executor.writes.disk_full)
    phase, until = phase_of(executor)
    return Status(
        version=__version__,
        policy=policy_name(scheduler.policy),
        plan=executor.lifecycle.plan_number,
        pinned=planner.pinned,
        preemption=executor.lifecycle.settings.preemption,
        uptime_s=boot_now() - executor.began,
        now=time.time(),
        resources=_resources(executor),
        types=[_type_status(executor, planner, i, estimate) for i in range(len(system.names))],
        own=_own_status(executor),
        counts=dict(counts),
        phase=phase,
        next_switch_s=until,
        load=estimate.load,
        load_error=estimate.load_error,
        load_basis=estimate.basis,
        planned_load=planner.load,
        warnings=warnings,
        starts=executor.counters.starts,
        decisions=n,
        decision_us=1e6 * counter.total / n if n else None,
        decision_p99_us=_quantile(counter, 0.99),
        redesigning=planner.redesigning,
    )


def _resources(executor: Executor) -> list[ResourceUse]:
    scheduler, system = executor.lifecycle.scheduler, executor.lifecycle.system
    used = np.zeros(len(system.capacity))
    kept = np.zeros(len(system.capacity))
    for job in scheduler.jobs.values():
        if job.state == "running":
            used += job.demand
        elif job.state == "stopping":
            kept += job.demand
        elif job.state == "suspended":
            kept += job.demand * scheduler.kept_when_suspended
    enforced = executor.lifecycle.allocation.limits.enforcement()
    return [
        ResourceUse(
            name=name,
            capacity=float(system.capacity[r]),
            used=float(used[r] * scheduler.unit[r]),
            kept=float(kept[r] * scheduler.unit[r]),
            enforced=enforced[name],
        )
        for r, name in enumerate(system.resources)
    ]


def _type_status(executor: Executor, planner: Planner, i: int, estimate: object) -> TypeStatus:
    scheduler, name, unit_s = executor.lifecycle.scheduler, executor.lifecycle.system.names[i], executor.lifecycle.unit_s
    response, predicted = executor.measures.response(name), planner.plan.predicted.get(name, {})
    seen = planner.estimate() if estimate is None else estimate
    data = scheduler.state.data
    slots = int(data.schedules[scheduler.state.counters[0], i]) if isinstance(data, MSRData) else None
    return TypeStatus(
        name=name,
        demand=dict(zip(executor.lifecycle.system.resources, executor.lifecycle.system.demand[i].tolist(), strict=True)),
        waiting=int(scheduler.state.system[i] - scheduler.state.running[i]),
        running=int(scheduler.state.running[i]),
        slots=slots,
        ended=response.count,
        arrival_rate=seen.arrival_rate[i],  # type: ignore[attr-defined]
        planned_arrival_rate=float(executor.lifecycle.system.arrival_rate[i] / unit_s),
        mean_size_s=seen.mean_size_s[i],  # type: ignore[attr-defined]
        planned_mean_size_s=float(unit_s / executor.lifecycle.system.service_rate[i]),
        mean_response_s=response.mean,
        p95_response_s=response.p95,
        predicted_mean_response_s=_seconds(predicted.get("mean"), unit_s),
        predicted_p95_response_s=_seconds(predicted.get("p95"), unit_s),
    )


def _own_status(executor: Executor) -> TypeStatus | None:
    own = [job for job in executor.lifecycle.scheduler.jobs.values() if job.kind == OWN]
    response = executor.measures.response(OWN_TYPE)
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


def phase_of(executor: Executor) -> tuple[str, float | None]:
    """What the rota does now, in words, and the seconds to its next move by the clock; ('', …) for other policies."""
    scheduler = executor.lifecycle.scheduler
    until = max(scheduler.wake * executor.lifecycle.unit_s - boot_now(), 0.0) if np.isfinite(scheduler.wake) else None
    data = scheduler.state.data
    if not isinstance(data, MSRData):
        return "", until
    s = int(scheduler.state.counters[0])
    names = executor.lifecycle.system.names
    if data.working[s]:
        return jobs_together(data.schedules[s], names), until
    return f"switching to {jobs_together(data.schedules[data.goal[s]], names)}", until


# ---------------------------------------------------------------------------------------------------------------- explain


def why_not(executor: Executor, job: Job, request: Request) -> tuple[str, int | None]:
    """Why a job is not running, and how many of its type are before it."""
    if job.state == "held":
        return f"It is held ({job.reason}): rota release {job.id} lets it join the queue.", None
    if job.state == "blocked":
        ids = [str(id) for id in (*request.after, *request.after_any) if id in executor.lifecycle.jobs]
        more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
        return f"It waits for job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_MOST_NAMED])}{more} to end.", None
    if job.state in ("starting", "running"):
        return "It runs.", None
    if job.state == "stopping" and job.cancel:
        return f"It was cancelled and is told to end; after {executor.lifecycle.settings.grace_s:g} s it is killed.", None
    if job.state == "stopping":
        return f"It was told to stop and has {executor.lifecycle.settings.grace_s:g} s to do so; it starts again later.", None
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
        sentences.append("It is suspended: others have its turn.")
    if ahead:
        sentences.append(f"{ahead} job{'s' if ahead > 1 else ''} of type {job.type} {'are' if ahead > 1 else 'is'} before it.")
    here = scheduler.jobs[job.id]
    short = np.flatnonzero(here.demand > scheduler.state.free)
    if len(short):
        need, free = here.demand * scheduler.unit, scheduler.state.free * scheduler.unit
        parts = [f"{need[r]:g} {executor.lifecycle.system.resources[r]} ({free[r]:g} free)" for r in short]
        sentences.append(f"It needs {', '.join(parts)}.")
    data = scheduler.state.data
    if kind == OWN:
        sentences.append("No type of the plan encloses it, so it starts only when the policy leaves enough room.")
    elif isinstance(data, MSRData):
        s = int(scheduler.state.counters[0])
        slots, running = int(data.schedules[s, kind]), int(scheduler.state.running[kind])
        phase, until = phase_of(executor)
        if slots == 0:
            rows = scheduler.policy.candidates  # type: ignore[union-attr]
            served = dict.fromkeys(jobs_together(row, executor.lifecycle.system.names) for row in rows if row[kind] > 0)
            sentences.append(f"The rota now has {phase}, without a place for its type; it has one in: {'; '.join(served) or 'none'}.")
        elif running >= slots:
            sentences.append(f"The rota now has {phase}: {slots} place{'s' if slots > 1 else ''} for its type, all taken.")
        elif not short.size and not ahead:
            sentences.append("It is about to start.")
        if until is not None:
            sentences.append(f"The rota moves on in about {duration(until)}.")
    elif not short.size and not ahead:
        sentences.append(f"There is room for it, but {policy_name(scheduler.policy)} keeps it for others.")
    return " ".join(sentences), ahead


def with_futures(now: Explanation, starts_s: list[float]) -> Explanation:
    """An answer with what the futures say."""
    if not starts_s:
        return now
    median, late = (float(np.quantile(starts_s, level)) for level in (0.5, 0.9))
    if len(starts_s) < _FUTURES:
        futures = f"{len(starts_s)} simulated future{'s' * (len(starts_s) > 1)}"
        rough = f" By {futures}, all there was time for, it starts in about {duration(median)}."
        return now.model_copy(update={"text": now.text + rough, "start_median_s": median, "runs": len(starts_s)})
    expected = f" By {len(starts_s)} futures simulated from now, it starts in about {duration(median)}, in nine of ten by {duration(late)}."
    return now.model_copy(update={"text": now.text + expected, "start_median_s": median, "start_p90_s": late, "runs": len(starts_s)})
