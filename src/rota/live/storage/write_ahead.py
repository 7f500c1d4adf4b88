"""WriteAhead: what happened is written first, and only then done.

Between two turns of the event loop, changes of jobs, events and intended actions gather; a turn writes all of them in one transaction and
then hands the actions on. A daemon that is killed at any moment therefore finds a database that is true of the machine, or ahead of it by
actions not yet carried out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rota.live.errors import DiskFull
from rota.live.jobs import Job, Request
from rota.live.storage.database import Database, PlanRow
from rota.live.storage.event_log import EventLog

__all__ = ["Act", "WriteAhead"]

_AGAIN_S = 1.0  # after a full disk
_SOON_S = 0.2  # for what can wait
_EVENTS_KEPT = 10_000  # in the database; the file has all


class Act(NamedTuple):
    """Something to do on the machine: what, to which attempt of which job."""

    what: str
    job: int
    attempt: int


class WriteAhead:
    """Gathers and writes. `carry_out(acts)` is called after each write; `notes()` tells what else to write."""

    def __init__(
        self,
        database: Database,
        log: EventLog,
        carry_out: Callable[[list[Act]], None],
        notes: Callable[[], dict[str, Any]],
        tell: Callable[[str], None],
    ) -> None:
        self._database, self._log, self._carry_out, self._notes, self._tell = database, log, carry_out, notes, tell
        self._jobs: dict[int, Job] = {}
        self._events: list[dict[str, Any]] = []
        self._acts: list[Act] = []
        self._last_event = max(database.last("events"), log.last)
        self._planned = self._paused = self._closed = False
        self._by_the_way: asyncio.TimerHandle | None = None
        self.verbose = False  # whether every event is told
        self.disk_full = ""  # why nothing can be written, if so

    def open(self) -> None:
        """Begins to take turns in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._log_events(self._database.events(self._log.last))  # what an earlier daemon wrote and did not log
        self._soon()

    def close(self) -> None:
        """Writes what is left and takes no more turns; actions that were not carried out are for the next daemon."""
        self._closed = True
        if self._by_the_way is not None:
            self._by_the_way.cancel()
        try:
            self.write()
        except DiskFull as error:
            self._tell(str(error))

    # ------------------------------------------------------------------------------------------------------------ gathering

    def changed(self, job: Job) -> None:
        """A job is to be written."""
        self._jobs[job.id] = job
        self._soon()

    def pending(self, id: int) -> Job | None:
        """A job that is to be written, as it is now; the database still has what was."""
        return self._jobs.get(id)

    def changed_by_the_way(self, job: Job) -> None:
        """A job is to be written with the next turn, or soon: it is not worth a turn of its own at once."""
        self._jobs[job.id] = job
        if self._by_the_way is None and not self._closed:
            self._by_the_way = self._loop.call_later(_SOON_S, self._write_the_rest)

    def _write_the_rest(self) -> None:
        self._by_the_way = None
        self._soon()

    def act(self, what: str, job: Job) -> None:
        """Something is to be done when the job is written."""
        self._acts.append(Act(what, job.id, job.attempt))
        self.changed(job)

    def withdraw(self, what: str, job: Job) -> bool:
        """Something is not to be done after all; whether it had not been done yet."""
        act = Act(what, job.id, job.attempt)
        found = act in self._acts
        self._acts = [other for other in self._acts if other != act] if found else self._acts
        return found

    def event(self, what: str, **fields: Any) -> None:
        """An event is to be logged."""
        self._events.append(self._numbered(what, **fields))
        self._soon()

    def pause(self) -> None:
        """No turn before `go_on`: an action takes its time."""
        self._paused = True

    def go_on(self) -> None:
        """Takes turns again."""
        self._paused = False
        self._soon()

    def _numbered(self, what: str, **fields: Any) -> dict[str, Any]:
        self._last_event += 1
        return {"n": self._last_event, "t": time.time(), "event": what, **fields}

    # ------------------------------------------------------------------------------------------------------------ writing

    def write_new(self, jobs: list[Job], request: Request, events: list[dict[str, Any]]) -> None:
        """Writes new jobs at once, before anybody is told that they are accepted. `DiskFull`: they are not."""
        if self.disk_full:
            raise DiskFull(self.disk_full)
        self.write()  # events are written in order
        before = self._last_event
        told = [self._numbered(**event) for event in events]
        try:
            self._database.write(jobs=jobs, requests=[request], events=told)
        except DiskFull:
            self._last_event = before
            raise
        self._log_events(told)

    def write_ahead(self, jobs: list[Job]) -> None:
        """Writes what jobs are about to become, before anything is changed in memory. `DiskFull`: they stay as they are."""
        if self.disk_full:
            raise DiskFull(self.disk_full)
        self.write()
        self._database.write(jobs=jobs)

    def write_plan(self, plan: PlanRow, notes: dict[str, Any]) -> None:
        """Writes a plan and what goes with it at once."""
        self._database.write(plans=[plan], notes=notes)

    def _soon(self) -> None:
        if not self._planned and not self._closed:
            self._planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._planned = False
        if self._closed or self._paused:
            return
        try:
            self.write()
        except DiskFull as error:
            if not self.disk_full:
                self._tell(f"{error}; nothing is started until there is room again")
            self.disk_full = str(error)
            self._planned = True
            self._loop.call_later(_AGAIN_S, self._turn)
            return
        if self.disk_full:
            self._tell("there is room again")
            self.disk_full = ""
        acts, self._acts = self._acts, []
        if acts:
            self._carry_out(acts)

    def write(self) -> None:
        """Writes what has gathered. `DiskFull`: it stays gathered."""
        if self._jobs or self._events:
            self._database.write(jobs=self._jobs.values(), events=self._events, notes=self._notes())
            told, self._events, self._jobs = self._events, [], {}
            self._log_events(told)

    def _log_events(self, told: list[dict[str, Any]]) -> None:
        if not told:
            return
        if self.verbose:
            for event in told:
                about = {key: value for key, value in event.items() if key not in ("n", "t", "event") and value is not None}
                self._tell(f"{event['event']} {_words(about)}")
        try:
            behind = told[0]["n"] > self._log.last + 1
            before = self._log.last // _EVENTS_KEPT
            self._log.append(self._database.events(self._log.last) if behind else told)
            if self._log.last // _EVENTS_KEPT > before:
                self._database.forget_events(self._log.last - _EVENTS_KEPT)
        except (OSError, DiskFull) as error:
            self._tell(f"events.jsonl is behind: {error}")


def _words(value: Any) -> str:
    """For the eye: `job 3, attempt 1`, `(cores 2, memory_gb 3)`."""
    if isinstance(value, dict):
        return ", ".join(f"{key} ({_words(x)})" if isinstance(x, dict) else f"{key} {_words(x)}" for key, x in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
