"""Jobs that bear witness while the daemon dies again and again, and what must be so afterwards.

Each job writes its number, its restart and the time (CLOCK_BOOTTIME) into one file when it begins and when it ends, by one append each.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from live_daemon import LIVE, Daemon, live_daemon
from rota.live.errors import NotReachable
from rota.live.messages import Job

SEED = int(os.environ.get("ROTA_SEED", "7"))
CELLS = ("cells", 6, {"small": 1, "large": 3})  # counted only
CORES = ("cores", 2, {"small": 1, "large": 2})  # handed out, where there are so many
JITTER_S = 0.5  # two jobs that are started one after the other may write their first words so far apart

# A tiny program: no imports from files, so that it starts in a few milliseconds.
WITNESS = """
import posix, sys, time, _signal
seconds, path, done = float(sys.argv[1]), sys.argv[2], f"{sys.argv[3]}/{posix.environ[b'ROTA_JOB_ID'].decode()}"
job, restart = (posix.environ[name].decode() for name in (b"ROTA_JOB_ID", b"ROTA_RESTART"))
file = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
def say(what):
    posix.write(file, f"{what} {job} {restart} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\\n".encode())
def stopped(*_):
    say("stopped")
    posix._exit(143)
_signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM])
_signal.signal(_signal.SIGTERM, stopped)
say("begin")
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGTERM])
try:
    posix.stat(done)
except FileNotFoundError:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.005)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM])
    posix.close(posix.open(done, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600))
    say("end")
else:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM])
    say("again")  # it had been told to stop when it was done already
"""


class Line(NamedTuple):
    """What a job wrote."""

    what: str
    job: int
    restart: int
    time: float


@dataclass
class Trial:
    """Jobs that are submitted while the daemon dies again and again, and what is found afterwards."""

    daemon: Daemon
    witness: Path
    random: random.Random
    capacity: int
    demand: dict[str, int]
    answered: dict[str, list[int]] = field(default_factory=dict)
    unanswered: dict[str, int] = field(default_factory=dict)
    seen: list[dict[int, tuple[str, set[int]]]] = field(default_factory=list)

    def submit(self, seconds: float = 0.0, count: int = 0) -> None:
        """Submits a job or an array; remembers whether an answer came."""
        name, type = f"r{len(self.answered) + len(self.unanswered)}", self.random.choice(["small", "small", "large"])
        count = count or self.random.choice([1, 1, 2, 3, 8])
        lasts = seconds or self.random.uniform(0.0, 0.08)
        argv = [sys.executable, "-I", "-S", "-c", WITNESS, str(lasts), str(self.witness), str(self.witness.parent / "done")]
        try:
            found = self.daemon.client.submit(argv, type=type, name=name, cwd="/", env={}, array=(1, count) if count > 1 else None)
        except NotReachable:
            self.unanswered[name] = count
        else:
            assert len(found.ids) == count
            self.answered[name] = found.ids

    def crash(self, kills: int, jobs: int) -> None:
        """Kills the daemon at random moments, a third of them while it starts, and meanwhile submits about so many jobs."""
        stop = threading.Event()

        def submit_all() -> None:
            while not stop.is_set() and sum(map(len, self.answered.values())) < jobs:
                self.submit()
                stop.wait(self.random.uniform(0.0, 0.04))

        thread = threading.Thread(target=submit_all)
        thread.start()
        try:
            for _ in range(kills):
                if self.random.random() < 0.33:
                    time.sleep(self.random.uniform(0.0, 0.35))
                else:
                    self.daemon.until_it_answers()
                    time.sleep(self.random.uniform(0.0, 0.3))
                self.look()
                self.daemon.kill()
                self.daemon.start(wait=False)
            self.daemon.until_it_answers()
        finally:
            stop.set()
            thread.join()

    def look(self) -> None:
        """Looks at who runs at this moment, and on which cores: those that are found so before and after it."""
        before, after = self._running(), self._running()
        self.seen.append({pid: found for pid, found in before.items() if after.get(pid) == found})

    def _running(self) -> dict[int, tuple[str, set[int]]]:
        found = {}
        for pid, record in self.daemon.processes().items():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("T", "t", "Z"):
                    found[pid] = (record, os.sched_getaffinity(pid))
        return found

    def settle(self, timeout_s: float = 60.0) -> dict[int, Job]:
        """Waits until every job has ended, and returns all."""
        self.daemon.until(lambda: not self.daemon.client.jobs(state=LIVE, limit=1), timeout_s)
        found: list[Job] = []
        while page := self.daemon.client.jobs(limit=1000, before=found[-1].id if found else None):
            found += page
        return {job.id: job for job in reversed(found)}

    def lines(self) -> list[Line]:
        """What the jobs wrote, in their order."""
        words = (line.split() for line in self.witness.read_text().splitlines())
        return [Line(what, int(job), int(restart), float(at)) for what, job, restart, at in words]

    def events(self) -> list[dict[str, Any]]:
        """The event log."""
        return [json.loads(line) for line in (self.daemon.directory / "events.jsonl").read_text().splitlines()]


@contextlib.contextmanager
def trial(directory: Path, policy: Any = None, server: tuple[str, int, dict[str, int]] = CELLS, **live: Any) -> Iterator[Trial]:
    """A daemon, and jobs for it."""
    resource, capacity, demand = server
    system = f"version = 1\n[server]\n{resource} = {capacity}\n" + "".join(
        f"[jobs.{name}]\ndemand = {{ {resource} = {amount} }}\narrival_rate = 3\nmean_size = 0.05\n" for name, amount in demand.items()
    )
    (directory / "done").mkdir()
    with live_daemon(directory, system=system, policy=policy, live={"learn": False, **live}) as daemon:
        yield Trial(daemon, directory / "witness", random.Random(SEED), capacity, demand)


# ------------------------------------------------------------------------------------------------------------ what must be so


def check_answers(trial: Trial, jobs: dict[int, Job]) -> None:
    """Who got a number finds the job; of a request without an answer all jobs are there, or none."""
    by_name = Counter(job.name for job in jobs.values())
    for name, ids in trial.answered.items():
        assert all(jobs[id].name == name for id in ids)
        assert by_name[name] == len(ids)
    for name, count in trial.unanswered.items():
        assert by_name[name] in (0, count), f"{by_name[name]} of {count} jobs of {name}"
    assert sum(by_name.values()) == sum(by_name[name] for name in (*trial.answered, *trial.unanswered))
    assert sorted(jobs) == list(range(1, len(jobs) + 1))


def check_once(trial: Trial, jobs: dict[int, Job]) -> None:
    """Every job ended well, once; it was begun once and once more for each restart that the scheduler counts."""
    assert Counter(job.state for job in jobs.values()) == {"done": len(jobs)}
    lines = trial.lines()
    ends = Counter(line.job for line in lines if line.what == "end")
    assert ends == dict.fromkeys(jobs, 1)
    for id, job in jobs.items():
        mine = [line for line in lines if line.job == id]
        begun = [line.restart for line in mine if line.what == "begin"]
        # One that is told to stop before its first word leaves no trace, so numbers may be missing, but none comes twice.
        assert begun == sorted(set(begun)), f"job {id} wrote {mine}"
        assert begun[-1] == job.restarts, f"job {id} has {job.restarts} restarts and wrote {mine}"


def check_order(trial: Trial, jobs: dict[int, Job]) -> None:
    """Within a type, jobs start in the order of their numbers: by the event log exactly, by their own words up to a jitter."""
    events = trial.events()
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    counts = Counter((event["event"], event["job"]) for event in events if "job" in event)
    first_begin: dict[int, float] = {}
    for line in trial.lines():
        if line.what == "begin":
            first_begin.setdefault(line.job, line.time)
    for type in trial.demand:
        starts = [event["job"] for event in events if event["event"] == "start" and jobs[event["job"]].type == type]
        firsts = list(dict.fromkeys(starts))
        assert firsts == sorted(firsts)
        latest = 0.0
        for id in firsts:
            # One that was stopped before its first word says it late, though nobody overtook it.
            if not counts["suspend", id] and not counts["requeue", id]:
                assert first_begin[id] > latest - JITTER_S, f"job {id} began {latest - first_begin[id]:.3f} s before an older one"
                latest = max(latest, first_begin[id])
    for id, job in jobs.items():
        assert counts["submit", id] == counts["end", id] == 1
        # Of the decisions to stop a job some come too late, for a job that ends by itself, some so early that it had not begun.
        assert job.restarts <= counts["start", id] - 1 <= counts["requeue", id] + counts["suspend", id]


def check_capacity(trial: Trial, jobs: dict[int, Job]) -> None:
    """At no moment do jobs that run together need more than there is."""
    changes = [(line.time, -1 if line.what != "begin" else 1, trial.demand[jobs[line.job].type]) for line in trial.lines()]
    used = most = 0
    for _, sign, demand in sorted(changes):
        used += sign * demand
        most = max(most, used)
    assert used == 0
    assert most <= trial.capacity
    assert most > trial.capacity // 2, "the trial is no trial"


def check_tidy(trial: Trial) -> None:
    """Nothing runs any more, and no record of an attempt is left."""
    assert trial.daemon.processes() == {}
    trial.daemon.until(lambda: not os.listdir(trial.daemon.directory / "run"), 5)
    trial.daemon.until(lambda: len(trial.daemon.helpers()) == 2, 5)  # the daemon and its launcher


def check_all(trial: Trial) -> dict[int, Job]:
    """All of the above."""
    jobs = trial.settle()
    check_answers(trial, jobs)
    check_once(trial, jobs)
    check_order(trial, jobs)
    check_tidy(trial)
    print(f"{len(jobs)} jobs, {len(trial.unanswered)} requests without an answer, {sum(job.restarts for job in jobs.values())} restarts")
    return jobs
