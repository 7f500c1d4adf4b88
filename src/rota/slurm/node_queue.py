"""One node under the policy: a scheduler of its own, as on a single server, beside what jobs of others hold there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.live.jobs import JobState
from rota.live.scheduling.scheduler import OWN, Scheduler
from rota.policy import PlanFile

__all__ = ["NodeQueue", "OnNode", "releasable"]

_OTHERS = 0  # the number under which what others hold is on the scheduler; jobs are numbered from 1


@dataclass(frozen=True)
class OnNode:
    """A job that is put on a node's scheduler: its number in order of arrival, its type, and its state."""

    number: int
    kind: int
    state: JobState
    served: float = 0.0  # units of time


def releasable(plan: PlanFile) -> list[bool]:
    """Which resources a job gives back when Slurm suspends it: its CPUs, and what is not Slurm's; never memory or gres."""
    return [plan.live.releases(name) for name in plan.system.resources]


class NodeQueue:
    """The jobs of one node. Times are in the unit of time of the plan.

    `types` (K,): the number in the plan of each type of the cluster, −1 if it cannot run here. Callers name types of the cluster.
    """

    def __init__(self, name: str, plan: PlanFile, random: NDArray[np.uint64], types: Int | None = None) -> None:
        self.name, self.plan, self._random = name, plan, random
        self.types: Int = np.arange(len(plan.system.names)) if types is None else types
        self.scheduler = self._new()
        self._others: Int = np.zeros_like(self.scheduler.state.free)
        self._begun = False

    def _new(self) -> Scheduler:
        plan = self.plan
        return Scheduler(plan.system, plan.policy, self._random.copy(), stop=plan.live.preemption, releasable=releasable(plan))

    def rebuild(self, jobs: Iterable[OnNode], now: float) -> None:
        """Puts the scheduler into the state that these jobs are in. The policy keeps what it remembers."""
        saved = self.scheduler.save() if self._begun else None
        self.scheduler = self._new()
        self.scheduler.state.clock[0] = now
        self._hold_others()
        order = {JobState.RUNNING: 0, JobState.SUSPENDED: 1, JobState.STOPPING: 1}  # the started ones are put first
        for job in sorted(jobs, key=lambda job: (order.get(job.state, 2), job.number)):
            self.scheduler.put(job.number, int(self.types[job.kind]), sequence=job.number, state=job.state, served=job.served)
        if saved is None:
            self.scheduler.begin(now)
            self._begun = True
        else:
            self.scheduler.remember(saved)
            self.scheduler.look_again(now)

    def arrive(self, number: int, kind: int, now: float) -> None:
        """A job of this type joins the node."""
        self.scheduler.arrive(number, int(self.types[kind]), now)

    def oldest_waiting(self, kind: int) -> int | None:
        """The oldest job of this type that has not started; None if there is none."""
        jobs = self.scheduler.jobs
        return next((n for n in self.scheduler.waiting(int(self.types[kind])) if jobs[n].state == JobState.WAITING), None)

    def set_others(self, low: Array, high: Array, now: float) -> None:
        """Notes what others hold (R,): something from low to high. If what was known is in between, nothing has changed."""
        units = [self.scheduler.units_of(np.maximum(amount, 0.0).tolist()) for amount in (low, high)]
        others: Int = np.clip(self._others, units[0], units[1])
        if not np.array_equal(others, self._others):
            self._others = others
            if _OTHERS in self.scheduler.jobs:
                self.scheduler.take(_OTHERS)
            self._hold_others()
            self.scheduler.look_again(now)

    def _hold_others(self) -> None:
        if self._others.any():
            self.scheduler.put(_OTHERS, OWN, demand=self._others, sequence=0, state=JobState.RUNNING)

    def states(self) -> dict[int, JobState]:
        """Jobs by number, and their states."""
        return {number: job.state for number, job in self.scheduler.jobs.items() if number != _OTHERS}

    @property
    def waiting(self) -> Int:
        """Jobs that do not run, by type of the plan (K,)."""
        return np.asarray(self.scheduler.state.system - self.scheduler.state.running)
