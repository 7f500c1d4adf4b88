"""What the scheduler says, and that it goes on where nobody can hear it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from live_daemon import Daemon, live_daemon
from rota.live.standard_error import LineWriter, log_warnings, open_streams, unfailing


def test_lines_that_nobody_takes_are_counted() -> None:
    """A pipe that nobody reads does not hold the teller up; when there is room again it says how many lines are missing."""
    reader, writer = os.pipe()
    log_line = LineWriter(writer)
    for _ in range(2000):
        log_line("x" * 100)
    heard = b""
    os.set_blocking(reader, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            heard += os.read(reader, 65536)
    log_line("again")
    written, missing = heard.count(b"\n"), os.read(reader, 65536).decode().splitlines()
    assert missing[0].endswith(f"  {2000 - written} lines before this one could not be written")
    assert missing[1].endswith("  again")
    os.close(reader)
    log_line("nobody is there")
    os.close(writer)
    log_line("nor is there anything to write to")


def test_warnings_of_the_libraries_are_told() -> None:
    """What the HTTP server and the event loop warn of goes the same way, and a way that fails harms nobody."""
    told: list[str] = []
    with log_warnings(told.append):
        logging.getLogger("rota.live").warning("one %d", 1)
        logging.getLogger("uvicorn.error").warning("two")
        logging.getLogger("asyncio").info("not this")
    logging.getLogger("rota.live").info("nor this")
    assert told == ["one 1", "two"]

    def broken(text: str) -> None:
        raise BrokenPipeError(text)

    with log_warnings(unfailing(broken)):
        logging.getLogger("uvicorn.error").warning("three")


def test_closed_streams_are_opened_on_nothing() -> None:
    """A process that was started without standard error does not get its database there."""
    script = "import os; from rota.live.standard_error import open_streams; open_streams(); print(os.readlink('/proc/self/fd/2'))"
    command = ["/bin/sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, script]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60).stdout == "/dev/null\n"
    open_streams()  # nothing to do


def serve_unheard(daemon: Daemon, stderr: int, *options: str) -> subprocess.Popen[bytes]:
    """The real command with this for standard error, when it answers."""
    process = subprocess.Popen([*daemon.start_command(), *options], stderr=stderr)
    daemon.until(daemon.answers, 60)
    return process


@pytest.mark.parametrize("kind", ["nobody reads", "full device", "never read"])
def test_unwritable_standard_error(tmp_path: Path, kind: str) -> None:
    """With a standard error that cannot be written every submission is answered, also with -v, and a launcher that dies is replaced."""
    with live_daemon(tmp_path, start=False) as daemon:
        reader, writer = os.pipe()
        if kind == "full device":
            os.dup2(full := os.open("/dev/full", os.O_WRONLY), writer)
            os.close(full)
        if kind == "never read":
            os.set_blocking(writer, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writer, b"x" * 4096)
            os.set_blocking(writer, True)
        else:
            os.close(reader)
        process = serve_unheard(daemon, writer, "-v")
        try:
            os.close(writer)
            ids = [daemon.client.submit(["true"], type="small", cwd="/", env={"PATH": "/usr/bin:/bin"}).ids[0] for _ in range(3)]
            assert ids == [1, 2, 3]
            launcher = next(pid for pid, command in daemon.helpers().items() if "forkserver" in command)
            os.kill(launcher, signal.SIGKILL)
            again = daemon.client.submit(["true"], type="small", cwd="/", env={"PATH": "/usr/bin:/bin"}).ids[0]
            assert [daemon.client.wait(id, 20).state for id in (*ids, again)] == ["done"] * 4
        finally:
            process.terminate()
            assert process.wait(20) == 0
            if kind == "never read":
                os.close(reader)
