"""`rota slurm …`: a plan on a Slurm cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

import rota
from rota.arguments import whole_file
from rota.cli.output import ProgressLine, print_json, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import RUN_JOBS, Flag, Force, Json, OptionalOutput
from rota.cli.serve import read_plan
from rota.display import duration

if TYPE_CHECKING:
    from rota.slurm.cluster_plan import AnyPlan

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
    source: Literal["sacct", "jobcomp", "queue"] | None = None,
    days: float = 30.0,
    types: int = 8,
    one_node: Flag = False,
    with_plan: Flag = False,
    output: OptionalOutput = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Reads the nodes and recent jobs of a cluster, and proposes kinds of servers and job types: a TOML file for rota plan.

    With --with-plan it makes the plan and its page at once.

    Parameters
    ----------
    trace
        Recent jobs (from: rota trace import of what sacct prints), in place of those that Rota finds itself.
    source
        Where recent jobs are from: sacct, the file of jobcomp/filetxt, or the queue as it is now. If not given, the first of them that
        has jobs.
    days
        How many days back sacct and jobcomp are read.
    types
        At most so many job types.
    one_node
        One node of the kind with the most CPUs, with its share of the arrivals, in place of all nodes.
    with_plan
        Make the plan too, as rota plan does with the file: plan.json and plan.html beside it.
    output
        The TOML file to write; standard output if not given.
    """
    from tempfile import TemporaryDirectory

    from rota.model.spec import write_toml
    from rota.slurm.client import SlurmClient
    from rota.slurm.proposal import node_kinds, propose, resources_of
    from rota.slurm.recent import recent_jobs

    if output is not None:
        check_output(output, force)
    if trace is not None and source is not None:
        raise rota.BadSpec([rota.Problem("--source", "says where jobs are from, and so does --trace: give one of them", source)])
    if with_plan and (output is None or json):
        rule = "needs --output, and writes plan.json and plan.html beside that file" if output is None else "has no --json: see rota plan"
        raise rota.BadSpec([rota.Problem("--with-plan", rule)])
    client = SlurmClient()
    snapshot = client.read()
    kinds = node_kinds(snapshot.nodes, partition)
    with TemporaryDirectory() as folder:
        found_in = "the trace"
        if trace is None:
            has_gres = len(resources_of(kinds)) > 2
            trace, found_in = recent_jobs(client, partition, Path(folder), days=days, source=source, gres=has_gres)
        try:
            proposal = propose(kinds, snapshot, partition, trace, types=types)
        except rota.Infeasible as error:
            raise rota.Infeasible(f"recent jobs: {found_in}; {error}") from None
    alone = one_node or proposal.fleet.servers == 1
    found = proposal.fleet.server(0) if alone else proposal.fleet
    text = write_toml(found)
    load = rota.system_load(found).load
    if output is not None:
        with whole_file(output) as path:
            path.write_text(text, encoding="utf-8")
    if json:
        parts = [
            {"nodes": list(kind.nodes), "cpus": kind.has.cpus, "memory_mb": kind.has.memory_mb, "gres": kind.has.gres} for kind in kinds
        ]
        answer = {"kinds": parts, "types": list(found.names), "load": load, "jobs": proposal.jobs, "left_out": proposal.left_out}
        answer["source"] = found_in
        print_json({**answer, "output": None if output is None else str(output), "toml": text})
    elif output is None:
        print(text, end="")
    for kind in kinds:
        remark(f"{len(kind.nodes)} nodes of kind {kind.name}: {', '.join(kind.nodes[:12])}{' …' if len(kind.nodes) > 12 else ''}")
    if alone and len(kinds) > 1:
        remark(f"this is one node of kind {kinds[0].name}, with its share of the arrivals")
    left = f"; {proposal.left_out} jobs have no type, and would be left to Slurm" if proposal.left_out else ""
    remark(f"recent jobs: {found_in}")
    remark(f"{len(found.names)} types from {proposal.jobs:,} jobs, load {load:.3g}{left}")
    if trace is not None and (unknown := [name for name in resources_of(kinds) if name not in found.resources]):
        remark(
            f"the trace says nothing of {', '.join(unknown)}, which nodes have: jobs that ask for gres have no type, and are left to Slurm"
        )
    if with_plan and output is not None:
        from rota.cli.plan import plan as make_plan

        make_plan(output, output=f"{output.parent}/", force=force)
    elif load >= 1:
        remark("the load is not below 1, so rota plan refuses it: correct the rates and sizes, which are rough, or give a longer --trace")
    elif output is not None:
        remark(f"next: read {output}, then rota plan {output} makes the plan and its page")


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
    wake: list[Path] | None = None,
    patience: float = 30.0,
    report: float = 60.0,
    lag: float | None = None,
    heartbeat: HeartbeatFile = None,
    seed: int = 0,
) -> None:
    """Runs a plan on a cluster: looks at the queue again and again, and releases held jobs to nodes. Ctrl-C ends it.

    Rota decides about held jobs with the comment rota (sbatch --hold --comment=rota, or job_submit.lua). A controller that is started again
    goes on where the other one was. When you end it for good: rota slurm release-all.

    Parameters
    ----------
    file
        The plan (from: rota plan FILE) of the nodes or of one node, or a TOML file, which is planned first.
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
    wake
        Look at once when this file changes: the log of jobcomp/filetxt (JobCompLoc), which changes when a job ends, or a file that
        job_submit.lua touches. It can be given several times.
    patience
        Seconds that Slurm has to start a released job, before it is held again.
    report
        With --dry-run, seconds between two comparisons of waiting times.
    lag
        With --dry-run, the seconds from the release of a job to its start under Rota. If not given, what an earlier controller of this
        partition measured, or 0.7.
    seed
        The seed of the policy's own randomness.
    """
    from rota.slurm.client import SlurmClient
    from rota.slurm.cluster_plan import cluster_plan
    from rota.slurm.controller import Controller
    from rota.slurm.running import default_heartbeat, read_heartbeat, run_controller
    from rota.slurm.shadow import LAG_S, run_shadow
    from rota.slurm.world import nodes_in

    for name, value in (("--interval", interval), ("--patience", patience), ("--report", report)):
        if not 0.05 <= value <= 86_400:
            raise rota.BadSpec([rota.Problem(name, "must be between 0.05 and 86400 seconds", value)])
    if lag is not None and not 0 <= lag <= 3600:
        raise rota.BadSpec([rota.Problem("--lag", "must be between 0 and 3600 seconds", lag)])
    client = SlurmClient()
    if file.suffix == ".toml":  # planned first, which takes a minute: not for a partition that is none
        nodes_in(client.read().nodes, partition)
    given = {"time_unit": time_unit, "preemption": preemption}
    found = cluster_plan(*_plan_of(file, policy, {key: value for key, value in given.items() if value is not None}))
    nodes = found.check_nodes(client.read().nodes, partition)
    controller = Controller(found, partition=partition, seed=seed, patience_s=patience)
    for text in found.remarks(nodes):
        remark(text)
    remark(f"{len(nodes)} nodes: {', '.join(list(nodes)[:12])}{' …' if len(nodes) > 12 else ''}")
    where = heartbeat or default_heartbeat(partition)
    try:
        if dry_run:
            beat = read_heartbeat(where)
            measured = LAG_S if beat is None or beat.lag_s is None else round(beat.lag_s, 2)
            run_shadow(controller, client, interval_s=interval, report_s=report, lag_s=measured if lag is None else lag, seed=seed)
        else:
            run_controller(controller, client, where, interval_s=interval, wake=wake or [])
    except KeyboardInterrupt:
        if not dry_run:
            remark(f"held jobs stay held: rota slurm release-all{f' --partition {partition}' if partition else ''} gives them to Slurm")


def _plan_of(file: Path, policy: str | None, given: dict[str, object]) -> tuple[AnyPlan, dict[str, object]]:
    """The plan of a server or of a fleet, read or made; and settings of the command line that are not in it yet."""
    from rota.model import FleetSpec, read_any_spec
    from rota.policy import read_fleet_plan_file
    from rota.policy.fleet_plan_file import is_fleet_plan
    from rota.simulation.fleet.policy import as_fleet_policy

    if file.suffix == ".toml":
        spec = read_any_spec(file)
        if not isinstance(spec, FleetSpec):
            return read_plan(file, policy, given), {}
        if policy is not None:
            return as_fleet_policy(spec.fleet, policy), given
        remark(f"planning {file.name}, which takes a minute or so (rota plan shows what comes of it)")
        from rota.report.plan_files import fleet_plan_file

        with ProgressLine() as line:
            return fleet_plan_file(rota.plan(spec.fleet, progress=lambda at: line.update(at.time_s, str(at), at.compiling))), given
    if not is_fleet_plan(file):
        return read_plan(file, policy, given), {}
    plan = read_fleet_plan_file(file)
    return plan if policy is None else as_fleet_policy(plan.fleet, policy, None if policy == "pinned" else _sending(plan.dispatch)), given


def _sending(dispatch: rota.Dispatch) -> rota.Dispatch | None:
    """The rule of a plan, for another policy; that of pinned servers goes with no other."""
    return None if dispatch.rule == "pinned" else dispatch


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
    from rota.slurm.running import default_heartbeat, partitions_heard_of, read_heartbeat
    from rota.slurm.views import count_jobs

    beat = read_heartbeat(heartbeat or default_heartbeat(partition))
    counts = count_jobs(SlurmClient().read(), partition)
    if json:
        print_json({"controller": None if beat is None else asdict(beat), "jobs": counts})
        return
    if beat is None:
        print("no controller has run here" + (f" for {partition}" if partition else " for all partitions"))
        if heartbeat is None and (others := [name for name in partitions_heard_of() if name != (partition or "all")]):
            remark(f"one has run for {', '.join(others)}: rota slurm status --partition {others[0]}")
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
