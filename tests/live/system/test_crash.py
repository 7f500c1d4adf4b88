"""The daemon is killed with SIGKILL at random moments while jobs come, run and end: none is lost, none runs twice, nobody gets too much.

The jobs themselves bear witness. Each writes its number, its restart and the time (CLOCK_BOOTTIME) into one file when it begins and when
it ends, by one append each. How often the daemon is killed is the constant KILLS, or $ROTA_KILLS.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import rota
from live_daemon import Daemon, live_daemon
from rota.live.processes import records as attempts
from witnesses import CORES, check_all, check_capacity, trial

KILLS = int(os.environ.get("ROTA_KILLS", "30"))


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
        daemon.until(lambda: os.listdir(daemon.directory / "run") == [])  # records are removed in a thread of their own
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
