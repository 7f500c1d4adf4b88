"""A bench for tests of real jobs: a launcher, orders for it, and the certainty that nothing is left running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rota.live.processes import records as attempts
from rota.live.processes.launcher import Launcher, Program

PATH = "/usr/local/bin:/usr/bin:/bin"


class Run:
    """A supervisor that was started for an order."""

    def __init__(self, bench: Bench, job: int, attempt: int, pid: int, pidfd: int) -> None:
        self.bench, self.job, self.attempt, self.pid, self.pidfd = bench, job, attempt, pid, pidfd

    def look(self) -> attempts.Attempt:
        """Its record."""
        return attempts.look(self.bench.run, self.job, self.attempt)

    def send(self, number: int) -> None:
        """A signal to the supervisor."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def wait(self, timeout_s: float = 10) -> attempts.Attempt:
        """Its record after it has ended."""
        watch = select.poll()
        watch.register(self.pidfd, select.POLLIN)
        assert watch.poll(timeout_s * 1000), "the supervisor does not end"
        return self.look()

    def output(self) -> str:
        """What the job wrote."""
        return (self.bench.directory / "output" / f"{self.job}.log").read_text()


class Bench:
    """A launcher and the runs it was asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.run, self.runs = directory, str(directory / "run"), list[Run]()
        self.refused, self.died = list[tuple[int, int, OSError]](), 0
        self.loop = asyncio.Runner()
        self.launcher = self.start()

    def start(self, patience_s: float = 10) -> Launcher:
        """Another launcher for the same directory."""

        def died() -> None:
            self.died += 1

        starting = Launcher.start(
            self.directory,
            lambda *spawned: self.runs.append(Run(self, *spawned)),
            on_refused=lambda *refused: self.refused.append(refused),
            on_died=died,
            patience_s=patience_s,
        )
        return self.loop.run(starting)

    def launch(self, argv: list[str], **fields: object) -> Run:
        """Have a job run; returns when its supervisor has been forked."""
        count = len(self.runs)
        settings = {"job": count + 1, "attempt": 1, "env": {"PATH": PATH}, "cwd": "/", "type": "small", "grace_s": 1.0, **fields}
        self.launcher.launch(Program(argv=argv, **settings))  # type: ignore[arg-type]
        self.until(lambda: len(self.runs) > count)
        return self.runs[-1]

    def sh(self, script: str, **fields: object) -> Run:
        """Have a shell script run."""
        return self.launch(["/bin/sh", "-c", script], **fields)

    def until(self, true: Callable[[], object], timeout_s: float = 10) -> None:
        """Let the event loop turn until something is so."""

        async def turn() -> None:
            limit = time.monotonic() + timeout_s
            while not true():
                assert time.monotonic() < limit, "it did not come to pass"
                await asyncio.sleep(0.005)

        self.loop.run(turn())

    def close(self) -> None:
        """End everything."""
        for run in self.runs:
            run.send(signal.SIGQUIT)
        for run in self.runs:
            run.wait()
            os.close(run.pidfd)
        self.loop.run(self.launcher.close())
        self.loop.close()


@contextlib.contextmanager
def open_bench(directory: Path) -> Iterator[Bench]:
    """A bench that leaves no process behind."""
    bench = Bench(directory)
    try:
        yield bench
    finally:
        bench.close()


def state_of(pid: int) -> str:
    """The letter of /proc: R, S, T (stopped) …; "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
