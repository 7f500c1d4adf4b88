"""What the rota does now."""

from __future__ import annotations

import numpy as np

from rota.decide import describe
from rota.live.clock import boot_now
from rota.live.executor import Executor

__all__ = ["phase_of"]


def phase_of(executor: Executor) -> tuple[str, float | None]:
    """What the rota does now, as text, and the seconds to its next move by the clock; ('', …) for other policies."""
    scheduler = executor.lifecycle.scheduler
    until = max(scheduler.wake * executor.lifecycle.unit_s - boot_now(), 0.0) if np.isfinite(scheduler.wake) else None
    return describe(scheduler.policy, scheduler.state).phase(executor.lifecycle.system.names), until
