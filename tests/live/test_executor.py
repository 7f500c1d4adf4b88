"""The queue with real jobs: in, through their states, and out; and everything that users can ask of it."""

from __future__ import annotations

import asyncio
import json
import os
import time

import numpy as np
import pytest
from pydantic import ValidationError

import rota
from live_service import cores_of, finished, is_stopped, open_service, plan_of, play, run, slots, state_of, until
from rota.errors import BadSpec
from rota.live.errors import NoSuchJob, Refused
from rota.live.messages import ENDED, JobRequest

STEPS = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.02; done"  # 0.4 s in service, whatever happens meanwhile


# ---------------------------------------------------------------------------------------------------------------- to the end


@pytest.mark.parametrize(
    ("script", "state", "code", "reason"),
    [
        ("exit 0", "done", 0, ""),
        ("exit 3", "failed", 3, "exit code 3"),
        ("kill -9 $$", "failed", 137, "ended by signal 9"),
    ],
)
def test_how_a_job_ends(tmp_path, script, state, code, reason):
    """Exit code and signal become the job's state, code and reason."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            job = await finished(service, run(service, script, type="small", name="one"))
            assert (job.state, job.exit_code, job.reason) == (state, code, reason)
            assert 0 <= job.run_s <= job.response_s < 10
            assert job.submitted <= job.started + 0.001 <= job.ended + 0.002
            assert job.pid is None
            assert service.job(job.id) == job

    play(tmp_path, story())


def test_a_program_that_is_not_there(tmp_path):
    """It fails with 127, as in a shell, and says why."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            id = service.submit(JobRequest(argv=["/no/such/program"], type="small")).ids[0]
            job = await finished(service, id)
            assert (job.state, job.exit_code) == ("failed", 127)
            assert job.reason == "/no/such/program: no such program"

    play(tmp_path, story())


def test_what_a_job_is_told(tmp_path):
    """Its number, type and array index are in its environment; it has its own folder, and only the variables it was given."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            script = 'echo "$ROTA_JOB_ID $ROTA_TYPE $ROTA_ARRAY_INDEX $ROTA_RESTART $GREETING $(pwd)"; env | grep -c HOME'
            sent = service.submit(
                JobRequest(
                    argv=["/bin/sh", "-c", script],
                    type="small",
                    array=(3, 5),
                    cwd=str(tmp_path),
                    env={"PATH": os.defpath, "GREETING": "hello"},
                )
            )
            assert sent.ids == [1, 2, 3]
            for id, index in zip(sent.ids, (3, 4, 5), strict=True):
                job = await finished(service, id)
                assert (job.array, job.index) == (1, index)
                data, _, ended = service.log(id, 0, 1000)
                assert data.decode() == f"{id} small {index} 0 hello {tmp_path}\n0\n"
                assert ended

    play(tmp_path, story())


def test_output_in_parts(tmp_path):
    """`log` gives what is there from an offset on, and says when nothing more comes."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            id = run(service, f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo two >&2", type="small")
            assert service.log(id, 0, 100) in ((b"", 0, False), (b"one\n", 4, False))
            await until(lambda: service.log(id, 0, 100)[0] == b"one\n")
            assert service.log(id, 4, 100) == (b"", 4, False)
            (tmp_path / "go").touch()
            await finished(service, id)
            assert service.log(id, 4, 100) == (b"two\n", 8, True)
            assert service.log(id, 2, 3) == (b"e\nt", 5, False)
            assert service.log(id, 8, 100) == (b"", 8, True)
            assert service.log(id, 99, 100) == (b"", 99, True)
            with pytest.raises(NoSuchJob, match="there is no job 7"):
                service.log(7, 0, 1)

    play(tmp_path, story())


def test_order_and_room(tmp_path):
    """First come, first served on two slots: jobs start in their order, and never hold more than there is."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(2))) as service:
            most = 0
            ids = [run(service, "sleep 0.02", type=type) for type in ("small", "large", "small", "small", "large", "small") * 2]
            while service.executor.lifecycle.jobs:
                most = max(most, service.status().resources[0].used)
                await asyncio.sleep(0.005)
            assert most == 2
            starts = [event["job"] for event in service.events(0, 1000) if event["event"] == "start"]
            assert starts == ids
            assert all(service.job(id).state == "done" for id in ids)

    play(tmp_path, story())


def test_finding_jobs(tmp_path):
    """By state, type and name, newest first, and page by page."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            failed = await finished(service, run(service, "exit 1", type="small", name="a"))
            done = await finished(service, run(service, "exit 0", type="large", name="a"))
            held = service.job(run(service, "exit 0", type="large", name="b", hold=True))

            def found(state=None, type=None, name=None, limit=100, before=None):
                return [job.id for job in service.jobs(state, type, name, limit, before)]

            assert found() == [held.id, done.id, failed.id]
            assert found(limit=2) == [held.id, done.id]
            assert found(limit=2, before=done.id) == [failed.id]
            assert found(state=["held", "done"]) == [held.id, done.id]
            assert found(type="large") == [held.id, done.id]
            assert found(name="a", state=["failed"]) == [failed.id]
            assert found(name="nobody") == []
            assert service.jobs(["held"], None, None, 1, None)[0] == held
            with pytest.raises(NoSuchJob, match="there is no job 99"):
                service.job(99)

    play(tmp_path, story())


def test_waiting_for_a_job(tmp_path):
    """`wait` returns at the end, or after its time with the job as it is."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            id = run(service, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done", type="small")
            began = time.monotonic()
            assert (await service.wait(id, 0.05)).state in ("starting", "running")
            assert time.monotonic() - began < 5
            waiting = [asyncio.create_task(service.wait(id, 30)) for _ in range(3)]
            await asyncio.sleep(0)
            (tmp_path / "go").touch()
            assert {(await one).state for one in waiting} == {"done"}
            assert (await service.wait(id, 0)).state == "done"
            with pytest.raises(NoSuchJob):
                await service.wait(5, 1)

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- one after another


def test_a_chain(tmp_path):
    """Each comes after the one before, and starts when that has ended well."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(4))) as service:
            ids = [run(service, f"sleep 0.02; echo 0 >> {tmp_path}/order", type="small")]
            for k in (1, 2, 3):
                ids.append(run(service, f"echo {k} >> {tmp_path}/order", type="small", after=[ids[-1]]))
            assert [service.job(id).state for id in ids[1:]] == ["blocked"] * 3
            last = await finished(service, ids[-1])
            assert last.state == "done"
            assert last.after == [ids[-2]]
            assert (tmp_path / "order").read_text().split() == ["0", "1", "2", "3"]

    play(tmp_path, story())


def test_after_a_failure(tmp_path):
    """Who comes after a job that failed is cancelled, and so are those after it; `after_any` runs all the same."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(4))) as service:
            bad = run(service, "sleep 0.05; exit 1", type="small")
            second = run(service, "exit 0", type="small", after=[bad])
            third = run(service, "exit 0", type="small", after=[second])
            anyway = run(service, "exit 0", type="small", after_any=[bad, second])
            both = run(service, "exit 0", type="small", after=[anyway], after_any=[bad])
            assert (await finished(service, anyway)).state == "done"
            assert (await finished(service, both)).state == "done"
            assert service.job(second).state == service.job(third).state == "cancelled"
            assert service.job(second).reason == f"job {bad}, which it comes after, failed"
            assert service.job(third).reason == f"job {second}, which it comes after, was cancelled"
            assert service.job(second).run_s is None
            late = service.job(run(service, "exit 0", type="small", after=[bad]))  # it has failed already
            assert (late.state, late.reason) == ("cancelled", f"job {bad}, which it comes after, failed")
            at_once = run(service, "exit 0", type="small", after=[anyway])
            assert (await finished(service, at_once)).state == "done"

    play(tmp_path, story())


def test_after_a_job_that_is_not_there(tmp_path):
    """It is refused, and nothing is taken in."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            with pytest.raises(BadSpec, match="there is no job 7"):
                run(service, "exit 0", type="small", after=[7])
            with pytest.raises(BadSpec, match="there is no job 8"):
                run(service, "exit 0", type="small", after_any=[8])
            assert service.jobs(None, None, None, 10, None) == []

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- hold, release, cancel


def test_hold_and_release(tmp_path):
    """A held job does not start; released, it is behind those that wait. What runs or has ended cannot be held."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(1, small=1))) as service:
            first = run(service, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done", type="small")
            second, third = (run(service, "exit 0", type="small") for _ in range(2))
            kept = run(service, "exit 0", type="small", hold=True)
            assert service.hold(second).state == "held"
            assert service.hold(second).reason == "held by request"
            with pytest.raises(Refused, match=f"job {first} is (starting|running): only a job that waits can be held"):
                service.hold(first)
            with pytest.raises(Refused, match=f"job {third} is waiting, not held"):
                service.release(third)
            assert service.release(second).state == "waiting"
            assert service.release(kept).reason == ""
            (tmp_path / "go").touch()
            await finished(service, kept)
            starts = [event["job"] for event in service.events(0, 1000) if event["event"] == "start"]
            assert starts == [first, third, second, kept]
            with pytest.raises(Refused, match=f"job {first} has ended: done"):
                service.hold(first)

    play(tmp_path, story())


def test_holding_who_comes_after(tmp_path):
    """A blocked job that is held stays when the other ends; released, it looks again."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            first = run(service, "sleep 0.05", type="small")
            second = run(service, "exit 0", type="small", after=[first])
            assert service.hold(second).state == "held"
            await finished(service, first)
            assert service.job(second).state == "held"
            service.release(second)
            assert (await finished(service, second)).state == "done"
            bad = run(service, "sleep 0.05; exit 1", type="small")
            third = run(service, "exit 0", type="small", after=[bad], hold=True)
            assert service.release(third).state == "blocked"
            service.hold(third)
            await finished(service, bad)
            assert service.release(third).state == "cancelled"

    play(tmp_path, story())


def test_cancel_before_it_runs(tmp_path):
    """Held, blocked and waiting jobs are gone at once, and never ran."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(1, small=1))) as service:
            first = run(service, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done", type="small")
            waiting, held = run(service, "exit 0", type="small"), run(service, "exit 0", type="small", hold=True)
            blocked = run(service, "exit 0", type="small", after=[first])
            for id in (waiting, held, blocked):
                job = service.cancel(id)
                assert (job.state, job.reason, job.run_s, job.exit_code) == ("cancelled", "cancelled by request", None, None)
                with pytest.raises(Refused, match=f"job {id} has ended: cancelled"):
                    service.cancel(id)
            (tmp_path / "go").touch()
            assert (await finished(service, first)).state == "done"
            with pytest.raises(NoSuchJob):
                service.cancel(99)
            assert service.status().counts == {"done": 1, "cancelled": 3}

    play(tmp_path, story())


def test_cancel_while_it_runs(tmp_path):
    """It gets SIGTERM and may tidy up; one that does not heed is killed after the grace, or at once if asked so."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(3), grace_s=0.2)) as service:
            tidy = run(service, "trap 'echo bye; exit 9' TERM; echo on; while :; do sleep 0.01; done", type="small")
            deaf, dead = (run(service, "trap '' TERM; echo on; while :; do sleep 0.01; done", type="small") for _ in range(2))
            await until(lambda: all(service.log(id, 0, 9)[0] == b"on\n" for id in (tidy, deaf, dead)))
            pid = service.job(deaf).pid
            assert state_of(pid) in ("R", "S", "D")  # D: in vfork, or on the disk
            for id in (tidy, deaf):
                service.cancel(id)
            service.cancel(dead, now=True)
            ends = [await finished(service, id) for id in (tidy, deaf, dead)]
            assert [job.state for job in ends] == ["cancelled"] * 3
            assert [job.exit_code for job in ends] == [9, 137, 137]
            assert [job.reason for job in ends] == ["cancelled by request"] * 3
            assert service.log(tidy, 3, 99)[0].endswith(b"bye\n")
            assert not state_of(pid)
            assert service.executor.lifecycle.scheduler.state.free == service.executor.lifecycle.scheduler.state.capacity

    play(tmp_path, story())


def test_cancel_while_it_starts(tmp_path):
    """A job cancelled in the turn that submitted it ends as cancelled, whether it was run or not."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(3))) as service:
            ids = []
            for now in (False, True) * 5:
                ids.append(run(service, "sleep 9", type="small"))
                service.cancel(ids[-1], now=now)
            for id in ids:
                assert (await finished(service, id)).state == "cancelled"
            assert service.executor.lifecycle.scheduler.state.free == service.executor.lifecycle.scheduler.state.capacity

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- classes


def test_an_own_class(tmp_path):
    """A demand that no type encloses runs where the policy leaves room; a smaller one as the type that encloses it."""
    system = rota.System([4, 8], [[1, 2], [2, 2]], [0.1, 0.1], [1.0, 1.0], names=("small", "wide"), resources=("slots", "space"))

    async def story():
        async with open_service(tmp_path, plan_of(system)) as service:
            sent = service.submit(JobRequest(argv=["/bin/sleep", "0.1"], demand={"slots": 1, "space": 5.5}))
            assert sent.type == "own"
            assert "no type of the plan encloses it" in sent.remark
            await until(lambda: service.job(sent.ids[0]).state == "running")
            status = service.status()
            assert [use.used for use in status.resources] == [1, 5.5]
            assert (status.own.running, status.own.waiting) == (1, 0)
            small = service.submit(JobRequest(argv=["/bin/true"], demand={"space": 1.5}))
            assert (small.type, small.remark) == ("small", "runs as type small, the smallest that encloses it")
            big = service.submit(JobRequest(argv=["/bin/true"], demand={"slots": 4, "space": 8}))
            assert service.status().own.waiting == 1
            assert (await finished(service, big.ids[0])).state == "done"
            assert service.status().own.ended == 2
            assert [event["type"] for event in service.events(0, 99) if event["event"] == "submit"] == ["own", "small", "own"]

    play(tmp_path, story())


def test_nothing_is_queued_that_is_refused(tmp_path):
    """A working directory that can never be entered: a clear refusal, and no job, not an error with the job taken all the same."""

    (tmp_path / "loop").symlink_to("loop")

    async def story():
        async with open_service(tmp_path, plan_of(slots(2))) as service:
            with pytest.raises(rota.BadSpec, match=r"cwd: the scheduler, as user .* cannot enter it"):
                run(service, "exit 0", type="small", cwd=str(tmp_path / "loop"))
            assert service.jobs(None, None, None, 10, None) == []
            assert run(service, "exit 0", type="small") == 1

    play(tmp_path, story())


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"type": "huge"}, "there is no such type"),
        ({"demand": {"gold": 1}}, "the server has no such resource"),
        ({"demand": {"slots": 3}}, "the server has 2"),
        ({"demand": {}}, "name at least one resource"),
    ],
)
def test_what_the_server_cannot_do(tmp_path, asked, text):
    """Such a request is refused with what is wrong with it."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            with pytest.raises(BadSpec, match=text):
                service.submit(JobRequest(argv=["/bin/true"], **asked))

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- preemption


def two(space=10.0, first=4.0, second=4.0):
    """Two types that both need all cores; MaxWeight prefers the one with more jobs."""
    cores = len(os.sched_getaffinity(0))
    demand = [[cores, first], [cores, second]]
    return rota.System([cores, space], demand, [0.1, 0.1], [1.0, 1.0], names=("a", "b"), resources=("cores", "space"))


def test_suspend(tmp_path):
    """Two jobs of the other type are worth more than one: it is stopped, its cores go to them, and later it goes on to its end."""

    async def story():
        async with open_service(tmp_path, plan_of(two(), "max-weight", preemption="suspend")) as service:
            long = run(service, STEPS, type="a")
            await until(lambda: service.job(long).state == "running" and service.job(long).pid is not None)
            pid = service.job(long).pid
            b1, b2 = (run(service, "sleep 0.5", type="b") for _ in range(2))
            await until(lambda: service.job(b1).state == "running" and service.job(b1).pid is not None)
            assert service.job(long).state == "suspended"
            await until(lambda: is_stopped(pid))  # on a busy machine it must come to its turn once more to stop
            assert cores_of(service.job(b1).pid) == os.sched_getaffinity(0)
            assert [(use.used, use.kept) for use in service.status().resources] == [
                (service.executor.lifecycle.system.capacity[0], 0),
                (4, 4),
            ]
            explained = await service.explain(long)
            assert explained.text.startswith("It is suspended: other jobs run in its place.")
            job = await finished(service, long)
            assert job.state == "done"
            assert job.exit_code == 0
            assert 0.35 < job.run_s < job.response_s - 0.4  # b1 took half a second of it
            assert (await finished(service, b2)).state == "done"
            told = [(event["event"], event["job"]) for event in service.events(0, 99) if event["event"] in ("start", "suspend", "resume")]
            assert told == [("start", long), ("suspend", long), ("start", b1), ("resume", long), ("start", b2)]
            assert service.executor.counters.preemptions == 1

    play(tmp_path, story())


def test_suspend_with_resources_in_other_letters(tmp_path):
    """`Cores` are cores everywhere: a suspended job gives them back, and whoever takes its place has them."""
    cores = len(os.sched_getaffinity(0))
    system = rota.System([cores], [[cores], [cores]], [0.1, 0.1], [1.0, 1.0], names=("a", "b"), resources=("Cores",))

    async def story():
        async with open_service(tmp_path, plan_of(system, "max-weight", preemption="suspend")) as service:
            long = run(service, STEPS, type="a")
            await until(lambda: service.job(long).pid is not None)
            others = [run(service, "sleep 0.1", type="b") for _ in range(2)]
            await until(lambda: service.job(long).state == "suspended")
            for id in (*others, long):
                assert (await finished(service, id)).state == "done"
            assert service.executor.lifecycle.allocation.free("cores") == tuple(sorted(os.sched_getaffinity(0)))

    play(tmp_path, story())


def test_memory_that_is_kept(tmp_path):
    """What the others need would stay with the stopped job: so it is not stopped. With `releasable` it is."""

    async def story(directory, releasable, state):
        plan = plan_of(two(first=6.0, second=6.0), "max-weight", preemption="suspend", releasable=releasable)
        async with open_service(directory, plan) as service:
            long = run(service, STEPS, type="a")
            await until(lambda: service.job(long).state == "running")
            others = [run(service, "exit 0", type="b") for _ in range(2)]
            await until(lambda: service.job(long).state == state)
            for id in others:
                await finished(service, id)
            assert service.executor.counters.preemptions == (state == "suspended")

    play(tmp_path, story(tmp_path / "kept", {}, "running"))
    play(tmp_path, story(tmp_path / "given", {"space": True}, "suspended"))


def test_cancel_while_suspended(tmp_path):
    """A stopped job ends when it is cancelled, and gives back what it kept."""

    async def story():
        async with open_service(tmp_path, plan_of(two(), "max-weight", preemption="suspend")) as service:
            long = run(service, "sleep 9", type="a")
            await until(lambda: service.job(long).state == "running")
            others = [run(service, "sleep 0.3", type="b") for _ in range(2)]
            await until(lambda: service.job(long).state == "suspended")
            service.cancel(long)
            assert (await finished(service, long)).state == "cancelled"
            assert service.status().resources[1].kept == 0
            for id in others:
                assert (await finished(service, id)).state == "done"

    play(tmp_path, story())


def test_a_rota_suspends(tmp_path):
    """Under a rota with preemption, the two types take turns by the clock, and everybody ends."""
    policy = rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", 8.0)

    async def story():
        async with open_service(tmp_path, plan_of(two(), policy, preemption="suspend")) as service:
            ids = [run(service, STEPS, type=type) for type in ("a", "b")]
            jobs = [await finished(service, id) for id in ids]
            assert [job.state for job in jobs] == ["done", "done"]
            assert service.executor.counters.preemptions >= 1
            assert all(0.35 < job.run_s <= job.response_s for job in jobs)
            assert max(job.response_s for job in jobs) >= sum(job.run_s for job in jobs) - 0.1  # one at a time

    play(tmp_path, story())


def test_requeue(tmp_path):
    """A job that yields gets SIGTERM and its grace, and starts again later with ROTA_RESTART=1."""

    async def story():
        async with open_service(tmp_path, plan_of(two(), "max-weight", preemption="requeue")) as service:
            script = '[ "$ROTA_RESTART" = 1 ] && exit 0; trap "echo saved; exit 75" TERM; echo on; while :; do sleep 0.01; done'
            long = run(service, script, type="a")
            await until(lambda: service.log(long, 0, 9)[0] == b"on\n")
            others = [run(service, "sleep 0.05", type="b") for _ in range(2)]
            await until(lambda: service.job(long).state in ("stopping", "waiting"))
            job = await finished(service, long)
            assert (job.state, job.restarts, job.exit_code) == ("done", 1, 0)
            assert service.log(long, 0, 99)[0].endswith(b"saved\n")
            for id in others:
                assert (await finished(service, id)).state == "done"
            starts = [(event["job"], event["attempt"]) for event in service.events(0, 99) if event["event"] == "start"]
            assert starts == [(long, 1), (others[0], 1), (long, 2), (others[1], 1)]

    play(tmp_path, story())


def test_cancel_while_stopping(tmp_path):
    """A job that is to stop and does not heed yet can be cancelled, and does not come back."""

    async def story():
        async with open_service(tmp_path, plan_of(two(), "max-weight", preemption="requeue", grace_s=60.0)) as service:
            long = run(service, "trap '' TERM; echo on; while :; do sleep 0.01; done", type="a")
            await until(lambda: service.log(long, 0, 9)[0] == b"on\n")
            others = [run(service, "exit 0", type="b") for _ in range(2)]
            await until(lambda: service.job(long).state == "stopping")
            assert service.status().resources[1].kept == 4
            text = (await service.explain(long)).text
            assert text == "It was asked to stop and has 60 s to do so; it starts again later."
            service.cancel(long, now=True)
            job = await finished(service, long)
            assert (job.state, job.restarts) == ("cancelled", 0)
            for id in others:
                assert (await finished(service, id)).state == "done"

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- over restarts


def test_another_daemon_goes_on(tmp_path):
    """Jobs of every state are found again: who runs runs on, the rest is where it was, and numbers go on."""

    async def first():
        async with open_service(tmp_path, plan_of(slots(2)), leave=True) as service:
            ended = await finished(service, run(service, "exit 4", type="small"))
            running = run(service, f"echo on; until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 5", type="small")
            short = run(service, "sleep 0.1; exit 6", type="small")
            waiting = run(service, "exit 0", type="large")
            held = run(service, "exit 0", type="small", hold=True)
            blocked = run(service, "exit 0", type="small", after_any=[running])
            await until(lambda: service.job(short).state == service.job(running).state == "running")
            return service.job(ended.id), running, short, waiting, held, blocked

    async def second(ended, running, short, waiting, held, blocked):
        await asyncio.sleep(0.2)  # `short` ends while nobody looks
        async with open_service(tmp_path) as service:
            assert any("found 5 jobs" in text for text in service.told)
            assert service.job(ended.id) == ended
            assert service.job(running).state == "running"
            assert state_of(service.job(running).pid) in ("R", "S", "D")
            over = await finished(service, short)
            assert (over.state, over.exit_code) == ("failed", 6)
            assert over.run_s == pytest.approx(0.1, abs=0.09)  # its own time, not ours
            assert [service.job(id).state for id in (waiting, held, blocked)] == ["waiting", "held", "blocked"]
            assert run(service, "exit 0", type="small", hold=True) == blocked + 1
            (tmp_path / "go").touch()
            assert (await finished(service, running)).exit_code == 5
            for id in (waiting, blocked):
                assert (await finished(service, id)).state == "done"
            assert service.log(running, 0, 9)[0] == b"on\n"

    async def story():
        await second(*await first())

    play(tmp_path, story())


def test_a_suspended_job_is_found_suspended(tmp_path):
    """It stays stopped over the restart of the daemon, goes on when its turn has come, and ends well."""
    plan = plan_of(two(), "max-weight", preemption="suspend")

    async def story():
        async with open_service(tmp_path, plan, leave=True) as service:
            long = run(service, STEPS, type="a")
            await until(lambda: service.job(long).state == "running")
            others = [run(service, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done", type="b") for _ in range(2)]
            await until(lambda: service.job(others[0]).state == "running")
            pid = service.job(long).pid
        assert is_stopped(pid)
        async with open_service(tmp_path, plan) as service:
            assert service.job(long).state == "suspended"
            await until(lambda: is_stopped(pid))  # on a busy machine it must come to its turn once more to stop
            assert service.status().resources[1].kept == 4
            (tmp_path / "go").touch()
            assert (await finished(service, long)).exit_code == 0

    play(tmp_path, story())


def test_the_rota_goes_on_where_it_was(tmp_path):
    """The state of the rota and its clock outlive the daemon."""
    policy = rota.MSR([[2, 0], [0, 1]], [0.5, 0.5], "none", 0.001)

    async def story():
        async with open_service(tmp_path, plan_of(slots(2), policy), leave=True) as service:
            await finished(service, run(service, "exit 0", type="small"))
            saved, wake = service.executor.lifecycle.scheduler.save(), service.executor.lifecycle.scheduler.wake
        async with open_service(tmp_path) as service:
            again = service.executor.lifecycle.scheduler.save()
            assert again["counters"] == saved["counters"]
            assert again["memory"] == saved["memory"]
            assert service.executor.lifecycle.scheduler.wake == wake
            assert np.isfinite(wake)

    play(tmp_path, story())


def test_events_tell_the_story(tmp_path):
    """Numbered without gaps over restarts, in the file as in the database."""

    async def story():
        for _ in range(3):
            async with open_service(tmp_path, plan_of(slots())) as service:
                await finished(service, run(service, "exit 0", type="small"))
                events = service.events(0, 1000)
        lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
        assert lines == events
        assert [event["n"] for event in lines] == list(range(1, len(lines) + 1))
        assert [event["event"] for event in lines] == ["serve", "submit", "start", "end"] * 3
        assert all(0 <= event["run_s"] <= event["response_s"] for event in lines if event["event"] == "end")

    play(tmp_path, story())


def test_old_jobs_are_forgotten(tmp_path):
    """After `keep_days` an ended job and its output are gone; numbers are not given again."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(), keep_days=1e-6)) as service:
            old = await finished(service, run(service, "echo out", type="small"))
            held = run(service, "exit 0", type="small", hold=True)
            await asyncio.sleep(0.15)
            service._prune()
            with pytest.raises(NoSuchJob):
                service.job(old.id)
            assert not os.path.exists(old.output)
            assert service.job(held).state == "held"
            service.cancel(held)
        async with open_service(tmp_path) as service:
            assert run(service, "exit 0", type="small") == held + 1

    play(tmp_path, story())


def test_states_are_the_ones_of_the_contract(tmp_path):
    """Counts in the status are by state, ended ones included."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(1, small=1))) as service:
            for script in ("exit 0", "exit 1"):
                await finished(service, run(service, script, type="small"))
            run(service, "sleep 9", type="small")
            run(service, "exit 0", type="small")
            run(service, "exit 0", type="small", hold=True)
            await until(lambda: service.status().counts.get("running"))
            counts = service.status().counts
            assert counts == {"done": 1, "failed": 1, "running": 1, "waiting": 1, "held": 1}
            assert set(counts) - set(ENDED) <= {"running", "waiting", "held"}

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- several at once


@pytest.mark.parametrize("policy", ["fcfs", "first-fit"])
@pytest.mark.parametrize("action", ["cancel", "hold"])
def test_a_range_that_leaves_starts_none_of_itself(tmp_path, policy, action):
    """Behind a job that waits for the whole server, small ones wait in which room is left: as the range goes, none of it starts."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(), policy)) as service:
            first = run(service, "sleep 60", type="small")
            later = run(service, "exit 0", type="small", hold=True)  # behind the others once it is released
            whole = run(service, "exit 0", type="large")
            rest = [run(service, "sleep 60", type="small") for _ in range(6)]
            service.release(later)
            before = {event["job"] for event in service.events(0, 1000) if event["event"] == "start"}
            assert first in before
            chosen = [id for id in (whole, later, *rest) if id not in before]
            assert len(chosen) >= 7
            jobs, refused = service.executor.change(action, [*chosen, *([first] if action == "cancel" else [])])
            assert not refused
            assert {job.state for job in jobs if job.id != first} == {"cancelled" if action == "cancel" else "held"}
            await asyncio.sleep(0.1)
            started = {event["job"] for event in service.events(0, 1000) if event["event"] == "start"}
            assert not started & set(chosen)

    play(tmp_path, story())


def test_jobs_changed_together_are_told_in_order(tmp_path):
    """The answer has the jobs in the order asked for, each once; one that refuses does not keep the others back."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            first = run(service, "sleep 60", type="large")
            ids = [run(service, "exit 0", type="small") for _ in range(3)]
            await until(lambda: service.job(first).state == "running")
            jobs, refused = service.executor.change("hold", [ids[2], first, ids[0], ids[2], 99])
            assert [job.id for job in jobs] == [ids[2], ids[0]]
            assert refused == [f"job {first} is running: only a job that waits can be held", "there is no job 99"]
            jobs, refused = service.executor.change("release", [ids[2], ids[0], ids[1]])
            assert ([job.id for job in jobs], refused) == ([ids[2], ids[0]], [f"job {ids[1]} is waiting, not held"])
            assert service.job(ids[1]).state == "waiting"

    play(tmp_path, story())


def test_a_long_chain_ends_as_a_whole(tmp_path):
    """Fifteen hundred jobs, each after the one before: when the first is cancelled, so are all, each with its reason."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            last = run(service, "exit 0", type="small", hold=True)
            for _ in range(1500):
                last = run(service, "exit 0", type="small", after=[last])
            service.cancel(1)
            assert service.job(last).reason == f"job {last - 1}, which it comes after, was cancelled"
            assert service.status().counts == {"cancelled": 1501}

    play(tmp_path, story())


def test_after_a_large_array(tmp_path):
    """A job after 20,000 others costs little when it comes, and nearly nothing whenever one of them ends."""

    async def story():
        async with open_service(tmp_path, plan_of(slots())) as service:
            many = service.submit(JobRequest(argv=["true"], type="small", array=(1, 20_000), hold=True)).ids
            begin = time.monotonic()
            follower = run(service, "exit 0", type="small", after_any=many)
            assert time.monotonic() - begin < 2
            begin = time.monotonic()
            service.executor.change("cancel", many[:-1])
            assert time.monotonic() - begin < 10
            assert service.job(follower).state == "blocked"
            service.cancel(many[-1])
            assert (await finished(service, follower)).state == "done"
            with pytest.raises(ValidationError, match="let one job come after them, and the array after it"):
                run(service, "exit 0", type="small", array=(1, 501), after=many)
            with pytest.raises(BadSpec, match="there is no job 30019\n  after: and 9,980 more"):
                run(service, "exit 0", type="small", after=list(range(30_000, 40_000)))

    play(tmp_path, story())


def test_what_was_promised_is_done_by_the_next_daemon(tmp_path, monkeypatch):
    """Cancel, hold and release are written before they are done: one that dies in between is followed by one that does them."""

    class Died(Exception):
        pass

    def die(*_):
        raise Died

    async def ask(action, *jobs):
        async with open_service(tmp_path, plan_of(slots(2)), leave=True) as service:
            ids = jobs or (run(service, "true", type="large", hold=action == "release"),)
            monkeypatch.setattr(type(service.executor.lifecycle), "_change", die)
            with pytest.raises(Died):
                getattr(service, action)(*ids)
            monkeypatch.undo()
            service.executor.writes._jobs.clear()  # what is only in memory is lost with it
            return ids[0]

    async def story():
        async with open_service(tmp_path, plan_of(slots(2)), leave=True) as service:
            running = run(service, "sleep 100", type="large")
            await until(lambda: service.job(running).state == "running")
        cancelled, held, released = await ask("cancel"), await ask("hold"), await ask("release")
        async with open_service(tmp_path, plan_of(slots(2)), leave=True) as service:
            assert [service.job(id).state for id in (cancelled, held, released)] == ["cancelled", "held", "waiting"]
            assert service.job(cancelled).reason == "cancelled by request"
            told = [(event["event"], event["job"]) for event in service.events(0, 1000) if "job" in event]
            assert told.count(("end", cancelled)) == 1
            assert ("eligible", released) in told
        await ask("cancel", running)
        async with open_service(tmp_path, plan_of(slots(2))) as service:
            assert (await finished(service, running)).state == "cancelled"
            assert (await finished(service, released)).state == "done"

    play(tmp_path, story())
