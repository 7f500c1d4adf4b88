"""What `rota slurm status` and `rota slurm explain` say: from a snapshot, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rota.errors import BadSpec, Problem
from rota.slurm.marks import MARK, Where, standing_of, why_not_typed
from rota.slurm.world import Snapshot, in_order, nodes_in

__all__ = ["Explained", "count_jobs", "explain"]


@dataclass(frozen=True)
class Explained:
    """Where a job is, and why, in words."""

    job: str
    state: str
    text: str


def count_jobs(snapshot: Snapshot, partition: str | None) -> dict[str, int]:
    """The jobs of a partition by where they are; `foreign` ones are Slurm's."""
    nodes_in(snapshot.nodes, partition)
    jobs = [job for job in snapshot.jobs if partition is None or job.partition == partition]
    counts = Counter(standing_of(job, partition).where for job in jobs)
    return {where.value: counts[where] for where in Where}


def explain(snapshot: Snapshot, id: str, partition: str | None = None) -> Explained:
    """Why a job does not run, or where it does."""
    nodes_in(snapshot.nodes, partition)
    job = next((job for job in snapshot.jobs if job.id == id), None)
    if job is None:
        if tasks := [job.id for job in snapshot.jobs if job.id.startswith((f"{id}_", f"{id}+"))]:
            some = ", ".join(tasks[:3]) + (" …" if len(tasks) > 3 else "")
            raise BadSpec([Problem("JOBID", f"has {len(tasks)} tasks or parts: ask for one of them ({some})", id)])
        raise BadSpec([Problem("JOBID", "there is no such job in the queue: it has ended, or never was (sacct knows)", id)])
    at = standing_of(job, partition)
    if at.where == Where.FOREIGN:
        return Explained(
            id, at.where, f"Rota does not decide about it: {at.why}. Slurm's own scheduler does (reason: {job.reason or 'none'})."
        )
    if at.where == Where.STARTING:
        return Explained(id, at.where, f"Rota released it to {at.node}; Slurm has not started it yet (reason: {job.reason or 'none'}).")
    if at.where != Where.WAITING:
        return Explained(id, at.where, f"It is {at.where.value} on {at.node}.")
    if why := why_not_typed(job):
        return Explained(id, at.where, f"Rota cannot decide about it ({why}), and will leave it to Slurm's own scheduler.")
    kind = job.comment.removeprefix(f"{MARK}:waits:")
    if kind == job.comment:
        return Explained(id, at.where, "It is new: no controller has looked at it yet. If that lasts, is one running? (rota slurm status)")
    before = [other for other in snapshot.jobs if other.comment == job.comment and in_order(other) < in_order(job) and other.priority == 0]
    text = f"It waits for its turn as a job of type {kind}: {len(before)} older jobs of this type wait before it"
    return Explained(id, at.where, f"{text}, {sum(other.comment == job.comment for other in snapshot.jobs)} wait in all.")
