"""Rota on a real Slurm on loopback, beside Slurm's own backfill scheduler; and a queue of ten thousand jobs.

`python -m benchmarks slurm --minutes 4 --seeds 3`: for each seed, the same jobs at the same times on two clusters of four nodes at once,
one under sched/backfill, one under Rota. It prints the mean response time as the jobs noted it, the lag that was measured, and what
a simulated cluster with this lag predicts for the same jobs. Jobs are `sleep`, so the CPUs that they ask for are those of the nodes, not
those of this machine. `--pending 10000`: memory, time per cycle and RPCs per second with that many held jobs. Needs root and Slurm.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

NODES = 4


def run(arguments: Sequence[str] = ()) -> None:
    """Runs both parts and prints what was measured."""
    parser = argparse.ArgumentParser("python -m benchmarks slurm")
    parser.add_argument("--minutes", type=float, default=4.0, help="of arrivals, for each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--policy", default="adaptive", help="designed for the system, as rota plan does")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks of the controller")
    parser.add_argument("--pending", type=int, default=10_000, help="0: leave that part out")
    given = parser.parse_args(arguments)
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from slurm.cluster import missing

    if reason := missing():
        print(f"left out: {reason}")
        return
    if given.seeds:
        _compare(given.minutes, given.seeds, given.load, given.policy, given.interval)
    if given.pending:
        _pending(given.pending)


def _system(load: float) -> Any:
    """One node: 8 CPUs and 15 G; jobs that are small, wide, or need memory."""
    import rota

    return rota.System(
        capacity=[8, 15],
        demand=[[1, 1], [4, 4], [2, 10]],
        arrival_rate=[0.12, 0.06, 0.03],
        mean_size=[12, 20, 30],
        names=["small", "wide", "memory"],
        resources=["cores", "memory_gb"],
        time_unit="s",
    ).scaled(load=load)


ASKS = [(1, 1000), (4, 4000), (2, 10000)]  # CPUs and MB of the types


def _compare(minutes: float, seeds: int, load: float, policy: str, interval_s: float) -> None:
    from rota.policy import PlanFile, as_policy, plan_file_to_json
    from rota.slurm.simulated import PlayedJob, play
    from rota.slurm.world import Amounts, Node

    system = _system(load)
    chosen = as_policy(policy, system)
    plan = PlanFile(system, chosen)
    nodes = [Node(f"n{k + 1}", Amounts(8, 16000), Amounts(), "IDLE", ("main",)) for k in range(NODES)]
    print(f"{NODES} nodes at load {load:g}, {minutes:g} minutes of arrivals, {policy}, a look every {interval_s:g} s")
    print("mean response times in s; predicted: simulated with the measured lag; no lag: simulated without")
    print(f"{'seed':>4} {'jobs':>5} {'backfill':>9} {'Rota':>7} {'ratio':>6} {'predicted':>10} {'lag':>6} {'no lag':>7}")
    rows = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        rates = NODES * system.arrival_rate
        count = int(random.poisson(rates.sum() * 60 * minutes))
        times = np.sort(random.uniform(0, 60 * minutes, count))
        kinds = random.choice(len(rates), count, p=rates / rates.sum())
        sizes = np.maximum(np.round(random.exponential(1 / system.service_rate[kinds]), 2), 0.1)
        with ThreadPoolExecutor(2) as both:
            text = plan_file_to_json(plan)
            slurm, rota = both.submit(_played, times, kinds, sizes, None, 0.0), both.submit(_played, times, kinds, sizes, text, interval_s)
            (backfill, _), (ours, beat) = slurm.result(), rota.result()
        jobs = [PlayedJob(str(k + 1), float(times[k]), Amounts(*ASKS[kinds[k]]), float(sizes[k])) for k in range(count)]
        lag = beat["lag_s"]
        predicted, without = (
            float((play(plan, nodes, jobs, interval_s=step, lag_s=delay)[1] - times).mean())
            for step, delay in ((interval_s, lag), (0.02, 0.0))
        )
        rows.append((backfill, ours, predicted))
        line = f"{seed:>4} {count:>5} {backfill:9.2f} {ours:7.2f} {ours / backfill:6.3f} {predicted:10.2f} {lag:6.2f} {without:7.2f}"
        print(line, flush=True)
    means = np.array(rows).mean(axis=0)
    print(f"mean       {means[0]:9.2f} {means[1]:7.2f} {means[1] / means[0]:6.3f} {means[2]:10.2f}")


def _played(times: Any, kinds: Any, sizes: Any, plan: str | None, interval_s: float) -> tuple[float, dict[str, Any]]:
    """The mean response time of the jobs on a cluster of its own, under this plan or under Slurm's own scheduler; the last heartbeat."""
    from slurm.cluster import running_cluster
    from slurm.real import HELD, Notes

    with running_cluster(NODES) as cluster, tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        notes, beat = Notes(directory / "notes"), directory / "beat.json"
        process = None
        if plan is not None:
            (directory / "plan.json").write_text(plan, encoding="utf-8")
            words = [sys.executable, "-m", "rota.cli", "slurm", "run", "plan.json", "-p", "main", "--interval", str(interval_s)]
            log = (directory / "rota.log").open("ab")
            process = subprocess.Popen([*words, "--heartbeat", str(beat)], cwd=directory, env=cluster.environment, stdout=log, stderr=log)
            cluster.wait_for("the controller", beat.exists)
        else:
            time.sleep(5)
        began, submitted = time.time(), dict[str, float]()
        for at, kind, size in zip(times, kinds, sizes, strict=True):
            time.sleep(max(began + at - time.time(), 0.0))
            now = time.time()
            cpus, memory = ASKS[kind]
            held = HELD if plan is not None else ()
            id = cluster.submit(notes.command(float(size)), f"--cpus-per-task={cpus}", f"--mem={memory}", "--time=10", *held)
            submitted[str(id)] = now
        cluster.wait_for("all ends", lambda: len(notes.ends()) == len(submitted), 1200)
        ended = {job: at for what, job, _, _, at in notes.read() if what == "end"}
        found = json.loads(beat.read_text()) if process is not None else {}
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

    with running_cluster(NODES) as cluster, tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "plan.json").write_text(plan_file_to_json(PlanFile(_system(0.85), FirstFit())), encoding="utf-8")
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
