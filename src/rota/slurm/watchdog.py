"""Back to Slurm's own scheduler: every job that Rota holds is released, and every job that Rota suspended is resumed.

`rota slurm release-all` does it now, `rota slurm watch` when no controller has been heard of for some time. Suspended jobs are resumed only
where their CPUs are free, since Slurm does not check that; the others follow when jobs have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rota.errors import BadSpec
from rota.slurm.errors import Unreachable
from rota.slurm.marks import MARK, Where, standing_of
from rota.slurm.running import read_heartbeat
from rota.slurm.world import Action, Cluster, Do, Snapshot, nodes_in

__all__ = ["release_all", "to_release", "watch"]

_TOGETHER = 500  # jobs released at once: slurmctld has one or two RPCs for each


def to_release(snapshot: Snapshot, partition: str | None, why: str) -> tuple[list[Action], int]:
    """What to do now so that Slurm has all jobs, and how many suspended jobs have to wait until CPUs are free."""
    note, actions, later = f"{MARK}:left:{why}", list[Action](), 0
    free = {node.name: node.has.cpus - node.used.cpus for node in snapshot.nodes}
    for job in snapshot.jobs:
        at = standing_of(job, partition)
        if at.where in (Where.WAITING, Where.STARTING):
            actions.append(Action(Do.LEAVE, job.id, note=note, again=job.restarts > 0))
        elif at.where == Where.SUSPENDED and job.comment.startswith(f"{MARK}:suspended"):
            if free.get(job.node, 0) >= job.asks.cpus:
                free[job.node] -= job.asks.cpus
                actions.append(Action(Do.RESUME, job.id, job.node, note))
            else:
                later += 1
    return actions, later


def check_partition(snapshot: Snapshot, partition: str | None) -> None:
    """Raises `BadSpec` for a partition without nodes and jobs. One that has lost its nodes may still have jobs to release."""
    if not any(job.partition == partition for job in snapshot.jobs):
        nodes_in(snapshot.nodes, partition)


def release_all(
    cluster: Cluster,
    partition: str | None,
    *,
    why: str = "release-all",
    time_limit_s: float = 600.0,
    log_line: Callable[[str], None] = print,
) -> int:
    """Releases everything, and waits for CPUs for suspended jobs up to a time limit; how many jobs are still Rota's."""
    end, released = time.monotonic() + time_limit_s, 0
    check_partition(cluster.read(), partition)  # a name that is none would release nothing
    while True:
        actions, later = to_release(cluster.read(), partition, why)
        for at in range(0, len(actions), _TOGETHER):
            for complaint in cluster.carry_out(actions[at : at + _TOGETHER]):
                log_line(f"slurm: {complaint}")
        released += len(actions)
        left = len(to_release(cluster.read(), partition, why)[0]) + later if actions else later
        if not left or time.monotonic() > end:
            log_line(f"{released} jobs released to Slurm's own scheduler" + (f", {left} are left" if left else ""))
            return left
        time.sleep(1.0)


def watch(
    cluster: Cluster,
    heartbeat: Path,
    partition: str | None,
    *,
    limit_s: float = 60.0,
    interval_s: float = 5.0,
    once: bool = False,
    log_line: Callable[[str], None] = print,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Releases everything as long as the heartbeat is older than the limit; a heartbeat that was never there counts from the start."""
    began, silent, alarmed = time.time(), False, False
    while not stop():
        beat = read_heartbeat(heartbeat)
        age = time.time() - (beat.at if beat is not None else began if not once else 0.0)
        if age > limit_s:
            if not alarmed:
                heard = "heard of" if beat is None else f"for {age:.0f} s (limit {limit_s:g} s)"
                log_line(f"no controller {heard}: its jobs go to Slurm's own scheduler")
            try:
                snapshot = cluster.read()
                check_partition(snapshot, partition)
                actions, _ = to_release(snapshot, partition, "no-controller")
                for at in range(0, len(actions), _TOGETHER):
                    cluster.carry_out(actions[at : at + _TOGETHER])
                if actions:
                    log_line(f"{len(actions)} jobs released")
                silent = False
            except (Unreachable, BadSpec) as error:  # a partition can be removed and come back: the watchdog stays
                if once and isinstance(error, BadSpec):
                    raise
                if not silent:
                    log_line(str(error))
                silent = True
        elif alarmed:
            log_line("the controller is back")
        alarmed = age > limit_s
        if once:
            return
        time.sleep(interval_s)
