"""WriteAhead: written first, then done; and what happens when nothing can be written."""

from __future__ import annotations

import asyncio

import pytest

from live_service import until
from rota.events import End, Resume, Start, Submit
from rota.live.actions import Action, Do
from rota.live.errors import DiskFull
from rota.live.jobs import Job, Request
from rota.live.outcome import Outcome
from rota.live.storage import write_ahead as module
from rota.live.storage.database import Database
from rota.live.storage.event_log import EventLog
from rota.live.storage.write_ahead import WriteAhead


def job(id, state="waiting", attempt=0):
    """A job."""
    return Job(id, 1, "", "small", state, 0.0, 0.0, "boot", attempt=attempt)


class Bench:
    """A database, a log and turns over them, with a list of what was done."""

    def __init__(self, directory):
        self.database, self.log = Database(directory / "rota.db"), EventLog(directory / "events.jsonl")
        self.done, self.told, self.at_the_time = [], [], []
        self.writes = WriteAhead(self.database, self.log, self.carry_out, lambda: {"seen": len(self.done)}, self.told.append)

    def carry_out(self, actions):
        """Notes what is done, and what the database says at that moment."""
        self.done += actions
        self.at_the_time += [self.database.job(action.job).state for action in actions]

    def start(self, job):
        """A job is to be started."""
        self.writes.gather(Outcome(changed={job.id: job}, actions=[Action(Do.START, job.id, job.attempt)]), 0.0)

    def log_event(self, event):
        """Something happened."""
        self.writes.gather(Outcome(events=[event]), 0.0)

    def full(self, pages=0):
        """No more room in the database, or space again."""
        have = self.database._db.execute("PRAGMA page_count").fetchone()[0]
        self.database._db.execute(f"PRAGMA max_page_count={have + pages}")

    def close(self):
        """Ends it."""
        self.writes.close()
        self.log.close()
        self.database.close()


def play(directory, story):
    """Runs a story on a bench."""

    async def whole():
        bench = Bench(directory)
        bench.writes.open()
        try:
            await story(bench)
        finally:
            bench.close()

    asyncio.run(whole())


def test_written_before_it_is_done(tmp_path):
    """An action sees its job in the database; all of one turn are written together, in order."""

    async def story(bench):
        bench.start(job(1, "starting", 1))
        bench.log_event(Start(1, 1))
        bench.start(job(2, "starting", 1))
        assert not bench.done
        assert bench.writes.job(1).state == "starting"
        await until(lambda: bench.done)
        assert bench.done == [Action("start", 1, 1), Action("start", 2, 1)]
        assert bench.at_the_time == ["starting", "starting"]
        assert bench.writes.job(1) is None
        assert [(event["n"], event["event"]) for event in bench.database.events(0)] == [(1, "start")]
        assert bench.log.last == 1
        assert bench.database.note("seen") == 0

    play(tmp_path, story)


def test_a_pause(tmp_path):
    """While an action takes its time nothing else is done, though it gathers."""

    async def story(bench):
        bench.writes.pause()
        bench.start(job(1))
        await asyncio.sleep(0.02)
        assert not bench.done
        bench.writes.go_on()
        await until(lambda: bench.done)

    play(tmp_path, story)


def test_without_room(tmp_path, monkeypatch):
    """Nothing is done that could not be written; new jobs are refused; with room again it goes on."""
    monkeypatch.setattr(module, "_AGAIN_S", 0.05)

    async def story(bench):
        bench.full()
        jobs = [job(id) for id in range(1, 400)]
        for one in jobs:
            bench.start(one)
        bench.log_event(Start(1, 1))
        await until(lambda: bench.writes.disk_full)
        assert "nothing is started until there is space again" in bench.told[0]
        assert not bench.done
        request = Request(1, "", ["true"], "/", {}, "small", [1.0], None, [], [])
        with pytest.raises(DiskFull):
            bench.writes.write_new([job(1000)], request, [Submit(1000, "small", {})], 0.0)
        bench.full(10_000)
        await until(lambda: bench.done)
        assert len(bench.done) == 399
        assert bench.told[1:] == ["there is space again"]
        bench.writes.write_new([job(1000)], request, [Submit(1000, "small", {})], 0.0)
        assert bench.database.job(1000) is not None
        assert [event["n"] for event in bench.database.events(0)] == [1, 2]  # no number was lost

    play(tmp_path, story)


def test_the_log_catches_up(tmp_path):
    """What an earlier daemon wrote to the database and not to the file is there after the next start."""

    database = Database(tmp_path / "rota.db")
    database.write(events=[{"n": n, "t": 0.0, "event": "end"} for n in (1, 2, 3)])
    database.close()

    async def caught_up(bench):
        assert bench.log.last == 3
        bench.log_event(Resume(1))
        await until(lambda: bench.log.last == 4)

    play(tmp_path, caught_up)
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 4


def test_old_events_leave_the_database(tmp_path, monkeypatch):
    """The file has all of them, the database the newest."""
    monkeypatch.setattr(module, "_EVENTS_KEPT", 10)

    async def story(bench):
        for k in range(35):
            bench.log_event(End(k, "done"))
            bench.writes.write()
        assert bench.log.last == 35
        kept = [event["n"] for event in bench.database.events(0)]
        assert kept[-1] == 35
        assert 10 <= len(kept) <= 21

    play(tmp_path, story)
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 35


def test_the_end(tmp_path):
    """On closing, what has gathered is written, and nothing is done any more."""

    async def story(bench):
        bench.start(job(7, "starting", 1))
        bench.writes.close()
        await asyncio.sleep(0.01)
        assert bench.database.job(7).state == "starting"
        assert not bench.done

    play(tmp_path, story)
