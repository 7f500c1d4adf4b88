"""The records of attempts: a job cannot name its own, and one that vanished is lost, never taken for one that was not started."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from job_processes import PATH, open_bench, state_of
from live_daemon import Daemon, live_daemon
from rota.live.processes import records as attempts

ENV = {"PATH": PATH}


def submit(daemon: Daemon, script: str, type: str = "small") -> int:
    """A shell script as a job."""
    return daemon.client.submit(["/bin/sh", "-c", script], type=type, cwd="/", env=ENV).ids[0]


def test_the_environment_names_no_file(tmp_path: Path) -> None:
    """A job that removes $ROTA_RUN removes nothing and runs once; what Rota tells it leads to no file of the state directory."""
    with live_daemon(tmp_path) as daemon:
        id = submit(daemon, f'echo x >> {tmp_path}/ran; rm -f "$ROTA_RUN"; env; sleep 1.2')
        assert daemon.client.wait(id, 20).state == "done"
        time.sleep(1.2)  # it was started again every second
        assert (tmp_path / "ran").read_text() == "x\n"
        assert str(daemon.directory) not in daemon.client.log(id)[0].decode()


def test_a_vanished_record_is_lost(tmp_path: Path) -> None:
    """A job whose record is removed while it runs has failed when it ends, says why, and is not run again."""
    with live_daemon(tmp_path) as daemon:
        id = submit(daemon, f"echo x >> {tmp_path}/ran; rm -f {daemon.directory}/run/*; sleep 0.3")
        ended = daemon.client.wait(id, 20)
        assert (ended.state, ended.reason) == ("failed", "its record vanished")
        assert (tmp_path / "ran").read_text() == "x\n"


@pytest.mark.parametrize("written", [True, False])
def test_a_record_that_vanished_while_the_daemon_was_down(tmp_path: Path, written: bool) -> None:
    """A record is removed and the daemon killed: the next one ends what runs and calls it lost. There are never two copies.

    Also if the daemon was killed before it wrote down that the job had begun.
    """
    with live_daemon(tmp_path) as daemon:
        ids = [submit(daemon, f"echo x >> {tmp_path}/ran; sleep 100") for _ in range(2)]
        daemon.until(lambda: (tmp_path / "ran").exists() and len((tmp_path / "ran").read_text()) == 4)
        time.sleep(0.5)
        daemon.kill()
        for name in os.listdir(daemon.directory / "run"):
            os.unlink(daemon.directory / "run" / name)
        with contextlib.closing(sqlite3.connect(daemon.directory / "rota.db")) as database, database:
            if not written:
                database.execute("UPDATE jobs SET state = 'starting', pid = NULL")
            assert [row[0] is None for row in database.execute("SELECT pid FROM jobs")] == [not written] * 2
        daemon.start()
        for id in ids:
            ended = daemon.client.wait(id, 20)
            assert (ended.state, ended.reason) == ("failed", "its record vanished")
        assert (tmp_path / "ran").read_text() == "x\nx\n"
        assert daemon.processes() == {}


def test_children_without_an_environment_are_found(tmp_path: Path) -> None:
    """A supervisor is killed; the child of its job that detached and cleared its environment is ended all the same."""
    with open_bench(tmp_path) as bench:
        note = tmp_path / "pids"
        run = bench.sh(f"setsid env -i /bin/sh -c 'echo $$ >> {note}; exec sleep 60' < /dev/null > /dev/null 2>&1 & exec sleep 61")
        bench.until(lambda: note.exists() and note.read_text().endswith("\n"))
        stray = int(note.read_text())
        assert b"ROTA_RUN" not in Path(f"/proc/{stray}/environ").read_bytes()
        os.kill(run.pid, signal.SIGKILL)
        assert run.wait().state == "lost"
        assert attempts.end_strays(bench.run, run.job, 2) == 0  # of another attempt
        assert state_of(stray) == "S"
        assert attempts.end_strays(bench.run, run.job, run.attempt) >= 1
        bench.until(lambda: state_of(stray) in ("", "Z"))


@pytest.mark.parametrize("key", ["asked_to_end", "told"])
def test_records_of_an_earlier_version(tmp_path: Path, key: str) -> None:
    """That a job was asked to end had another name: a supervisor that an earlier version started may still write it."""
    record = attempts.Record.claim(str(tmp_path), 1, 1, "boot")
    record.write("ended", exit_code=0, **{key: True})
    os.close(record.descriptor)
    assert attempts.look(str(tmp_path), 1, 1).asked_to_end


def test_a_nested_job_has_only_what_it_was_told_itself(tmp_path: Path) -> None:
    """The environment of a job that submits another is not that of the other: its index, cores and number are its own or not there."""
    outer = {**ENV, "ROTA_ARRAY_INDEX": "9", "ROTA_CORES": "0,1", "ROTA_JOB_ID": "1", "ROTA_RUN": "1.1@0", "ROTA_DIR": "/somewhere"}
    with open_bench(tmp_path) as bench:
        run = bench.launch(["env"], env=outer, job=5)
        assert run.wait().exit_code == 0
        seen = dict(line.split("=", 1) for line in run.output().splitlines())
        assert {"ROTA_ARRAY_INDEX", "ROTA_CORES"} & seen.keys() == set()
        assert (seen["ROTA_JOB_ID"], seen["ROTA_RUN"], seen["ROTA_DIR"]) == ("5", attempts.mark_of(bench.run, 5, 1), "/somewhere")
