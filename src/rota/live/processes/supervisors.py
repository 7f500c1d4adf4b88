"""The supervisors of running jobs: starts them through the launcher, watches them, sends them signals.

Supervisors of earlier daemons are watched, too. When a supervisor is gone, its record shows what became of the job.

A supervisor that has claimed its attempt reports this before it runs the job. If the record is missing after that, it was removed, and the
attempt is lost. Only an attempt that was never claimed is started again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rota.live.descriptors import share_descriptors
from rota.live.errors import LiveError
from rota.live.processes import tree
from rota.live.processes.launcher import Launcher, Program
from rota.live.processes.records import (
    Attempt,
    adopt,
    end_strays,
    look,
    mark_of,
    remove,
    remove_strangers,
    running_marks,
    set_stranger_aside,
    sweep,
)
from rota.live.processes.watch import Watch
from rota.live.resources import kinds
from rota.live.tasks import Tasks

__all__ = ["END", "KILL", "RESUME", "SUSPEND", "VANISHED", "Supervisors"]

SUSPEND, RESUME, END, KILL = signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGQUIT
_AGAIN_S = 1.0  # after a launcher that could not be started
_LOOK_S, _PATIENCE_S = 0.001, 2.0  # how often and how long to check whether a job has stopped
_ROUND_S, _SHORT_ROUND_S = 2.0, 0.2  # how often to check all supervisors; the short one if some have no pidfd
VANISHED = "its record vanished"


class Supervisors:
    """Supervisors by job. `on_running(job, attempt, pid)`: it has claimed its attempt. `on_over(job, attempt, seen)`: it and its job ended.

    `seen.state` is then "ended", "lost" (the supervisor was killed, or its record vanished) or "absent" (nothing was run: the disk is
    full).
    """

    def __init__(
        self,
        directory: Path,
        on_running: Callable[[int, int, int], None],
        on_over: Callable[[int, int, Attempt], None],
        log_line: Callable[[str], None],
    ) -> None:
        self._directory, self._run = directory, str(directory / "run")
        self._on_running, self._on_over, self._log_line = on_running, on_over, log_line
        self._watch = Watch(self._run, share_descriptors().watched, self._gone)
        self._claimed: set[tuple[int, int]] = set()  # attempts whose supervisor has reported its claim
        self._tokens: dict[tuple[int, int], str] = {}  # in the records and marks of their processes
        self._unsent: dict[tuple[int, int], list[signal.Signals]] = {}  # signals for attempts whose supervisor is not known yet
        self._resumed: set[tuple[int, int]] = set()  # attempts that got the signal to resume
        self._tasks = Tasks(log_line)
        self._to_forget: list[tuple[int, int]] = []
        self._open = self._forgetting = self._relaunching = False

    async def open(self) -> None:
        """Starts the launcher. When this returns, no earlier order is still being carried out."""
        self._launcher = await self._launch()
        self._open = True
        sweep(self._run)
        self._go_round()

    async def _launch(self) -> Launcher:
        return await Launcher.start(self._directory, self._spawned, self._refused, self._died, on_claimed=self._claim)

    def _go_round(self) -> None:
        """Repeated now and then: wakes stopped processes, and checks supervisors without a pidfd."""
        self._launcher.look_after()
        self._watch.look_around()
        pause = _SHORT_ROUND_S if self._watch.unwatched else _ROUND_S
        self._round = asyncio.get_running_loop().call_later(pause, self._go_round)

    async def close(self) -> None:
        """Closes everything; the jobs go on."""
        self._open = False
        self._round.cancel()
        await self._tasks.close()
        self._remove(self._to_forget)
        await self._launcher.close()
        self._watch.close()

    # ------------------------------------------------------------------------------------------------------------ orders

    def start(self, order: Program) -> None:
        """Starts a job."""
        self._sign(order.job, order.attempt, order.token)
        self._launcher.launch(order)

    def send(self, job: int, attempt: int, what: signal.Signals) -> None:
        """Sends a signal to the supervisor of an attempt, now or as soon as it is known."""
        if (job, attempt) in self._watch:
            self._watch.send(job, what)
        else:
            earlier = self._unsent.get((job, attempt), [])
            self._unsent[job, attempt] = [other for other in earlier if {other, what} != {SUSPEND, RESUME}] + [what]
        if what == RESUME:
            self._resumed.add((job, attempt))

    async def suspend(self, job: int, attempt: int) -> None:
        """Suspends a job. Returns when it has stopped or ended, or does not stop in time."""
        if (job, attempt) in self._resumed:  # of two pending signals, the later one may be handled first
            await self._until(job, attempt, suspended=False)
            self._resumed.discard((job, attempt))
        self.send(job, attempt, SUSPEND)
        if not await self._until(job, attempt, suspended=True):
            self._log_line(f"job {job} did not stop within {_PATIENCE_S:g} s")

    async def _until(self, job: int, attempt: int, suspended: bool) -> bool:
        patience = int(_PATIENCE_S / _LOOK_S)
        while patience > 0:
            seen = look(self._run, job, attempt)
            coming = seen.state == "absent" and self._is_coming(job, attempt)
            if not coming and (seen.suspended == suspended or seen.state != "alive"):
                return True
            patience -= not coming  # wait for an attempt that has not started yet: it would run beside others
            await asyncio.sleep(_LOOK_S)
        return False

    def _is_coming(self, job: int, attempt: int) -> bool:
        """Whether an attempt was ordered and has not claimed its record yet."""
        ordered = (job, attempt) in self._launcher.unanswered or (job, attempt) in self._watch
        return ordered and (job, attempt) not in self._claimed

    def move(self, job: int, attempt: int, terms: Mapping[str, Any]) -> None:
        """Moves a job that resumes to its new share, such as other cores."""
        if (supervisor := look(self._run, job, attempt).supervisor) is not None:
            tree.for_each_thread(supervisor, lambda thread: kinds.move(thread, terms))

    def _sign(self, job: int, attempt: int, token: str) -> None:
        """Notes the token of an attempt; a record of this name with another token is renamed."""
        self._tokens[job, attempt] = token
        if set_stranger_aside(self._run, job, attempt, token):
            self._log_line(
                f"{self._run} had a record of another job {job}, of a database that is gone: set aside; if it runs, it is not followed"
            )

    def find(self, job: int, attempt: int, token: str) -> Attempt:
        """Looks for an attempt of an earlier daemon that was signed with this token, and watches it if it is alive."""
        self._sign(job, attempt, token)
        return self._find(job, attempt)

    def _find(self, job: int, attempt: int) -> Attempt:
        seen, pidfd = adopt(self._run, job, attempt)
        if pidfd is not None and seen.supervisor is not None:
            self._claimed.add((job, attempt))
            self._add(job, attempt, seen.supervisor, pidfd)
        return seen

    def find_marked(self, attempts: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """The attempts among these that have a running process, whatever their records say. They were looked for with `find`."""
        marks = {mark_of(self._run, *attempt, self._tokens[attempt]): attempt for attempt in attempts}
        return {marks[mark] for mark in running_marks() & marks.keys()} if marks else set()

    def look(self, job: int, attempt: int) -> Attempt:
        """What the record of an attempt says."""
        return look(self._run, job, attempt)

    def forget(self, job: int, attempt: int) -> None:
        """Removes the record of an attempt whose end is known, in another thread: a busy disk takes milliseconds for each."""
        self._unsent.pop((job, attempt), None)
        self._resumed.discard((job, attempt))
        self._claimed.discard((job, attempt))
        self._tokens.pop((job, attempt), None)
        self._to_forget.append((job, attempt))
        if not self._forgetting:
            self._forgetting = True
            self._tasks.start(self._forget())

    async def _forget(self) -> None:
        try:
            while self._to_forget:
                known, self._to_forget = self._to_forget, []
                await asyncio.to_thread(self._remove, known)
        finally:
            self._forgetting = False

    def _remove(self, known: list[tuple[int, int]]) -> None:
        for job, attempt in known:
            remove(self._run, job, attempt)

    def remove_others(self, wanted: set[tuple[int, int]]) -> None:
        """Removes records of attempts whose end an earlier daemon knew: all but those that are needed or alive."""
        remove_strangers(self._run)
        for name in os.listdir(self._run):
            job, _, attempt = name.partition(".")
            if job.isdecimal() and attempt.isdecimal() and (key := (int(job), int(attempt))) not in wanted:
                if look(self._run, *key).state == "alive":
                    self._log_line(f"{self._run}/{name} belongs to a running job that the database does not know: left alone")
                else:
                    remove(self._run, *key)

    # ------------------------------------------------------------------------------------------------------------ what comes back

    def _spawned(self, job: int, attempt: int, pid: int, pidfd: int | None) -> None:
        self._add(job, attempt, pid, pidfd)

    def _claim(self, job: int, attempt: int, pid: int) -> None:
        if pid < 0:  # no process could be created: the attempt counts as never started once the supervisor is gone
            self._claimed.discard((job, attempt))
            return
        self._claimed.add((job, attempt))
        self._on_running(job, attempt, pid)

    def _refused(self, job: int, attempt: int, error: OSError) -> None:
        self._log_line(f"job {job} cannot be started: {error.strerror}")
        self._on_over(job, attempt, Attempt("absent"))

    def _add(self, job: int, attempt: int, pid: int, pidfd: int | None) -> None:
        self._watch.add(job, attempt, pid, pidfd)
        for what in self._unsent.pop((job, attempt), ()):
            self.send(job, attempt, what)

    def _gone(self, job: int, attempt: int) -> None:
        self._launcher.listen()  # its claim may not be read yet
        seen = self._find(job, attempt)  # alive if another supervisor has the attempt, and this one ended for that reason
        if seen.state == "absent" and (job, attempt) in self._claimed:
            seen = Attempt("lost", error=VANISHED)
        self._settle(job, attempt, seen)

    def _settle(self, job: int, attempt: int, seen: Attempt) -> None:
        if seen.state == "lost":
            self.clear(job, attempt, seen)
        elif seen.state != "alive":
            self._on_over(job, attempt, seen)

    async def _clear(self, job: int, attempt: int, seen: Attempt) -> None:
        if killed := await asyncio.to_thread(end_strays, self._run, job, attempt, self._tokens.get((job, attempt), "")):
            self._log_line(f"job {job} lost its supervisor; {killed} processes that it left behind were killed")
        self._on_over(job, attempt, seen)

    def clear(self, job: int, attempt: int, seen: Attempt) -> None:
        """Kills the processes that a lost attempt left behind, then reports that the attempt is over."""
        self._tasks.start(self._clear(job, attempt, seen))

    def _died(self) -> None:
        if self._open and not self._relaunching:
            self._relaunching = True
            self._tasks.start(self._relaunch())

    async def _relaunch(self) -> None:
        while not self._launcher.alive:
            self._log_line("the launcher died; starting another")
            old = self._launcher
            await old.close()
            try:
                self._launcher = await self._launch()
            except (LiveError, OSError) as error:
                self._log_line(f"no launcher could be started, so no job starts until there is one: {error}")
                await asyncio.sleep(_AGAIN_S)
                continue
            for job, attempt in self._watch.attempts() - self._claimed:  # their claims may have gone to the old launcher
                if (seen := look(self._run, job, attempt)).supervisor is not None:
                    self._claim(job, attempt, seen.supervisor)
            for (job, attempt), order in old.unanswered.items():  # also orders given in the meantime
                seen = self._find(job, attempt)
                if seen.state == "absent":
                    self._launcher.launch(order)
                elif seen.state == "alive" and seen.supervisor is not None:
                    self._on_running(job, attempt, seen.supervisor)
                else:
                    self._settle(job, attempt, seen)
        self._relaunching = False
