"""The database: what was written is there, all of it or nothing."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.live.errors import Damaged, DiskFull, OtherVersion
from rota.live.jobs import Job, Request
from rota.live.messages import ENDED, STATES
from rota.live.storage.database import Database, PlanRow

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


@pytest.mark.parametrize("share", ["{", "[]", '{"cores": "0,1"}', '{"cores": [0.5]}', '{"cores": [true]}'])
def test_a_share_that_is_damaged(database, share):
    """It is no object of lists of numbers: `Damaged` says of which job."""
    database.write(jobs=[job(7)])
    database._db.execute("UPDATE jobs SET share = ?", (share,))
    with pytest.raises(Damaged, match="the share of job 7"):
        database.live()
