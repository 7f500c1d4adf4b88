"""The database: jobs, plans, events and notes in one SQLite file.

Everything that belongs together is written in one transaction, before any visible action: a job is started only when the database says
that it is starting. With `synchronous=FULL`, a commit survives a power cut.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from rota.live.errors import Damaged, DiskFull, OtherVersion
from rota.live.jobs import ENDED, Cancel, Job, JobState, Request
from rota.live.storage.migrations import SCHEMA, migrate

__all__ = ["Database", "PlanRow"]

_LIVE = f"state NOT IN {tuple(str(state) for state in JobState if state in ENDED)}"
_MOST_KEPT, _MOST_KEPT_BYTES = 256, 16 * 2**20  # requests in memory; the bytes of their texts
_MOST_LISTED, _MOST_LISTED_IDS = 1000, 100  # in a list: characters of a command line, and jobs that one comes after


@dataclass(frozen=True)
class PlanRow:
    """A plan that was in use: the text of a plan file, when and why it came into use."""

    number: int
    time: float
    text: str
    policy: str
    reason: str
    load: float


_COLUMNS = [f.name for f in fields(Job)]  # `share`, the last one, is JSON
_all_but_share = attrgetter(*_COLUMNS[:-1])  # `astuple` makes deep copies, which takes twenty times as long
_PUT = f"INSERT OR REPLACE INTO jobs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

_TABLES = {
    "jobs": tuple(_COLUMNS),
    "requests": ("id", "body"),
    "events": ("n", "body"),
    "plans": tuple(f.name for f in fields(PlanRow)),
    "notes": ("key", "value"),
}
_KINDS = {"name": str, "argv": list, "cwd": str, "env": dict, "type": str, "demand": list, "after": list, "after_any": list}
_NOT_ALWAYS = {"estimate_s": float | int | None, "asked": list | None, "token": str}  # optional: earlier versions did not write all of them


class Database:
    """The database of one scheduler. Only one process opens it: the daemon. `Damaged`: it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._requests: OrderedDict[int, tuple[Request, int]] = OrderedDict()  # the most recently used ones, with their length
        self._kept_bytes = 0
        self.brief = lru_cache(maxsize=10_000)(self._brief)
        self._db = sqlite3.connect(path, isolation_level=None)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        with self._readable():
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
        version = self._rows("PRAGMA user_version")[0][0]
        if not 0 <= version <= SCHEMA:
            raise OtherVersion(
                f"{self._path} was written by another version of Rota (schema {version}, this one has {SCHEMA}): "
                "run that version until its jobs have ended, or give another directory (--directory)"
            )
        if 0 < version < SCHEMA:
            self._migrate(version)
        if version:  # nothing is written if it has this schema, so that a daemon can start on a full disk
            for table, wanted in _TABLES.items():
                there = {row[1] for row in self._rows(f"PRAGMA table_info({table})")}
                if missing := [name for name in wanted if name not in there]:
                    raise self._damaged(f"its table {table} has no column {', '.join(missing)}")
            return
        columns = ", ".join(f"{name} INTEGER PRIMARY KEY" if name == "id" else name for name in _COLUMNS)
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
            self._db.execute(f"PRAGMA user_version={SCHEMA}")

    def _migrate(self, version: int) -> None:
        try:
            with self._transaction():
                migrate(self._db, version)
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> Damaged:
        way_out = "put a copy of it back, or let rota serve --recover make a new one from events.jsonl (this one is kept beside it)"
        return Damaged(f"{self._path} is damaged: {what}; {way_out}")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # busy, no space, a broken constraint: its content is not damaged
                raise
            raise self._damaged(str(error)) from error

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._readable():
            return self._db.execute(sql, values).fetchall()

    def _parsed(self, text: Any, where: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise self._damaged(f"{where} is not JSON ({error})") from error

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    def check(self, *, every_page: bool = False) -> None:
        """Reads everything that a start needs, or every page; `Damaged` if that fails."""
        if every_page and (said := self._rows("PRAGMA quick_check(1)")[0][0]) != "ok":
            raise self._damaged(said)
        for job in self.live():
            self.request(job.request)
        for (key,) in self._rows("SELECT key FROM notes"):
            self.note(key)
        if self.plans():
            self.plan_in_use()

    # ------------------------------------------------------------------------------------------------------------ writing

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._readable(), _Transaction(self._db):
            yield

    def write(
        self,
        *,
        jobs: Iterable[Job] = (),
        requests: Iterable[Request] = (),
        events: Iterable[dict[str, Any]] = (),
        notes: dict[str, Any] | None = None,
        plans: Iterable[PlanRow] = (),
    ) -> None:
        """Writes all of it, or nothing if the disk is full (`DiskFull`)."""
        with self._transaction():
            run = self._db.executemany
            run("INSERT INTO requests (id, body) VALUES (?, ?)", ((r.id, json.dumps(_body(r))) for r in requests))
            run(_PUT, ((*_all_but_share(job), json.dumps(job.share) if job.share else None) for job in jobs))
            run("INSERT INTO events (n, body) VALUES (?, ?)", ((event["n"], json.dumps(event, ensure_ascii=False)) for event in events))
            run(
                "INSERT OR REPLACE INTO notes (key, value) VALUES (?, ?)",
                ((key, json.dumps(value)) for key, value in (notes or {}).items()),
            )
            run(
                "INSERT INTO plans (number, time, text, policy, reason, load) VALUES (?, ?, ?, ?, ?, ?)",
                (astuple(plan) for plan in plans),
            )

    def forget_events(self, before: int) -> None:
        """Deletes events that are in the log file."""
        with self._transaction():
            self._db.execute("DELETE FROM events WHERE n < ?", (before,))

    def prune(self, ended_before: float) -> list[int]:
        """Deletes jobs that ended before a time, and returns their numbers."""
        with self._transaction():
            ids = [row[0] for row in self._db.execute("SELECT id FROM jobs WHERE ended < ?", (ended_before,))]
            self._db.executemany("DELETE FROM jobs WHERE id = ?", ((id,) for id in ids))
            self._db.execute("DELETE FROM requests WHERE id NOT IN (SELECT request FROM jobs)")
        return ids

    # ------------------------------------------------------------------------------------------------------------ reading

    def request(self, id: int) -> Request:
        """A request. The most recently used ones are kept in memory: the jobs of an array share one."""
        if (kept := self._requests.get(id)) is not None:
            self._requests.move_to_end(id)
            return kept[0]
        found, length = self._request(id)
        self._requests[id] = (found, length)
        self._kept_bytes += length
        while len(self._requests) > 1 and (len(self._requests) > _MOST_KEPT or self._kept_bytes > _MOST_KEPT_BYTES):
            self._kept_bytes -= self._requests.popitem(last=False)[1][1]
        return found

    def _brief(self, id: int) -> Request:
        """A request for a list: a long command line, or a long list of jobs that it comes after, is cut to its beginning."""
        whole, _ = self._request(id)
        argv, left = [], _MOST_LISTED
        for word in whole.argv:
            argv.append(word if len(word) <= left else word[:left] + "…")
            left -= len(word) + 1
            if left <= 0:
                break
        listed: dict[str, Any] = {
            "argv": argv,
            "after": whole.after[:_MOST_LISTED_IDS],
            "after_any": whole.after_any[:_MOST_LISTED_IDS],
            "env": {},
        }
        cut = tuple(name for name in ("argv", "after", "after_any") if listed[name] != getattr(whole, name))
        return replace(whole, **listed, cut=cut)

    def _request(self, id: int) -> tuple[Request, int]:
        rows = self._rows("SELECT body FROM requests WHERE id = ?", id)
        if not rows:
            raise self._damaged(f"request {id} is missing")
        body = self._parsed(rows[0][0], f"request {id}")
        if not isinstance(body, dict):
            raise self._damaged(f"request {id} is not an object")
        # Fields of a later version are ignored; missing fields, or fields of another type, are an error.
        wrong = [name for name, kind in _KINDS.items() if not isinstance(body.get(name), kind)]
        wrong += [name for name, kind in _NOT_ALWAYS.items() if name in body and not isinstance(body[name], kind)]
        if wrong:
            raise self._damaged(f"request {id} has no usable {', '.join(wrong)}")
        known = {name: body[name] for name in (*_KINDS, *_NOT_ALWAYS) if name in body}
        return Request(id=id, **{"estimate_s": None, **known}), len(rows[0][0])

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
        return dict(self._rows(f"SELECT state, count(*) FROM jobs WHERE NOT ({_LIVE}) GROUP BY state"))

    def last(self, table: str) -> int:
        """The largest number in a table, 0 if it is empty."""
        column = {"jobs": "id", "requests": "id", "events": "n", "plans": "number"}[table]
        return int(self._rows(f"SELECT coalesce(max({column}), 0) FROM {table}")[0][0])

    def events(self, after: int, limit: int = -1) -> list[dict[str, Any]]:
        """Events after a number."""
        rows = self._rows("SELECT n, body FROM events WHERE n > ? ORDER BY n LIMIT ?", after, limit)
        return [self._parsed(body, f"event {n}") for n, body in rows]

    def note(self, key: str) -> Any:
        """A note, or None."""
        rows = self._rows("SELECT value FROM notes WHERE key = ?", key)
        return self._parsed(rows[0][0], f"note {key!r}") if rows else None

    def plans(self) -> list[PlanRow]:
        """All plans, oldest first."""
        rows = self._rows("SELECT number, time, text, policy, reason, load FROM plans ORDER BY number")
        return [PlanRow(*row) for row in rows]

    def plan_in_use(self) -> PlanRow:
        """The plan in use; `Damaged` if none is."""
        number = self.note("plan")
        if (found := next((plan for plan in self.plans() if plan.number == number), None)) is None:
            raise self._damaged(f"there is no plan {number}, which is said to be in use")
        return found

    def _select(self, rest: str, *values: Any) -> Iterator[Job]:
        return (self._job(row) for row in self._rows(f"SELECT {', '.join(_COLUMNS)} FROM jobs {rest}", *values))

    def _job(self, row: tuple[Any, ...]) -> Job:
        *others, text = row
        job = Job(*others)
        try:
            job.state, job.cancel = JobState(job.state), Cancel(job.cancel)
        except ValueError as error:
            raise self._damaged(f"job {job.id}: {error}") from error
        if text is not None:
            job.share = self._share(text, f"the share of job {job.id}")
        return job

    def _share(self, text: Any, where: str) -> dict[str, list[int]]:
        share = self._parsed(text, where)
        if isinstance(share, dict) and all(isinstance(ids, list) and all(type(one) is int for one in ids) for ids in share.values()):
            return share
        raise self._damaged(f"{where} is not an object with lists of numbers")


class _Transaction:
    """BEGIN … COMMIT, or ROLLBACK and `DiskFull` if the disk is full."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise DiskFull(f"the database cannot be written: {error}") from error

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
            raise DiskFull(f"the database cannot be written: {error}") from error
        raise error


def _body(request: Request) -> dict[str, Any]:
    return {f.name: getattr(request, f.name) for f in fields(request) if f.name not in ("id", "cut")}
