"""The supervisors of the jobs that were started: starts them through the launcher, watches them, sends them signals.

A supervisor is watched, whether this daemon started it or one before. When it is gone, its record tells what became of the job.

A supervisor that has claimed its attempt says so before it runs the job. If the record is missing after that it has vanished, and the
attempt is lost; only one that was never claimed is started again.
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
_LOOK_S, _PATIENCE_S = 0.001, 2.0  # how often and how long to look whether a job has come to a stop
_ROUND_S, _SHORT_ROUND_S = 2.0, 0.2  # how often to look after all; the short one if there are some without a pidfd
VANISHED = "its record vanished"


class Supervisors:
    """Supervisors by job. `on_running(job, attempt, pid)`: it has its attempt. `on_over(job, attempt, seen)`: it is gone, with its job.

    `seen.state` is then "ended", "lost" (the supervisor was killed, or its record vanished) or "absent" (nothing was run: the disk is
    full).
    """

    def __init__(
        self,
        directory: Path,
        on_running: Callable[[int, int, int], None],
        on_over: Callable[[int, int, Attempt], None],
        tell: Callable[[str], None],
    ) -> None:
        self._directory, self._run = directory, str(directory / "run")
        self._on_running, self._on_over, self._tell = on_running, on_over, tell
        self._watch = Watch(self._run, share_descriptors().watched, self._gone)
        self._claimed: set[tuple[int, int]] = set()  # attempts whose supervisor has said so
        self._tokens: dict[tuple[int, int], str] = {}  # what their records and processes are signed with
        self._unheard: dict[tuple[int, int], list[signal.Signals]] = {}  # signals for attempts whose supervisor is not known yet
        self._resumed: set[tuple[int, int]] = set()  # attempts that were told to go on
        self._tasks = Tasks(tell)
        self._to_forget: list[tuple[int, int]] = []
        self._open = self._forgetting = self._relaunching = False

    async def open(self) -> None:
        """Starts the launcher; when this returns, nothing that was ordered before is still on its way."""
        self._launcher = await self._launch()
        self._open = True
        sweep(self._run)
        self._go_round()

    async def _launch(self) -> Launcher:
        return await Launcher.start(self._directory, self._spawned, self._refused, self._died, on_claimed=self._claim)

    def _go_round(self) -> None:
        """Now and then: whoever was stopped goes on, and whoever is not watched is looked at."""
        self._launcher.look_after()
        self._watch.look_around()
        pause = _SHORT_ROUND_S if self._watch.unwatched else _ROUND_S
        self._round = asyncio.get_running_loop().call_later(pause, self._go_round)

    async def close(self) -> None:
        """Lets go of everything; the jobs go on."""
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
        """Sends a signal to the supervisor of an attempt, now or as soon as it is there."""
        if (job, attempt) in self._watch:
            self._watch.send(job, what)
        else:
            earlier = self._unheard.get((job, attempt), [])
            self._unheard[job, attempt] = [other for other in earlier if {other, what} != {SUSPEND, RESUME}] + [what]
        if what == RESUME:
            self._resumed.add((job, attempt))

    async def suspend(self, job: int, attempt: int) -> None:
        """Suspends a job. Returns when it has come to a stop, or is over, or does not heed."""
        if (job, attempt) in self._resumed:  # of two signals that wait, the later one may be heard first
            await self._until(job, attempt, suspended=False)
            self._resumed.discard((job, attempt))
        self.send(job, attempt, SUSPEND)
        if not await self._until(job, attempt, suspended=True):
            self._tell(f"job {job} did not come to a stop within {_PATIENCE_S:g} s")

    async def _until(self, job: int, attempt: int, suspended: bool) -> bool:
        patience = int(_PATIENCE_S / _LOOK_S)
        while patience > 0:
            seen = look(self._run, job, attempt)
            coming = seen.state == "absent" and self._is_coming(job, attempt)
            if not coming and (seen.suspended == suspended or seen.state != "alive"):
                return True
            patience -= not coming  # one that is still to come would run beside others
            await asyncio.sleep(_LOOK_S)
        return False

    def _is_coming(self, job: int, attempt: int) -> bool:
        """Whether an attempt was ordered and has not claimed its record yet."""
        ordered = (job, attempt) in self._launcher.unanswered or (job, attempt) in self._watch
        return ordered and (job, attempt) not in self._claimed

    def move(self, job: int, attempt: int, terms: Mapping[str, Any]) -> None:
        """Holds a job that goes on to its new share, such as other cores."""
        if (supervisor := look(self._run, job, attempt).supervisor) is not None:
            tree.for_each_thread(supervisor, lambda thread: kinds.move(thread, terms))

    def _sign(self, job: int, attempt: int, token: str) -> None:
        """An attempt has this token from now on; what has its name and another token is out of the way."""
        self._tokens[job, attempt] = token
        if set_stranger_aside(self._run, job, attempt, token):
            self._tell(
                f"{self._run} had a record of another job {job}, of a database that is gone: set aside; if it runs, nobody follows it"
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
        """Of these attempts, which were looked for, those of which a process is there, whatever their record says."""
        marks = {mark_of(self._run, *attempt, self._tokens[attempt]): attempt for attempt in attempts}
        return {marks[mark] for mark in running_marks() & marks.keys()} if marks else set()

    def look(self, job: int, attempt: int) -> Attempt:
        """What the record of an attempt says."""
        return look(self._run, job, attempt)

    def forget(self, job: int, attempt: int) -> None:
        """Removes the record of an attempt whose end is known: in another thread, for a busy disk takes milliseconds for each."""
        self._unheard.pop((job, attempt), None)
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
        """Removes records of attempts whose end an earlier daemon knew: all but those that are wanted or alive."""
        remove_strangers(self._run)
        for name in os.listdir(self._run):
            job, _, attempt = name.partition(".")
            if job.isdecimal() and attempt.isdecimal() and (key := (int(job), int(attempt))) not in wanted:
                if look(self._run, *key).state == "alive":
                    self._tell(f"{self._run}/{name} is of a job that runs and that nobody knows of: left alone")
                else:
                    remove(self._run, *key)

    # ------------------------------------------------------------------------------------------------------------ what comes back

    def _spawned(self, job: int, attempt: int, pid: int, pidfd: int | None) -> None:
        self._add(job, attempt, pid, pidfd)

    def _claim(self, job: int, attempt: int, pid: int) -> None:
        if pid < 0:  # no process for the job was to be had: when the supervisor is gone, it is as if it had never been
            self._claimed.discard((job, attempt))
            return
        self._claimed.add((job, attempt))
        self._on_running(job, attempt, pid)

    def _refused(self, job: int, attempt: int, error: OSError) -> None:
        self._tell(f"job {job} cannot be started: {error.strerror}")
        self._on_over(job, attempt, Attempt("absent"))

    def _add(self, job: int, attempt: int, pid: int, pidfd: int | None) -> None:
        self._watch.add(job, attempt, pid, pidfd)
        for what in self._unheard.pop((job, attempt), ()):
            self.send(job, attempt, what)

    def _gone(self, job: int, attempt: int) -> None:
        self._launcher.listen()  # its claim may wait to be read
        seen = self._find(job, attempt)  # alive if the one that is gone found that another has the attempt
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
            self._tell(f"job {job} lost its supervisor; {killed} processes that it left behind were killed")
        self._on_over(job, attempt, seen)

    def clear(self, job: int, attempt: int, seen: Attempt) -> None:
        """Ends what a lost attempt left behind, then tells that it is over."""
        self._tasks.start(self._clear(job, attempt, seen))

    def _died(self) -> None:
        if self._open and not self._relaunching:
            self._relaunching = True
            self._tasks.start(self._relaunch())

    async def _relaunch(self) -> None:
        while not self._launcher.alive:
            self._tell("the launcher died; starting another")
            old = self._launcher
            await old.close()
            try:
                self._launcher = await self._launch()
            except (LiveError, OSError) as error:
                self._tell(f"no launcher could be started, nothing is until there is one: {error}")
                await asyncio.sleep(_AGAIN_S)
                continue
            for job, attempt in self._watch.attempts() - self._claimed:  # whose claim went to the old one
                if (seen := look(self._run, job, attempt)).supervisor is not None:
                    self._claim(job, attempt, seen.supervisor)
            for (job, attempt), order in old.unanswered.items():  # also what was ordered in the meantime
                seen = self._find(job, attempt)
                if seen.state == "absent":
                    self._launcher.launch(order)
                elif seen.state == "alive" and seen.supervisor is not None:
                    self._on_running(job, attempt, seen.supervisor)
                else:
                    self._settle(job, attempt, seen)
        self._relaunching = False
