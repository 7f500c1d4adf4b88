"""`rota slurm …`: a plan on a Slurm cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

import rota
from rota.arguments import whole_file
from rota.cli.output import print_json, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import RUN_JOBS, Flag, Force, Json, OptionalOutput
from rota.cli.serve import read_plan
from rota.display import duration

slurm = App(
    name="slurm",
    group=RUN_JOBS,
    help="Runs a plan on a Slurm cluster: Rota decides which held jobs start where and when.",
)

Partition = Annotated[str | None, Parameter(alias="-p", help="The partition that Rota looks after; all marked jobs if not given.")]
HeartbeatFile = Annotated[
    Path | None, Parameter(help="The file that a controller renews after each cycle; in ~/.local/state/rota, by partition, if not given.")
]


@slurm.command
def plan(
    *,
    partition: Partition = None,
    trace: Path | None = None,
    types: int = 8,
    output: OptionalOutput = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Reads the nodes and recent jobs of a cluster, and proposes a server with job types: a TOML file for rota plan.

    Parameters
    ----------
    trace
        Recent jobs (from: rota trace import of what sacct prints). Without it, the jobs that Slurm has in its memory now.
    types
        At most so many job types.
    output
        The TOML file to write; standard output if not given.
    """
    from rota.model.spec import write_toml
    from rota.slurm.client import SlurmClient
    from rota.slurm.proposal import node_kinds, propose

    if output is not None:
        check_output(output, force)
    client = SlurmClient()
    snapshot = client.read()
    kinds = node_kinds(snapshot.nodes, partition)
    system = propose(kinds, snapshot, partition, trace, types=types)
    text = write_toml(system)
    load = rota.system_load(system).load
    if json:
        parts = [
            {"nodes": list(kind.nodes), "cpus": kind.has.cpus, "memory_mb": kind.has.memory_mb, "gres": kind.has.gres} for kind in kinds
        ]
        print_json(
            {"kinds": parts, "types": list(system.names), "load": load, "output": None if output is None else str(output), "toml": text}
        )
    elif output is None:
        print(text, end="")
    for kind in kinds[1:]:
        remark(f"left out, since a plan is for one kind of node: {', '.join(kind.nodes)} ({kind.has.cpus} CPUs, {kind.has.memory_mb} MB)")
    remark(f"one of {len(kinds[0].nodes)} alike nodes, with its share of the arrivals: {len(system.names)} types, load {load:.3g}")
    if output is not None:
        with whole_file(output) as place:
            place.write_text(text, encoding="utf-8")
        remark(f"written to {output}. Next: rota plan {output}")


@slurm.command
def run(
    file: Path,
    /,
    *,
    partition: Partition = None,
    policy: str | None = None,
    dry_run: Flag = False,
    preemption: Literal["none", "suspend", "requeue"] | None = None,
    time_unit: Literal["s", "min", "h", "d"] | None = None,
    interval: float = 1.0,
    patience: float = 30.0,
    report: float = 60.0,
    heartbeat: HeartbeatFile = None,
    seed: int = 0,
) -> None:
    """Runs a plan on a cluster: looks at the queue again and again, and releases held jobs to nodes. Ctrl-C ends it.

    Rota decides about held jobs with the comment rota (sbatch --hold --comment=rota, or job_submit.lua). A controller that is started again
    goes on where the other one was. When you end it for good: rota slurm release-all.

    Parameters
    ----------
    file
        The plan (from: rota plan FILE), or a system, a TOML file, which is planned first. It is a plan for one node.
    policy
        Run this policy instead of the plan's: a name, a policy file, or a name that is designed for the system first.
    dry_run
        Shadow mode: change nothing; say what Rota would do, and how long people would have waited.
    preemption
        none: a running job is never stopped; suspend: by scontrol suspend; requeue: ended, and started again later.
    time_unit
        The unit of time of the file's rates and sizes.
    interval
        Seconds between two looks at the queue.
    patience
        Seconds that Slurm has to start a released job, before it is held again.
    report
        With --dry-run, seconds between two comparisons of waiting times.
    seed
        The seed of the policy's own randomness.
    """
    from rota.slurm.amounts import usable_nodes
    from rota.slurm.client import SlurmClient
    from rota.slurm.controller import Controller
    from rota.slurm.running import default_heartbeat, run_controller
    from rota.slurm.shadow import run_shadow

    for name, value in (("--interval", interval), ("--patience", patience), ("--report", report)):
        if not 0.05 <= value <= 86_400:
            raise rota.BadSpec([rota.Problem(name, "must be between 0.05 and 86400 seconds", value)])
    given = {"time_unit": time_unit, "preemption": preemption}
    found = read_plan(file, policy, {key: value for key, value in given.items() if value is not None})
    client = SlurmClient()
    nodes = usable_nodes(client.read().nodes, found.system, partition)
    controller = Controller(found, partition=partition, seed=seed, patience_s=patience)
    remark(f"{len(nodes)} nodes: {', '.join(node.name for node in nodes[:12])}{' …' if len(nodes) > 12 else ''}")
    where = heartbeat or default_heartbeat(partition)
    try:
        if dry_run:
            run_shadow(controller, client, interval_s=interval, report_s=report, seed=seed)
        else:
            run_controller(controller, client, where, interval_s=interval)
    except KeyboardInterrupt:
        if not dry_run:
            remark(f"held jobs stay held: rota slurm release-all{f' --partition {partition}' if partition else ''} gives them to Slurm")


@slurm.command
def watch(
    *,
    partition: Partition = None,
    limit: float = 60.0,
    interval: float = 5.0,
    once: Flag = False,
    heartbeat: HeartbeatFile = None,
) -> None:
    """The watchdog: if no controller has been heard of for some time, releases its jobs to Slurm's own scheduler. Ctrl-C ends it.

    Parameters
    ----------
    limit
        Seconds without a heartbeat after which jobs are released.
    interval
        Seconds between two looks at the heartbeat.
    once
        Look once and end: for cron.
    """
    from rota.slurm import watchdog
    from rota.slurm.client import SlurmClient
    from rota.slurm.running import default_heartbeat

    if not 1 <= limit <= 86_400:
        raise rota.BadSpec([rota.Problem("--limit", "must be between 1 and 86400 seconds", limit)])
    if not 0.05 <= interval <= 86_400:
        raise rota.BadSpec([rota.Problem("--interval", "must be between 0.05 and 86400 seconds", interval)])
    where = heartbeat or default_heartbeat(partition)
    try:
        watchdog.watch(SlurmClient(), where, partition, limit_s=limit, interval_s=interval, once=once)
    except KeyboardInterrupt:  # the way to end it
        return


@slurm.command
def release_all(*, partition: Partition = None, time_limit: float = 600.0) -> int:
    """Gives all jobs back to Slurm's own scheduler: releases what Rota holds, resumes what Rota suspended. End the controller first.

    Parameters
    ----------
    time_limit
        Seconds to wait until CPUs are free for suspended jobs.
    """
    from rota.slurm import watchdog
    from rota.slurm.client import SlurmClient

    return 1 if watchdog.release_all(SlurmClient(), partition, time_limit_s=time_limit) else 0


@slurm.command
def status(*, partition: Partition = None, heartbeat: HeartbeatFile = None, json: Json = False) -> None:
    """Says whether a controller runs, what it measured, and how many jobs are where."""
    from dataclasses import asdict

    from rota.slurm.client import SlurmClient
    from rota.slurm.running import default_heartbeat, read_heartbeat
    from rota.slurm.views import count_jobs

    beat = read_heartbeat(heartbeat or default_heartbeat(partition))
    counts = count_jobs(SlurmClient().read(), partition)
    if json:
        print_json({"controller": None if beat is None else asdict(beat), "jobs": counts})
        return
    if beat is None:
        print("no controller has run here")
    else:
        print(f"controller {beat.pid}: {beat.policy}, preemption {beat.preemption}, last heard of {duration(time.time() - beat.at)} ago")
        lag = (
            "no start yet"
            if beat.lag_s is None
            else f"{beat.lag_s:.2f} s on average, at most {beat.largest_lag_s:.1f} s, {beat.starts} starts"
        )
        print(f"lag from decision to start: {lag}; last cycle {beat.cycle_s:.2f} s; {beat.memory_mb:.0f} MB")
    print("jobs: " + (", ".join(f"{count} {where}" for where, count in counts.items() if count) or "none"))


@slurm.command
def explain(job: str, /, *, partition: Partition = None, json: Json = False) -> None:
    """Says why a job does not run.

    Parameters
    ----------
    job
        The number of a job, 17, or of a task of an array, 17_3.
    """
    from dataclasses import asdict

    from rota.slurm import views
    from rota.slurm.client import SlurmClient

    found = views.explain(SlurmClient().read(), job, partition)
    if json:
        print_json(asdict(found))
        return
    print(f"job {found.job}: {found.state}")
    print(found.text)
