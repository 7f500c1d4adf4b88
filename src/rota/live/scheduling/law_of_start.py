"""The exact law of the start of a job under a rota, where theory holds on a running server.

Theory needs that the rota goes by its clock alone (no backfilling), that what runs is what it asks for, and that sizes are exponential.
Jobs end at the rates that were learnt. A slot without a job rings at the rate of the plan: where such rings move the rota, the learnt rates
must be within a tenth of the plan's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rota.analysis import Analysis, Forecast, analyze, forecast_job
from rota.decide.msr import PLACE
from rota.errors import Infeasible
from rota.live.jobs import JobState
from rota.live.scheduling.scheduler import OWN, Scheduler
from rota.model import Exponential, System
from rota.policy import MSR, preempts

__all__ = ["law_of_start"]

_NEAR = 0.1  # how far learnt rates may be from the plan's, relative
_MOST_STATES = 2000  # of a rota
_MOST_S = 1.0  # computing time, about


def law_of_start(scheduler: Scheduler, job: int, now: float, system: System) -> Callable[[], Forecast] | None:
    """What computes the law of the start of a job, from `now` on, with the sizes of `system`; None where theory clearly does not hold.

    It is to be called in another thread, and raises `Infeasible` if theory does not hold, or if it would take too long.
    """
    here, policy, state = scheduler.jobs[job], scheduler.policy, scheduler.state
    if here.kind == OWN or not isinstance(policy, MSR) or scheduler.own() or scheduler.is_behind():
        return None
    if preempts(policy) and (scheduler.stop == "requeue" or scheduler.kept_when_suspended.any()):
        return None  # who is stopped begins anew, or keeps what others need
    if any(other.state == JobState.STOPPING for other in scheduler.started()):
        return None
    s, slots = int(state.counters[PLACE]), state.data.schedules
    if len(slots) > _MOST_STATES or (state.running != np.minimum(state.system, slots[s])).any():
        return None
    ahead = sum(1 for other in scheduler.typed() if other.kind == here.kind and other.sequence < here.sequence)
    wait, kind, planned = float(scheduler.wake) - now, here.kind, scheduler.system  # as they are now

    def law() -> Forecast:
        answer = analyze(system, policy)  # raises where it is not a rota by the clock alone
        if not isinstance(system.sizes[kind], Exponential) or not _as_planned(answer, planned):
            raise Infeasible("sizes are not exponential, or not those of the plan")
        moves = answer.process.trigger[answer.process.source == s]
        by_clock = len(moves) > 0 and bool((moves < 0).all()) and np.isfinite(wait)
        return forecast_job(answer.queues[kind], ahead, s, max(wait, 0.0) if by_clock else None, most_s=_MOST_S)

    return law


def _as_planned(answer: Analysis, planned: System) -> bool:
    """Whether the types whose completions move the rota take about as long as the plan says."""
    moving = np.unique(answer.process.trigger[answer.process.trigger >= 0])
    return bool((np.abs(answer.system.service_rate[moving] / planned.service_rate[moving] - 1) <= _NEAR).all())
