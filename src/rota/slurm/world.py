"""What Rota sees of a cluster, and what it can do to it. Plain frozen data; `rota.slurm.client` reads it and carries it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from rota.errors import BadSpec, Problem

__all__ = ["Action", "Amounts", "Cluster", "Do", "Node", "SlurmJob", "Snapshot", "in_order", "nodes_in"]

_NO_GRES: Mapping[str, int] = {}
_WORKING = frozenset({"IDLE", "MIXED", "ALLOCATED", "COMPLETING"})


@dataclass(frozen=True)
class Amounts:
    """CPUs, memory and generic resources: what a node has, or what is used of it, or what a job asks for."""

    cpus: int = 0
    memory_mb: int = 0
    gres: Mapping[str, int] = field(default_factory=lambda: _NO_GRES)


@dataclass(frozen=True)
class Node:
    """A node: what it has, what is allocated on it, and its state as Slurm writes it, such as MIXED+DRAIN."""

    name: str
    has: Amounts
    used: Amounts
    state: str
    partitions: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether jobs can be started on it: not down, drained, reserved for maintenance, or out of reach."""
        base, *flags = self.state.split("+")
        return base in _WORKING and set(flags) <= {"COMPLETING", "CLOUD", "DYNAMIC_NORM"}


def nodes_in(nodes: Sequence[Node], partition: str | None) -> list[Node]:
    """The nodes of a partition (None: all); `BadSpec` if there is none."""
    found = [node for node in nodes if partition is None or partition in node.partitions]
    if not found:
        known = sorted({name for node in nodes for name in node.partitions if name})
        raise BadSpec([Problem("--partition", f"has no nodes (there are: {', '.join(known) or 'none'})", partition)])
    return found


@dataclass(frozen=True)
class SlurmJob:
    """A job that has not ended, or a task of an array. Times are seconds since 1970; None if Slurm gives none."""

    id: str  # 17, 17_3 for the third task of an array, or 17+1 for the second part of a heterogeneous job
    state: str  # PD, R, S, CG …
    reason: str
    asks: Amounts
    nodes: int  # how many it asks for
    node: str  # where it runs
    partition: str
    priority: int
    submitted: float
    begins: float | None  # when it started; for a pending job, when it may start or is expected to
    dependency: str
    reservation: str
    wanted_node: str  # ReqNodeList
    features: str
    exclusive: bool
    comment: str
    restarts: int = 0
    time_limit_s: float | None = None


def in_order(job: SlurmJob) -> tuple[float, int, int]:
    """A key that sorts jobs by the time they came, and those of one second by their numbers."""
    number, _, task = job.id.replace("+", "_").partition("_")
    return job.submitted, int(number), int(task or 0)


@dataclass(frozen=True)
class Snapshot:
    """A cluster at one moment."""

    nodes: tuple[Node, ...]
    jobs: tuple[SlurmJob, ...]
    at: float


class Do(StrEnum):
    """What Rota does to a job."""

    RELEASE = "release"  # to a node
    HOLD = "hold"  # take a release back
    SUSPEND = "suspend"
    RESUME = "resume"
    REQUEUE = "requeue"  # end it; it waits again, held
    LEAVE = "leave to Slurm"  # release it to Slurm's own scheduler
    NOTE = "note"  # only its comment


@dataclass(frozen=True)
class Action:
    """One thing to do. `note` becomes the comment of the job, if it is not empty."""

    do: Do
    job: str
    node: str = ""
    note: str = ""
    again: bool = False  # it was requeued: Slurm would make it wait before it starts again


class Cluster(Protocol):
    """A cluster that can be read and changed: a real one, or a simulated one."""

    calls: int  # commands that were run
    updates: int  # changes that were asked for

    def read(self) -> Snapshot:
        """The cluster now."""

    def carry_out(self, actions: Sequence[Action]) -> Sequence[str]:
        """Does all of it that is possible, and returns what Slurm complained about."""
