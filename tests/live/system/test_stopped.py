"""Processes of the scheduler that somebody stops, and files that somebody replaces: it goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from job_processes import PATH, state_of
from live_daemon import Daemon, live_daemon
from rota.live.errors import Refused


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of this file; each waits for its own jobs."""
    with live_daemon(tmp_path_factory.mktemp("stopped"), live={"grace_s": 0.4}) as daemon:
        yield daemon


def submit(daemon: Daemon, script: str, **more: Any) -> int:
    """A shell script as a job."""
    return daemon.client.submit(["/bin/sh", "-c", script], type="small", cwd="/", env={"PATH": PATH}, **more).ids[0]


def test_a_job_that_stops_its_supervisor(daemon: Daemon) -> None:
    """`kill -STOP $PPID` in a job does not hold its slot for ever: its end is heard of, and it can be cancelled."""
    ended = daemon.client.wait(submit(daemon, "kill -STOP $PPID; exit 4"), 30)
    assert (ended.state, ended.exit_code) == ("failed", 4)
    id = submit(daemon, "kill -STOP $PPID; echo up; sleep 100")
    daemon.until(lambda: daemon.client.log(id)[0] == b"up\n")
    daemon.client.cancel(id)
    assert daemon.client.wait(id, 30).state == "cancelled"


def test_a_stopped_launcher_goes_on(daemon: Daemon) -> None:
    """A launcher that somebody stopped is noticed, and carries out what it was told."""
    launcher = daemon.launcher()
    os.kill(launcher, signal.SIGSTOP)
    daemon.until(lambda: state_of(launcher) == "T")
    assert daemon.client.wait(submit(daemon, "true"), 30).state == "done"
    assert daemon.launcher() == launcher


def test_a_daemon_ends_though_its_launcher_is_stopped(daemon: Daemon) -> None:
    """SIGTERM ends the daemon, and the launcher with it."""
    launcher = daemon.launcher()
    os.kill(launcher, signal.SIGSTOP)
    daemon.until(lambda: state_of(launcher) == "T")
    assert daemon.end() == 0
    assert state_of(launcher) in ("", "Z")
    daemon.start()


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_log_that_is_no_file(daemon: Daemon, tmp_path: Path, kind: str) -> None:
    """A job that replaces its log by a FIFO or a link: reading it is refused at once, and the scheduler goes on."""
    secret = tmp_path / "secret"
    secret.write_text("not for you\n")
    make = "mkfifo $LOG" if kind == "fifo" else f"ln -s {secret} $LOG"
    id = submit(daemon, f"LOG={daemon.directory}/output/$ROTA_JOB_ID.log; rm $LOG; {make}; echo done")
    assert daemon.client.wait(id, 20).state == "done"
    with pytest.raises(Refused, match="is not a regular file" if kind == "fifo" else "is a link"):
        daemon.client.log(id)
    assert daemon.client.status().counts["done"] >= 1


def test_a_fifo_does_not_hold_up_a_start(daemon: Daemon) -> None:
    """Where a FIFO or a link has the name of the log that a job is about to get, the job fails at once and says why; others run."""
    last = submit(daemon, "true")
    for number, make in ((last + 1, os.mkfifo), (last + 3, lambda path: os.symlink("/dev/null", path))):
        make(daemon.directory / "output" / f"{number}.log")
        id = submit(daemon, "echo hello")
        assert id == number
        ended = daemon.client.wait(id, 20)
        assert (ended.state, ended.exit_code) == ("failed", 126)
        assert "is a link, a pipe or a folder, not a file" in ended.reason
        after = submit(daemon, "echo hello")
        assert daemon.client.wait(after, 20).state == "done"
        assert daemon.client.log(after)[0] == b"hello\n"
