"""Cores: each job runs on its own cores only (CPU affinity)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rota.live.resources.kind import Description, Resource, explained
from rota.live.resources.numbered import Numbered, Pool

if TYPE_CHECKING:
    from rota.model.live import LiveSettings

__all__ = ["Cores"]


class Cores(Numbered):
    """The cores that this daemon may use, from the lowest number on."""

    name: ClassVar[str] = "cores"
    variables: ClassVar[frozenset[str]] = frozenset({"ROTA_CORES"})
    moves: ClassVar[bool] = True

    def __init__(self, resource: Resource, settings: LiveSettings) -> None:
        super().__init__(resource, settings)
        self._own = sorted(os.sched_getaffinity(0))
        if resource.capacity <= len(self._own) and not self.asked_in_parts():
            self.pool = Pool(self._own[: round(resource.capacity)])

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Cores, cpus, cpu, in any case."""
        return resource.lower() in ("cores", "cpus", "cpu")

    def describe(self) -> Description:
        """Affinity, or why there is none."""
        name, capacity = self.resource.name, self.resource.capacity
        if self.pool is not None:
            return Description("affinity")
        if capacity > len(self._own):
            why = f"{name}: {capacity:g} planned, but {len(self._own)} may be used here"
        else:
            why = f"{name} are asked for in parts"
        return Description("", [f"{why}: counted only, jobs share all cores"])

    def take(self, amount: float, prefer: Sequence[int] = ()) -> list[int] | None:
        """None for a job that asks for no core: with an empty set it could not run."""
        return super().take(amount, prefer) if round(amount) > 0 else None

    @staticmethod
    def apply(terms: list[int]) -> None:
        """Sets the affinity, which all processes and threads of the job inherit."""
        with explained(f"cannot use cores {terms}"):
            os.sched_setaffinity(0, terms)

    @staticmethod
    def environment(terms: list[int]) -> dict[str, str]:
        """ROTA_CORES."""
        return {"ROTA_CORES": ",".join(map(str, terms))}

    @staticmethod
    def move(thread: int, terms: list[int]) -> None:
        """Moves a thread to other cores."""
        os.sched_setaffinity(thread, terms)
