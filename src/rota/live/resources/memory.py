"""Memory: a job is limited by a cgroup where one is delegated to the daemon, else by the address space of its processes (RLIMIT_AS)."""

from __future__ import annotations

import os
import re
import resource as process_limits
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rota.live.resources import cgroups
from rota.live.resources.kind import Description, Kind, Resource, explained

if TYPE_CHECKING:
    from rota.model.live import LiveSettings

__all__ = ["Memory", "bytes_per_unit", "power_of"]

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_NAME = re.compile(r"(?:memory|mem|ram)(?:_(?:bytes|b|([kmgtp])(i?)b))?", re.IGNORECASE)


class Memory(Kind):
    """Bytes. The unit is in the name of the resource: memory, memory_gb, memory_gib … Its terms are `bytes` and `cgroup`."""

    name: ClassVar[str] = "memory"

    def __init__(self, resource: Resource, settings: LiveSettings) -> None:
        super().__init__(resource, settings)
        self._asked, self._unit = settings.memory_limit, bytes_per_unit(resource.name)
        self._group = cgroups.delegated_group() if self._asked in ("auto", "cgroup") else None  # where cgroups of jobs are made
        self._enforced = "cgroup" if self._group is not None else "rlimit" if self._asked in ("auto", "rlimit") else ""

    @classmethod
    def takes(cls, resource: str) -> bool:
        """Memory, mem, ram, also with a unit, in any case."""
        return _NAME.fullmatch(resource) is not None

    def describe(self) -> Description:
        """What limits the memory, what that limit cannot do, and a remark if the machine has less."""
        name, remarks = self.resource.name, list[str]()
        if self._enforced == "rlimit":
            remarks.append(
                f"{name} limits the address space of each process (RLIMIT_AS), not what the job uses in all: programs that reserve "
                "much more than they use (CUDA, Java) may fail, and several processes may use more together"
            )
        elif self._asked == "none":
            remarks.append(f"{name} is counted only, as asked: a job may use more than its share")
        elif not self._enforced:
            remarks.append(f"{name} is counted only: no cgroup with the memory controller is delegated to this daemon")
        total, planned = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), self.resource.capacity * self._unit
        if planned > total:
            remarks.append(f"{name}: {planned / 1e9:.3g} GB planned, but this machine has {total / 1e9:.3g} GB")
        return Description(self._enforced, remarks)

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """The limit and the cgroup; a job that asks for no memory has a cgroup without a limit."""
        limit = round(amount * self._unit) if self._enforced and amount > 0 else None
        group = None if self._group is None else f"{self._group}/job-{attempt}"
        return None if limit is None and group is None else {"bytes": limit, "cgroup": group}

    @staticmethod
    def apply(terms: dict[str, Any]) -> None:
        """Enters the cgroup, or sets the limit."""
        limit, group = terms["bytes"], terms["cgroup"]
        if group is not None:
            with explained("cannot make its memory group"):
                cgroups.enter(group, limit)
        else:
            with explained(f"cannot limit its memory to {limit} bytes"):
                process_limits.setrlimit(process_limits.RLIMIT_AS, (limit, limit))

    @staticmethod
    def clean_up(terms: dict[str, Any]) -> str:
        """Removes the cgroup; says so if the kernel killed a process in it for lack of memory."""
        if terms["cgroup"] is not None and cgroups.leave(terms["cgroup"]):
            return f"out of memory: killed at its limit of {terms['bytes']} bytes"
        return ""


def bytes_per_unit(resource: str) -> int:
    """What one unit of a memory resource is: 10⁹ bytes for memory and memory_gb, 2³⁰ for memory_gib, and so on."""
    match = _NAME.fullmatch(resource)
    if match is None:
        raise ValueError(f"{resource!r} does not name memory")
    if match[1] is None:
        return 10**9 if "_" not in resource else 1
    return power_of(match[1], bool(match[2]))


def power_of(letter: str, binary: bool) -> int:
    """K, M, G, T or P: a power of 1000, or of 1024."""
    return int((1024 if binary else 1000) ** _POWERS[letter.upper()])
