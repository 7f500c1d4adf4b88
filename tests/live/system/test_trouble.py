"""What does not go as planned: full disks, unruly jobs, second thoughts, clocks that are set, torn files, machines that go down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import rota
from live_daemon import Daemon, live_daemon
from rota.live.errors import Refused
from rota.live.messages import ENDED, JobRequest, JobState
from rota.live.processes import records as attempts
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.policy import PlanFile, Policy

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of this file; each waits for its own jobs."""
    with live_daemon(tmp_path_factory.mktemp("trouble"), live={"grace_s": 0.4}) as daemon:
        yield daemon


def submit(daemon: Daemon, script: str, type: str = "small", **more: Any) -> int:
    """A shell script as a job."""
    return daemon.client.submit(["/bin/sh", "-c", script], type=type, cwd="/", env=ENV, **more).ids[0]


# ------------------------------------------------------------------------------------------------------------ unruly jobs


def test_job_that_forks_and_detaches(daemon: Daemon) -> None:
    """A job is over when its main process is; what it left behind, detached or not, is ended, and only then does the next one start."""
    script = "setsid sh -c 'sleep 100 & sleep 101' & (setsid setsid nohup sleep 102 &) ; sleep 0.1; exit 3"
    id = submit(daemon, script, "large")
    daemon.until(lambda: len(daemon.processes()) >= 4)
    ended = daemon.client.wait(id, 10)
    assert (ended.state, ended.exit_code, ended.reason) == ("failed", 3, "exit code 3")
    assert daemon.processes() == {}


def test_job_that_ignores_sigterm(daemon: Daemon) -> None:
    """Cancelling gives it its grace, and then SIGKILL; `now` does not wait."""
    for now, least, most in ((False, 0.4, 5.0), (True, 0.0, 0.39)):
        id = submit(daemon, "trap '' TERM; sleep 100 & while :; do sleep 0.05; done")
        daemon.until(lambda: len(daemon.processes()) >= 3)
        began = time.monotonic()
        assert daemon.client.cancel(id, now=now).state == "stopping"
        ended = daemon.client.wait(id, 10)
        assert least <= time.monotonic() - began <= most
        assert (ended.state, ended.exit_code, ended.reason) == ("cancelled", 137, "cancelled by request")
        assert daemon.processes() == {}


def test_cancelled_while_the_daemon_dies(daemon: Daemon) -> None:
    """A daemon that is killed right after it accepted that a job be cancelled is followed by one that ends it."""
    id = submit(daemon, "trap '' TERM; while :; do sleep 0.05; done")
    behind = submit(daemon, "true", "small", after_any=[id])
    daemon.until(lambda: daemon.client.job(id).state == "running")
    daemon.client.cancel(id)
    daemon.kill()
    daemon.start()
    assert daemon.client.wait(id, 10).state == "cancelled"
    assert daemon.client.wait(behind, 10).state == "done"


# ------------------------------------------------------------------------------------------------------------ files and machines


def test_torn_event_log(daemon: Daemon) -> None:
    """A line of events.jsonl that was cut off by a crash is repaired: every event is there once, in order."""
    path = daemon.directory / "events.jsonl"
    for cut in (1, 37, 400):
        daemon.client.wait(submit(daemon, "true"), 10)
        daemon.kill()
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - cut)
        daemon.start()
        daemon.client.wait(submit(daemon, "true"), 10)
        daemon.until(lambda: json.loads(path.read_bytes().splitlines()[-1])["event"] == "end")
        numbers = [json.loads(line)["n"] for line in path.read_text().splitlines()]
        assert numbers == list(range(1, len(numbers) + 1))


def test_second_daemon(daemon: Daemon) -> None:
    """A second daemon on the same directory refuses and says so; the first goes on."""
    second = subprocess.run(daemon.start_command(), capture_output=True, text=True, timeout=60)
    assert second.returncode != 0
    assert f"another scheduler serves {daemon.directory}" in second.stderr
    assert "Traceback" not in second.stderr
    assert daemon.client.wait(submit(daemon, "true"), 10).state == "done"


def test_machine_went_down(daemon: Daemon) -> None:
    """After the machine was started anew, jobs that ran have failed and say why; those that waited run, and held ones are held."""
    ran = [submit(daemon, "sleep 100", "large") for _ in range(2)]
    waited = [submit(daemon, "true") for _ in range(2)]
    held = submit(daemon, "true", hold=True)
    follows = submit(daemon, "true", after=[ran[0]])
    daemon.until(lambda: all(daemon.client.job(id).state == "running" for id in ran) and len(daemon.processes()) >= 2)
    daemon.client.cancel(submit(daemon, "true"))  # so that the database says that they run, too
    daemon.kill()
    run = str(daemon.directory / "run")
    for id in ran:
        _, pidfd = attempts.adopt(run, id, 1)
        assert pidfd is not None
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
        daemon.until(lambda id=id: attempts.look(run, id, 1).state == "lost")
    before = {"supervisor": 1, "boot": "before"}
    with open(attempts.record_path(run, ran[0], 1), "r+b") as file:
        file.write(json.dumps(before).encode() + b"\n")
    os.unlink(attempts.record_path(run, ran[1], 1))  # it did not reach the disk
    with contextlib.closing(sqlite3.connect(daemon.directory / "rota.db")) as database, database:
        scheduler = json.loads(database.execute("SELECT value FROM notes WHERE key = 'scheduler'").fetchone()[0])
        database.execute("UPDATE notes SET value = ? WHERE key = 'scheduler'", (json.dumps({**scheduler, "boot": "before"}),))
        database.execute("UPDATE jobs SET boot = 'before', submitted_boot = submitted_boot + 1e6")
    daemon.start()
    for id in ran:
        ended = daemon.client.wait(id, 10)
        assert (ended.state, ended.reason) == ("failed", "the machine went down while it ran")
        assert ended.response_s is not None
        assert 0 <= ended.response_s < 60
    assert [daemon.client.wait(id, 10).state for id in waited] == ["done", "done"]
    assert daemon.client.job(held).state == "held"
    assert daemon.client.wait(follows, 10).reason == f"job {ran[0]}, which it comes after, failed"
    daemon.client.release(held)
    assert daemon.client.wait(held, 10).state == "done"
    assert daemon.processes() == {}


def test_full_disk(tmp_path: Path) -> None:
    """On a full disk nothing is accepted (DiskFull) and nothing started; what ran is recorded once there is room, and all run once.

    It says so, questions are answered, and even a daemon that is killed then and started on the full disk goes on.
    """
    inside = Path(__file__).parents[1] / "full_disk_daemon.py"
    (tmp_path / "state").mkdir()
    mount = ["unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-c"]
    script = f"mount -t tmpfs -o size=6m,mode=700 tmpfs {tmp_path}/state"
    if subprocess.run([*mount, script], capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here: neither root nor user namespaces are allowed")
    done = subprocess.run(
        [*mount, f"{script} && exec {sys.executable} {inside} {tmp_path}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.splitlines() == [
        "refused: the database cannot be written: database or disk is full",
        "told: True",
        "refused again",
        "a change is refused, too: the database cannot be written: database or disk is full: nothing was held; make space first "
        "(to end a job that fills the disk: kill PROCESS, see rota show)",
        "promises kept after SIGKILL: True",
        "started on a full disk; jobs not ended: True",
        "free bytes: 0",
        "ended: {'done'} restarts: {0}",
        "each once: True",
        "and goes on: done",
    ], done.stderr


# ------------------------------------------------------------------------------------------------------------ in this process


@contextlib.asynccontextmanager
async def service(directory: Path, policy: Policy, **live: Any) -> AsyncIterator[Service]:
    """The service on two cores, with jobs on one of them or both."""
    system = rota.System(
        capacity=[2], demand=[[1], [2]], arrival_rate=[1, 1], service_rate=[10, 10], names=("one", "both"), resources=("cores",)
    )
    predicted = {name: {"mean": 1.0} for name in system.names}
    settings = LiveSettings(**{"grace_s": 0.3, "learn": False, **live})
    service = Service(directory, PlanFile(system, policy, settings, 0.2, predicted), log_line=lambda text: None)
    await service.open()
    try:
        yield service
        await until(lambda: not os.listdir(directory / "run"))
        assert not service.executor.lifecycle.jobs
        assert (service.executor.lifecycle.scheduler.state.free == service.executor.lifecycle.scheduler.state.capacity).all()
        if service.executor.lifecycle.allocation.free("cores") is not None:
            assert len(service.executor.lifecycle.allocation.free("cores")) == 2
    finally:
        for id in list(service.executor.lifecycle.jobs):
            service.cancel(id, now=True)
            await service.wait(id, 10)
        await service.close()


async def until(true: Any, timeout_s: float = 10.0) -> None:
    """Lets the event loop turn until something is so."""
    limit = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < limit, "it did not come to pass"
        await asyncio.sleep(0.002)


def put(service: Service, script: str = "sleep 100", type: str = "one", **more: Any) -> int:
    """A shell script as a job."""
    return service.submit(JobRequest(argv=["/bin/sh", "-c", script], type=type, env=ENV, **more)).ids[0]


async def state_is(service: Service, id: int, state: JobState) -> None:
    """Waits until a job is in a state."""
    await until(lambda: service.job(id).state == state)


@pytest.mark.parametrize("now", [False, True])
def test_cancel_in_every_state(tmp_path: Path, now: bool) -> None:
    """A job can be cancelled in every state but the last; it ends as cancelled, leaves nothing behind, and others go on."""

    async def never_started(scheduler: Service, id: int) -> None:
        assert scheduler.cancel(id, now).state == "cancelled"
        assert scheduler.job(id).started is None

    async def ends(scheduler: Service, id: int) -> None:
        scheduler.cancel(id, now)
        ended = await scheduler.wait(id, 10)
        assert (ended.state, ended.reason) == ("cancelled", "cancelled by request")

    async def main() -> None:
        async with service(tmp_path, rota.MaxWeight(), preemption="suspend") as scheduler:
            starting = put(scheduler)
            assert scheduler.job(starting).state == "starting"
            await ends(scheduler, starting)
            running = put(scheduler)
            await state_is(scheduler, running, "running")
            await asyncio.sleep(0.1)
            held, blocked = put(scheduler, hold=True), put(scheduler, after=[running])
            assert [scheduler.job(id).state for id in (held, blocked)] == ["held", "blocked"]
            await never_started(scheduler, held)
            await never_started(scheduler, blocked)
            follower = put(scheduler, after=[running])
            after_any = put(scheduler, "true", after_any=[running])
            await ends(scheduler, running)
            assert (await scheduler.wait(follower, 10)).state == "cancelled"
            assert (await scheduler.wait(after_any, 10)).state == "done"
            suspended = put(scheduler)
            await state_is(scheduler, suspended, "running")
            both = [put(scheduler, type="both") for _ in range(3)]
            await state_is(scheduler, suspended, "suspended")
            await asyncio.sleep(0.1)
            waiting = both[-1]
            assert scheduler.job(waiting).state == "waiting"
            await never_started(scheduler, waiting)
            await ends(scheduler, suspended)
            for id in both[:-1]:
                await ends(scheduler, id)
            for id in (starting, running, held, waiting, suspended, after_any):
                with pytest.raises(Refused, match="has ended"):
                    scheduler.cancel(id, now)

    asyncio.run(main())


def test_cancel_while_it_is_stopped(tmp_path: Path) -> None:
    """A job that is to be requeued and takes its time is cancelled: it does not start again."""

    async def main() -> None:
        async with service(tmp_path, rota.MaxWeight(), preemption="requeue") as scheduler:
            stubborn = put(scheduler, "trap '' TERM; while :; do sleep 0.02; done")
            await state_is(scheduler, stubborn, "running")
            await asyncio.sleep(0.1)
            both = [put(scheduler, "true", type="both") for _ in range(3)]
            await state_is(scheduler, stubborn, "stopping")
            scheduler.cancel(stubborn)
            ended = await scheduler.wait(stubborn, 10)
            assert (ended.state, ended.restarts) == ("cancelled", 0)
            assert [(await scheduler.wait(id, 10)).state for id in both] == ["done"] * 3

    asyncio.run(main())


@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0])
def test_clock_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """When somebody sets the clock by a day, durations, order and timers are as before; only the time of day is another."""
    real, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + offset[0])

    async def main() -> None:
        async with service(tmp_path, rota.FCFS()) as scheduler:
            began = time.monotonic()
            running = put(scheduler, "sleep 0.3", type="both")
            queued = [put(scheduler, f"sleep 0.0{n}", type="both") for n in range(3)]
            await state_is(scheduler, running, "running")
            offset[0] = step_s
            late = put(scheduler, "true", type="both")
            asked = time.monotonic()
            assert (await scheduler.wait(late, 0.05)).state not in ENDED
            assert 0.04 < time.monotonic() - asked < 0.25
            jobs = [await scheduler.wait(id, 10) for id in (running, *queued, late)]
            lasted = time.monotonic() - began
            assert {job.state for job in jobs} == {"done"}
            responses = [job.response_s or 0.0 for job in jobs]
            assert all(0 < response <= lasted + 0.1 for response in responses)
            assert 0.3 <= (jobs[0].run_s or 0) < 0.3 + 1
            for what in ("start", "end"):
                assert [event["job"] for event in scheduler.events(0, 1000) if event["event"] == what] == [running, *queued, late]
            assert scheduler.job(late).submitted == pytest.approx(real() + step_s, abs=10)
        numbers = [json.loads(line)["n"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
        assert numbers == list(range(1, len(numbers) + 1))
        # And over a restart: nothing is forgotten, and a new job runs.
        async with service(tmp_path, rota.FCFS()) as scheduler:
            assert len(scheduler.jobs(["done"], None, None, 10, None)) == 5
            assert (await scheduler.wait(put(scheduler, "true"), 10)).state == "done"

    asyncio.run(main())


def test_clock_step_and_a_policy_with_timers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy whose own timers decide when jobs start goes on when the clock is set back by a day."""
    real, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + offset[0])

    async def main() -> None:
        async with service(tmp_path, rota.RandomizedTimers(rate=20)) as scheduler:
            ids = [put(scheduler, "sleep 0.05", type=type) for type in ("one", "both", "one", "both")]
            await asyncio.sleep(0.05)
            offset[0] = -86_400.0
            assert [(await scheduler.wait(id, 20)).state for id in ids] == ["done"] * 4

    asyncio.run(main())
