"""Databases of earlier versions: an example of every schema is stored, is opened, and the service goes on with it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from live_service import finished, open_service, play
from rota.live.errors import Damaged
from rota.live.storage.database import Database
from rota.live.storage.migrations import SCHEMA

STORED = Path(__file__).parent / "stored"
SCHEMAS = range(1, SCHEMA + 1)


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


@pytest.mark.parametrize("schema", SCHEMAS)
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
        ("UPDATE jobs SET cores = '0,x' WHERE id = 3", "job 3: its cores '0,x' or gpus '' are not comma-separated numbers"),
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


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_service_goes_on(tmp_path, monkeypatch, schema):
    """The jobs of an earlier version that ran are gone with their machine; who waited is started, who was held is held."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    shutil.copy(STORED / f"rota-schema-{schema}.db", tmp_path / "rota.db")
    shutil.copy(STORED / f"events-schema-{schema}.jsonl", tmp_path / "events.jsonl")

    async def story():
        async with open_service(tmp_path) as service:
            for id, outcome in ((3, "failed"), (4, "failed"), (9, "cancelled"), (10, "done")):
                if id == 10:
                    for other in (5, 6):  # they sleep for long
                        service.cancel(other, now=True)
                assert (await finished(service, id)).state == outcome
            assert service.job(8).state == "held"
            service.release(8)
            assert (await finished(service, 8)).state == "done"

    play(tmp_path, story())
