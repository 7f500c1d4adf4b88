"""`rota slurm plan`: the nodes of a cluster as kinds of servers, recent jobs as job types.

Nodes of a partition with the same CPUs, memory and generic resources are of one kind. The controller runs one kind: the one with the most
CPUs in all. Types, rates and sizes come from a trace (`rota trace import` reads what sacct prints). Without one they come from the jobs
that Slurm has in its memory now; these are few, so the rates are rough. Each node gets its share of the arrivals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rota.errors import BadSpec, Infeasible, Problem
from rota.model import System
from rota.slurm.amounts import in_plan_units
from rota.slurm.world import Amounts, Node, SlurmJob, Snapshot

__all__ = ["NodeKind", "node_kinds", "propose", "resources_of", "system_from_jobs"]


@dataclass(frozen=True)
class NodeKind:
    """Nodes that are alike."""

    has: Amounts
    nodes: tuple[str, ...]

    @property
    def cpus(self) -> int:
        """In all."""
        return self.has.cpus * len(self.nodes)


def node_kinds(nodes: Sequence[Node], partition: str | None) -> list[NodeKind]:
    """The kinds of nodes of a partition, that with the most CPUs first."""
    found = defaultdict[tuple[int, int, tuple[tuple[str, int], ...]], list[Node]](list)
    for node in nodes:
        if partition is None or partition in node.partitions:
            found[node.has.cpus, node.has.memory_mb, tuple(sorted(node.has.gres.items()))].append(node)
    if not found:
        known = sorted({name for node in nodes for name in node.partitions if name})
        raise BadSpec([Problem("--partition", f"has no nodes (there are: {', '.join(known) or 'none'})", partition)])
    kinds = [NodeKind(alike[0].has, tuple(node.name for node in alike)) for alike in found.values()]
    return sorted(kinds, key=lambda kind: -kind.cpus)


def resources_of(kind: NodeKind) -> tuple[str, ...]:
    """The names of the resources in a plan for this kind."""
    gres = tuple("gpus" if name == "gpu" else name for name, count in kind.has.gres.items() if count)
    return ("cores", "memory_gb", *gres)


def propose(kinds: Sequence[NodeKind], snapshot: Snapshot, partition: str | None, trace: Path | None, *, types: int = 8) -> System:
    """A server like a node of the first kind, with types from the trace, or from the jobs of the snapshot."""
    if types < 1:
        raise BadSpec([Problem("--types", "must be at least 1", types)])
    if trace is None:
        jobs = [job for job in snapshot.jobs if partition is None or job.partition == partition]
        return system_from_jobs(kinds[0], jobs, snapshot.at, types=types)
    from rota.traces import group_types, open_trace

    found = open_trace(trace)
    capacity = in_plan_units(kinds[0].has, found.resources)
    if (capacity <= 0).any():
        lacking = [name for name, amount in zip(found.resources, capacity, strict=True) if amount <= 0]
        raise BadSpec([Problem("--trace", "has resources that the nodes do not have", ", ".join(lacking))])
    system = group_types(found, clusters=types, capacity=capacity).trace.system(capacity)
    return system.replace(arrival_rate=system.arrival_rate / len(kinds[0].nodes))


def system_from_jobs(kind: NodeKind, jobs: Sequence[SlurmJob], now: float, *, types: int = 8) -> System:
    """A server like one node of the kind, with the requests of these jobs as types: the most frequent ones, the others rounded up to them.

    The rate of a type is its jobs over the time since the first job came, and over the number of nodes. Its mean size is the mean of the
    running times so far, or half of the time limit of jobs that have not started.
    """
    resources = resources_of(kind)
    capacity = in_plan_units(kind.has, resources)
    requests = defaultdict[tuple[float, ...], list[SlurmJob]](list)
    for job in jobs:
        asked = np.ceil(1000 * in_plan_units(job.asks, resources)) / 1000
        if job.nodes == 1 and asked.any() and (asked <= capacity).all():
            requests[tuple(asked.tolist())].append(job)
    if not requests:
        raise Infeasible("Slurm has no jobs in its memory from which types could be made: give a trace (rota trace import, then --trace)")
    kept = sorted(requests, key=lambda demand: -len(requests[demand]))[:types]
    members = {demand: list(requests[demand]) for demand in kept}
    for demand, more in requests.items():
        if demand not in members:
            larger = [one for one in kept if all(np.array(one) >= demand)]
            if larger:
                members[min(larger, key=lambda one: sum(np.array(one) / capacity))] += more
    first = min(job.submitted for job in jobs)
    span = max(now - first, 60.0)
    order = sorted(kept, key=lambda demand: tuple(np.array(demand) / capacity))
    sizes = [np.mean([_size(job, now) for job in members[demand]]) for demand in order]
    rates: ArrayLike = [len(members[demand]) / span / len(kind.nodes) for demand in order]
    names = [
        "-".join(f"{amount:g}{name.partition('_')[0]}" for amount, name in zip(demand, resources, strict=True) if amount)
        for demand in order
    ]
    return System(capacity, order, rates, mean_size=sizes, names=names, resources=resources, time_unit="s")


def _size(job: SlurmJob, now: float) -> float:
    if job.state != "PD" and job.begins is not None:
        return max(now - job.begins, 1.0)
    return max((job.time_limit_s or 3600.0) / 2, 1.0)
