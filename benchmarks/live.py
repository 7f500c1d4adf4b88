"""The live scheduler: starts per second of `true`, submissions, decisions, memory, idle time, restart. A real daemon, a real disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rota
from rota.live.errors import LiveError
from rota.live.http.client import Client
from rota.live.paths import socket_path
from rota.model.live import LiveSettings
from rota.policy import PlanFile, plan_file_to_json

TYPES = ("train", "serve", "gather")
QUEUED, SINGLE, ENV = 10_000, 500, {"PATH": os.environ["PATH"]}
PLANNED_S = 10.0  # for a measurement by the clock
_TICKS = os.sysconf("SC_CLK_TCK")


def run() -> None:
    """Prints all tables."""
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.1f}")
    first_fit = Policy("First-Fit", rota.FirstFit())
    best = rota.system_load(server())
    nmsr = Policy("nMSR, 1 ring/s", rota.MSR(best.candidates, best.weights, "none", 1.0, backfill=True))
    peers(nmsr, first_fit)
    idle(first_fit, nmsr)
    a_long_day(first_fit)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


def server() -> rota.System:
    """Four of the paper's servers in one: about twenty jobs run at once. Nothing on this machine has the names of its resources."""
    return rota.System(
        capacity=[80, 60, 200],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=[1.0, 1.0, 1.0],
        service_rate=[1.0, 1.0, 1.0],
        names=TYPES,
        resources=("desks", "lamps", "chairs"),
    ).scaled(load=0.8)


class Policy:
    """A policy and its name in the tables."""

    def __init__(self, name: str, policy: rota.MSR | rota.FirstFit) -> None:
        self.name, self.policy = name, policy


class Daemon:
    """A `rota serve` in a process of its own."""

    def __init__(self, directory: Path, plan: Path) -> None:
        self.directory, self.plan = directory, plan
        self.client = Client(f"unix:{socket_path(directory)}")
        self.start()

    def start(self) -> float:
        """Starts it; seconds until it answers."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "rota.cli", "serve", str(self.plan), "--directory", str(self.directory)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.client.status()
                return time.perf_counter() - began
            except LiveError:
                if self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def end(self) -> None:
        """Ends it; jobs that run go on, those that wait stay in its database."""
        self.process.terminate()
        self.process.wait()

    def launcher(self) -> int:
        """The process that forks supervisors."""
        return next(pid for pid in children(self.process.pid) if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def cpu_s(self) -> float:
        """Processor time of daemon and launcher, without the jobs."""
        return sum(sum(map(int, stat(pid)[11:13])) for pid in (self.process.pid, self.launcher())) / _TICKS

    def memory_mb(self) -> float:
        """What the daemon holds in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def submit(self, jobs: int) -> float:
        """Submits arrays of `true`, one for each type; the seconds it takes."""
        began = time.perf_counter()
        for k, type in enumerate(TYPES):
            self.client.submit(["true"], type=type, cwd="/", env=ENV, array=(1, (jobs + k) // len(TYPES)))
        return time.perf_counter() - began

    def starts_per_s(self) -> float:
        """Starts per second over some seconds."""
        before = self.client.status()
        time.sleep(PLANNED_S)
        after = self.client.status()
        return (after.starts - before.starts) / (after.uptime_s - before.uptime_s)

    def waiting(self) -> int:
        """Jobs in the queue."""
        return self.client.status().counts.get("waiting", 0)


@contextmanager
def daemon(policy: Policy, system: rota.System | None = None) -> Iterator[Daemon]:
    """A daemon with an empty state, of `server()` if no system is given."""
    planned = system or server()
    with tempfile.TemporaryDirectory() as base:
        directory, plan = Path(base) / "state", Path(base) / "plan.json"
        # With predictions in the plan no process is started that makes some.
        predicted = {name: {"mean": 1.0} for name in planned.names}
        plan.write_text(plan_file_to_json(PlanFile(planned, policy.policy, LiveSettings(learn=False), 0.8, predicted)))
        served = Daemon(directory, plan)
        try:
            yield served
        finally:
            served.end()
            served.client.close()
            time.sleep(1.0)  # the last of the jobs


def peers(*policies: Policy) -> None:
    """Starts per second of `true` beside those of xargs, which writes nothing down; how long a submission and a decision take."""
    print(f"{'':<22} {'starts/s':>9} {'ratio':>6} {'decision':>9} {'99 %':>9} {'submit 1':>9} {f'{QUEUED:,}':>9}")
    theirs = xargs_per_s()
    print(f"{'xargs -P 20 -n 1 true':<22} {theirs:9.0f} {1:6.2f}", flush=True)
    for policy in policies:
        with daemon(policy) as served:
            began = time.perf_counter()
            for _ in range(SINGLE):
                served.client.submit(["true"], type=TYPES[1], cwd="/", env=ENV, hold=True)
            single = (time.perf_counter() - began) / SINGLE
            many = served.submit(QUEUED)
            ours = served.starts_per_s()
            status = served.client.status()
            decision = f"{status.decision_us:6.1f} µs <{status.decision_p99_us:5.0f} µs"
            print(
                f"{'rota, ' + policy.name:<22} {ours:9.0f} {ours / theirs:6.2f} {decision} {1e3 * single:6.2f} ms {many:7.2f} s", flush=True
            )


def xargs_per_s(jobs: int = 3000) -> float:
    """What the machine can do at most, about."""
    numbers = "\n".join(map(str, range(jobs)))
    began = time.perf_counter()
    subprocess.run(["xargs", "-P", "20", "-n", "1", "true"], input=numbers, text=True, check=True)
    return jobs / (time.perf_counter() - began)


def idle(*policies: Policy, seconds: float = 30.0) -> None:
    """Processor time without a job, and what a supervisor adds to memory."""
    for policy in policies:
        with daemon(policy) as served:
            time.sleep(2.0)  # the rest of its start
            before, decisions = served.cpu_s(), served.client.status().decisions
            time.sleep(seconds)
            spent, rings = served.cpu_s() - before, served.client.status().decisions - decisions
            print(f"idle, {policy.name}: {60 * spent / seconds:.2f} s of processor time per minute, {rings} decisions in {seconds:g} s")
            served.client.submit(["sleep", "3"], type=TYPES[1], cwd="/", env=ENV, array=(1, 10))
            time.sleep(2.0)
            own = [private_kb(pid) for pid in children(served.launcher())]
            print(f"  {len(own)} supervisors: {sum(own) / len(own) / 1e3:.1f} MB each of their own", flush=True)


def a_long_day(policy: Policy) -> None:
    """Memory from an empty queue over a full one to three times as many jobs done, and a restart with a full queue."""
    with daemon(policy) as served:
        print(f"memory, {policy.name}: {served.memory_mb():.0f} MB at the start", end="", flush=True)
        served.submit(QUEUED)
        print(f", {served.memory_mb():.0f} MB with {QUEUED:,} queued", end="", flush=True)
        drain(served, 0)
        print(f", {served.memory_mb():.0f} MB when they are done", end="", flush=True)
        served.submit(2 * QUEUED)
        drain(served, QUEUED)
        queued, memory = served.waiting(), served.memory_mb()
        began = time.perf_counter()
        served.end()
        ended = time.perf_counter() - began
        seconds = served.start()
        print(f", {memory:.0f} MB after {2 * QUEUED:,} with {QUEUED:,} queued")
        print(f"restart with {queued:,} queued: {ended:.2f} s to end, {seconds:.2f} s until it answers", flush=True)
        drain(served, 0)
        counts = served.client.status().counts
        print(f"in the end: {counts}, {served.memory_mb():.0f} MB", flush=True)


def drain(served: Daemon, left: int) -> None:
    """Waits until no more than so many jobs are in the queue."""
    while served.waiting() > left:
        time.sleep(0.2)


def children(parent: int) -> list[int]:
    """Processes whose parent this is."""
    return [int(pid) for pid in os.listdir("/proc") if pid.isdecimal() and stat(int(pid))[1:2] == [str(parent)]]


def stat(pid: int) -> list[str]:
    """The fields of a process from its state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def private_kb(pid: int) -> int:
    """Memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
