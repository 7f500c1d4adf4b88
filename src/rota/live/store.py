"""What survives: jobs, plans, events and notes in one SQLite database.

Everything that belongs together is written in one transaction, before anything is done that the outside can see: a job is started only
when the database says that it is starting. `synchronous=FULL`, so what was committed is there after a power cut, too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from rota.live.errors import NoRoom, OtherVersion
from rota.live.messages import ENDED, JobState

__all__ = ["Job", "PlanRow", "Request", "Store"]

_SCHEMA = 1
_LIVE = f"state NOT IN {ENDED}"


@dataclass(frozen=True)
class Request:
    """What was asked for; the jobs of an array share one."""

    id: int
    name: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    type: str
    demand: list[float]  # in the order of the server's resources
    estimate_s: float | None
    after: list[int]
    after_any: list[int]
    asked: list[float] | None = None  # the amounts asked for, where no type was named


@dataclass(slots=True)
class Job:
    """A job as it is kept. Times are seconds since 1970, `*_boot` on CLOCK_BOOTTIME, which is never set."""

    id: int
    request: int
    name: str
    type: str
    state: JobState
    submitted: float
    submitted_boot: float
    boot: str  # which boot of the machine the `*_boot` times belong to
    array: int | None = None
    idx: int | None = None
    sequence: int | None = None  # its place in the queue, once it is eligible
    attempt: int = 0
    restarts: int = 0
    started: float | None = None
    since_boot: float | None = None  # in service since, if it is
    served_s: float = 0.0  # in service before that
    ended: float | None = None
    response_s: float | None = None
    exit_code: int | None = None
    cores: str | None = None  # comma list
    gpus: str | None = None
    pid: int | None = None
    cancel: str = ""  # "", "cancel" or "cancel now": the job is to end
    reason: str = ""


@dataclass(frozen=True)
class PlanRow:
    """A plan that was in use: the text of a plan file, when it came and why."""

    number: int
    time: float
    text: str
    policy: str
    reason: str
    load: float


_COLUMNS = [f.name for f in fields(Job)]
_row = attrgetter(*_COLUMNS)  # `astuple` copies deeply, which takes twenty times as long
_PUT = f"INSERT OR REPLACE INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


class Store:
    """The database of one scheduler. One process has it open: the daemon."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _SCHEMA):
            self._db.close()
            raise OtherVersion(
                f"{path} was written by another version of Rota (schema {version}, this one has {_SCHEMA}): "
                "run that version until its jobs have ended, or give another directory (--directory)"
            )
        self.request = lru_cache(maxsize=256)(self._request)
        columns = ", ".join(f"{name} INTEGER PRIMARY KEY" if name == "id" else name for name in _COLUMNS)
        if version == _SCHEMA:  # nothing to write: a daemon can be started on a full disk
            return
        with self._transaction():
            self._db.execute(f"CREATE TABLE IF NOT EXISTS jobs ({columns})")
            self._db.execute(f"CREATE INDEX IF NOT EXISTS jobs_live ON jobs (state) WHERE {_LIVE}")
            self._db.execute("CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (ended)")
            self._db.execute("CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
            self._db.execute("CREATE TABLE IF NOT EXISTS events (n INTEGER PRIMARY KEY, body TEXT NOT NULL)")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS plans (number INTEGER PRIMARY KEY, time REAL, text TEXT, policy TEXT, reason TEXT, load REAL)"
            )
            self._db.execute("CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, value TEXT)")
            self._db.execute(f"PRAGMA user_version={_SCHEMA}")

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    # ------------------------------------------------------------------------------------------------------------ writing

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)

    def write(
        self,
        *,
        jobs: Iterable[Job] = (),
        requests: Iterable[Request] = (),
        events: Iterable[dict[str, Any]] = (),
        notes: dict[str, Any] | None = None,
        plans: Iterable[PlanRow] = (),
    ) -> None:
        """All of it, or, where the disk is full (`NoRoom`), nothing."""
        with self._transaction():
            run = self._db.executemany
            run("INSERT INTO requests VALUES (?, ?)", ((r.id, json.dumps(_body(r))) for r in requests))
            run(_PUT, map(_row, jobs))
            run("INSERT INTO events VALUES (?, ?)", ((event["n"], json.dumps(event, ensure_ascii=False)) for event in events))
            run("INSERT OR REPLACE INTO notes VALUES (?, ?)", ((key, json.dumps(value)) for key, value in (notes or {}).items()))
            run(
                "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)",
                (astuple(plan) for plan in plans),
            )

    def forget_events(self, before: int) -> None:
        """Events that the log file has."""
        with self._transaction():
            self._db.execute("DELETE FROM events WHERE n < ?", (before,))

    def prune(self, ended_before: float) -> list[int]:
        """Forgets jobs that ended before a time, and returns their numbers."""
        with self._transaction():
            ids = [row[0] for row in self._db.execute("SELECT id FROM jobs WHERE ended < ?", (ended_before,))]
            self._db.executemany("DELETE FROM jobs WHERE id = ?", ((id,) for id in ids))
            self._db.execute("DELETE FROM requests WHERE id NOT IN (SELECT request FROM jobs)")
        return ids

    # ------------------------------------------------------------------------------------------------------------ reading

    def _request(self, id: int) -> Request:
        row = self._db.execute("SELECT body FROM requests WHERE id = ?", (id,)).fetchone()
        return Request(id=id, **json.loads(row[0]))

    def live(self) -> list[Job]:
        """Jobs that have not ended, in order of their numbers."""
        return list(self._select(f"WHERE {_LIVE} ORDER BY id"))

    def job(self, id: int) -> Job | None:
        """One job."""
        return next(self._select("WHERE id = ?", id), None)

    def jobs(self, states: Sequence[str] | None, type: str | None, name: str | None, limit: int, before: int | None) -> list[Job]:
        """Jobs, newest first."""
        where, values = ["id < ?"], [before if before is not None else 2**62]  # type: list[str], list[Any]
        if states:
            where.append(f"state IN ({', '.join('?' * len(states))})")
            values += states
        for column, value in (("type", type), ("name", name)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        return list(self._select(f"WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?", *values, limit))

    def counts(self) -> dict[str, int]:
        """Ended jobs by state (the others are in memory)."""
        return dict(self._db.execute(f"SELECT state, count(*) FROM jobs WHERE NOT ({_LIVE}) GROUP BY state").fetchall())

    def last(self, table: str) -> int:
        """The largest number in a table, 0 if it is empty."""
        column = {"jobs": "id", "requests": "id", "events": "n", "plans": "number"}[table]
        return int(self._db.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()[0])

    def events(self, after: int, limit: int = -1) -> list[dict[str, Any]]:
        """Events from a number on."""
        rows = self._db.execute("SELECT body FROM events WHERE n > ? ORDER BY n LIMIT ?", (after, limit))
        return [json.loads(row[0]) for row in rows]

    def note(self, key: str) -> Any:
        """A note, or None."""
        row = self._db.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def plans(self) -> list[PlanRow]:
        """All plans, oldest first."""
        rows = self._db.execute("SELECT number, time, text, policy, reason, load FROM plans ORDER BY number")
        return [PlanRow(*row) for row in rows]

    def _select(self, rest: str, *values: Any) -> Iterator[Job]:
        return (Job(*row) for row in self._db.execute(f"SELECT {', '.join(_COLUMNS)} FROM jobs {rest}", values))


class _Transaction:
    """BEGIN … COMMIT, or ROLLBACK and `NoRoom` if the disk is full."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise NoRoom(f"the database cannot be written: {error}") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
                return
        except sqlite3.Error as failed:
            error = failed
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if isinstance(error, sqlite3.OperationalError):  # disk full, or it cannot be written
            raise NoRoom(f"the database cannot be written: {error}") from error
        raise error


def _body(request: Request) -> dict[str, Any]:
    return {f.name: getattr(request, f.name) for f in fields(request) if f.name != "id"}
