"""Whose job is it? Read from Slurm alone, so that Rota needs no notes of its own to be right.

A job is Rota's if its comment is `rota`, or begins with `rota:`. It is submitted held: by `sbatch --hold --comment=rota`, or by a
job_submit.lua that does so for a whole partition. Rota keeps what it did in the comment, which `squeue` shows:

    rota                    new
    rota:waits:TYPE         held by Rota, it waits for its turn
    rota:on:NODE            released by Rota to this node
    rota:left:WHY           left to Slurm's own scheduler

Slurm's scheduler has the jobs that no type of the plan encloses, those with dependencies, reservations, features or nodes of their own, and
those that need several nodes or a whole one, or have several parts (heterogeneous jobs). A job that an administrator holds (`scontrol
hold`) and a job whose user changed the comment are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rota.slurm.world import SlurmJob

__all__ = ["MARK", "Standing", "Where", "partition_stopped", "standing_of", "why_not_typed"]

MARK = "rota"
_OWN_HOLDS = ("JobHeldUser", "job requeued in held state", "JobHoldMaxRequeue")


class Where(StrEnum):
    """Where a job is, in the terms of Rota."""

    FOREIGN = "foreign"  # not Rota's, or taken from it: not touched
    WAITING = "waiting"  # held by Rota's mark
    STARTING = "starting"  # released by Rota, and not running yet
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"  # its processes are being ended


@dataclass(frozen=True)
class Standing:
    """Where a job is, on which node, and why in words."""

    where: Where
    node: str = ""
    why: str = ""


def is_marked(job: SlurmJob) -> bool:
    """Whether a job has Rota's mark and was not left to Slurm."""
    return job.comment == MARK or (job.comment.startswith(f"{MARK}:") and not job.comment.startswith(f"{MARK}:left"))


def standing_of(job: SlurmJob, partition: str | None = None) -> Standing:
    """Where a job is."""
    if partition is not None and job.partition != partition:
        return Standing(Where.FOREIGN, why=f"it is in partition {job.partition}, and Rota has {partition}")
    if not is_marked(job):
        left = job.comment.removeprefix(f"{MARK}:left:")
        why = f"Rota left it to Slurm: {left}" if left != job.comment else f"its comment is not {MARK}: it is left to Slurm"
        return Standing(Where.FOREIGN, why=why)
    if job.state == "PD":
        return _pending(job)
    if job.state in ("R", "CF"):
        return Standing(Where.RUNNING, job.node)
    if job.state == "S":
        return Standing(Where.SUSPENDED, job.node)
    return Standing(Where.ENDING, job.node)


def _pending(job: SlurmJob) -> Standing:
    on = job.comment.removeprefix(f"{MARK}:on:")
    if job.priority > 0:
        if on != job.comment and on == job.wanted_node:
            return Standing(Where.STARTING, on)
        return Standing(Where.FOREIGN, why="a person released it: it is left to Slurm")
    if job.reason in _OWN_HOLDS or (job.reason == "JobHeldAdmin" and job.comment == MARK):  # the latter from job_submit.lua
        return Standing(Where.WAITING)
    if "launch failed" in job.reason:
        return Standing(Where.FOREIGN, why=f"Slurm holds it ({job.reason}): scontrol release {job.id} starts it again")
    return Standing(Where.FOREIGN, why=f"it is held by an administrator ({job.reason}): scontrol uhold {job.id} gives it to Rota")


def partition_stopped(job: SlurmJob) -> bool:
    """Whether a released job does not start because an administrator stopped its partition (State=DOWN or INACTIVE)."""
    return job.reason in ("PartitionDown", "PartitionInactive")


def why_not_typed(job: SlurmJob) -> str:
    """Why Rota cannot decide about a waiting job, whatever its demand: '' if it can."""
    if "+" in job.id:
        return "heterogeneous"
    if job.dependency:
        return "dependency"
    if job.reservation:
        return "reservation"
    if job.nodes > 1:
        return "several-nodes"
    if job.exclusive:
        return "whole-node"
    if job.features:
        return "features"
    if job.wanted_node and job.comment == MARK:  # later comments are Rota's, and so is the node
        return "asks-for-a-node"
    return ""
