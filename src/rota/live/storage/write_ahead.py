"""Write-ahead: the outcome of an event is written first, and only then carried out.

Between two turns of the event loop the outcomes of the lifecycle are collected. A turn writes them in one transaction and then passes their
actions on. So if a daemon is killed at any time, the database agrees with the machine, or is ahead of it by actions that were not
carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from rota.events import Event, encode_event
from rota.live.actions import Action
from rota.live.errors import DiskFull
from rota.live.jobs import Job, Request
from rota.live.outcome import Outcome
from rota.live.storage.database import Database
from rota.live.storage.event_log import EventLog

__all__ = ["WriteAhead"]

_AGAIN_S = 1.0  # until the next try after a full disk
_SOON_S = 0.2  # for changes that can wait
_EVENTS_KEPT = 10_000  # in the database; all are in the file


class WriteAhead:
    """Collects and writes outcomes. `carry_out(actions)` is called after each write; `notes()` returns notes to write with them."""

    def __init__(
        self,
        database: Database,
        log: EventLog,
        carry_out: Callable[[list[Action]], None],
        notes: Callable[[], dict[str, Any]],
        log_line: Callable[[str], None],
    ) -> None:
        self._database, self._log, self._carry_out, self._notes, self._log_line = database, log, carry_out, notes, log_line
        self._jobs: dict[int, Job] = {}
        self._requests: dict[int, Request] = {}
        self._events: list[dict[str, Any]] = []
        self._actions: list[Action] = []
        self._last_event = max(database.last("events"), log.last)
        self._planned = self._paused = self._closed = False
        self._minor: asyncio.TimerHandle | None = None
        self.verbose = False  # whether every event is a line on standard error, too
        self.disk_full = ""  # why nothing can be written; "" if it can

    def open(self) -> None:
        """Starts the turns in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._log_events(self._database.events(self._log.last))  # events that an earlier daemon wrote to the database only
        self._soon()

    def close(self) -> None:
        """Writes what is left and ends the turns; the next daemon carries out the remaining actions."""
        self._closed = True
        if self._minor is not None:
            self._minor.cancel()
        try:
            self.write()
        except DiskFull as error:
            self._log_line(str(error))

    # ------------------------------------------------------------------------------------------------------------ gathering

    def gather(self, outcome: Outcome, wall: float) -> None:
        """Adds the outcome of an event, to be written in the next turn and then carried out."""
        self._requests |= outcome.requests
        self._events += self._numbered(outcome.events, wall)
        if outcome.withdrawn:
            self._actions = [action for action in self._actions if action not in outcome.withdrawn]
        self._actions += outcome.actions
        self._jobs |= outcome.changed
        if outcome.changed or outcome.events or outcome.actions:
            self._soon()
        if outcome.minor:
            self._jobs |= outcome.minor
            if self._minor is None and not self._closed:
                self._minor = self._loop.call_later(_SOON_S, self._write_minor)

    def _write_minor(self) -> None:
        self._minor = None
        self._soon()

    def job(self, id: int) -> Job | None:
        """A job that is not written yet, as it is now; the database still has its earlier state."""
        return self._jobs.get(id)

    def request(self, id: int) -> Request:
        """A request, written or not."""
        return self._requests.get(id) or self._database.request(id)

    def pause(self) -> None:
        """Stops the turns until `go_on`, while an action takes some time."""
        self._paused = True

    def go_on(self) -> None:
        """Continues the turns."""
        self._paused = False
        self._soon()

    def _numbered(self, events: Iterable[Event], wall: float) -> list[dict[str, Any]]:
        numbered = []
        for event in events:
            self._last_event += 1
            numbered.append(encode_event(event, self._last_event, wall))
        return numbered

    # ------------------------------------------------------------------------------------------------------------ writing

    def write_new(self, jobs: Iterable[Job], request: Request, events: Iterable[Event], wall: float) -> None:
        """Writes new jobs at once, before the answer that they are accepted. `DiskFull`: they are not accepted."""
        if self.disk_full:
            raise DiskFull(self.disk_full)
        self.write()  # events are written in order
        before = self._last_event
        numbered = self._numbered(events, wall)
        try:
            self._database.write(jobs=jobs, requests=[request], events=numbered)
        except DiskFull:
            self._last_event = before
            raise
        self._log_events(numbered)

    def write_intended(self, jobs: Iterable[Job]) -> None:
        """Writes the new states of jobs before anything is changed in memory. `DiskFull`: the jobs stay as they are."""
        if self.disk_full:
            raise DiskFull(self.disk_full)
        self.write()
        self._database.write(jobs=jobs)

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
                self._log_line(f"{error}; nothing is started until there is space again")
            self.disk_full = str(error)
            self._planned = True
            self._loop.call_later(_AGAIN_S, self._turn)
            return
        if self.disk_full:
            self._log_line("there is space again")
            self.disk_full = ""
        actions, self._actions = self._actions, []
        if actions:
            self._carry_out(actions)

    def write(self) -> None:
        """Writes what was collected. `DiskFull`: it is kept for the next try."""
        if self._jobs or self._events:
            self._database.write(jobs=self._jobs.values(), requests=self._requests.values(), events=self._events, notes=self._notes())
            written, self._events, self._jobs, self._requests = self._events, [], {}, {}
            self._log_events(written)

    def _log_events(self, written: list[dict[str, Any]]) -> None:
        if not written:
            return
        if self.verbose:
            for event in written:
                about = {key: value for key, value in event.items() if key not in ("n", "t", "event") and value is not None}
                self._log_line(f"{event['event']} {_words(about)}")
        try:
            behind = written[0]["n"] > self._log.last + 1
            before = self._log.last // _EVENTS_KEPT
            self._log.append(self._database.events(self._log.last) if behind else written)
            if self._log.last // _EVENTS_KEPT > before:
                self._database.forget_events(self._log.last - _EVENTS_KEPT)
        except (OSError, DiskFull) as error:
            self._log_line(f"events.jsonl is behind: {error}")


def _words(value: Any) -> str:
    """A value in readable form: `job 3, attempt 1`, `(cores 2, memory_gb 3)`."""
    if isinstance(value, dict):
        return ", ".join(f"{key} ({_words(x)})" if isinstance(x, dict) else f"{key} {_words(x)}" for key, x in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
