"""What the tests on a real Slurm share: jobs that write down where and when they ran, and a controller in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from slurm.cluster import Cluster

PLAN = """
time_unit = "s"

[server]
cores = 8
memory_gb = 15

[preemption]
model = "{model}"

[jobs.small]
demand = {{ cores = 1, memory_gb = 1 }}
arrival_rate = 0.4
mean_size = 2.0

[jobs.wide]
demand = {{ cores = 4, memory_gb = 4 }}
arrival_rate = 0.2
mean_size = 3.0

[jobs.memory]
demand = {{ cores = 2, memory_gb = 10 }}
arrival_rate = 0.1
mean_size = 3.0
"""
ASKS = {"small": (1, 900), "wide": (4, 4000), "memory": (2, 10000)}  # CPUs, MB


class Notes:
    """What jobs wrote down: a line when they begin and one when they end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def command(self, seconds: float) -> str:
        """A line of shell that notes its beginning, sleeps, and notes its end."""
        note = f"echo $1 $SLURM_JOB_ID $SLURMD_NODENAME $SLURM_CPUS_ON_NODE $(date +%s.%N) >> {self.path}"
        return f"note() {{ {note}; }}; note begin; sleep {seconds:g}; note end"

    def read(self) -> list[tuple[str, str, str, int, float]]:
        """Lines: begin or end, job, node, CPUs, time."""
        words = [line.split() for line in self.path.read_text().splitlines()]
        return [(what, job, node, int(cpus), float(at)) for what, job, node, cpus, at in words]

    def ends(self) -> list[str]:
        """The jobs that have ended, once for each time."""
        return sorted((job for what, job, *_ in self.read() if what == "end"), key=int)

    def ended_again(self) -> dict[str, set[str]]:
        """The jobs that ended more than once, and the nodes of all their ends but the last."""
        nodes = dict[str, list[str]]()
        for what, job, node, *_ in self.read():
            if what == "end":
                nodes.setdefault(job, []).append(node)
        return {job: set(where[:-1]) for job, where in nodes.items() if len(where) > 1}

    def most_cpus(self) -> dict[str, int]:
        """How many CPUs the jobs of each node had at once, at most. A job that was killed has no end, and is left out."""
        spans = dict[str, list[tuple[float, int, str]]]()
        open_ = dict[str, tuple[str, int, float]]()
        for what, job, node, cpus, at in self.read():
            if what == "begin":
                open_[job] = node, cpus, at
            else:
                where, had, began = open_.pop(job)
                spans.setdefault(where, []).extend([(began, had, job), (at, -had, job)])
        most = dict[str, int]()
        for node, changes in spans.items():
            now = 0
            for _, change, _ in sorted(changes, key=lambda one: (one[0], one[1])):
                now += change
                most[node] = max(most.get(node, 0), now)
        return most


class Allocated:
    """The most CPUs and memory that Slurm's jobs had on each node, looked at all the time while it is entered.

    A suspended job keeps its memory; one that is being ended (CG) has both for a moment still, and Slurm starts nothing there before."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.cpus, self.memory_mb = dict[str, int](), dict[str, int]()
        self.looks = 0
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Allocated:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            cpus, memory = dict[str, int](), dict[str, int]()
            said = self.cluster.run("squeue", "-h", "-t", "R,S", "-O", "StateCompact:5,NumCPUs:8,MinMemory:12,NodeList:40", check=False)
            for state, has, asked, node in map(str.split, said.splitlines()):
                cpus[node] = cpus.get(node, 0) + (int(has) if state == "R" else 0)
                memory[node] = memory.get(node, 0) + _megabytes(asked)
            self.cpus |= {node: max(count, self.cpus.get(node, 0)) for node, count in cpus.items()}
            self.memory_mb |= {node: max(mb, self.memory_mb.get(node, 0)) for node, mb in memory.items()}
            self.looks += 1


def _megabytes(text: str) -> int:
    return int(float(text[:-1]) * {"M": 1, "G": 1024}[text[-1]])


def submit_mixed(cluster: Cluster, notes: Notes, count: int, *options: str, longest: float = 3.0) -> list[str]:
    """Jobs of three types in turn, of different lengths."""
    ids = []
    for n in range(count):
        cpus, memory = ASKS[("small", "wide", "small", "memory", "wide", "small")[n % 6]]
        seconds = 0.3 + (longest - 0.3) * ((n * 7) % 10) / 10
        ids.append(str(cluster.submit(notes.command(seconds), f"--cpus-per-task={cpus}", f"--mem={memory}", *options)))
    return ids


HELD = ("--hold", "--comment=rota")


def write_plan(directory: Path, model: str = "none") -> Path:
    """The system of the tests as a file."""
    path = directory / f"node-{model}.toml"
    path.write_text(PLAN.format(model=model), encoding="utf-8")
    return path


def start_rota(cluster: Cluster, directory: Path, *words: str) -> subprocess.Popen[bytes]:
    """`rota slurm …` in a process of its own; what it prints is in rota.log."""
    with (directory / "rota.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rota.cli", "slurm", *words], env=cluster.environment, cwd=directory, stdout=log, stderr=log
        )


def run_rota(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    """`rota slurm …` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "rota.cli", "slurm", *words], env=cluster.environment, capture_output=True, text=True, timeout=120
    )


@contextmanager
def controlled(cluster: Cluster, directory: Path, policy: str, *more: str, model: str = "none") -> Iterator[subprocess.Popen[bytes]]:
    """A controller for the partition main, ended at the end."""
    words = ("run", str(write_plan(directory, model)), "--policy", policy, "--partition", "main", "--interval", "0.3", *more)
    process = start_rota(cluster, directory, *words, "--heartbeat", str(directory / "beat.json"))
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def ended_jobs(cluster: Cluster) -> list[dict[str, str]]:
    """What Slurm noted of the jobs that have ended, failed or were requeued, a record for each time."""
    lines = (cluster.directory / "jobcomp.txt").read_text().splitlines()
    return [dict(word.partition("=")[::2] for word in line.split() if "=" in word) for line in lines]


def log_of(directory: Path) -> str:
    """What the controllers printed."""
    path = directory / "rota.log"
    return path.read_text() if path.exists() else ""


def wait_until_empty(cluster: Cluster, directory: Path, limit_s: float = 150.0, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Waits until the partition has no jobs. Fails at once if a controller ended with an error. `meanwhile` is done over and over."""

    def empty() -> bool:
        meanwhile()
        assert "\nrota: " not in "\n" + log_of(directory), log_of(directory)
        return cluster.run("squeue", "-p", "main", "-o", "%i", check=False).split() == ["JOBID"]  # nothing at all: no answer

    try:
        cluster.wait_for("an empty queue", empty, limit_s)
    except RuntimeError as error:
        queue = cluster.run("squeue", "-p", "main", "-o", "%i %t %r %N %k %n", check=False)
        raise AssertionError(f"jobs are left:\n{queue}\n{log_of(directory)[-3000:]}") from error
