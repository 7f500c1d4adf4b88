"""The daemon is killed with SIGKILL at random moments while jobs come, run and end: none is lost, none runs twice, nobody gets too much.

The jobs themselves bear witness. Each writes its number, its restart and the time (CLOCK_BOOTTIME) into one file when it begins and when
it ends, by one append each. How often the daemon is killed is the constant KILLS, or $ROTA_KILLS.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import rota
from live_daemon import LIVE, Daemon, live_daemon
from rota.live import attempts
from rota.live.errors import NotReachable
from rota.live.messages import Job

KILLS = int(os.environ.get("ROTA_KILLS", "30"))
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


# ------------------------------------------------------------------------------------------------------------ the daemon dies


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Every job runs exactly once, in order, within the capacity, however often the daemon is killed."""
    with trial(tmp_path) as t:
        t.crash(KILLS, jobs=16 * KILLS)
        jobs = check_all(t)
        check_capacity(t, jobs)
        assert not any(job.restarts for job in jobs.values())
        assert len(jobs) > 4 * KILLS


def test_killed_while_jobs_are_requeued(tmp_path: Path) -> None:
    """The same where jobs are ended and started again: each ends well once, and its restarts are those that the scheduler counts."""
    with trial(tmp_path, rota.MaxWeight(), preemption="requeue") as t:
        t.crash(KILLS // 2, jobs=8 * KILLS)
        jobs = check_all(t)
        check_capacity(t, jobs)
        assert any(job.restarts for job in jobs.values()), "the trial is no trial"
        again = [line for line in t.lines() if line.what == "again"]
        assert len(again) <= len(jobs) // 20, "jobs are started again after they are done"


def test_killed_while_jobs_are_suspended(tmp_path: Path) -> None:
    """The same where jobs are suspended: those that are not stopped never need more than there is, and share no core."""
    with trial(tmp_path, rota.MaxWeight(), CORES, preemption="suspend") as t:
        t.crash(KILLS // 2, jobs=8 * KILLS)
        jobs = check_all(t)
        for seen in t.seen:
            needs = [t.demand[jobs[int(record.partition(".")[0])].type] for record, _ in seen.values()]
            assert sum(needs) <= t.capacity
            if len(os.sched_getaffinity(0)) >= t.capacity:
                assert [len(cores) for _, cores in seen.values()] == needs
                assert len(set().union(*(cores for _, cores in seen.values()))) == sum(needs)
        assert any(event["event"] == "suspend" for event in t.events()), "the trial is no trial"


# ------------------------------------------------------------------------------------------------------------ others die


def test_launcher_killed(tmp_path: Path) -> None:
    """When the launcher is killed, again and again, another takes its place; every job runs exactly once."""
    with trial(tmp_path) as t:
        for _ in range(8):
            for _ in range(6):
                t.submit()
            time.sleep(t.random.uniform(0.0, 0.1))
            with contextlib.suppress(StopIteration):  # there is none at this moment
                os.kill(t.daemon.launcher(), signal.SIGKILL)
        jobs = check_all(t)
        check_capacity(t, jobs)
        assert "the launcher died" in t.daemon.said()


def test_supervisor_killed(tmp_path: Path) -> None:
    """A job whose supervisor is killed has failed and says why; nothing of it is left, though it had detached. So too after a restart."""
    script = "setsid sleep 100 & setsid setsid sleep 101 & sleep 102"
    with live_daemon(tmp_path) as daemon:
        ids = [daemon.client.submit(["/bin/sh", "-c", script], type="small", cwd="/", env={"PATH": "/bin:/usr/bin"}).ids[0] for _ in "12"]
        daemon.until(lambda: len(daemon.processes()) >= 8)
        first, second = (supervisor_of(daemon, id) for id in ids)
        os.kill(first, signal.SIGKILL)
        ended = daemon.client.wait(ids[0], 10)
        assert (ended.state, ended.reason, ended.exit_code) == ("failed", "its supervisor was killed", None)
        assert set(daemon.processes().values()) == {f"{ids[1]}.1"}
        daemon.kill()
        os.kill(second, signal.SIGKILL)
        daemon.start()
        ended = daemon.client.wait(ids[1], 10)
        assert (ended.state, ended.reason) == ("failed", "its supervisor was killed")
        assert daemon.processes() == {}
        assert os.listdir(daemon.directory / "run") == []
        assert daemon.client.wait(daemon.client.submit(["true"], type="large").ids[0], 10).state == "done"


def test_ended_before_it_heard_that_it_should_stop(tmp_path: Path) -> None:
    """A daemon dies when it has decided to requeue a job and not told it; the job ends by itself meanwhile: it is done, not run again."""
    with trial(tmp_path, rota.MaxWeight(), preemption="requeue") as t:
        t.submit(seconds=0.5, count=2)
        ids = [id for ids in t.answered.values() for id in ids]
        t.daemon.until(lambda: t.witness.exists() and len(t.lines()) == len(ids))
        t.daemon.kill()
        with contextlib.closing(sqlite3.connect(t.daemon.directory / "rota.db")) as database, database:
            database.execute("UPDATE jobs SET state = 'stopping'")
        t.daemon.until(lambda: [line.what for line in t.lines()].count("end") == len(ids))
        time.sleep(0.1)
        t.daemon.start()
        jobs = t.settle()
        assert [(job.state, job.restarts) for job in jobs.values()] == [("done", 0)] * len(ids)
        assert Counter(line.what for line in t.lines()) == {"begin": len(ids), "end": len(ids)}


def supervisor_of(daemon: Daemon, id: int) -> int:
    """The process that watches over a job."""
    seen = attempts.look(str(daemon.directory / "run"), id, 1)
    assert seen.supervisor is not None
    return seen.supervisor
