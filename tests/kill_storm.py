"""The kill storm: SIGKILLs of the daemon, at random moments, while jobs come and go under plans that change at nearly every start.

The plans differ in their policy, in what is done to jobs that are to yield (nothing; they are suspended; they are ended and started again),
and in their types: some lack one that jobs wait or run as. None may be lost, none may run twice, and those that run at the same time may
never need more than there is, by what the jobs themselves noted.

A job notes the time every few milliseconds. Between two notes that are close to each other it surely ran; where they are far apart it may
have been stopped, or the machine was busy, and nothing is said of it. `python -m benchmarks kill_storm` runs it, and
`tests/live/system/test_kill_storm.py` a short one.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rota
from live_daemon import Daemon, live_daemon, write_plan
from rota.errors import BadSpec
from rota.live.errors import LiveError, NotReachable, Refused
from rota.live.messages import Job
from witnesses import Trial, check_answers, check_tidy

CELLS = 6
NEEDS = {"small": 1, "large": 3, "whole": 6}
LESS = {"small": 1, "large": 2, "whole": 5}  # under a plan in which types need less
NOTE_S, CLOSE_S = 0.004, 0.010

# As in `witnesses`: no imports from files, so that it starts in a few milliseconds.
WITNESS = f"""
import posix, sys, time, _signal
seconds, path, done = float(sys.argv[1]), sys.argv[2], f"{{sys.argv[3]}}/{{posix.environ[b'ROTA_JOB_ID'].decode()}}"
job, restart = (posix.environ[name].decode() for name in (b"ROTA_JOB_ID", b"ROTA_RESTART"))
file = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600)
boot = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
began = last = boot()
spans = []
def note():
    global began, last
    now = boot()
    if now - last > {CLOSE_S}:
        spans.append((began, last))
        began = now
    last = now
def say(what):
    words = " ".join(f"{{a:.6f}} {{b:.6f}}" for a, b in spans[-60:])
    posix.write(file, f"{{what}} {{job}} {{restart}} {{boot():.6f}} {{words}}\\n".encode())
def stopped(*_):
    spans.append((began, last))
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
        time.sleep({NOTE_S})
        note()
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM])
    posix.close(posix.open(done, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600))
    spans.append((began, last))
    say("end")
else:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM])
    say("again")
"""


def plans(directory: Path, shrinking: bool) -> list[Path]:
    """The plan files that take turns."""
    suspend = {"preemption": "suspend", "releasable": {"cells": True}}
    kinds: list[tuple[dict[str, int], Any, dict[str, Any]]] = [
        (NEEDS, rota.MaxWeight(), suspend),
        (NEEDS, rota.MaxWeight(), {"preemption": "requeue"}),
        (NEEDS, rota.FirstFit(), {"preemption": "none"}),
        ({"small": 1, "whole": 6}, rota.MaxWeight(), suspend),  # without large
        ({"large": 3}, rota.MaxWeight(), {"preemption": "requeue"}),  # without small and whole
        ({"small": 1, "large": 3}, rota.FCFS(), suspend),  # without whole
    ]
    if shrinking:
        kinds += [(LESS, rota.MaxWeight(), suspend), ({"large": 2}, rota.MaxWeight(), {"preemption": "requeue"})]
    found = []
    for number, (types, policy, live) in enumerate(kinds):
        system = f"version = 1\n[server]\ncells = {CELLS}\n" + "".join(
            f"[jobs.{name}]\ndemand = {{ cells = {need} }}\narrival_rate = 2\nmean_size = 0.1\n" for name, need in types.items()
        )
        found.append(directory / f"plan-{number}.json")
        write_plan(found[-1], system, policy, {"learn": False, **live})
    return found


@dataclass
class Storm(Trial):
    """A trial under plans that change."""

    plans: list[Path] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)

    def submit(self, seconds: float = 0.0, count: int = 0) -> None:
        """Submits a job or an array by its type, or by what it needs where the plan of the moment has no such type."""
        type = self.random.choice(["small", "small", "small", "large", "large", "whole"])
        name, count = f"{type}-{len(self.answered) + len(self.unanswered)}", count or self.random.choice([1, 1, 1, 2, 4])
        lasts = seconds or self.random.uniform(0.0, 0.15)
        argv = [sys.executable, "-I", "-S", "-c", WITNESS, str(lasts), str(self.witness), str(self.witness.parent / "done")]
        request: dict[str, Any] = {"name": name, "cwd": "/", "env": {}, "array": (1, count) if count > 1 else None}
        try:
            try:
                found = self.daemon.client.submit(argv, type=type, **request)
            except BadSpec:  # not a type of this plan
                found = self.daemon.client.submit(argv, demand={"cells": NEEDS[type]}, **request)
        except NotReachable:
            self.unanswered[name] = count
            time.sleep(0.02)
        else:
            self.answered[name] = found.ids

    def rage(self, kills: int, load: float = 2.5, log_line: Any = lambda text: None) -> None:
        """Kills the daemon so often, a third of the times while it starts; about every second start has another plan."""
        stop = threading.Event()
        work = sum(need * weight for need, weight in zip(NEEDS.values(), (1 / 2, 1 / 3, 1 / 6), strict=True)) * 0.075 * 1.8 / CELLS

        def submit_all() -> None:
            while not stop.is_set():
                self.submit()
                waiting = len(self.unfinished())
                stop.wait(self.random.uniform(0.0, 2 * work / load) + (0.5 if waiting > 60 else 0.0))

        thread = threading.Thread(target=submit_all)
        thread.start()
        began = time.monotonic()
        try:
            for number in range(1, kills + 1):
                if self.random.random() < 0.33:
                    time.sleep(self.random.uniform(0.0, 0.35))
                    self.kills["while it starts"] += 1
                else:
                    self.daemon.until_it_answers()
                    self.change_plan()
                    time.sleep(self.random.uniform(0.0, 0.5))
                    self.kills["while it serves"] += 1
                self.daemon.kill()
                if self.random.random() < 0.5:
                    self.daemon.plan = self.random.choice(self.plans)
                    self.kills["another file given"] += 1
                self.daemon.start(wait=False)
                if number % 50 == 0:
                    log_line(f"{number} kills, {sum(map(len, self.answered.values()))} jobs, {time.monotonic() - began:.0f} s")
            self.daemon.until_it_answers()
        finally:
            stop.set()
            thread.join()

    def unfinished(self) -> list[int]:
        """Jobs that were accepted and have not ended, by their own word."""
        done = self.witness.parent / "done"
        return [id for ids in self.answered.values() for id in ids[-1:] if not (done / str(id)).exists()]

    def change_plan(self) -> None:
        """Sometimes, goes back to an earlier plan while it serves."""
        if self.random.random() < 0.2:
            with contextlib.suppress(NotReachable, Refused, BadSpec):
                self.daemon.client.use_plan(self.random.choice(self.daemon.client.plans()).number)
                self.kills["plan changed while it serves"] += 1


def spans_of(trial: Trial, jobs: dict[int, Job]) -> list[tuple[float, float, int]]:
    """When jobs surely ran, and what they had: at least, for one that was started again since (it may have got less the second time)."""
    found = []
    for line in trial.witness.read_text().splitlines():
        _, number, restart, _, *times = line.split()
        job = jobs[int(number)]
        need = round(job.demand["cells"]) if int(restart) == job.restarts else LESS[job.name.partition("-")[0]]
        found += [(float(a), float(b), need) for a, b in zip(times[::2], times[1::2], strict=True) if float(b) > float(a)]
    return found


def check_storm(storm: Storm, jobs: dict[int, Job]) -> dict[str, Any]:
    """None lost, none twice, nobody too many; what was seen."""
    check_answers(storm, jobs)
    assert Counter(job.state for job in jobs.values()) == {"done": len(jobs)}, [job for job in jobs.values() if job.state != "done"]
    words = [line.split() for line in storm.witness.read_text().splitlines()]
    ends = Counter(int(job) for what, job, *_ in words if what == "end")
    assert ends == dict.fromkeys(jobs, 1)
    for id, job in jobs.items():
        begun = [int(restart) for what, number, restart, *_ in words if what == "begin" and int(number) == id]
        assert begun == sorted(set(begun)), f"job {id} began as {begun}"
        assert begun[-1] == job.restarts, f"job {id} has {job.restarts} restarts and began as {begun}"
    changes = sorted((time, sign, need) for a, b, need in spans_of(storm, jobs) for time, sign in ((a, 1), (b, -1)))
    used = most = 0
    over_s, since = 0.0, 0.0
    for time_, sign, need in changes:
        over_s += (time_ - since) * (used > CELLS)
        used, since = used + sign * need, time_
        most = max(most, used)
    check_tidy(storm)
    events = Counter(event["event"] for event in storm.events())
    return {
        "jobs": len(jobs),
        "requests without an answer": len(storm.unanswered),
        **storm.kills,
        "plans": len(storm.daemon.client.plans()),
        **{what: events[what] for what in ("start", "suspend", "resume", "requeue", "swap")},
        "started again": sum(job.restarts for job in jobs.values()),
        "most cells at once": most,
        "too many for (ms)": round(1e3 * over_s, 1),
    }


def storm(directory: Path, kills: int, *, seed: int = 7, shrinking: bool = False, log_line: Any = lambda text: None) -> dict[str, Any]:
    """A whole storm in an empty directory: rages, waits until all jobs have ended, and checks."""
    (directory / "done").mkdir()
    files = plans(directory, shrinking)
    with live_daemon(directory, start=False) as daemon:
        daemon.plan = files[0]
        daemon.start()
        trial = Storm(daemon, directory / "witness", random.Random(seed), CELLS, NEEDS, plans=files)
        trial.rage(kills, log_line=log_line)
        log_line("waiting until all have ended")
        return check_storm(trial, _settle(daemon, trial))


def _settle(daemon: Daemon, trial: Storm) -> dict[int, Job]:
    """All jobs, when all have ended. Under which plan does not matter: each of them serves jobs of every kind."""
    with contextlib.suppress(LiveError):
        daemon.client.pin(True)
    return trial.settle(300.0)
