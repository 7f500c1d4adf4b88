"""The database: what was written is there, all of it or nothing."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.live.errors import Damaged, DiskFull, OtherVersion
from rota.live.jobs import Job, Request
from rota.live.messages import ENDED, STATES
from rota.live.storage import migrations
from rota.live.storage.database import Database, PlanRow

STORED = Path(__file__).parent / "stored"
REQUEST = Request(1, "name", ["echo", "ä"], "/", {"A": "b"}, "small", [1.0, 2.5], None, [3], [4])


@pytest.fixture
def database(tmp_path):
    """An empty database."""
    database = Database(tmp_path / "rota.db")
    yield database
    database.close()


def job(id, state="waiting", **fields):
    """A job."""
    return Job(id, 1, "name", "small", state, 100.0 + id, 5.0, "boot", **fields)


text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
JOBS = st.builds(
    Job,
    id=st.integers(1, 2**62),
    request=st.integers(1, 2**62),
    name=text,
    type=text,
    state=st.sampled_from(STATES),
    submitted=number,
    submitted_boot=number,
    boot=text,
    array=st.none() | st.integers(1, 2**62),
    started=st.none() | number,
    served_s=number,
    exit_code=st.none() | st.integers(0, 255),
    share=st.dictionaries(st.sampled_from(["cores", "gpus", "licences"]), st.lists(st.integers(0, 2**40), max_size=3)),
    reason=text,
)


def test_requests_come_back_as_they_went(tmp_path):
    """Every field of a request, read by another daemon; what tells a request that named no type, and the token, too."""
    first = Database(tmp_path / "rota.db")
    requests = [REQUEST, replace(REQUEST, id=2, estimate_s=2.5, asked=[0.5, 1.0], token="signed")]
    first.write(requests=requests)
    first.close()
    again = Database(tmp_path / "rota.db")
    assert [again.request(1), again.request(2)] == requests
    again.close()


@settings(max_examples=30, deadline=None)
@given(jobs=st.lists(JOBS, max_size=5, unique_by=lambda job: job.id))
def test_jobs_come_back_as_they_went(tmp_path_factory, jobs):
    """Every field of every job, and in another process' life."""
    path = tmp_path_factory.mktemp("store") / "rota.db"
    database = Database(path)
    database.write(jobs=jobs)
    database.close()
    database = Database(path)
    assert [database.job(one.id) for one in jobs] == jobs
    assert database.live() == sorted((one for one in jobs if one.state not in ENDED), key=lambda one: one.id)
    assert database.last("jobs") == max((one.id for one in jobs), default=0)
    assert sum(database.counts().values()) == sum(one.state in ENDED for one in jobs)
    database.close()


def test_requests_events_notes_and_plans(database):
    """The other things that are kept."""
    plans = [PlanRow(1, 2.0, "text", "fcfs", "given", 0.5), PlanRow(2, 3.0, "text", "nMSR", "drift", 0.6)]
    events = [{"n": n, "t": 0.5 * n, "event": "end", "job": n} for n in (1, 2, 3)]
    database.write(requests=[REQUEST], events=events, notes={"a": [1, None, "x"], "b": {"c": 1.5}}, plans=plans)
    assert database.request(1) == REQUEST
    assert database.events(0) == events
    assert database.events(1, limit=1) == events[1:2]
    assert (database.note("a"), database.note("b"), database.note("nothing")) == ([1, None, "x"], {"c": 1.5}, None)
    assert database.plans() == plans
    assert [database.last(table) for table in ("jobs", "requests", "events", "plans")] == [0, 1, 3, 2]
    database.write(notes={"a": 7})
    assert database.note("a") == 7
    database.forget_events(3)
    assert database.events(0) == events[2:]


def test_all_or_nothing(database):
    """If one part cannot be written, none is."""
    database.write(jobs=[job(1)], events=[{"n": 1}])
    with pytest.raises(sqlite3.IntegrityError):
        database.write(jobs=[job(1, "running"), job(2)], requests=[REQUEST], notes={"a": 1}, events=[{"n": 1}])
    assert database.job(1) == job(1)
    assert database.job(2) is None
    assert database.last("requests") == 0
    assert database.note("a") is None
    database.write(jobs=[replace(job(1), state="running")])  # and it goes on
    assert database.job(1).state == "running"


def test_a_disk_without_room(database):
    """`DiskFull`, nothing is written, and later it goes on."""
    pages = database._db.execute("PRAGMA page_count").fetchone()[0]
    database._db.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(DiskFull, match="the database cannot be written: database or disk is full"):
        database.write(jobs=[job(id, reason="x" * 1000) for id in range(1, 100)])
    assert database.live() == []
    database._db.execute("PRAGMA max_page_count=1000000")
    database.write(jobs=[job(id, reason="x" * 1000) for id in range(1, 100)])
    assert len(database.live()) == 99


def test_brief_requests(database):
    """In a list, of a long command line and of many jobs before it only the beginning is there, and it says so; else all is."""
    database.write(requests=[REQUEST, replace(REQUEST, id=2, argv=["echo", "ä" * 5000, "end"], after=list(range(1, 5001)))])
    assert database.brief(1) == replace(REQUEST, env={})
    brief = database.brief(2)
    assert brief.argv == ["echo", "ä" * 995 + "…"]
    assert brief.after == list(range(1, 101))
    assert (brief.after_any, brief.cut) == ([4], ("argv", "after"))
    assert database.request(2).argv[2] == "end"
    many = replace(REQUEST, id=3, argv=["x"] * 10_000)
    database.write(requests=[many])
    assert sum(map(len, database.brief(3).argv)) < 1000
    exact = replace(REQUEST, id=4, argv=["x" * 499, "y" * 499])
    database.write(requests=[exact])
    assert (database.brief(4).argv, database.brief(4).cut) == (exact.argv, ())


def test_requests_in_memory_are_bounded(database):
    """The requests that are kept in memory have at most 16 MiB of text, however large each of them is; the last is always there."""
    for id in range(1, 41):
        database.write(requests=[replace(REQUEST, id=id, argv=["x" * 2**20])])
    for id in range(1, 41):
        assert len(database.request(id).argv[0]) == 2**20
        assert sum(length for _, length in database._requests.values()) <= 16 * 2**20
    assert database._kept_bytes == sum(length for _, length in database._requests.values())
    assert len(database._requests) == 15
    assert database.request(40) is database.request(40)


def test_finding(database):
    """By state, type and name, newest first, from a number on."""
    jobs = [job(1, "done", ended=1.0), job(2, "failed", ended=2.0), job(3), replace(job(4), type="large", name="n")]
    database.write(jobs=jobs)

    def found(states=None, type=None, name=None, limit=10, before=None):
        return [one.id for one in database.jobs(states, type, name, limit, before)]

    assert found() == [4, 3, 2, 1]
    assert found(limit=2, before=4) == [3, 2]
    assert found(["done", "waiting"]) == [4, 3, 1]
    assert found(type="large") == found(name="n") == [4]
    assert found(["done"], "small", "name") == [1]
    assert found(name="' OR 1=1 --") == []


def test_pruning(database):
    """Jobs that ended before a time are forgotten, and requests that nobody has any more."""
    other = replace(REQUEST, id=2)
    jobs = [job(1, "done", ended=10.0), replace(job(2, "failed", ended=20.0), request=2), replace(job(3), request=2)]
    database.write(jobs=jobs, requests=[REQUEST, other])
    assert database.prune(15.0) == [1]
    assert database.job(1) is None
    assert database._db.execute("SELECT id FROM requests").fetchall() == [(2,)]
    assert database.prune(25.0) == [2]
    assert database.request(2) == other  # job 3 has it, and has not ended


def test_a_database_of_another_version(tmp_path):
    """It is not touched."""
    path = tmp_path / "rota.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(
        OtherVersion, match=r"another version of Rota \(schema 99, this one has 2\): run that version until its jobs have ended"
    ):
        Database(path)


def columns(path):
    """The columns of every table of a database."""
    db = sqlite3.connect(path)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")} for table in tables}
    indices = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    schema = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return schema, found, indices


# What `write_example.py` leaves: number, name, type, state, share, exit code, attempts, index in its array, reason.
LEFT = [
    (1, "done", "a", "done", {}, 0, 1, None, ""),
    (2, "failed", "a", "failed", {}, 3, 1, None, "exit code 3"),
    (3, "suspended", "a", "suspended", {"cores": [0, 1], "gpus": []}, None, 1, None, ""),
    (4, "running", "b", "running", {"cores": [0, 1], "gpus": [0]}, None, 1, None, ""),
    (5, "array", "b", "waiting", {}, None, 0, 1, ""),
    (6, "array", "b", "waiting", {}, None, 0, 2, ""),
    (7, "cancelled", "b", "cancelled", {}, None, 0, None, "cancelled by request"),
    (8, "held", "a", "held", {}, None, 0, None, "held by request"),
    (9, "blocked", "b", "blocked", {}, None, 0, None, ""),
    (10, "own", "own", "waiting", {}, None, 0, None, ""),
]


@pytest.mark.parametrize("schema", range(1, migrations.SCHEMA + 1))
def test_every_schema_that_there_ever_was(tmp_path, schema):
    """A database that each version wrote is opened, with every job as it was; it is of the present schema then, and is opened again."""
    path = tmp_path / "rota.db"
    shutil.copy(STORED / f"rota-schema-{schema}.db", path)
    assert columns(path)[0] == schema
    Database(tmp_path / "new.db").close()
    for _ in range(2):
        database = Database(path)
        database.check(every_page=True)
        jobs = [database.job(id) for id in range(1, database.last("jobs") + 1)]
        assert [(one.id, one.name, one.type, one.state, one.share, one.exit_code, one.attempt, one.idx, one.reason) for one in jobs] == LEFT
        assert {one.boot for one in jobs} == {jobs[0].boot}
        assert all(one.submitted <= other.submitted for one, other in pairwise(jobs))
        assert [one.id for one in database.live()] == [3, 4, 5, 6, 8, 9, 10]
        assert [one.sequence is not None for one in database.live()] == [True] * 4 + [False] * 2 + [True]
        assert [one.pid is not None for one in database.live()] == [True] * 2 + [False] * 5
        assert database.request(jobs[2].request).estimate_s == 600
        assert (database.request(jobs[8].request).after, database.request(jobs[8].request).after_any) == ([4], [1])
        assert database.request(jobs[9].request).asked == [1.0, 0.0, 2.0]
        assert database.plan_in_use().policy == "max-weight"
        assert database.note("scheduler")["plan"] == 1
        assert database.note("last_job") == 10
        assert len(database.events(0)) == database.last("events") == 19
        database.close()
    assert columns(path) == columns(tmp_path / "new.db")


# Opens a copy of a database and dies before the n-th statement, for every n; prints the statement and the schema that is left.
KILLED = """
import os, shutil, sqlite3, sys
from rota.live.storage.database import Database
stored, path = sys.argv[1:]
connect, kill_at = sqlite3.connect, 0
def traced(*arguments, **more):
    def hear(sql):
        nonlocal left
        left -= 1
        if left == 0:
            print(sql.split()[0], end=" ", flush=True)
            os._exit(9)
    db, left = connect(*arguments, **more), kill_at
    db.set_trace_callback(hear)
    return db
code = 9
while code == 9:
    kill_at += 1
    shutil.copy(stored, path)
    if (pid := os.fork()) == 0:
        sqlite3.connect = traced
        Database(path).close()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    db = connect(path)
    print(db.execute("PRAGMA user_version").fetchone()[0], flush=True)
    db.close()
    database = Database(path)
    assert [job.share for job in database.live()][:2] == [{"cores": [0, 1], "gpus": []}, {"cores": [0, 1], "gpus": [0]}]
    database.close()
"""


def test_a_migration_that_is_killed(tmp_path):
    """Killed before any of its statements, the last one included, it leaves the database as it was, and the next daemon migrates it."""
    command = [sys.executable, "-c", KILLED, str(STORED / "rota-schema-1.db"), str(tmp_path / "rota.db")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    left = [line.split() for line in done.stdout.splitlines()]
    commit = left.index(["COMMIT", "1"])
    assert {"BEGIN", "CREATE", "INSERT", "DROP", "ALTER", "UPDATE", "PRAGMA"} <= {statement for statement, _ in left[:commit]}
    assert {schema for _, schema in left[:commit]} == {"1"}
    assert {line[-1] for line in left[commit + 1 :]} == {"2"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE jobs SET cores = '0,x' WHERE id = 3", "job 3: its cores '0,x' or gpus '' are no comma list of numbers"),
        ("ALTER TABLE jobs RENAME COLUMN gpus TO devices", "its table jobs has no column gpus"),
    ],
)
def test_an_older_database_that_is_damaged(tmp_path, sql, words):
    """It is said, and nothing is changed."""
    path = tmp_path / "rota.db"
    shutil.copy(STORED / "rota-schema-1.db", path)
    with sqlite3.connect(path) as db:
        db.execute(sql)
    db.close()
    before = columns(path)
    with pytest.raises(Damaged, match=words):
        Database(path)
    assert columns(path) == before


@pytest.mark.parametrize("share", ["{", "[]", '{"cores": "0,1"}', '{"cores": [0.5]}', '{"cores": [true]}'])
def test_a_share_that_is_damaged(database, share):
    """It is no object of lists of numbers: `Damaged` says of which job."""
    database.write(jobs=[job(7)])
    database._db.execute("UPDATE jobs SET share = ?", (share,))
    with pytest.raises(Damaged, match="the share of job 7"):
        database.live()
