"""How far a plan has come: its stages, and about what part of the time each takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rota.simulation import SimulationProgress

__all__ = ["PlanProgress", "Telling"]

# The part of the time that has gone when a stage begins; measured on the examples, with two cores.
_BEGINS = {"load": 0.0, "design": 0.02, "table": 0.44, "compare": 0.45, "loads": 0.55, "growth": 0.92, "optimum": 0.95, "end": 1.0}


@dataclass(frozen=True)
class PlanProgress:
    """The current step of a plan, the time taken so far, and about what part of all is done."""

    step: str
    time_s: float
    compiling: bool = False  # no further progress until the simulator of a policy is compiled
    part: float = 0.0

    @property
    def left_s(self) -> float | None:
        """About how many seconds are left; None while that cannot be said."""
        return None if self.part < 0.1 or self.compiling else self.time_s * (1 / self.part - 1)

    def __str__(self) -> str:
        left = "" if self.left_s is None else f", about {self.left_s:.0f} s left"
        return f"{self.part:4.0%}  {self.step}{left}"


class Telling:
    """Reports progress. `policies`: how many are compared. `begins`: the stages, by the part of the time that has gone when they begin."""

    def __init__(self, progress: Callable[[PlanProgress], None] | None, begins: Mapping[str, float] = _BEGINS) -> None:
        self._progress, self._began, self._begins = progress, time.perf_counter(), begins
        self._stage, self._furthest = "load", 0.0
        self._done: dict[str, int] = {}
        self.policies = 1

    @property
    def time_s(self) -> float:
        """The time taken so far."""
        return time.perf_counter() - self._began

    def begin(self, stage: str, step: str) -> None:
        """A stage begins."""
        self._stage = stage
        self._done.clear()
        self.tell(step, 0.0)

    def tell(self, step: str, share: float, *, compiling: bool = False) -> None:
        """What is done now; `share`: of the stage."""
        names = list(self._begins)
        low, high = self._begins[self._stage], self._begins[names[names.index(self._stage) + 1]]
        self._furthest = max(self._furthest, low + (high - low) * min(share, 1.0))
        if self._progress is not None:
            self._progress(PlanProgress(step, self.time_s, compiling, self._furthest))

    def simulating(self, name: str, at: SimulationProgress) -> None:
        """A policy is simulated: one of those that are compared, or while it is tuned."""
        if at.compiling:
            self.tell(f"compiling the simulator of {name}, once on this machine", 0.0, compiling=True)
            return
        self._done[name] = at.done
        jobs = at.jobs or max(at.done, 1)
        share = sum(self._done.values()) / (jobs * self.policies) if self._stage in ("compare", "tuned") else 0.5 + 0.5 * at.done / jobs
        self.tell(f"{name}: {at.done:,} of {jobs:,} jobs", share)
