"""`rota slurm plan`: the nodes of a cluster as kinds of servers, recent jobs as job types.

Nodes of a partition with the same CPUs, memory and generic resources are of one kind. Types, rates and sizes come from a trace (`rota trace
import` reads what sacct prints), or from the recent jobs of `rota.slurm.recent`. Without those they come from the jobs that Slurm has in
its memory now; these are few, so the rates are rough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rota.arrays import Array, Bool
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Fleet
from rota.slurm.amounts import in_plan_units
from rota.slurm.world import Amounts, Node, SlurmJob, Snapshot, nodes_in

__all__ = ["NodeKind", "Proposal", "fleet_from_jobs", "node_kinds", "propose", "resources_of"]


@dataclass(frozen=True)
class NodeKind:
    """Nodes that are alike."""

    has: Amounts
    nodes: tuple[str, ...]

    @property
    def cpus(self) -> int:
        """In all."""
        return self.has.cpus * len(self.nodes)

    @property
    def name(self) -> str:
        """What a node has, in short: 64cpus-256g-4gpu."""
        gres = "".join(f"-{count}{name}" for name, count in self.has.gres.items() if count)
        return f"{self.has.cpus}cpus-{self.has.memory_mb / 1024:.0f}g{gres}"


@dataclass(frozen=True)
class Proposal:
    """A fleet, and how many jobs it was made from; `left_out` jobs have no type: they would be left to Slurm."""

    fleet: Fleet
    jobs: int
    left_out: int


def node_kinds(nodes: Sequence[Node], partition: str | None) -> list[NodeKind]:
    """The kinds of nodes of a partition, that with the most CPUs first."""
    found = defaultdict[tuple[int, int, tuple[tuple[str, int], ...]], list[Node]](list)
    for node in nodes_in(nodes, partition):
        found[node.has.cpus, node.has.memory_mb, tuple(sorted(node.has.gres.items()))].append(node)
    kinds = [NodeKind(alike[0].has, tuple(node.name for node in alike)) for alike in found.values()]
    return sorted(kinds, key=lambda kind: -kind.cpus)


def resources_of(kinds: Sequence[NodeKind]) -> tuple[str, ...]:
    """The names of the resources in a plan for these kinds."""
    gres = dict.fromkeys("gpus" if name == "gpu" else name for kind in kinds for name, count in kind.has.gres.items() if count)
    return ("cores", "memory_gb", *gres)


def propose(kinds: Sequence[NodeKind], snapshot: Snapshot, partition: str | None, trace: Path | None, *, types: int = 8) -> Proposal:
    """The nodes as a fleet, with types from the trace, or from the jobs of the snapshot."""
    if types < 1:
        raise BadSpec([Problem("--types", "must be at least 1", types)])
    if trace is None:
        jobs = [job for job in snapshot.jobs if partition is None or job.partition == partition]
        return fleet_from_jobs(kinds, jobs, snapshot.at, types=types)
    return _fleet_from_trace(kinds, trace, types)


def _fleet_from_trace(kinds: Sequence[NodeKind], path: Path, types: int) -> Proposal:
    """The types of a trace on these nodes. If grouped ones fit no kind, the most frequent types stay as they are."""
    from rota.traces import group_types, open_trace
    from rota.traces.machines import Machines
    from rota.traces.to_fleet import to_fleet

    found = open_trace(path)
    capacity = _capacity(kinds, found.resources)
    lacking = [name for name, amount in zip(found.resources, capacity.max(axis=0), strict=True) if amount <= 0]
    if lacking:
        raise BadSpec([Problem("--trace", "has resources that the nodes do not have", ", ".join(lacking))])
    machines = Machines(_names(kinds), found.resources, np.array([len(kind.nodes) for kind in kinds]), capacity)
    ways: tuple[dict[str, Any], ...] = ({"clusters": types}, {"top": types, "rest": "enclose"})
    for how in ways:
        grouped = group_types(found, capacity=capacity.max(axis=0), **how).trace
        if all(_fits(demand, capacity).any() for demand in grouped.demand):
            fleet = to_fleet(grouped, machines)
            return Proposal(fleet.replace(time_unit="s"), len(grouped), len(found) - len(grouped))
    raise Infeasible(
        "a frequent type of job fits on no node: its jobs ran on other nodes. Leave them out of the trace, or ask for more --types"
    )


def fleet_from_jobs(kinds: Sequence[NodeKind], jobs: Sequence[SlurmJob], now: float, *, types: int = 8) -> Proposal:
    """These nodes, with the requests of these jobs as types: the most frequent ones, the others rounded up to them.

    The rate of a type is its jobs over the time since the first job came. Its mean size is the mean of the running times so far, or half of
    the time limit of jobs that have not started.
    """
    resources = resources_of(kinds)
    capacity = _capacity(kinds, resources)
    requests = defaultdict[tuple[float, ...], list[SlurmJob]](list)
    for job in jobs:
        asked = np.ceil(1000 * in_plan_units(job.asks, resources)) / 1000
        if job.nodes == 1 and asked.any() and _fits(asked, capacity).any():
            requests[tuple(asked.tolist())].append(job)
    if not requests:
        raise Infeasible(
            "the queue has no jobs from which types could be made: wait until it has some, or give a trace (rota trace import, --trace)"
        )
    kept = sorted(requests, key=lambda demand: -len(requests[demand]))[:types]
    members = {demand: list(requests[demand]) for demand in kept}
    largest = capacity.max(axis=0)
    for demand, more in requests.items():
        if demand not in members and (larger := [one for one in kept if _encloses(one, demand)]):
            members[min(larger, key=lambda one: sum(np.array(one) / largest))] += more
    span = max(now - min(job.submitted for job in jobs), 60.0)
    order = sorted(kept, key=lambda demand: tuple(np.array(demand) / largest))
    names = [
        "-".join(f"{amount:g}{name.partition('_')[0]}" for amount, name in zip(demand, resources, strict=True) if amount)
        for demand in order
    ]
    fleet = Fleet(
        count=[len(kind.nodes) for kind in kinds],
        capacity=capacity,
        kinds=_names(kinds),
        demand=order,
        arrival_rate=[len(members[demand]) / span for demand in order],
        mean_size=[np.mean([_size(job, now) for job in members[demand]]) for demand in order],
        names=names,
        resources=resources,
        time_unit="s",
    )
    typed = sum(len(some) for some in members.values())
    return Proposal(fleet, typed, len(jobs) - typed)


def _names(kinds: Sequence[NodeKind]) -> tuple[str, ...]:
    """A name for each kind; those that would have the same one get a number too."""
    names = [kind.name for kind in kinds]
    return tuple(name if names.count(name) == 1 else f"{name}-{names[:n].count(name) + 1}" for n, name in enumerate(names))


def _capacity(kinds: Sequence[NodeKind], resources: Sequence[str]) -> Array:
    return np.array([in_plan_units(kind.has, resources) for kind in kinds])


def _fits(demand: Array, capacity: Array) -> Bool:
    """On which kinds a job fits (C,)."""
    return np.asarray((demand <= capacity * (1 + 1e-9)).all(axis=1))


def _encloses(one: Sequence[float], demand: Sequence[float]) -> bool:
    """Whether a type is large enough for a job, and no device that the job does not ask for: devices are few."""
    return all(a >= b and (b > 0 or a == 0 or r < 2) for r, (a, b) in enumerate(zip(one, demand, strict=True)))


def _size(job: SlurmJob, now: float) -> float:
    if job.state != "PD" and job.begins is not None:
        return max(now - job.begins, 1.0)
    return max((job.time_limit_s or 3600.0) / 2, 1.0)
