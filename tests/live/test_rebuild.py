"""A database that is lost or older than the event log: refused, or brought up to date by --recover; no record is taken for another's."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal

import pytest

import rota
from live_service import cores_of, finished, open_service, plan_of, play, run, slots, until
from rota.live.errors import Damaged
from rota.live.processes.records import Record, boot_id, look
from rota.live.rebuild import last_used
from rota.live.service import Service

PLAN = plan_of(slots(2))


def lose_database(directory):
    """As if it had never been."""
    for name in ("rota.db", "rota.db-wal", "rota.db-shm"):
        (directory / name).unlink(missing_ok=True)


def waits_for(file):
    """A script that ends with code 5 when a file is there."""
    return f"until [ -e {file} ]; do sleep 0.01; done; echo seen; exit 5"


def numbers(directory):
    """The numbers of all events."""
    return [json.loads(line)["n"] for line in (directory / "events.jsonl").read_text().splitlines()]


def test_a_lost_database_is_refused(tmp_path):
    """Where events.jsonl is ahead of the database, a start is refused and says what helps; without the log, too, it begins anew."""

    async def story():
        async with open_service(tmp_path, PLAN) as service:
            await finished(service, run(service, "true", type="small"))
        lose_database(tmp_path)
        with pytest.raises(Damaged, match=r"events\.jsonl has \d+ events, and the database beside it knows of 0: .* --recover"):
            Service(tmp_path, PLAN, log_line=lambda text: None)
        with pytest.raises(Damaged, match="it was lost, or an older one was put back"):  # still
            Service(tmp_path, PLAN, log_line=lambda text: None)
        (tmp_path / "events.jsonl").unlink()
        async with open_service(tmp_path, PLAN) as service:
            assert service.jobs(None, None, None, 10, None) == []
            # Its number is not that of a job that left output.
            assert (await finished(service, run(service, "echo new", type="small"))).id == 2
            assert (tmp_path / "output" / "2.log").read_text() == "new\n"

    play(tmp_path, story())


def test_recovery_from_the_log_alone(tmp_path):
    """Without a database: ended jobs are listed as they were, one that runs is followed to its end, one that waited is cancelled."""

    async def story():
        async with open_service(tmp_path, PLAN, leave=True) as service:
            good = await finished(service, run(service, "true", type="small", name="good"))
            bad = await finished(service, run(service, "exit 3", type="large"))
            running = run(service, waits_for(tmp_path / "go"), type="large", name="runs")
            ended = run(service, "exit 4", type="small", hold=True)
            waiting = run(service, "true", type="small")
            await until(lambda: service.job(running).state == "running")
        supervisor = look(str(tmp_path / "run"), running, 1).supervisor
        lose_database(tmp_path)
        async with open_service(tmp_path, PLAN, recover=True, leave=True) as service:
            for old in (good, bad):
                found = service.job(old.id)
                same = ("id", "name", "type", "demand", "state", "exit_code")
                assert [getattr(found, name) for name in same] == [getattr(old, name) for name in same]
                assert (found.response_s, found.run_s) == pytest.approx((old.response_s, old.run_s))
                assert (found.submitted, found.ended) == pytest.approx((old.submitted, old.ended), abs=1.0)
            assert (service.job(running).state, service.job(running).name) == ("running", "runs")
            for id in (ended, waiting):
                assert (service.job(id).state, service.job(id).started) == ("cancelled", None)
                assert service.job(id).reason == "what it runs was lost with the database: submit it again"
            assert service.status().resources[0].used == 2
            new = run(service, "true", type="small")
            assert new == waiting + 1
            assert service.job(new).state == "waiting"  # it is full
            assert look(str(tmp_path / "run"), running, 1).supervisor == supervisor
        async with open_service(tmp_path, PLAN) as service:  # and without --recover again
            (tmp_path / "go").touch()
            job = await finished(service, running)
            assert (job.state, job.exit_code) == ("failed", 5)
            assert (tmp_path / "output" / f"{running}.log").read_text() == "seen\n"
            assert (await finished(service, new)).state == "done"
            assert job.run_s > 0
        assert numbers(tmp_path) == list(range(1, len(numbers(tmp_path)) + 1))

    play(tmp_path, story())


def test_recovery_on_top_of_an_older_database(tmp_path):
    """With an older database: what it knows and the log does not contradict goes on, and nothing is run a second time."""
    witness = tmp_path / "witness"

    def says(word, then=""):
        return f"echo {word} >> {witness}; {then}"

    async def story():
        state = tmp_path / "state"
        async with open_service(state, PLAN, leave=True) as service:
            first = run(service, says("first", waits_for(tmp_path / "one")), type="large")
            second = run(service, says("second", waits_for(tmp_path / "two")), type="large")
            third, kept = run(service, says("third"), type="small"), run(service, says("kept"), type="small", hold=True)
            await until(lambda: service.job(first).state == "running")
        shutil.copy(state / "rota.db", tmp_path / "older.db")
        async with open_service(state, leave=True) as service:
            (tmp_path / "one").touch()
            await finished(service, first)
            await until(lambda: service.job(second).state == "running")
            fourth = run(service, says("fourth"), type="small")
        lose_database(state)
        shutil.copy(tmp_path / "older.db", state / "rota.db")
        with pytest.raises(Damaged, match="--recover"):
            Service(state, log_line=lambda text: None)
        async with open_service(state, recover=True) as service:
            assert (service.job(first).state, service.job(first).exit_code) == ("failed", 5)
            assert service.job(second).state == "running"
            assert [service.job(id).state for id in (third, kept, fourth)] == ["waiting", "held", "cancelled"]
            assert any("recovered from" in line and "1 could not be recovered and were closed" in line for line in service.told)
            (tmp_path / "two").touch()
            assert (await finished(service, second)).exit_code == 5
            assert (await finished(service, third)).state == "done"
            service.release(kept)
            await finished(service, kept)
        assert sorted(witness.read_text().split()) == ["first", "kept", "second", "third"]

    play(tmp_path, story())


@pytest.mark.parametrize("dead", ["ended", "lost", "gone"])
def test_what_ended_while_nobody_looked(tmp_path, dead):
    """A job that ran by the log: its record says how it ended, or that it was lost; without a record nobody knows, and it says so."""

    async def story():
        async with open_service(tmp_path, PLAN, leave=True) as service:
            id = run(service, waits_for(tmp_path / "go"), type="small")
            await until(lambda: service.job(id).state == "running")
        seen = look(str(tmp_path / "run"), id, 1)
        if dead == "lost":
            os.kill(seen.supervisor, signal.SIGKILL)
        else:
            (tmp_path / "go").touch()
        await until(lambda: look(str(tmp_path / "run"), id, 1).state != "alive")
        if dead == "gone":
            (tmp_path / "run" / f"{id}.1").unlink()
        lose_database(tmp_path)
        async with open_service(tmp_path, PLAN, recover=True) as service:
            job = await finished(service, id)
            reasons = {"ended": "exit code 5", "lost": "its supervisor was killed", "gone": "how it ended was lost with the database"}
            assert (job.state, job.reason) == ("failed", reasons[dead])
            ends = [event for event in service.events(0, 1000) if event["event"] == "end"]
            assert [event["job"] for event in ends] == [id]

    play(tmp_path, story())


def test_a_damaged_database_is_kept_beside(tmp_path):
    """--recover gives a database that cannot be read another name and makes a new one; one that is sound stays as it is."""

    async def story():
        async with open_service(tmp_path, PLAN) as service:
            await finished(service, run(service, "exit 3", type="small"))
        async with open_service(tmp_path, recover=True) as service:
            assert service.job(1).exit_code == 3
            assert not any("recovered" in line for line in service.told)
        data = (tmp_path / "rota.db").read_bytes()
        (tmp_path / "rota.db").write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
        with pytest.raises(Damaged, match=r"malformed.*--recover"):
            Service(tmp_path, PLAN, log_line=lambda text: None)
        async with open_service(tmp_path, PLAN, recover=True) as service:
            assert (service.job(1).state, service.job(1).exit_code) == ("failed", 3)
            assert (await finished(service, run(service, "true", type="small"))).state == "done"
        assert len(list(tmp_path.glob("rota.db.damaged-*"))) == 1

    play(tmp_path, story())


def test_a_record_of_another_job_is_not_adopted(tmp_path):
    """A job whose record's place is taken by another job's, ended or alive, runs all the same and reports its own exit."""

    async def story():
        async with open_service(tmp_path / "state", PLAN) as service:
            strangers = [Record.claim(str(tmp_path / "state" / "run"), id, 1, boot_id(), token="of another") for id in (1, 2)]
            strangers[0].write("ended", exit_code=77, how="exit", error="", ended=1.0, ended_boottime=1.0)
            for id in (1, 2):
                assert run(service, f"exit {id}", type="small") == id
                assert (await finished(service, id)).exit_code == id
            assert sum("a record of another job" in line for line in service.told) == 2
            assert sum(name.startswith("strange-") for name in os.listdir(tmp_path / "state" / "run")) == 2
            for record in strangers:
                os.close(record.descriptor)
        async with open_service(tmp_path / "state") as service:
            assert os.listdir(tmp_path / "state" / "run") == []

    play(tmp_path, story())


def test_an_old_job_that_still_runs(tmp_path):
    """Database and log gone while a job runs: the first new job is another one, and its exit is its own."""

    async def story():
        async with open_service(tmp_path, PLAN, leave=True) as service:
            old = run(service, waits_for(tmp_path / "go"), type="small")
            await until(lambda: service.job(old).state == "running")
        lose_database(tmp_path)
        (tmp_path / "events.jsonl").unlink()
        async with open_service(tmp_path, PLAN) as service:
            new = await finished(service, run(service, "exit 9", type="small"))
            assert (new.id, new.exit_code) == (old + 1, 9)
            assert any("that the database does not know: left alone" in line for line in service.told)
            assert look(str(tmp_path / "run"), old, 1).state == "alive"
        (tmp_path / "go").touch()
        await until(lambda: look(str(tmp_path / "run"), old, 1).state == "ended")

    play(tmp_path, story())


def test_processes_of_another_job_of_the_same_number(tmp_path):
    """The directory was removed while a job ran: when a new job of its number is lost, only what that one left is killed."""
    state, run_directory = tmp_path / "state", str(tmp_path / "state" / "run")

    async def story():
        async with open_service(state, PLAN, leave=True) as service:
            old = run(service, waits_for(tmp_path / "go"), type="small")
            await until(lambda: look(run_directory, old, 1).pid is not None)
        stranger = os.pidfd_open(look(run_directory, old, 1).pid)
        shutil.rmtree(state)
        async with open_service(state, PLAN) as service:
            assert run(service, "sleep 60 & sleep 60", type="small") == old
            await until(lambda: look(run_directory, old, 1).pid is not None)
            os.kill(look(run_directory, old, 1).supervisor, signal.SIGKILL)
            assert (await finished(service, old)).state == "failed"
            assert not select.select([stranger], [], [], 0)[0]  # it runs on
            (tmp_path / "go").touch()
            assert select.select([stranger], [], [], 10)[0]
        os.close(stranger)

    play(tmp_path, story())


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_recovered_jobs_keep_their_cores(tmp_path):
    """The log knows which cores a running job has: nobody else gets them."""
    system = rota.System([2], [[1]], [0.5], [5.0], names=("one",), resources=("cores",))

    async def story():
        async with open_service(tmp_path, plan_of(system), leave=True) as service:
            ids = [run(service, "sleep 100", type="one") for _ in range(2)]
            await until(lambda: all(service.job(id).pid for id in ids))
            cores = [service.job(id).cores for id in ids]
            service.cancel(ids[0], now=True)
            await finished(service, ids[0])
        lose_database(tmp_path)
        async with open_service(tmp_path, plan_of(system), recover=True) as service:
            assert service.job(ids[1]).cores == cores[1]
            new = run(service, "sleep 100", type="one")
            assert service.job(new).cores == cores[0]
            await until(lambda: cores_of(service.job(new).pid or os.getpid()) == set(cores[0]))

    play(tmp_path, story())


def test_numbers_that_were_used(tmp_path):
    """The largest that left a record or output; other names do not count."""
    assert last_used(tmp_path) == 0
    for name in ("run/7.2", "run/.9.1.3", "run/strange-8-1-1", "output/12.log", "output/x.log", f"output/{10**17}.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert last_used(tmp_path) == 12


def test_a_request_from_before_tokens(tmp_path):
    """A request that an older version wrote has no token: its job's record is taken for its own."""

    async def story():
        async with open_service(tmp_path, PLAN, leave=True) as service:
            id = run(service, waits_for(tmp_path / "go"), type="small")
            await until(lambda: service.job(id).state == "running")
            service._database._db.execute("UPDATE requests SET body = json_remove(body, '$.token')")
        async with open_service(tmp_path) as service:
            (tmp_path / "go").touch()
            assert (await finished(service, id)).exit_code == 5

    play(tmp_path, story())


def test_a_line_that_is_no_event(tmp_path):
    """In the middle of the log it is named by its number when that is needed for recovery."""

    async def story():
        async with open_service(tmp_path, PLAN) as service:
            await finished(service, run(service, "true", type="small"))

    asyncio.run(story())
    lose_database(tmp_path)
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    (tmp_path / "events.jsonl").write_text("\n".join([*lines[:2], "nonsense", *lines[2:]]) + "\n")
    with pytest.raises(Damaged, match=r"line 3 of .*events\.jsonl is not an event: remove it"):
        Service(tmp_path, PLAN, recover=True, log_line=lambda text: None)
