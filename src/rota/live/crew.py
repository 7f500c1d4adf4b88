"""The crew: the processes of the jobs that were started. Starts them through the launcher, watches their supervisors, passes on signals.

A supervisor is watched by a pidfd, whether this daemon started it or one before. When it is gone, its record tells what became of the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from rota.live.attempts import Attempt, adopt, end_strays, look, remove, sweep
from rota.live.launcher import Launcher, Order
from rota.live.limits import move

__all__ = ["END", "KILL", "RESUME", "SUSPEND", "Crew"]

SUSPEND, RESUME, END, KILL = signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGQUIT
_LOOK_S, _PATIENCE_S = 0.001, 2.0  # how often and how long to look whether a job has come to a stop


class Crew:
    """Supervisors by job. `on_running(job, attempt)`: one was forked. `on_over(job, attempt, seen)`: it is gone, and so is its job.

    `seen.state` is then "ended", "lost" (the supervisor was killed) or "absent" (nothing was run: the disk is full).
    """

    def __init__(
        self,
        directory: Path,
        on_running: Callable[[int, int], None],
        on_over: Callable[[int, int, Attempt], None],
        tell: Callable[[str], None],
    ) -> None:
        self._directory, self._run = directory, str(directory / "run")
        self._on_running, self._on_over, self._tell = on_running, on_over, tell
        self._watched: dict[int, tuple[int, int]] = {}  # job: attempt, pidfd
        self._unheard: dict[int, list[signal.Signals]] = {}  # signals for jobs whose supervisor is not known yet
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_forget: list[tuple[int, int]] = []
        self._open = self._forgetting = False

    async def open(self) -> None:
        """Starts the launcher; when this returns, nothing that was ordered before is still on its way."""
        self._launcher = await self._launch()
        self._open = True
        sweep(self._run)

    async def _launch(self) -> Launcher:
        return await Launcher.start(self._directory, self._spawned, self._refused, self._died)

    async def close(self) -> None:
        """Lets go of everything; the jobs go on."""
        self._open = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._remove(self._to_forget)
        await self._launcher.close()
        for _, pidfd in self._watched.values():
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)
        self._watched.clear()

    # ------------------------------------------------------------------------------------------------------------ orders

    def start(self, order: Order) -> None:
        """Starts a job."""
        self._launcher.launch(order)

    def send(self, job: int, what: signal.Signals) -> None:
        """Sends a signal to the supervisor of a job, now or as soon as it is there."""
        if job in self._watched:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._watched[job][1], what)
        else:
            self._unheard.setdefault(job, []).append(what)

    async def suspended(self, job: int, attempt: int) -> None:
        """Returns when a job that was told to has come to a stop, or is over, or does not heed."""
        for count in range(1, int(_PATIENCE_S / _LOOK_S)):
            seen = look(self._run, job, attempt)
            if seen.suspended or seen.state != "alive":
                return
            if count % 50 == 0:
                self.send(job, SUSPEND)  # a signal to resume, sent just before, may have been heard after it
            await asyncio.sleep(_LOOK_S)
        self._tell(f"job {job} did not come to a stop within {_PATIENCE_S:g} s")

    def move(self, job: int, attempt: int, cores: Sequence[int]) -> None:
        """Lets a job that goes on use these cores and no others."""
        if (supervisor := look(self._run, job, attempt).supervisor) is not None:
            move(supervisor, cores)

    def find(self, job: int, attempt: int) -> Attempt:
        """Looks for an attempt of an earlier daemon, and watches it if it is alive."""
        seen, pidfd = adopt(self._run, job, attempt)
        if pidfd is not None:
            self._watch(job, attempt, pidfd)
        return seen

    def look(self, job: int, attempt: int) -> Attempt:
        """What the record of an attempt says."""
        return look(self._run, job, attempt)

    def forget(self, job: int, attempt: int) -> None:
        """Removes the record of an attempt whose end is known: in another thread, for a busy disk takes milliseconds for each."""
        self._to_forget.append((job, attempt))
        if not self._forgetting:
            self._forgetting = True
            self._task(self._forget())

    async def _forget(self) -> None:
        while self._to_forget:
            known, self._to_forget = self._to_forget, []
            await asyncio.to_thread(self._remove, known)
        self._forgetting = False

    def _remove(self, known: list[tuple[int, int]]) -> None:
        for job, attempt in known:
            remove(self._run, job, attempt)

    # ------------------------------------------------------------------------------------------------------------ what comes back

    def _spawned(self, job: int, attempt: int, _pid: int, pidfd: int) -> None:
        self._watch(job, attempt, pidfd)
        self._on_running(job, attempt)

    def _refused(self, job: int, attempt: int, error: OSError) -> None:
        self._tell(f"job {job} cannot be started: {error.strerror}")
        self._on_over(job, attempt, Attempt("absent"))

    def _watch(self, job: int, attempt: int, pidfd: int) -> None:
        self._watched[job] = (attempt, pidfd)
        asyncio.get_running_loop().add_reader(pidfd, self._gone, job, attempt, pidfd)
        for what in self._unheard.pop(job, ()):
            self.send(job, what)

    def _gone(self, job: int, attempt: int, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        del self._watched[job]
        seen = look(self._run, job, attempt)
        if seen.state == "alive":  # this one found that another has the attempt
            self.find(job, attempt)
        elif seen.state == "lost":
            self._task(self._clear(job, attempt, seen))
        else:
            self._on_over(job, attempt, seen)

    async def _clear(self, job: int, attempt: int, seen: Attempt) -> None:
        if killed := await asyncio.to_thread(end_strays, self._run, job, attempt):
            self._tell(f"job {job} lost its supervisor; {killed} processes that it left behind were killed")
        self._on_over(job, attempt, seen)

    def clear(self, job: int, attempt: int, seen: Attempt) -> None:
        """Ends what a lost attempt left behind, then tells that it is over."""
        self._task(self._clear(job, attempt, seen))

    def _died(self) -> None:
        if self._open:
            self._tell("the launcher died; starting another")
            self._task(self._relaunch())

    async def _relaunch(self) -> None:
        old = self._launcher
        await old.close()
        self._launcher = await self._launch()
        for (job, attempt), order in old.unanswered.items():  # also what was ordered in the meantime
            seen = self.find(job, attempt)
            if seen.state == "absent":
                self._launcher.launch(order)
            elif seen.state == "alive":
                self._on_running(job, attempt)
            else:
                self._on_over(job, attempt, seen)

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
