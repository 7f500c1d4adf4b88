"""The scheduler at one moment: resources, types, the plan in use, warnings."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from rota import __version__
from rota.decide import describe
from rota.live.clock import boot_now
from rota.live.counters import Histogram
from rota.live.executor import Executor
from rota.live.messages import ResourceUse, Status, TypeStatus
from rota.live.planning.learning import Estimate
from rota.live.planning.planner import Planner
from rota.live.scheduling.scheduler import OWN
from rota.live.views.phase import phase_of
from rota.model.live import OWN_TYPE
from rota.policy import policy_name

__all__ = ["status_of"]


def status_of(executor: Executor, planner: Planner) -> Status:
    """The scheduler at this moment."""
    scheduler, system = executor.lifecycle.scheduler, executor.lifecycle.system
    estimate = planner.estimate()
    counts = executor.ended + Counter(job.state for job in executor.lifecycle.jobs.values())
    counter = executor.counters.decision
    n = sum(counter.counts)
    warnings = list(executor.lifecycle.allocation.remarks())
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
    enforced = executor.lifecycle.allocation.enforcement()
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


def _type_status(executor: Executor, planner: Planner, i: int, estimate: Estimate) -> TypeStatus:
    scheduler, name, unit_s = executor.lifecycle.scheduler, executor.lifecycle.system.names[i], executor.lifecycle.unit_s
    response, predicted = executor.measures.response(name), planner.plan.predicted.get(name, {})
    slots = describe(scheduler.policy, scheduler.state).slots
    return TypeStatus(
        name=name,
        demand=dict(zip(executor.lifecycle.system.resources, executor.lifecycle.system.demand[i].tolist(), strict=True)),
        waiting=int(scheduler.state.system[i] - scheduler.state.running[i]),
        running=int(scheduler.state.running[i]),
        slots=None if slots is None else slots[i],
        ended=response.count,
        arrival_rate=estimate.arrival_rate[i],
        planned_arrival_rate=float(executor.lifecycle.system.arrival_rate[i] / unit_s),
        mean_size_s=estimate.mean_size_s[i],
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
    """The upper end of the bucket of a quantile, in microseconds."""
    total, seen = sum(histogram.counts), 0
    for bound, count in zip((*histogram.bounds, np.inf), histogram.counts, strict=True):
        seen += count
        if total and seen >= level * total:
            return 1e6 * float(bound) if np.isfinite(bound) else None
    return None
