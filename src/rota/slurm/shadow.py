"""Shadow mode: Slurm's own scheduler runs the partition, Rota follows and says what it would have done.

Two answers come of it. From the cluster as it is now: which pending jobs Rota would release, and where (`as_if_marked` makes the snapshot
that the controller would see). From all jobs seen so far: how long people would have waited. For that the same jobs, with the running times
they had, are played from the beginning under the plan, on a simulated cluster with the same nodes and the lag of a real one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rota.display import duration
from rota.slurm.cluster_plan import AnyPlan, ClusterPlan, cluster_plan
from rota.slurm.controller import Controller
from rota.slurm.errors import Unreachable
from rota.slurm.marks import MARK, why_not_typed
from rota.slurm.running import describe
from rota.slurm.simulated import PlayedJob, play
from rota.slurm.world import Cluster, Do, Node, SlurmJob, Snapshot

__all__ = ["LAG_S", "Shadow", "Waits", "as_if_marked", "run_shadow"]

LAG_S = 0.7  # from the release of a job to its start, where nothing was measured; docs/how-to/slurm.md has a measurement


def as_if_marked(snapshot: Snapshot, partition: str | None) -> Snapshot:
    """The snapshot as it would be if Rota had the partition: pending jobs are held by Rota, running ones were released by it."""

    def marked(job: SlurmJob) -> SlurmJob:
        if (partition is not None and job.partition != partition) or job.reason == "JobHeldAdmin" or why_not_typed(job):
            return job
        if job.state == "PD":
            held = job.reason == "JobHeldUser" and not job.comment.startswith(MARK)  # by its user
            return job if held else replace(job, priority=0, reason="JobHeldUser", comment=MARK, wanted_node="")
        return replace(job, comment=f"{MARK}:on:{job.node}")

    return replace(snapshot, jobs=tuple(map(marked, snapshot.jobs)))


@dataclass(frozen=True)
class Waits:
    """How long people waited for their jobs to start, and how long they would have, in seconds."""

    jobs: int  # that have ended and have a type
    others: int  # that have no type or are left to Slurm for another reason
    unseen: int  # that were gone before they were seen running: cancelled, or shorter than the time between two looks
    slurm_wait_s: float
    rota_wait_s: float
    slurm_response_s: float
    rota_response_s: float


@dataclass
class _Job:
    job: SlurmJob
    last: float
    began: float | None = None
    ended: float | None = None


class Shadow:
    """Notes the jobs of a partition as they come and go."""

    def __init__(self, plan: AnyPlan | ClusterPlan, partition: str | None) -> None:
        self.plan, self.partition = cluster_plan(plan), partition
        self._jobs: dict[str, _Job] = {}
        self._others: set[str] = set()
        self._nodes: tuple[Node, ...] = ()

    def note(self, snapshot: Snapshot) -> None:
        """One more look at the cluster. A job ended somewhere between the last look that saw it and this one."""
        self._nodes = snapshot.nodes
        present = set[str]()
        for job in snapshot.jobs:
            if self.partition is not None and job.partition != self.partition:
                continue
            present.add(job.id)
            if job.id not in self._jobs and (self.plan.type_of(job.asks) is None or why_not_typed(job)):
                self._others.add(job.id)
                continue
            kept = self._jobs.setdefault(job.id, _Job(job, snapshot.at))
            kept.last = snapshot.at
            if job.state in ("R", "CG") and kept.began is None:
                kept.began = job.begins
        for id, kept in self._jobs.items():
            if id not in present and kept.ended is None:
                kept.ended = (kept.last + snapshot.at) / 2

    def waits(self, interval_s: float, lag_s: float, seed: int = 0) -> Waits | None:
        """The comparison over the jobs that have ended; None if there are none yet.

        Jobs that still run take part with the time they have run so far. Jobs that were never seen running are left out.
        """
        known = self.plan.nodes(self._nodes, self.partition)
        nodes = [replace(node, state="IDLE") for node in self._nodes if node.name in known]
        jobs = [one for one in self._jobs.values() if one.began is not None]
        done = np.array([one.ended is not None for one in jobs], dtype=bool)
        if not done.any() or not nodes:
            return None
        began = np.array([one.began for one in jobs], dtype=float)
        ended = np.array([one.last if one.ended is None else one.ended for one in jobs])
        came = np.array([one.job.submitted for one in jobs])
        run = np.maximum(ended - began, 0.05)
        played = [PlayedJob(one.job.id, one.job.submitted, one.job.asks, float(s)) for one, s in zip(jobs, run, strict=True)]
        starts, ends = play(self.plan, nodes, played, interval_s=interval_s, lag_s=lag_s, seed=seed)
        return Waits(
            int(done.sum()),
            len(self._others),
            sum(one.began is None and one.ended is not None for one in self._jobs.values()),
            float((began - came)[done].mean()),
            float((starts - came)[done].mean()),
            float((ended - came)[done].mean()),
            float((ends - came)[done].mean()),
        )

    def report(self, interval_s: float, lag_s: float, seed: int = 0) -> str:
        """The comparison in words."""
        waits = self.waits(interval_s, lag_s, seed)
        if waits is None:
            return "no job has ended yet: nothing to compare"
        text = f"{waits.jobs} jobs ended. They waited {duration(waits.slurm_wait_s)} on average under Slurm, and would have waited"
        text += (
            f" {duration(waits.rota_wait_s)} under {self.plan.label} (simulated with a lag of {lag_s:g} s, a look every {interval_s:g} s)"
        )
        text += f"; {waits.others} jobs have no type or are Slurm's for another reason" if waits.others else ""
        return text + (f"; {waits.unseen} were never seen running, and are left out" if waits.unseen else "")


def run_shadow(
    controller: Controller,
    cluster: Cluster,
    *,
    interval_s: float = 1.0,
    report_s: float = 60.0,
    lag_s: float = LAG_S,
    seed: int = 0,
    log_line: Callable[[str], None] = print,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Follows the cluster and changes nothing, until `stop` says so or an interrupt; then it compares for the last time."""
    shadow, said, lost = Shadow(controller.plan, controller.partition), set[tuple[str, str]](), False
    reported = time.monotonic()
    try:
        while not stop():
            try:
                snapshot = cluster.read()
                shadow.note(snapshot)
                lost = False
                for action in controller.handle(as_if_marked(snapshot, controller.partition), snapshot.at):
                    if action.do not in (Do.NOTE, Do.LEAVE) and (action.job, action.node) not in said:
                        said.add((action.job, action.node))
                        log_line(describe(action, dry_run=True))
            except Unreachable as error:
                log_line(str(error)) if not lost else None
                lost = True
            if time.monotonic() - reported > report_s:
                reported = time.monotonic()
                log_line(shadow.report(interval_s, lag_s, seed))
            time.sleep(interval_s)
    finally:
        log_line(shadow.report(interval_s, lag_s, seed))
