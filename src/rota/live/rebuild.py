"""Rebuilds a database that was lost, damaged or replaced by an older copy, from `events.jsonl`.

Events are written to the database first, then to the file. So if the file is ahead, the database is not the one that wrote it. Such a
database is refused, because jobs would be forgotten or run twice. `rota serve --recover` brings the database up to date from the file:

- Jobs that have ended are listed with their times and exit codes.
- Running jobs are found by the records of their supervisors and followed to their end.
- The command of a job is in the database only. A waiting job that the database does not know cannot be run: it is cancelled.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rota.events import End, Event, Recover, Requeue, Resume, Start, Submit, Suspend, decode_event, encode_event
from rota.live.errors import Damaged, Refused
from rota.live.jobs import BEFORE_START, ENDED, Job, JobState, Request
from rota.live.processes.records import boot_id, look
from rota.live.resources.kinds import share_of
from rota.live.storage.database import Database
from rota.live.storage.event_log import EventLog

__all__ = ["last_used", "open_database", "rebuild"]

_LOST = "(what it runs was lost with the database)"
_MOST_DIGITS = 15
_AFTER: dict[type[Event], JobState] = {Suspend: JobState.SUSPENDED, Resume: JobState.RUNNING, Requeue: JobState.STOPPING}


def open_database(directory: Path, recover: bool, log_line: Callable[[str], None]) -> Database:
    """The database of a state directory. `Damaged` if it cannot be read or is behind `events.jsonl`, unless `recover` is set."""
    path = directory / "rota.db"
    try:
        database = _opened(path, every_page=recover)
    except Damaged as error:
        if not recover:
            raise
        _set_aside(path, log_line, error)
        database = Database(path)
    try:
        log = EventLog(directory / "events.jsonl")
        log.close()
        if log.last > database.last("events") and not recover:
            known = f"{directory / 'events.jsonl'} has {log.last:,} events, and the database beside it knows of {database.last('events'):,}"
            way_out = "put the right rota.db back, or start with --recover, which brings this one up to date from events.jsonl"
            anew = "to begin anew, move events.jsonl away, too"
            raise Damaged(f"{known}: it was lost, or an older one was put back; {way_out} ({anew})")
    except BaseException:
        database.close()
        raise
    return database


def rebuild(database: Database, directory: Path, resources: tuple[str, ...], log_line: Callable[[str], None]) -> None:
    """Brings the database up to date with `events.jsonl`; nothing is changed if it is up to date."""
    log, behind = directory / "events.jsonl", database.last("events")
    past = _Past(database, resources)
    last = behind
    for event in _events(log):
        if event["n"] > behind:
            past.add(event)
            last = max(last, event["n"])
    if last == behind:
        return
    events: list[dict[str, Any]] = [encode_event(Recover(len(past.jobs)), last + 1, time.time())]
    for job in past.jobs.values():
        if job.ended is None and past.settle(job, str(directory / "run")):
            assert job.ended is not None
            events.append(encode_event(End(job.id, str(job.state), response_s=job.response_s), last + 1 + len(events), job.ended))
    notes = {"scheduler": {"boot": past.boot}} if past.same_boot else {}
    database.write(jobs=past.jobs.values(), requests=past.requests.values(), events=events, notes=notes)
    lost = len(events) - 1
    left = sum(job.ended is None for job in past.jobs.values())
    closed = f"{lost:,} could not be recovered and were closed"
    log_line(f"recovered from {log}: {len(past.jobs):,} jobs, {left:,} of which have not ended; {closed}")


def last_used(directory: Path) -> int:
    """The largest number of a job that left a record or output. New jobs get larger ones, even if the database does not know that job."""
    found = [name.split(".")[0] for kind in ("run", "output") if (directory / kind).is_dir() for name in os.listdir(directory / kind)]
    return max((int(name) for name in found if name.isdecimal() and len(name) <= _MOST_DIGITS), default=0)


class _Past:
    """Jobs as the events describe them, added to what the database knows."""

    def __init__(self, database: Database, resources: tuple[str, ...]) -> None:
        self._database, self._resources = database, resources
        self.boot, self.same_boot = boot_id(), False  # whether a job was found that started under the present boot
        self.jobs: dict[int, Job] = {}
        self.requests: dict[int, Request] = {}  # of jobs that the database does not know
        self._last_request = database.last("requests")
        self._last_place = max((job.sequence or 0 for job in database.live()), default=0)

    def add(self, line: dict[str, Any]) -> None:
        """Takes the next event; events of unknown jobs are ignored."""
        event, t = decode_event(line), line.get("t")
        if not isinstance(line.get("job"), int) or not isinstance(t, (int, float)):
            return
        if isinstance(event, Submit):
            self._submitted(event, t)
        elif event is None or (job := self._job(line["job"])) is None or job.ended is not None:
            return
        elif isinstance(event, Start):
            job.state, job.attempt, job.started = JobState.RUNNING, event.attempt, job.started or t
            job.share = share_of(event.numbers)
            if job.sequence is None:
                self._last_place += 1
                job.sequence = self._last_place
        elif type(event) in _AFTER:
            job.state = _AFTER[type(event)]
        elif isinstance(event, End) and event.outcome in ENDED:
            job.state, job.exit_code, job.ended = JobState(event.outcome), event.exit_code, t
            job.response_s, job.served_s = event.response_s, event.run_s or 0.0
            job.since_boot, job.share = None, {}

    def settle(self, job: Job, run_directory: str) -> bool:
        """Finds the state of a job that has not ended. Returns whether the job was closed: nothing is known of it, or it cannot be run."""
        own = self.requests.get(job.request)
        if job.state in BEFORE_START:
            return own is not None and self._close(job, JobState.CANCELLED, f"{_LOST[1:-1]}: submit it again")
        seen = look(run_directory, job.id, job.attempt)
        if seen.state == "absent":
            return self._close(job, JobState.FAILED, "how it ended was lost with the database")
        if seen.boot == self.boot:
            self.same_boot = True
            job.since_boot = seen.started_boottime if job.state == JobState.RUNNING else None
        if own is not None:
            if len(own.demand) != len(self._resources):
                raise Refused(f"job {job.id} runs and needs other resources than this plan has: give the plan it was started under")
            self.requests[own.id] = replace(own, token=seen.token)
        return False

    def _close(self, job: Job, outcome: JobState, reason: str) -> bool:
        job.state, job.reason, job.ended = outcome, reason, time.time()
        job.response_s, job.since_boot, job.share = max(job.ended - job.submitted, 0.0), None, {}
        return True

    def _job(self, id: int) -> Job | None:
        if id not in self.jobs and (kept := self._database.job(id)) is not None:
            self.jobs[id] = kept
        return self.jobs.get(id)

    def _submitted(self, event: Submit, t: float) -> None:
        if self._job(event.job) is not None:
            return
        self._last_request += 1
        demand = [float(event.demand[name]) for name in self._resources if name in event.demand]
        request = Request(self._last_request, event.job_name, [_LOST], "/", {}, event.type, demand, event.estimate_s, [], [])
        self.requests[request.id] = request
        self.jobs[event.job] = Job(event.job, request.id, event.job_name, event.type, JobState.WAITING, t, 0.0, "")


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                event = json.loads(line)
                if not isinstance(event["n"], int):
                    raise TypeError
            except (ValueError, KeyError, TypeError):
                raise Damaged(f"line {number:,} of {path} is not an event: remove it, then try again") from None
            yield event


def _opened(path: Path, *, every_page: bool) -> Database:
    database = Database(path)
    try:
        database.check(every_page=every_page)  # before anything else starts
    except BaseException:
        database.close()
        raise
    return database


def _set_aside(path: Path, log_line: Callable[[str], None], why: Damaged) -> None:
    """Gives a damaged database another name."""
    kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for ending in ("", "-wal", "-shm"):
        if os.path.lexists(f"{path}{ending}"):
            os.rename(f"{path}{ending}", f"{kept}{ending}")
    log_line(f"{why}. It is kept as {kept.name}; a new one is made")
