"""A cluster on a simulated clock, and jobs played on it by the controller.

It does what Slurm does to released, held, suspended and requeued jobs, with a lag from the release of a job to its start, and is asked as
rarely as the real one (`interval_s`). So its forecast has the lag of the real cluster in it. Shadow mode plays real jobs on it, and the
tests play worlds on it that go wrong in many ways.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rota.arrays import Array
from rota.slurm.cluster_plan import AnyPlan, ClusterPlan
from rota.slurm.controller import Controller
from rota.slurm.marks import MARK
from rota.slurm.world import Action, Amounts, Do, Node, SlurmJob, Snapshot

__all__ = ["REVOKED_S", "PlayedJob", "SimulatedCluster", "play"]

REVOKED_S = 3.0  # after a requeue, a start fails on a real cluster ("Job credential revoked"); seen within a second, not after three


@dataclass(frozen=True)
class PlayedJob:
    """A job to be played: when it comes, what it asks for, and how long it runs."""

    id: str
    submitted: float
    asks: Amounts
    run_s: float


@dataclass
class _Run:
    """What is left of a job, and since when it runs."""

    total_s: float
    left_s: float
    starts: float | None = None  # when Slurm gets to it, after a release
    since: float | None = None
    revoked_until: float = 0.0  # it was requeued: a start before this moment fails, and the job with it


class SimulatedCluster:
    """Nodes and jobs. Only released jobs start, in order of their release, on the node they were released to, if they fit."""

    def __init__(self, nodes: Sequence[Node], lag_s: float = 0.0, begin: float = 0.0) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.jobs: dict[str, SlurmJob] = {}
        self.runs: dict[str, _Run] = {}
        self.ended: dict[str, tuple[float, float, str]] = {}  # start, end, node of the last run
        self.failed: list[str] = []  # jobs that were started too soon after a requeue
        self.clock, self.lag_s = begin, lag_s
        self.calls = self.updates = 0

    # ------------------------------------------------------------------------------------------------------------ the world goes on

    def submit(self, job: PlayedJob, comment: str = MARK, partition: str = "main") -> None:
        """A held job arrives."""
        self.jobs[job.id] = SlurmJob(
            *(job.id, "PD", "JobHeldUser", job.asks, 1, "", partition, 0, job.submitted, None, "", "", "", "", False, comment)
        )
        self.runs[job.id] = _Run(job.run_s, job.run_s)

    def next_event(self) -> float:
        """When something happens by itself."""
        times = [run.starts for run in self.runs.values() if run.starts is not None and run.starts > self.clock]
        times += [run.since + run.left_s for run in self.runs.values() if run.since is not None]
        return min(times, default=math.inf)

    def advance(self, to: float) -> None:
        """Jobs start and end until this moment."""
        self._start_all()
        while (at := self.next_event()) <= to:
            self.clock = at
            for id in [id for id, run in self.runs.items() if run.since is not None and run.since + run.left_s <= at]:
                self._end(id)
            self._start_all()
        self.clock = to

    def _end(self, id: str) -> None:
        job = self.jobs.pop(id)
        del self.runs[id]
        begins = job.submitted if job.begins is None else job.begins
        assert id not in self.ended, f"job {id} ended twice"
        self.ended[id] = begins, self.clock, job.node

    def _start_all(self) -> None:
        """Released jobs whose lag is over start if they fit on their node."""
        due = [(run.starts, id) for id, run in self.runs.items() if run.starts is not None and run.starts <= self.clock]
        for _, id in sorted(due):
            job = self.jobs[id]
            if self.nodes[job.wanted_node].works and self.fits(job.asks, job.wanted_node):
                if self.clock < self.runs[id].revoked_until:
                    self.failed.append(id)
                    del self.jobs[id], self.runs[id]
                    continue
                self.jobs[id] = replace(job, state="R", reason="", node=job.wanted_node, begins=self.clock)
                self.runs[id].starts, self.runs[id].since = None, self.clock

    def used(self, name: str) -> Amounts:
        """What jobs hold on a node; suspended jobs keep their memory and gres."""
        here = [job for job in self.jobs.values() if job.node == name and job.state in ("R", "S")]
        gres = {kind: sum(job.asks.gres.get(kind, 0) for job in here) for kind in self.nodes[name].has.gres}
        return Amounts(sum(job.asks.cpus for job in here if job.state == "R"), sum(job.asks.memory_mb for job in here), gres)

    def fits(self, asks: Amounts, name: str) -> bool:
        """Whether a job fits on a node beside the others."""
        has, used = self.nodes[name].has, self.used(name)
        return (
            used.cpus + asks.cpus <= has.cpus
            and used.memory_mb + asks.memory_mb <= has.memory_mb
            and all(used.gres.get(kind, 0) + count <= has.gres.get(kind, 0) for kind, count in asks.gres.items())
        )

    def lose(self, name: str) -> None:
        """A node goes down. Its jobs are requeued, as Slurm does it: not held, and they wait two minutes."""
        self.nodes[name] = replace(self.nodes[name], state="DOWN")
        for id, job in list(self.jobs.items()):
            if job.node == name:
                run = self.runs[id]
                run.left_s, run.since, run.starts = run.total_s, None, self.clock + 120
                self.jobs[id] = replace(job, state="PD", node="", priority=1, reason="BeginTime", restarts=job.restarts + 1)

    def bring_back(self, name: str) -> None:
        """A lost node comes back."""
        self.nodes[name] = replace(self.nodes[name], state="IDLE")

    # ------------------------------------------------------------------------------------------------------------ the controller's side

    def read(self) -> Snapshot:
        """The cluster now."""
        nodes = tuple(replace(node, used=self.used(name)) for name, node in self.nodes.items())
        return Snapshot(nodes, tuple(self.jobs.values()), self.clock)

    def carry_out(self, actions: Sequence[Action]) -> list[str]:
        """Does all of it at this moment, stops first."""
        order = [Do.REQUEUE, Do.SUSPEND, Do.HOLD, Do.LEAVE, Do.RELEASE, Do.RESUME, Do.NOTE]
        complaints = list[str]()
        for action in sorted(actions, key=lambda one: order.index(one.do)):
            if action.job not in self.jobs:
                complaints.append(f"Invalid job id specified for job {action.job}")
                continue
            job, run = self.jobs[action.job], self.runs[action.job]
            if action.note:
                job = replace(job, comment=action.note)
            self.jobs[action.job] = self._done(action, job, run)
        self._start_all()
        return complaints

    def _done(self, action: Action, job: SlurmJob, run: _Run) -> SlurmJob:
        pending, now = job.state == "PD", self.clock
        if action.do == Do.RELEASE and pending:
            run.starts = now + self.lag_s
            return replace(job, priority=1, reason="Priority", wanted_node=action.node)
        if action.do == Do.HOLD and pending:
            run.starts = None
            return replace(job, priority=0, reason="JobHeldUser", wanted_node="")
        if action.do == Do.LEAVE and pending:
            run.starts = now + self.lag_s
            where = next((name for name in self.nodes if self.fits(job.asks, name)), next(iter(self.nodes)))
            return replace(job, priority=1, reason="Priority", wanted_node=where)
        if action.do == Do.SUSPEND and run.since is not None:
            run.left_s, run.since = run.left_s - (now - run.since), None
            return replace(job, state="S")
        if action.do == Do.RESUME and job.state == "S":
            run.since = now  # no check of capacity, as in Slurm
            return replace(job, state="R")
        if action.do == Do.REQUEUE and run.since is not None:
            run.since = None
            return replace(
                job, state="PD", reason="job requeued in held state", priority=0, node="", begins=None, restarts=job.restarts + 1
            )
        return job


def play(
    plan: AnyPlan | ClusterPlan,
    nodes: Sequence[Node],
    jobs: Sequence[PlayedJob],
    *,
    interval_s: float = 1.0,
    lag_s: float = 0.5,
    seed: int = 0,
    check: bool = False,
) -> tuple[Array, Array]:
    """Start and end (jobs,) of each job under the plan, in seconds. `check`: no node is ever asked for more than it has."""
    begin = min((job.submitted for job in jobs), default=0.0)
    cluster, controller = SimulatedCluster([replace(node, used=Amounts()) for node in nodes], lag_s, begin), Controller(plan, seed=seed)
    coming = [(job.submitted, k) for k, job in enumerate(jobs)]
    heapq.heapify(coming)
    while coming or cluster.jobs:
        at = min(coming[0][0] if coming else math.inf, cluster.next_event(), max(controller.next_wake, cluster.clock))
        if not math.isfinite(at):  # nothing happens by itself: the jobs that are left would wait forever
            raise RuntimeError(f"{len(cluster.jobs)} jobs are never started")
        poll = begin + interval_s * max(math.ceil((at - begin) / interval_s), round((cluster.clock - begin) / interval_s) + 1)
        while coming and coming[0][0] <= poll:
            when, k = heapq.heappop(coming)
            cluster.advance(when)
            cluster.submit(jobs[k])
        cluster.advance(poll)
        cluster.carry_out(controller.handle(cluster.read(), poll))
        if check:
            for name, node in cluster.nodes.items():
                used = cluster.used(name)
                assert used.cpus <= node.has.cpus, f"{name} has {node.has.cpus} CPUs, and {used.cpus} are used"
                assert used.memory_mb <= node.has.memory_mb
    return np.array([cluster.ended[job.id][0] for job in jobs]), np.array([cluster.ended[job.id][1] for job in jobs])
