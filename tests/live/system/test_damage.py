"""A state directory that is damaged: a clear error with a way out, or the scheduler goes on where that is safe."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from live_service import finished, open_service, plan_of, play, run, slots
from rota.cli import main


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A state directory in which job 1 is done and job 2 is held."""
    directory = tmp_path_factory.mktemp("state")

    async def story():
        async with open_service(directory, plan_of(slots()), leave=True) as service:
            await finished(service, run(service, "true", type="small"))
            run(service, "true", type="small", hold=True)

    asyncio.run(story())
    return directory


@pytest.fixture
def copy(state, tmp_path):
    """A copy of it, to be damaged."""
    shutil.copytree(state, tmp_path / "state")
    (tmp_path / "state").chmod(0o700)
    return tmp_path / "state"


def sql(directory, *commands):
    """Changes the database behind the scheduler's back."""
    with closing(sqlite3.connect(directory / "rota.db", isolation_level=None)) as db:
        for command in commands:
            db.execute(*command) if isinstance(command, tuple) else db.execute(command)


def append(directory, text):
    """Writes something at the end of the event log."""
    with (directory / "events.jsonl").open("ab") as file:
        file.write(text)


def overwrite(directory, offset):
    """Spoils the pages of the database from an offset on."""
    data = bytearray((directory / "rota.db").read_bytes())
    data[offset:] = b"\xa5" * (len(data) - offset)
    (directory / "rota.db").write_bytes(data)


def request(directory, id=2, **changes):
    """Changes what a request says."""
    with closing(sqlite3.connect(directory / "rota.db", isolation_level=None)) as db:
        body = json.loads(db.execute("SELECT body FROM requests WHERE id = ?", (id,)).fetchone()[0])
        body = {key: value for key, value in {**body, **changes}.items() if value is not ...}
        db.execute("UPDATE requests SET body = ? WHERE id = ?", (json.dumps(body), id))


WAITING = "UPDATE jobs SET state = 'waiting', sequence = 1 WHERE id = 2"
DAMAGES = {
    "a last line that is no JSON": (lambda d: append(d, b"nonsense\n"), "the last line of .*events.jsonl is not an event: 'nonsense'"),
    "a last line that is no object": (lambda d: append(d, b"[1]\n"), r"is not an event: '\[1\]'; remove the lines"),
    "a last line without a number": (lambda d: append(d, b'{"event": "end"}\n'), "is not an event"),
    "a last line with a text as number": (lambda d: append(d, b'{"n": "1"}\n'), "is not an event"),
    "a database that is none": (lambda d: overwrite(d, 0), "rota.db is damaged: file is not a database; put a copy of it back, or"),
    "a database with spoilt pages": (lambda d: overwrite(d, 4096), "rota.db is damaged: .*malformed.*--recover"),
    "a missing column": (lambda d: sql(d, "ALTER TABLE jobs DROP COLUMN restarts"), "its table jobs has no column restarts"),
    "a missing table": (lambda d: sql(d, "DROP TABLE notes"), "its table notes has no column key, value"),
    "a request that is no object": (lambda d: sql(d, WAITING, "UPDATE requests SET body = '[]'"), "request 2 is not an object"),
    "a request that is no JSON": (lambda d: sql(d, WAITING, "UPDATE requests SET body = '{'"), "request 2 is not JSON"),
    "a request without a command": (lambda d: (sql(d, WAITING), request(d, argv=...)), "request 2 has no usable argv"),
    "a request that is missing": (lambda d: sql(d, WAITING, "DELETE FROM requests"), "request 2 is missing"),
    "a note that is no JSON": (lambda d: sql(d, "UPDATE notes SET value = '{' WHERE key = 'plan'"), "note 'plan' is not JSON"),
    "a plan that is no JSON": (
        lambda d: sql(d, "UPDATE plans SET text = '{'"),
        "plan 1 of the database cannot be read: .*put a copy of rota.db back",
    ),
    "a plan with an unknown field": (
        lambda d: sql(d, "UPDATE plans SET text = json_set(text, '$.more', 1)"),
        "plan 1 .* cannot be read.*more",
    ),
    "a plan that is no object": (lambda d: sql(d, "UPDATE plans SET text = '[]'"), "plan 1 of the database cannot be read"),
    "a plan that is not there": (lambda d: sql(d, "UPDATE notes SET value = '7' WHERE key = 'plan'"), "there is no plan 7"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_directory_is_refused(copy, capsys, what):
    """A start on what cannot be read ends with one clear sentence that names the file, and without a traceback."""
    damage, words = DAMAGES[what]
    damage(copy)
    assert main(["serve", "--directory", str(copy)]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert re.search(words, said, re.DOTALL), said


def spoil_record(directory, data):
    """Job 2 was started, and this is its record."""
    sql(directory, "UPDATE jobs SET state = 'running', sequence = 1, attempt = 1 WHERE id = 2")
    (directory / "run" / "2.1").write_bytes(data.ljust(4096, b"\0"))


TOLERATED = {
    "a record that is no object": lambda d: spoil_record(d, b"[1]\n"),
    "a record that is a number": lambda d: spoil_record(d, b"7\n"),
    "a record with an unknown field": lambda d: spoil_record(d, b'{"supervisor": 1, "boot": "b", "state": "alive", "later": {}}\n'),
    "a record with wrong kinds": lambda d: spoil_record(d, b'{"supervisor": "x", "boot": 1, "pid": [], "told": 1}\n'),
    "a request with an unknown field": lambda d: (sql(d, WAITING), request(d, priority=9)),
    "an unknown column": lambda d: sql(d, *(f"ALTER TABLE {t} ADD COLUMN more" for t in ("jobs", "requests", "events", "notes", "plans"))),
    "a scheduler that is no object": lambda d: sql(d, "UPDATE notes SET value = '[]' WHERE key = 'scheduler'"),
    "a scheduler without its parts": lambda d: sql(d, "UPDATE notes SET value = json_remove(value, '$.random') WHERE key = 'scheduler'"),
    "a scheduler of another shape": lambda d: sql(
        d, "UPDATE notes SET value = json_set(value, '$.mode', json('[1,2,3,4]')) WHERE key = 'scheduler'"
    ),
    "measures that are none": lambda d: sql(d, "INSERT OR REPLACE INTO notes VALUES ('measures', '7')"),
    "something learnt that is nothing": lambda d: sql(d, "INSERT OR REPLACE INTO notes VALUES ('learner', '[]')"),
    "a last line that is cut off": lambda d: append(d, b'{"n": 99, "ev'),
}


@pytest.mark.parametrize("what", TOLERATED)
def test_what_is_not_needed_may_be_damaged(copy, what):
    """What can be done without is passed over: the scheduler starts, settles job 2, and runs another."""
    TOLERATED[what](copy)

    async def story():
        async with open_service(copy) as service:
            if "record" in what:
                lost = await finished(service, 2)
                assert lost.state == "failed"
                assert lost.reason in ("its supervisor was killed", "the machine went down while it ran")
            assert (await finished(service, run(service, "true", type="small"))).state == "done"

    play(copy, story())
