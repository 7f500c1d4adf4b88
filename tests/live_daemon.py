"""A real scheduler for tests: a daemon in a process of its own, which can be killed and started again as often as you like.

    with live_daemon(tmp_path) as daemon:
        id = daemon.client.submit(["true"], type="small").ids[0]
        daemon.kill()
        daemon.start()
        assert daemon.client.wait(id, 10).state == "done"

Importing everything takes a second or more, so that is done once: this file, run as a program, is a process which has imported it all and
forks a daemon whenever it is told to; that answers after about 0.3 s. `daemon.start_command()` gives the words of the real command.
At the end all jobs are killed, the daemon is ended, and it is made sure that no process of a job is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rota.live.errors import LiveError, Refused
from rota.live.http.client import Client
from rota.live.paths import socket_path
from rota.live.processes.records import mark_of

SYSTEM = """
version = 1

[server]
cells = 6

[jobs.small]
demand = { cells = 1 }
arrival_rate = 20
mean_size = 0.05

[jobs.large]
demand = { cells = 3 }
arrival_rate = 5
mean_size = 0.05
"""
LIVE = ("held", "blocked", "waiting", "starting", "running", "suspended", "stopping")


class Daemon:
    """The daemon of one state directory. `client` speaks to it, whichever process it is at the moment."""

    def __init__(self, directory: Path, plan: Path, forker: subprocess.Popen[str], log: Path) -> None:
        self.directory, self.plan, self.log = directory, plan, log
        self.client = Client(f"unix:{socket_path(directory)}")
        self.pid: int | None = None
        self._forker = forker

    def start(self, wait: bool = True) -> None:
        """Starts the daemon with the plan of `self.plan`, and waits until it answers."""
        assert self.pid is None, "it runs already"
        self.pid = int(self._ask(f"start {self.plan}"))
        if wait:
            self.until_it_answers()

    def until_it_answers(self, timeout_s: float = 60.0) -> None:
        """Waits until the daemon answers; fails with what it said if it ends instead."""
        limit = time.monotonic() + timeout_s
        while not self.answers():
            assert self.is_running(), f"the daemon ended:\n{self.said()}"
            assert time.monotonic() < limit, f"the daemon does not answer:\n{self.said()}"
            time.sleep(0.005)

    def answers(self) -> bool:
        """Whether it answers now."""
        try:
            return bool(self.client.status())
        except LiveError:
            return False

    def is_running(self) -> bool:
        """Whether the daemon's process is there and has not ended."""
        return self.pid is not None and _state_of(self.pid) not in ("", "Z")

    def kill(self) -> None:
        """SIGKILL, at whatever moment this is. Returns when the process is gone."""
        self.signal(signal.SIGKILL)
        self.gone()

    def end(self) -> int:
        """SIGTERM. Returns the exit code, negative for a signal."""
        self.signal(signal.SIGTERM)
        return self.gone()

    def signal(self, number: int) -> None:
        """Sends a signal to the daemon."""
        assert self.pid is not None, "it does not run"
        os.kill(self.pid, number)  # it is not reaped before `gone` is called, so the number is its own

    def gone(self) -> int:
        """Waits until the process has ended by itself or by a signal; its exit code, negative for a signal."""
        assert self.pid is not None, "it does not run"
        self.pid = None
        return int(self._ask("wait"))

    def said(self) -> str:
        """What all daemons of this directory wrote to standard error."""
        return self.log.read_text()

    def start_command(self) -> list[str]:
        """The real command for this directory and plan, for subprocess."""
        return [sys.executable, "-m", "rota.cli", "serve", str(self.plan), "--directory", str(self.directory)]

    def processes(self) -> dict[int, str]:
        """Processes of jobs: those with a ROTA_RUN of this directory in their environment, with their record's name."""
        whose = mark_of(str(self.directory / "run"), 0, 0).partition("@")[2]
        found = {}
        for pid in _pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
                if run := next((word for word in words if word.startswith("ROTA_RUN=") and f"@{whose}" in word), None):
                    found[pid] = run.removeprefix("ROTA_RUN=").partition("@")[0]
        return found

    def helpers(self) -> dict[int, str]:
        """Processes that have a file of this directory open, with their command lines: daemon, launcher, supervisors."""
        found = {}
        for pid in _pids():
            with contextlib.suppress(OSError):
                opened = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
                if any(path.startswith(f"{self.directory}/") for path in opened):
                    found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def launcher(self) -> int:
        """The launcher's process."""
        return next(pid for pid, command in self.helpers().items() if "forkserver" in command and _parent_of(pid) == self.pid)

    def until(self, true: Callable[[], Any], timeout_s: float = 20.0) -> Any:
        """Waits until something is so, and returns it."""
        limit = time.monotonic() + timeout_s
        while not (value := true()):
            assert time.monotonic() < limit, f"it did not come to pass\n{self.said()}"
            time.sleep(0.005)
        return value

    def close(self) -> None:
        """Kills the jobs, ends the daemon, and fails if a process is left."""
        try:
            if self.pid is not None and not self.is_running():
                self.gone()
            if self.pid is None:
                self.start()
            self.until_it_answers()
            while left := self.client.jobs(state=LIVE, limit=1000):
                for job in left:
                    with contextlib.suppress(Refused):
                        self.client.cancel(job.id, now=True)
                time.sleep(0.02)
            assert self.end() == 0, self.said()
            self.until(lambda: not self.processes() and not self.helpers(), 5)
        finally:
            self.client.close()
            if self.pid is not None:
                self.kill()

    def _ask(self, what: str) -> str:
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        self._forker.stdin.write(f"{what}\n")
        self._forker.stdin.flush()
        return self._forker.stdout.readline()


def write_plan(path: Path, system: str = SYSTEM, policy: Any = None, live: Mapping[str, Any] | None = None) -> None:
    """A plan file with predictions, so that no process is started that makes some."""
    import rota
    from rota.model.live import live_settings
    from rota.model.spec import parse_system
    from rota.policy import PlanFile, plan_file_to_json

    parsed = parse_system(system)
    predicted = {name: {"mean": 1.0} for name in parsed.names}
    settings = live_settings(dict(live or {}), parsed.resources)
    path.write_text(plan_file_to_json(PlanFile(parsed, policy or rota.FirstFit(), settings, predicted=predicted)))


@contextlib.contextmanager
def live_daemon(
    directory: Path,
    *,
    system: str = SYSTEM,
    policy: Any = None,
    live: Mapping[str, Any] | None = None,
    start: bool = True,
) -> Iterator[Daemon]:
    """A daemon with its state in `directory`/state, under a policy (an object of `rota.policy`; else First-Fit) and `[live]` settings."""
    state, plan = directory / "state", directory / "plan.json"
    state.mkdir(mode=0o700, exist_ok=True)
    write_plan(plan, system, policy, live)
    log = directory / "daemon.log"
    with (
        log.open("a") as said,
        subprocess.Popen(
            [sys.executable, __file__, str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as forker,
    ):
        daemon = Daemon(state, plan, forker, log)
        try:
            if start:
                daemon.start()
            yield daemon
        finally:
            daemon.close()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["", "0"]


def _state_of(pid: int) -> str:
    return _stat(pid)[0]


def _parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def _fork_daemons(directory: Path) -> None:
    """Forks a daemon for each line "start PLAN" and answers with its pid; at "wait", with its exit code."""
    import asyncio

    from rota.live.daemon import run_daemon
    from rota.live.standard_error import LineWriter
    from rota.policy import read_plan_file

    known, pid, log_line = dict[str, Any](), 0, LineWriter()
    for line in sys.stdin:
        what, _, path = line.strip().partition(" ")
        if what == "start" and path not in known:
            known[path] = read_plan_file(path)
            _load_what_comes_late(known[path])
        if what == "wait":
            _, status = os.waitpid(pid, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif (pid := os.fork()) == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)
                os.dup2(0, 1)
                asyncio.run(run_daemon(directory, known[path], log_line=log_line))
            except BaseException as error:
                log_line(f"{type(error).__name__}: {error}")
                os._exit(1)
            os._exit(0)
        else:
            print(pid, flush=True)


def _load_what_comes_late(plan: Any) -> None:
    """Imports and compiled functions that a daemon would otherwise load after it was forked."""
    import numpy as np

    from rota.capacity import system_load
    from rota.decide import seeded
    from rota.live.scheduling.scheduler import Scheduler

    scheduler = Scheduler(plan.system, plan.policy, seeded(np.random.SeedSequence(0)), stop=plan.live.preemption)
    scheduler.begin(0.0)
    scheduler.arrive(1, 0, 0.0)
    scheduler.leave(1, 0.0)
    system_load(plan.system)


if __name__ == "__main__":
    _fork_daemons(Path(sys.argv[1]))
