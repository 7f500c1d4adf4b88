"""Rota on a real Slurm on loopback, beside Slurm's own backfill scheduler; and a queue of ten thousand jobs.

`python -m benchmarks slurm --workload paper --minutes 40 --seeds 4`: for each seed, the same jobs at the same times on two clusters at
once, one under sched/backfill, one under Rota. It prints the mean response time as the jobs noted it, and what was measured in the log of
slurmctld: how late Rota looked, the lag from a release to the start, and how much longer jobs held their CPUs than they ran (launch and
end). Then what a simulated cluster predicts for the same jobs with these three, without the last one, and with none. EASY is the prediction
for backfill, with what its own jobs held. Jobs are `sleep`, so the CPUs that they ask for are those of the nodes, not those of this
machine. Slurm knows a time limit for each job, twice its running time, rounded up to minutes; Rota does not use it.
`--simulate 0.4 --held 0.5`: no Slurm, only the same jobs on the simulated cluster with this lag, and with jobs that hold their CPUs for so
much longer, under EASY backfilling and under Rota.
`--pending 10000`: memory, time per cycle and RPCs per second with that many held jobs. Needs root and Slurm.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._slurm_log import Delays, delays


@dataclass(frozen=True)
class Workload:
    """Nodes that are alike, and jobs for them: what a node has, what the types ask for, how often they come and how long they take."""

    nodes: int
    cpus: int
    memory_mb: int
    asks: Sequence[tuple[int, int, Mapping[str, int]]]  # CPUs, MB, gres, of each type
    rates: Sequence[float]  # relative
    sizes: Sequence[float]  # seconds, on average
    names: Sequence[str]
    gres: Mapping[str, int] = field(default_factory=dict)

    def system(self, load: float, scale: float) -> Any:
        """One node with its share of the arrivals at this load; sizes are multiplied by `scale`."""
        import rota

        resources = ["cores", "memory_gb", *self.gres]
        return rota.System(
            capacity=[self.cpus, self.memory_mb / 1024, *self.gres.values()],
            demand=[[cpus, memory / 1024, *(gres.get(name, 0) for name in self.gres)] for cpus, memory, gres in self.asks],
            arrival_rate=self.rates,
            mean_size=scale * np.array(self.sizes),
            names=self.names,
            resources=resources,
            time_unit="s",
        ).scaled(load=load)


MIXED = Workload(  # small jobs, wide ones, and some that need memory; four nodes
    4, 8, 15_360, [(1, 1024, {}), (4, 4096, {}), (2, 10_240, {})], [0.12, 0.06, 0.03], [12, 20, 30], ["small", "wide", "memory"]
)
PAPER = Workload(  # the example of the paper, on one node: jobs of these types leave much unused if they are not combined well
    *(1, 20, 15_360, [(3, 7168, {"net": 1}), (4, 1024, {"net": 1}), (10, 1024, {"net": 5})]),
    *([0.5, 2, 1], [20, 20, 20], ["type1", "type2", "type3"], {"net": 50}),
)
WORKLOADS = {"mixed": MIXED, "paper": PAPER}


class Drawn(NamedTuple):
    """Jobs: when they come, of which type they are, and how long they take, in seconds."""

    times: Any
    kinds: Any
    sizes: Any


def run(arguments: Sequence[str] = ()) -> None:
    """Runs both parts and prints what was measured."""
    parser = argparse.ArgumentParser("python -m benchmarks slurm")
    parser.add_argument("--workload", choices=WORKLOADS, default="paper")
    parser.add_argument("--minutes", type=float, default=40.0, help="of arrivals, for each seed")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="jobs take so many times as long")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--policy", default="adaptive", help="designed for the system, as rota plan does")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks of the controller")
    parser.add_argument("--no-wake", action="store_true", help="Rota looks once per interval, not when a job has ended")
    parser.add_argument("--together", action="store_true", help="all seeds at the same time, each on clusters of its own")
    parser.add_argument("--simulate", type=float, metavar="LAG", help="only simulate, with this lag in seconds; needs no Slurm")
    parser.add_argument("--held", type=float, default=0.0, metavar="S", help="with --simulate: jobs hold their CPUs so much longer")
    parser.add_argument("--pending", type=int, default=10_000, help="0: leave that part out")
    given = parser.parse_args(arguments)
    if given.simulate is not None:
        _simulate(given)
        return
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from slurm.cluster import missing

    if reason := missing():
        print(f"left out: {reason}")
        return
    if given.seeds:
        _compare(given)
    if given.pending:
        _pending(given.pending)


def _drawn(system: Any, nodes: int, minutes: float, seed: int) -> Drawn:
    """Poisson arrivals and exponential sizes."""
    random = np.random.default_rng(seed)
    rates = nodes * system.arrival_rate
    count = int(random.poisson(rates.sum() * 60 * minutes))
    times = np.sort(random.uniform(0, 60 * minutes, count))
    kinds = random.choice(len(rates), count, p=rates / rates.sum())
    return Drawn(times, kinds, np.maximum(np.round(random.exponential(1 / system.service_rate[kinds]), 2), 0.1))


def _compare(given: argparse.Namespace) -> None:
    from rota.policy import PlanFile, as_policy

    workload = WORKLOADS[given.workload]
    system = workload.system(given.load, given.scale)
    plan = PlanFile(system, as_policy(given.policy, system))
    woken = "" if given.no_wake else " and when a job has ended"
    print(f"{given.workload}: {workload.nodes} nodes at load {given.load:g}, {given.minutes:g} minutes of arrivals, ", end="")
    print(f"{given.policy}, a look every {given.interval:g} s{woken}, {given.seeds if given.together else 1} seeds at once")
    print(
        "mean response times in s; look, lag, held: measured delays in s; predicted: simulated with all three; then without held, with none"
    )
    heads = (f"{'backfill':>9} {'EASY':>7}", f"{'Rota':>7} {'ratio':>6}", f"{'look':>6} {'lag':>6} {'held':>6}")
    print(f"{'seed':>4} {'jobs':>5} {' '.join(heads)} {'predicted':>10} {'not held':>9} {'none':>7}", flush=True)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    with ThreadPoolExecutor(given.seeds if given.together else 1) as pool:
        rows = list(pool.map(lambda seed: _one_seed(workload, plan, given, seed), seeds))
    backfill, easy, ours, predicted, not_held, none = np.array(rows).mean(axis=0)
    print(
        f"mean       {backfill:9.2f} {easy:7.2f} {ours:7.2f} {ours / backfill:6.3f} {'':20} {predicted:10.2f} {not_held:9.2f} {none:7.2f}"
    )


def _simulate(given: argparse.Namespace) -> None:
    """EASY, which expects a job to take the mean of its type, and Rota's policy on the simulated cluster; a look every 0.2 s."""
    from rota.policy import PlanFile, as_policy

    workload = WORKLOADS[given.workload]
    system = workload.system(given.load, given.scale)
    held = f", jobs hold their CPUs {given.held:g} s longer" if given.held else ""
    print(f"{given.workload}: simulated with a lag of {given.simulate:g} s{held}; mean response times in s")
    print(f"{'seed':>4} {'jobs':>5} {'EASY':>9} {'Rota':>7} {'ratio':>6}", flush=True)
    rows = list[list[float]]()
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        drawn = _drawn(system, workload.nodes, given.minutes, seed)
        plans = (PlanFile(system, as_policy(name, system)) for name in ("easy", given.policy))
        rows.append([_mean_simulated(workload, plan, drawn, 0.2, given.simulate, given.held) for plan in plans])
        print(f"{seed:>4} {len(drawn.times):>5} {rows[-1][0]:9.2f} {rows[-1][1]:7.2f} {rows[-1][1] / rows[-1][0]:6.3f}", flush=True)
    easy, ours = np.array(rows).mean(axis=0)
    print(f"mean       {easy:9.2f} {ours:7.2f} {ours / easy:6.3f}")


def _mean_simulated(workload: Workload, plan: Any, drawn: Drawn, interval_s: float, lag_s: float, held_s: float = 0.0) -> float:
    """The mean response time of these jobs on a simulated cluster, on which each holds its CPUs for so much longer than it runs."""
    from rota.slurm.simulated import PlayedJob, play
    from rota.slurm.world import Amounts, Node

    has = Amounts(workload.cpus, workload.memory_mb, workload.gres)
    nodes = [Node(f"n{k + 1}", has, Amounts(), "IDLE", ("main",)) for k in range(workload.nodes)]
    jobs = [
        PlayedJob(str(k + 1), float(at), Amounts(*workload.asks[kind]), float(size) + held_s)
        for k, (at, kind, size) in enumerate(zip(*drawn, strict=True))
    ]
    return float((play(plan, nodes, jobs, interval_s=interval_s, lag_s=lag_s)[1] - drawn.times).mean())


def _one_seed(workload: Workload, plan: Any, given: argparse.Namespace, seed: int) -> tuple[float, ...]:
    """The same jobs under backfill and under Rota, at the same time; and simulated."""
    from rota.policy import PlanFile, as_policy

    drawn = _drawn(plan.system, workload.nodes, given.minutes, seed)
    with ThreadPoolExecutor(2) as both:
        slurm, rota = (both.submit(_played, workload, drawn, one, given.interval, not given.no_wake) for one in (None, plan))
        (backfill, of_slurm), (ours, seen) = slurm.result(), rota.result()
    look_s = 2 * seen.look_s  # so far apart that the next look is look_s away, on average
    # A job has its last line end_s before it gives its CPUs back, and its response time ends there.
    predicted = _mean_simulated(workload, plan, drawn, look_s, seen.lag_s, seen.held_s) - seen.end_s
    not_held, none = (_mean_simulated(workload, plan, drawn, step, lag) for step, lag in ((look_s, seen.lag_s), (0.02, 0.0)))
    easy = PlanFile(plan.system, as_policy("easy", plan.system))
    # Slurm's scheduler looks every second (sched_interval, bf_interval), and a job that it chooses starts at once.
    expected = _mean_simulated(workload, easy, drawn, 1.0, 0.0, of_slurm.held_s) - of_slurm.end_s
    columns = (f"{backfill:9.2f} {expected:7.2f}", f"{ours:7.2f} {ours / backfill:6.3f}", f"{seen.look_s:6.2f} {seen.lag_s:6.2f}")
    print(
        f"{seed:>4} {len(drawn.times):>5} {' '.join(columns)} {seen.held_s:6.2f} {predicted:10.2f} {not_held:9.2f} {none:7.2f}", flush=True
    )
    print(f"     held under backfill {of_slurm.held_s:.2f} s", flush=True)
    return backfill, expected, ours, predicted, not_held, none


def _played(workload: Workload, drawn: Drawn, plan: Any, interval_s: float, wake: bool) -> tuple[float, Delays]:
    """The mean response time of the jobs on a cluster of its own, under this plan or under Slurm's own scheduler; delays by its log."""
    from rota.policy import plan_file_to_json
    from slurm.cluster import Group, running_cluster
    from slurm.real import HELD, Notes

    group = Group(workload.nodes, workload.cpus, workload.memory_mb, workload.gres)
    with running_cluster(group) as cluster, tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        notes, beat = Notes(directory / "notes"), directory / "beat.json"
        process = None
        if plan is not None:
            (directory / "plan.json").write_text(plan_file_to_json(plan), encoding="utf-8")
            words = [sys.executable, "-m", "rota.cli", "slurm", "run", "plan.json", "-p", "main", "--interval", str(interval_s)]
            words += ["--wake", str(cluster.directory / "jobcomp.txt")] if wake else []
            log = (directory / "rota.log").open("ab")
            process = subprocess.Popen([*words, "--heartbeat", str(beat)], cwd=directory, env=cluster.environment, stdout=log, stderr=log)
            cluster.wait_for("the controller", beat.exists, 300)
        began, submitted = time.time() + 1, dict[str, float]()
        for at, kind, size in zip(*drawn, strict=True):
            time.sleep(max(began + at - time.time(), 0.0))
            now = time.time()
            cpus, memory, gres = workload.asks[kind]
            options = [f"--cpus-per-task={cpus}", f"--mem={memory}", f"--time={math.ceil(2 * size / 60)}"]
            options += [f"--gres={','.join(f'{name}:{count}' for name, count in gres.items())}"] if gres else []
            id = cluster.submit(notes.command(float(size)), *options, *(HELD if plan is not None else ()))
            submitted[str(id)] = now
        cluster.wait_for("all ends", lambda: len(notes.ends()) == len(submitted), 3600)
        cluster.wait_for("an empty queue", lambda: not cluster.run("squeue", "-h"))
        began_at, ended = ({job: at for what, job, _, _, at in notes.read() if what == wanted} for wanted in ("begin", "end"))
        found = delays((cluster.directory / "slurmctld.log").read_text(), began_at, ended)
        if process is not None:
            process.terminate()
            process.wait(20)
    return float(np.mean([ended[job] - at for job, at in submitted.items()])), found


def _rpcs(cluster: Any) -> int:
    """How many RPCs slurmctld has had from users."""
    return sum(int(count) for count in re.findall(r"REQUEST_\w+\s*\(\s*\d+\) count:(\d+)", cluster.run("sdiag").partition("by user")[0]))


def _pending(count: int) -> None:
    from rota.policy import FirstFit, PlanFile, plan_file_to_json
    from slurm.cluster import running_cluster
    from slurm.real import start_rota

    with running_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "plan.json").write_text(plan_file_to_json(PlanFile(MIXED.system(0.85, 1.0), FirstFit())), encoding="utf-8")
        began = time.monotonic()
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda _: cluster.submit("sleep 20", "--hold", "--comment=rota", "--mem=1000"), range(count)))
        print(f"{count:,} held jobs submitted in {time.monotonic() - began:.0f} s")
        beat = directory / "beat.json"
        process = start_rota(cluster, directory, "run", "plan.json", "-p", "main", "--heartbeat", str(beat))
        try:
            cluster.wait_for("the controller", beat.exists, 300)
            before, first, rpcs = json.loads(beat.read_text()), time.monotonic(), _rpcs(cluster)
            time.sleep(60)
            after, took, more = json.loads(beat.read_text()), time.monotonic() - first, _rpcs(cluster) - rpcs
        finally:
            process.terminate()
            process.wait(20)
        cycles = after["cycles"] - before["cycles"]
        print(f"first cycle {before['cycle_s']:.2f} s, later ones {after['cycle_s']:.2f} s, one every {took / max(cycles, 1):.1f} s")
        updates = after["updates"] - before["updates"]
        print(f"{more / took:.1f} RPCs per second in all, {updates / took:.1f} of them changes")
        status = Path(f"/proc/{cluster.processes['slurmctld'].pid}/status").read_text(encoding="utf-8")
        resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        print(f"memory: controller {after['memory_mb']:.0f} MB, slurmctld {resident:.0f} MB")
