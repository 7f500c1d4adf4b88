"""A clock that is never set."""

from __future__ import annotations

import time

__all__ = ["boot_now"]


def boot_now() -> float:
    """Seconds on CLOCK_BOOTTIME: since the machine was started, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
