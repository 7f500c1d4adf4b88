"""What the rota does now."""

from __future__ import annotations

import numpy as np

from rota.decide.msr import MSRData
from rota.display import jobs_together
from rota.live.clock import boot_now
from rota.live.executor import Executor

__all__ = ["phase_of"]


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
