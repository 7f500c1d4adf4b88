"""Watches the supervisors: by a pidfd each while there are descriptors; the others are checked now and then.

A supervisor can be stopped (`kill -STOP $PPID` in a job) and would then never report the end of its job. So all get SIGCONT now and then,
which has no effect on one that runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import Callable
from typing import NamedTuple

from rota.live.processes.records import look

__all__ = ["Watch"]


class _Supervisor(NamedTuple):
    attempt: int
    pid: int
    pidfd: int | None  # None: there was no descriptor for it


class Watch:
    """Supervisors by job. `on_gone(job, attempt)` is called once for each that has ended. At most `most` of them have a pidfd."""

    def __init__(self, run_directory: str, most: int, on_gone: Callable[[int, int], None]) -> None:
        self._run, self._most, self._on_gone = run_directory, most, on_gone
        self._of: dict[int, _Supervisor] = {}
        self._with_pidfd = 0

    def __contains__(self, attempt: tuple[int, int]) -> bool:
        return attempt[0] in self._of and self._of[attempt[0]].attempt == attempt[1]

    def __len__(self) -> int:
        return len(self._of)

    def attempts(self) -> set[tuple[int, int]]:
        """The watched attempts, as (job, attempt)."""
        return {(job, supervisor.attempt) for job, supervisor in self._of.items()}

    @property
    def unwatched(self) -> int:
        """Supervisors without a pidfd."""
        return len(self._of) - self._with_pidfd

    def add(self, job: int, attempt: int, pid: int, pidfd: int | None) -> None:
        """Watches a supervisor from now on. The pidfd is closed here later; a supervisor without one is checked now and then."""
        if pidfd is not None and self._with_pidfd >= self._most:
            os.close(pidfd)
            pidfd = None
        if (before := self._of.get(job)) is not None:
            self._release(before)
        self._of[job] = _Supervisor(attempt, pid, pidfd)
        if pidfd is not None:
            self._with_pidfd += 1
            asyncio.get_running_loop().add_reader(pidfd, self._gone, job, attempt)

    def send(self, job: int, what: signal.Signals) -> None:
        """Sends a signal, and wakes the supervisor if it was stopped."""
        supervisor = self._of[job]
        pidfd = self._opened(job, supervisor) if supervisor.pidfd is None else supervisor.pidfd
        if pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, what)
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)
            if supervisor.pidfd is None:
                os.close(pidfd)

    def look_around(self) -> None:
        """Sends SIGCONT to all, and checks those without a pidfd."""
        for job, supervisor in list(self._of.items()):
            if supervisor.pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(supervisor.pidfd, signal.SIGCONT)
                continue
            try:
                pidfd = self._opened(job, supervisor)
            except OSError:  # no descriptor is free even for a moment: try in the next round
                return
            if pidfd is None:
                self._gone(job, supervisor.attempt)
            else:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGCONT)
                self.add(job, supervisor.attempt, supervisor.pid, pidfd)  # it keeps the pidfd if there are descriptors by now

    def close(self) -> None:
        """Stops watching."""
        for supervisor in self._of.values():
            self._release(supervisor)
        self._of.clear()

    def _opened(self, job: int, supervisor: _Supervisor) -> int | None:
        """A pidfd of a supervisor that has none, or None if it is gone. Its pid may be another process's by now, so its record is read."""
        try:
            pidfd = os.pidfd_open(supervisor.pid)
        except ProcessLookupError:
            return None
        seen = look(self._run, job, supervisor.attempt)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if seen.state in ("ended", "lost") or ended.poll(0):
            os.close(pidfd)
            return None
        return pidfd

    def _gone(self, job: int, attempt: int) -> None:
        self._release(self._of.pop(job))
        self._on_gone(job, attempt)

    def _release(self, supervisor: _Supervisor) -> None:
        if supervisor.pidfd is not None:
            self._with_pidfd -= 1
            asyncio.get_running_loop().remove_reader(supervisor.pidfd)
            os.close(supervisor.pidfd)
