"""Devices (GPUs): CUDA_VISIBLE_DEVICES names the devices of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rota.live.resources.kind import Description, Resource
from rota.live.resources.numbered import Numbered, Pool

if TYPE_CHECKING:
    from rota.model.live import LiveSettings

__all__ = ["Gpus"]


class Gpus(Numbered):
    """The devices that this daemon sees, by number; by position if they have names."""

    name: ClassVar[str] = "gpus"
    kept: ClassVar[str] = "a suspended process keeps its devices: gpus cannot be released"

    def __init__(
        self, resource: Resource, settings: LiveSettings, *, environment: Mapping[str, str] = os.environ, devices: str = "/dev"
    ) -> None:
        super().__init__(resource, settings)
        visible, capacity = environment.get("CUDA_VISIBLE_DEVICES"), resource.capacity
        names = [str(one) for one in range(int(capacity))] if visible is None else [x.strip() for x in visible.split(",") if x.strip()]
        by_number = all(one.isdecimal() for one in names)
        self._names = {int(one) if by_number else place: one for place, one in enumerate(names)}
        self._seen, self._visible, self._files = len(names), visible, devices
        if capacity <= self._seen and not self.asked_in_parts():
            self.pool = Pool(list(self._names)[: int(capacity)])

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Gpus, gpu, in any case."""
        return resource.lower() in ("gpus", "gpu")

    def describe(self) -> Description:
        """CUDA_VISIBLE_DEVICES, or why not; and a remark if the machine has fewer devices."""
        name, capacity = self.resource.name, self.resource.capacity
        if capacity > self._seen:
            return Description("", [f"{name}: {capacity:g} planned, but CUDA_VISIBLE_DEVICES shows {self._seen}: counted only"])
        if self.pool is None:
            return Description("", [f"{name} are asked for in parts: counted only, jobs see all devices"])
        remarks = [f"{name}: CUDA_VISIBLE_DEVICES names a job's devices; nothing stops a job that ignores it"]
        found = sum(re.fullmatch(r"nvidia\d+", file) is not None for file in os.listdir(self._files))
        if self._visible is None and found < capacity:  # they may be of another vendor, so they are handed out nevertheless
            seen = f"{name}: {capacity:g} planned, but this machine shows {found} ({self._files}/nvidia*)"
            remarks.append(f"{seen}: jobs may be given devices that do not exist")
        return Description("CUDA_VISIBLE_DEVICES", remarks)

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """The names of the devices in CUDA_VISIBLE_DEVICES; empty if the job asked for none."""
        return None if self.pool is None or share is None else [self._names.get(one, str(one)) for one in share]

    @staticmethod
    def environment(terms: list[str]) -> dict[str, str]:
        """CUDA_VISIBLE_DEVICES."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, terms))}
