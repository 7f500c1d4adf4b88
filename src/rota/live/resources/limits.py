"""What the resources of a server mean on this machine: which are handed out as numbered things, which are limited, which only counted.

    cores, cpus, cpu     sets of core numbers: a job runs on its own and on no other
    gpus, gpu            sets of device numbers, told to the job by CUDA_VISIBLE_DEVICES
    memory, memory_gb …  bytes: a limit of its cgroup where one is delegated to us, else of its address space (RLIMIT_AS)

Everything else is counted: no more is given out than there is, and a job is trusted to keep to its share.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rota.errors import BadSpec, Problem
from rota.live.errors import Refused
from rota.live.processes import tree
from rota.live.resources.cgroups import delegated_group

__all__ = ["Limits", "Pool", "Share", "bytes_per_unit", "kind_of_resource", "move", "parse_amount"]

_CORES, _GPUS = {"cores", "cpus", "cpu"}, {"gpus", "gpu"}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_MEMORY = re.compile(r"(?:memory|mem|ram)(?:_(?:bytes|b|([kmgtp])(i?)b))?", re.IGNORECASE)
_AMOUNT = re.compile(r"\s*(-?\d+(?:\.\d*)?|-?\.\d+)\s*(?:([kmgtp]?)(i?)(b?))\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Share:
    """What one job has: core and device numbers (None: not handed out here) and a limit of memory (None: no limit)."""

    cores: tuple[int, ...] | None = None
    gpus: tuple[int, ...] | None = None
    memory_bytes: int | None = None


class Pool:
    """Numbered things, each given to one taker at a time."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = tuple(ids)
        self._free = set(self.ids)

    @property
    def free(self) -> tuple[int, ...]:
        """What nobody has, in ascending order."""
        return tuple(sorted(self._free))

    def take(self, count: int, prefer: Iterable[int] | None = None) -> tuple[int, ...]:
        """Take `count` of the free ones: those of `prefer` as far as they are free, then the lowest."""
        if count > len(self._free):
            raise ValueError(f"{count} asked for, {len(self._free)} of {len(self.ids)} are free")
        wanted = [one for one in dict.fromkeys(prefer or ()) if one in self._free][:count]
        others = [one for one in self.free if one not in wanted]
        taken = tuple(sorted(wanted + others[: count - len(wanted)]))
        self._free.difference_update(taken)
        return taken

    def hold(self, ids: Iterable[int]) -> None:
        """Take exactly these: what a job that was found running has. Numbers that are not of this pool are passed over."""
        ours = set(ids) & set(self.ids)
        if twice := ours - self._free:
            raise ValueError(f"{sorted(twice)} are taken already")
        self._free -= ours

    def are_free(self, ids: Iterable[int]) -> bool:
        """Whether nobody has any of these; numbers that are not of this pool are passed over."""
        return set(ids) & set(self.ids) <= self._free

    def give_back(self, ids: Iterable[int]) -> None:
        """Give back what was taken."""
        ours = set(ids) & set(self.ids)
        if never := ours & self._free:
            raise ValueError(f"{sorted(never)} were not taken")
        self._free |= ours


class Limits:
    """The resources of a server on this machine. `demand` holds those of its job types, one row each."""

    cores: Pool | None = None
    gpus: Pool | None = None
    group: str | None = None  # where cgroups of jobs are made

    def __init__(
        self,
        resources: Sequence[str],
        capacity: Sequence[float],
        demand: Iterable[Sequence[float]] = (),
        *,
        memory: Literal["auto", "cgroup", "rlimit", "none"] = "auto",
        environment: Mapping[str, str] | None = None,
        devices: str = "/dev",
    ) -> None:
        self.resources, self.capacity = tuple(resources), tuple(map(float, capacity))
        self._types = [tuple(map(float, row)) for row in demand]
        self._environment, self._device_files = os.environ if environment is None else environment, devices
        self._enforced = dict.fromkeys(self.resources, "")
        self._remarks = list[str]()
        self._at: dict[str, int] = {}
        self._devices: dict[int, str] = {}
        for number, name in enumerate(self.resources):
            kind = kind_of_resource(name)
            if kind is None or kind in self._at:
                self._remarks.append(f"{name} is counted only: nothing here holds a job to its share")
            elif kind == "memory":
                self._limit_memory(number, memory)
            elif kind == "cores":
                self._hand_out_cores(number)
            else:
                self._hand_out_gpus(number)

    def enforcement(self) -> dict[str, str]:
        """How a job is held to its share of each resource: 'affinity', 'rlimit', 'cgroup', 'CUDA_VISIBLE_DEVICES' or ''."""
        return dict(self._enforced)

    def handed_out(self, kind: Literal["cores", "gpus"]) -> str | None:
        """The name of the resource whose numbers are handed out as cores, or as devices; None if they are not."""
        return None if (self.cores if kind == "cores" else self.gpus) is None else self.resources[self._at[kind]]

    def remarks(self) -> list[str]:
        """What cannot be enforced here, or only in part."""
        return list(self._remarks)

    def check(self, demand: Sequence[float]) -> None:
        """Refuse a demand for parts of what is handed out whole."""
        for pool, kind in ((self.cores, "cores"), (self.gpus, "gpus")):
            if pool is not None and not _is_whole(amount := demand[self._at[kind]]):
                raise Refused(f"{self.resources[self._at[kind]]} are handed out whole here: {amount:g} is not a whole number")

    def whole(self, demand: Sequence[float]) -> list[float]:
        """A demand with what is handed out whole rounded up."""
        pools = {self._at[kind] for kind, pool in (("cores", self.cores), ("gpus", self.gpus)) if pool is not None}
        return [float(math.ceil(amount - 1e-9)) if at in pools else float(amount) for at, amount in enumerate(demand)]

    def take(self, demand: Sequence[float], prefer: Share | None = None) -> Share:
        """The share of a job that starts or goes on; `prefer` is what it had before."""
        self.check(demand)
        counts = {kind: round(demand[at]) for kind, at in self._at.items()}
        cores = gpus = None
        if self.cores is not None and counts["cores"] > 0:
            cores = self.cores.take(counts["cores"], prefer.cores if prefer else None)
        try:
            if self.gpus is not None:
                gpus = self.gpus.take(counts["gpus"], prefer.gpus if prefer else None)
        except ValueError:
            self.give_back(Share(cores))
            raise
        return Share(cores, gpus, self.memory_bytes(demand))

    def hold(self, share: Share) -> None:
        """Note what a job that was found running has."""
        for pool, ids in ((self.cores, share.cores), (self.gpus, share.gpus)):
            if pool is not None and ids is not None:
                pool.hold(ids)

    def give_back(self, share: Share) -> None:
        """Take back a whole share. Of a suspended job that keeps its devices: `cores.give_back(share.cores)`."""
        for pool, ids in ((self.cores, share.cores), (self.gpus, share.gpus)):
            if pool is not None and ids is not None:
                pool.give_back(ids)

    def memory_bytes(self, demand: Sequence[float]) -> int | None:
        """The limit of memory for this demand; None if there is none."""
        at = self._at.get("memory")
        if at is None or not self._enforced[self.resources[at]] or demand[at] <= 0:
            return None
        return round(demand[at] * bytes_per_unit(self.resources[at]))

    def group_for(self, job: int, attempt: int) -> str | None:
        """The cgroup to run this attempt in; None where memory is not limited by cgroups."""
        return None if self.group is None else f"{self.group}/job-{job}.{attempt}"

    def devices(self, gpus: Iterable[int] | None) -> tuple[str, ...] | None:
        """What CUDA_VISIBLE_DEVICES calls these devices."""
        return None if gpus is None else tuple(self._devices.get(one, str(one)) for one in gpus)

    def _hand_out_cores(self, at: int) -> None:
        name, capacity, own = self.resources[at], self.capacity[at], sorted(os.sched_getaffinity(0))
        if capacity > len(own):
            self._remarks.append(f"{name}: {capacity:g} planned, but {len(own)} may be used here: counted only, jobs share all cores")
        elif not all(_is_whole(row[at]) for row in [*self._types, self.capacity]):
            self._remarks.append(f"{name} are asked for in parts: counted only, jobs share all cores")
        else:
            self.cores, self._at["cores"], self._enforced[name] = Pool(own[: round(capacity)]), at, "affinity"

    def _hand_out_gpus(self, at: int) -> None:
        name, capacity = self.resources[at], self.capacity[at]
        visible = self._environment.get("CUDA_VISIBLE_DEVICES")
        devices = (
            [str(one) for one in range(int(capacity))] if visible is None else [one.strip() for one in visible.split(",") if one.strip()]
        )
        if capacity > len(devices):
            self._remarks.append(f"{name}: {capacity:g} planned, but CUDA_VISIBLE_DEVICES shows {len(devices)}: counted only")
        elif not all(_is_whole(row[at]) for row in [*self._types, self.capacity]):
            self._remarks.append(f"{name} are asked for in parts: counted only, jobs see all devices")
        else:
            numbered = all(one.isdecimal() for one in devices)
            self._devices = {int(one) if numbered else place: one for place, one in enumerate(devices)}
            self.gpus, self._at["gpus"], self._enforced[name] = Pool(list(self._devices)[: int(capacity)]), at, "CUDA_VISIBLE_DEVICES"
            self._remarks.append(f"{name}: a job is told its devices by CUDA_VISIBLE_DEVICES; one that does not heed it is not held back")
            found = sum(re.fullmatch(r"nvidia\d+", file) is not None for file in os.listdir(self._device_files))
            if visible is None and found < capacity:  # they may be of another make, so they are handed out all the same
                seen = f"{name}: {capacity:g} planned, but this machine shows {found} ({self._device_files}/nvidia*)"
                self._remarks.append(f"{seen}: jobs may be told of devices that are not there")

    def _limit_memory(self, at: int, how: Literal["auto", "cgroup", "rlimit", "none"]) -> None:
        name = self.resources[at]
        self._at["memory"] = at
        if how in ("auto", "cgroup"):
            self.group = delegated_group()
        if self.group is not None:
            self._enforced[name] = "cgroup"
        elif how == "none":
            self._remarks.append(f"{name} is counted only, as asked: a job may use more than its share")
        elif how == "cgroup":
            self._remarks.append(f"{name} is counted only: no cgroup with the memory controller is delegated to this daemon")
        else:
            self._enforced[name] = "rlimit"
            self._remarks.append(
                f"{name} limits the address space of each process (RLIMIT_AS), not what the job uses in all: programs that reserve "
                "much more than they use (CUDA, Java) may fail, and several processes may use more together"
            )
        total, planned = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), self.capacity[at] * bytes_per_unit(name)
        if planned > total:
            self._remarks.append(f"{name}: {planned / 1e9:.3g} GB planned, but this machine has {total / 1e9:.3g} GB")


def bytes_per_unit(resource: str) -> int:
    """What one unit of a memory resource is: 10⁹ bytes for memory and memory_gb, 2³⁰ for memory_gib, and so on."""
    match = _MEMORY.fullmatch(resource)
    if match is None:
        raise ValueError(f"{resource!r} does not name memory")
    if match[1] is None:
        return 10**9 if "_" not in resource else 1
    return int((1024 if match[2] else 1000) ** _POWERS[match[1].upper()])


def parse_amount(text: str, resource: str) -> float:
    """`text` as an amount of this resource: "7G" of memory_gb is 7, of memory_mib 6675.72…; a bare number is in its own unit."""
    match = _AMOUNT.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise BadSpec([Problem(resource, "must be a number, for memory also with K, M, G, T (1000) or Ki, Mi, Gi, Ti (1024)", text)])
    number, unit, binary = float(match[1]), match[2].upper(), match[3]
    if number < 0:
        raise BadSpec([Problem(resource, "must be at least 0", text)])
    if not unit and not match[4]:
        return number
    if kind_of_resource(resource) != "memory":
        raise BadSpec([Problem(resource, "is not memory and takes a number without a unit", text)])
    return float(number * (1024 if binary else 1000) ** _POWERS[unit] / bytes_per_unit(resource))


def move(supervisor: int, cores: Iterable[int]) -> None:
    """Let a running job use these cores and no others: every thread of every process below its supervisor."""
    wanted, moved = set(cores), set[int]()
    while new := {thread for pid in tree.descendants(supervisor) for thread in tree.threads(pid)} - moved:
        for thread in new:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, wanted)
        moved |= new  # a thread that was born meanwhile may have the old set: look again


def kind_of_resource(resource: str) -> Literal["cores", "gpus", "memory"] | None:
    """What a resource is on a machine, by its name in any case; None if it is only counted."""
    name = resource.lower()
    return "cores" if name in _CORES else "gpus" if name in _GPUS else "memory" if _MEMORY.fullmatch(name) else None


def _is_whole(amount: float) -> bool:
    return abs(amount - round(amount)) < 1e-9
