"""Allocation: each job's share of every resource, from its start to its end, across suspensions and restarts of the daemon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rota.errors import BadSpec, Problem
from rota.live.errors import Refused
from rota.live.jobs import Job, JobState
from rota.live.resources.counted import Counted
from rota.live.resources.kind import Kind, Resource
from rota.live.resources.kinds import kind_of
from rota.live.resources.numbered import is_whole
from rota.model import System
from rota.model.live import LiveSettings

__all__ = ["Allocation"]


class Allocation:
    """The resources of a server on this machine. Numbered things (cores, devices) are noted in the job: `share`, numbers by kind.

    `demand` is what a job needs of each resource, in the order of the server's resources.
    """

    def __init__(self, system: System, settings: LiveSettings) -> None:
        self._kinds: list[Kind] = []  # one for each resource
        for at, (name, capacity) in enumerate(zip(system.resources, system.capacity.tolist(), strict=True)):
            self._kinds.append(self._kind(Resource(name, capacity, system.demand[:, at].tolist()), settings))
        self._described = [kind.describe() for kind in self._kinds]
        numbered = [kind for kind in self._kinds if kind.free is not None]
        released = [kind for kind in numbered if settings.releases(kind.resource.name)]
        if kept := [kind for kind in released if kind.kept]:
            raise BadSpec([Problem(f"live.releasable.{kind.resource.name}", kind.kept) for kind in kept])
        self._numbered = {kind.name: kind for kind in numbered}
        self._released = {kind.name for kind in released}
        self._lent: set[tuple[int, str]] = set()  # (job, kind) where a suspended job has given its share back

    def _kind(self, resource: Resource, settings: LiveSettings) -> Kind:
        """A resource on this machine. If several are of one kind, the first is enforced and the others are counted."""
        kind = kind_of(resource.name)
        if any(other.name == kind.name and other.describe().enforced for other in self._kinds):
            kind = Counted
        return kind(resource, settings)

    # ------------------------------------------------------------------------------------------------------------ the server

    def enforcement(self) -> dict[str, str]:
        """How a job is held to its share of each resource: 'affinity', 'rlimit', 'cgroup', 'CUDA_VISIBLE_DEVICES' … or ''."""
        return {kind.resource.name: said.enforced for kind, said in zip(self._kinds, self._described, strict=True)}

    def remarks(self) -> list[str]:
        """What cannot be enforced here, or only in part."""
        return [remark for said in self._described for remark in said.remarks]

    def free(self, kind: str) -> tuple[int, ...] | None:
        """The free numbers of a kind; None if this kind hands out no numbers here."""
        return self._numbered[kind].free if kind in self._numbered else None

    def check(self, demand: Sequence[float]) -> None:
        """Refuses a fraction of a resource that is handed out in whole units."""
        for kind, amount in zip(self._kinds, demand, strict=True):
            if kind.whole and not is_whole(amount):
                raise Refused(f"{kind.resource.name} are handed out whole here: {amount:g} is not a whole number")

    def whole(self, demand: Sequence[float]) -> list[float]:
        """A demand rounded up for resources that are handed out in whole units."""
        pairs = zip(self._kinds, demand, strict=True)
        return [float(math.ceil(amount - 1e-9)) if kind.whole else float(amount) for kind, amount in pairs]

    def take_over(self, before: Allocation, suspended: Iterable[Job]) -> None:
        """Takes over from another allocation of the same server with other settings."""
        for kind, earlier in zip(self._kinds, before._kinds, strict=True):
            kind.take_over(earlier)
        self._lent = before._lent
        for job in suspended:
            self.suspend(job)

    # ------------------------------------------------------------------------------------------------------------ a job

    def take(self, job: Job, demand: Sequence[float]) -> None:
        """A job starts. `Refused`: it asks for a fraction of a resource that is handed out whole. ValueError: not enough is left."""
        self.check(demand)
        job.share = {}
        try:
            for kind, amount in zip(self._kinds, demand, strict=True):
                if (taken := kind.take(amount)) is not None:
                    job.share = {**job.share, kind.name: taken}
        except ValueError:
            self.release(job)
            raise

    def suspend(self, job: Job) -> None:
        """A job that is suspended gives back what a stop releases; its share is remembered."""
        for name in self._released & job.share.keys():
            if (job.id, name) not in self._lent:
                self._numbered[name].release(job.share[name])
                self._lent.add((job.id, name))

    def resume(self, job: Job) -> None:
        """A suspended job is about to resume, with the same numbers if they are free."""
        for name in self._lent_by(job):
            if (again := self._numbered[name].take_again(job.share[name])) is not None:
                job.share = {**job.share, name: again}
            self._lent.discard((job.id, name))

    def hold(self, job: Job) -> None:
        """Notes the share of a job that an earlier daemon started. Others may have the cores of a suspended one: it resumes on any."""
        for name, share in job.share.items():
            if (kind := self._numbered.get(name)) is None:
                continue
            if job.state == JobState.SUSPENDED and not kind.kept:
                self._lent.add((job.id, name))
            else:
                kind.hold(share)

    def release(self, job: Job) -> None:
        """Takes the share of a job back when none of its processes is left on the machine."""
        lent = self._lent_by(job)
        for name, share in job.share.items():
            if name in self._numbered and name not in lent:
                self._numbered[name].release(share)
        self._lent.difference_update((job.id, name) for name in lent)
        job.share = {}

    def terms(self, job: Job, demand: Sequence[float]) -> dict[str, Any]:
        """The terms of each kind for the job's supervisor, as plain JSON: the `share` of its order."""
        made = ((kind, self._terms(kind, job, amount)) for kind, amount in zip(self._kinds, demand, strict=True))
        return {kind.name: terms for kind, terms in made if terms is not None}

    def moves(self, job: Job) -> dict[str, Any]:
        """The terms of kinds to which a job that resumes must be moved; empty if there are none."""
        kinds = (kind for name, kind in self._numbered.items() if kind.moves and name in job.share)
        return {kind.name: self._terms(kind, job, len(job.share[kind.name])) for kind in kinds}

    @staticmethod
    def _terms(kind: Kind, job: Job, amount: float) -> Any:
        return kind.terms(job.share.get(kind.name), amount, f"{job.id}.{job.attempt}")

    def _lent_by(self, job: Job) -> set[str]:
        return {name for name in job.share if (job.id, name) in self._lent}
