"""Two parts of a workload with an end: one to tune on, and one to check on; and a part at another pace."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from rota.model import System, Workload
from rota.simulation import Jobs

__all__ = ["at_pace", "two_parts"]


def two_parts(workload: Workload | None, system: System, most: int) -> tuple[Workload | None, Workload | None]:
    """At most `most` jobs from its beginning and from its middle on; a workload without an end, twice: there the seeds differ."""
    if not isinstance(workload, Sized):
        return workload, workload
    middle = len(workload) // 2
    return _jobs(workload, system, 0, min(most, middle)), _jobs(workload, system, middle, min(middle + most, len(workload)))


def at_pace(jobs: Jobs, pace: float) -> Jobs:
    """The same jobs, arriving so many times as fast."""
    return Jobs(np.asarray(jobs.times, dtype=np.float64) / pace, jobs.kinds, jobs.sizes, jobs.estimates)


def _jobs(workload: Workload, system: System, first: int, last: int) -> Jobs:
    """Jobs number `first` to `last` − 1, with the time counted from the first of them."""
    parts: list[tuple[Any, ...]] = []
    at = 0
    for chunk in workload.chunks(system, np.random.SeedSequence(0)):
        part = slice(max(first - at, 0), max(last - at, 0))
        parts.append(tuple(np.asarray(column)[part] for column in chunk))
        at += len(chunk.times)
        if at >= last:
            break
    times, kinds, sizes, estimates = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Jobs(times - times[0], kinds, sizes, estimates)
