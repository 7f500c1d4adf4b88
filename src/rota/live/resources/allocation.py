"""Allocation: which cores and devices each job has, from its start to its end, over suspensions and daemons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rota.errors import BadSpec, Problem
from rota.live.jobs import Job
from rota.live.resources.limits import Limits, Share
from rota.model import System
from rota.model.live import LiveSettings

__all__ = ["Allocation", "numbers"]


class Allocation:
    """Hands out what `limits` numbers, and notes it in the job: `cores` and `gpus` as comma lists."""

    def __init__(self, system: System, settings: LiveSettings) -> None:
        self.limits = Limits(system.resources, system.capacity.tolist(), system.demand.tolist(), memory=settings.memory_limit)
        devices, cores = self.limits.handed_out("gpus"), self.limits.handed_out("cores")
        if devices is not None and settings.releases(devices):
            raise BadSpec([Problem(f"live.releasable.{devices}", "a suspended process keeps its devices: gpus cannot be released")])
        self._released = cores is not None and settings.releases(cores)
        self._lent: set[int] = set()  # suspended jobs whose cores others may have

    def take_over(self, before: Allocation, suspended: Iterable[Job]) -> None:
        """Goes on where other shares of the same server were, which had other settings."""
        self.limits.cores, self.limits.gpus, self._lent = before.limits.cores, before.limits.gpus, before._lent
        for job in suspended:
            self.suspend(job)

    def take(self, job: Job, demand: list[float]) -> None:
        """A job starts."""
        share = self.limits.take(demand)
        job.cores, job.gpus = _text(share.cores), _text(share.gpus)

    def suspend(self, job: Job) -> None:
        """A job that is about to be suspended, or is, gives its cores back, if a stop releases them, and remembers them."""
        if self.limits.cores is not None and job.cores is not None and self._released and job.id not in self._lent:
            self.limits.cores.give_back(numbers(job.cores) or ())
            self._lent.add(job.id)

    def resume(self, job: Job) -> None:
        """A suspended job is about to go on: on the cores it had, as far as they are free."""
        if self.limits.cores is not None and job.id in self._lent:
            had = numbers(job.cores) or ()
            job.cores = _text(self.limits.cores.take(min(len(had), len(self.limits.cores.ids)), had))
            self._lent.discard(job.id)

    def hold(self, job: Job) -> None:
        """A job was found that an earlier daemon started; suspended ones come last, for others may have their cores by now."""
        pool, cores = self.limits.cores, numbers(job.cores)
        if job.state == "suspended" and pool is not None and cores is not None and (self._released or not pool.are_free(cores)):
            self._lent.add(job.id)
        self.limits.hold(self._held(job))

    def give_back(self, job: Job) -> None:
        """Nothing of a job is left on the machine."""
        self.limits.give_back(self._held(job))
        self._lent.discard(job.id)
        job.cores = job.gpus = None

    def cores(self, job: Job) -> tuple[int, ...] | None:
        """The cores that a job is held to; None if it is not."""
        return None if self.limits.cores is None else numbers(job.cores)

    def terms(self, job: Job, demand: list[float]) -> dict[str, Any]:
        """What its supervisor is told: cores, devices, limits of memory."""
        return {
            "cores": numbers(job.cores),
            "gpus": self.limits.devices(numbers(job.gpus)),
            "memory_bytes": self.limits.memory_bytes(demand),
            "cgroup": self.limits.group_for(job.id, job.attempt),
        }

    def _held(self, job: Job) -> Share:
        return Share(None if job.id in self._lent else numbers(job.cores), numbers(job.gpus))


def numbers(text: str | None) -> tuple[int, ...] | None:
    """The numbers of a comma list."""
    return None if text is None else tuple(int(x) for x in text.split(",") if x)


def _text(ids: tuple[int, ...] | None) -> str | None:
    return None if ids is None else ",".join(map(str, ids))
