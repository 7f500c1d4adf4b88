"""Which plan is in use: the one given, one made anew when the jobs are others than planned, or one chosen by hand."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import rota
from live_service import finished, open_service, plan_of, play, run, slots, until
from rota.live.clock import boot_now
from rota.live.errors import DiskFull, NoSuchPlan, Refused
from rota.live.messages import JobRequest
from rota.live.planning.planner import choose_plan
from rota.live.storage.database import Database
from rota.policy import plan_file_to_json

ROTA = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 1.0)


def other(plan, factor=2.0):
    """The same plan for more jobs."""
    return replace(plan, system=plan.system.replace(arrival_rate=plan.system.arrival_rate * factor))


def busy(service, rate=4.0, span_s=30.0, size_s=0.2):
    """The planner hears of small jobs that came at this rate for half a minute, and of those that four slots could serve."""
    learner, now = service.planner.learner, boot_now()
    for seen in (*learner._arrivals, *learner._ends):
        seen.at = now - span_s
    learner._arrivals[0].until = -np.inf  # the last burst, by a clock that was set back
    serving = min(rate * size_s, 4.0)
    for k in range(int(rate * span_s)):
        learner.arrived(0, now - span_s + k / rate)
    learner.serving(0, now - span_s, serving)
    for k in range(int(serving / size_s * span_s)):
        learner.finished(0, now - span_s + (k + 1) * size_s / serving, size_s)
    learner.serving(0, now, 0)


# ---------------------------------------------------------------------------------------------------------------- at the start


def test_which_plan_is_run(tmp_path):
    """Without one there is an error; the one given; given again, the one in use goes on; another one gets the next number."""
    database = Database(tmp_path / "rota.db")
    plan = plan_of(slots(4), ROTA)
    with pytest.raises(NoSuchPlan, match=r"has no plan yet: give one \(from: rota plan FILE\)"):
        choose_plan(database, None)
    assert choose_plan(database, plan)[0] == 1
    assert choose_plan(database, plan)[0] == 1
    assert choose_plan(database, None)[0] == 1
    assert choose_plan(database, other(plan))[0] == 2
    number, used = choose_plan(database, None)
    assert number == 2
    assert used.system.arrival_rate.tolist() == [1.0, 1.0]
    assert [(row.number, row.reason, row.policy) for row in database.plans()] == [
        (1, "given at the start", "nMSR"),
        (2, "given at the start", "nMSR"),
    ]
    database.write(notes={"plan": 1})  # as if chosen by hand: the file that was given last does not undo that
    assert choose_plan(database, other(plan))[0] == 1
    assert choose_plan(database, plan)[0] == 3  # another file than last time is meant to be run
    database.close()


def test_a_plan_that_cannot_be_run_is_not_kept(tmp_path):
    """The error comes before the plan is written down as the one in use."""
    database = Database(tmp_path / "rota.db")
    with pytest.raises(rota.BadSpec, match="pMSR stops running jobs, and preemption is 'none'"):
        choose_plan(database, plan_of(slots(4), ROTA.replace(preemption="full")))
    with pytest.raises(rota.RotaError, match="does not fit the server"):
        choose_plan(database, plan_of(slots(3), ROTA))
    with pytest.raises(rota.BadSpec, match=r"jobs.own: is the name of jobs that no type encloses: give the type another name"):
        choose_plan(database, plan_of(slots(4, own=1, other=2)))
    assert database.plans() == []
    database.close()


def test_other_resources_while_jobs_are_there(tmp_path):
    """Jobs were promised parts of the old ones: refused until they have ended."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(2)), leave=True) as service:
            held = run(service, "exit 0", type="small", hold=True)
        system = rota.System([8, 4], [[1, 1]], [1.0], [1.0], names=("small",), resources=("cells", "space"))
        with pytest.raises(Refused, match="1 jobs need slots; this plan has cells, space"):
            async with open_service(tmp_path, plan_of(system)):
                pass
        async with open_service(tmp_path) as service:
            service.cancel(held)
        async with open_service(tmp_path, plan_of(system)) as service:
            assert service.status().plan == 2
            assert (await finished(service, run(service, "exit 0", type="small"))).state == "done"

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- by hand


def test_going_back_and_pinning(tmp_path):
    """`use` takes a plan of the past and pins it, over restarts; running jobs stay; unknown numbers and other servers are refused."""
    first = plan_of(slots(4), ROTA, learn=False)

    async def story():
        async with open_service(tmp_path, first):
            pass
        async with open_service(tmp_path, other(first)) as service:
            assert [(plan.number, plan.in_use, plan.pinned) for plan in service.plans()] == [(1, False, False), (2, True, False)]
            job = run(service, "sleep 0.3", type="small")
            await until(lambda: service.job(job).state == "running")
            used = service.use_plan(1)
            assert (used.number, used.in_use, used.pinned) == (1, True, True)
            assert used.arrival_rate == {"small": 0.5, "large": 0.5}
            assert service.job(job).state == "running"
            assert service.status().plan == 1
            assert service.status().pinned
            assert service.executor.counters.plan_swaps == 1
            swap = [event for event in service.events(0, 99) if event["event"] == "swap"]
            assert [(event["plan"], event["reason"]) for event in swap] == [(1, "chosen by hand (first: given at the start)")]
            with pytest.raises(NoSuchPlan, match="there is no plan 7"):
                service.use_plan(7)
            assert (await finished(service, job)).state == "done"
        async with open_service(tmp_path, other(first)) as service:
            assert (service.status().plan, service.status().pinned) == (1, True)
            assert not service.pin(False).pinned
        async with open_service(tmp_path, plan_of(slots(5), ROTA, learn=False)) as service:
            assert (service.status().plan, service.status().pinned) == (3, False)
            with pytest.raises(Refused, match="plan 1 is for another server or other types"):
                service.use_plan(1)
            assert service.status().plan == 3
            assert not service.status().pinned

    play(tmp_path, story())


def test_a_plan_brings_its_settings(tmp_path):
    """Another plan of the same server is swapped in with its [live] table, at once: how jobs are stopped, what a stop gives back, grace,
    window, memory."""
    calm = plan_of(slots(4), ROTA, learn=False, keep_days=9.0, window=100.0)
    keen = plan_of(slots(4), ROTA.replace(preemption="full"), preemption="suspend", releasable={"slots": True}, grace_s=3.0)

    async def story():
        async with open_service(tmp_path, keen):
            pass
        async with open_service(tmp_path, calm) as service:
            assert service.status().preemption == "none"
            service.use_plan(1)
            queue, planner = service.executor, service.planner
            assert (service.status().plan, service.status().pinned, service.status().preemption) == (1, True, "suspend")
            assert (queue.lifecycle.settings, planner.plan.live, queue.lifecycle.scheduler.stop) == (keen.live, keen.live, "suspend")
            assert queue.lifecycle.scheduler.kept_when_suspended.tolist() == [0]
            assert planner.learner.window_s == 86_400.0
            assert (await finished(service, run(service, "exit 0", type="small"))).state == "done"
            service.use_plan(2)
            assert (service.status().preemption, queue.lifecycle.settings.keep_days, planner.learner.window_s) == ("none", 9.0, 100.0)
            assert queue.lifecycle.scheduler.kept_when_suspended.tolist() == [1]
            assert (await finished(service, run(service, "exit 0", type="large"))).state == "done"

    play(tmp_path, story())


@pytest.mark.parametrize("back", [True, False])
def test_suspended_jobs_and_a_plan_with_other_rules(tmp_path, back):
    """A job that was suspended under one plan goes on under another, where a stop gives back more, or less: each core has one holder."""
    cores = len(os.sched_getaffinity(0))
    system = rota.System([cores], [[cores], [cores]], [0.1, 0.1], [1.0, 1.0], names=("a", "b"), resources=("cores",))
    gives, keeps = (plan_of(system, "max-weight", preemption="suspend", releasable={"cores": x}) for x in (True, False))
    calm = plan_of(system, "fcfs")

    async def story():
        for plan in (keeps, calm):
            async with open_service(tmp_path, plan):
                pass
        async with open_service(tmp_path, gives) as service:
            first = run(service, "sleep 0.4", type="a")
            await until(lambda: service.job(first).pid is not None)
            others = [run(service, "sleep 0.2", type="b") for _ in range(2)]
            await until(lambda: service.job(first).state == "suspended" and service.job(others[0]).pid is not None)
            service.use_plan(1 if back else 2)
            if back:
                service.use_plan(3)
            for id in (first, *others):
                assert (await finished(service, id)).state == "done"
            assert service.executor.lifecycle.allocation.free("cores") == tuple(sorted(os.sched_getaffinity(0)))
            assert service.status().resources[0].kept == 0

    play(tmp_path, story())


def test_a_plan_that_cannot_be_written_is_not_pinned(tmp_path, monkeypatch):
    """The disk is full: the answer says so, and the plan in use goes on, unpinned."""
    first = plan_of(slots(4), ROTA, learn=False)

    async def story():
        async with open_service(tmp_path, first):
            pass
        async with open_service(tmp_path, other(first)) as service:
            with monkeypatch.context() as full:
                full.setattr(service._database, "write", lambda **what: (_ for _ in ()).throw(DiskFull("the disk is full")))
                with pytest.raises(DiskFull):
                    service.use_plan(1)
                assert (service.status().plan, service.status().pinned) == (2, False)
            assert service.planner.plan.system.arrival_rate.tolist() == [1.0, 1.0]
            assert service.use_plan(1).pinned

    play(tmp_path, story())


def test_a_plan_that_needs_preemption_cannot_be_used_without(tmp_path):
    """The error says so, and the plan in use goes on, unpinned."""
    calm = plan_of(slots(4), ROTA, learn=False)
    keen = plan_file_to_json(plan_of(slots(4), ROTA.replace(preemption="full"), learn=False))

    async def story():
        async with open_service(tmp_path, calm) as service:
            row = service._database.plans()[0]
            service._database.write(plans=[replace(row, number=2, text=keen)])  # of a version that did not look
            with pytest.raises(rota.BadSpec, match="preemption is 'none'"):
                service.use_plan(2)
            assert (service.status().plan, service.status().pinned) == (1, False)
            assert (await finished(service, run(service, "exit 0", type="small"))).state == "done"

    play(tmp_path, story())


# ---------------------------------------------------------------------------------------------------------------- by learning


def test_drift_makes_a_new_plan(tmp_path):
    """Jobs come at eight times the rate of the plan: a new one is made by a process of its own and swapped in, and says why."""
    plan = plan_of(slots(4), ROTA, window=600.0)

    async def story():
        async with open_service(tmp_path, plan) as service:
            service.planner._look()
            assert not service.status().redesigning  # as planned so far
            running = run(service, "sleep 60", type="small")
            await until(lambda: service.job(running).state == "running")
            busy(service)
            service.planner._look()
            await until(lambda: service.status().redesigning)
            service.planner._look()  # one at a time
            assert len(service.planner._tasks) == 1
            await until(lambda: not service.status().redesigning)
            plans = service.plans()
            assert [plan.number for plan in plans] == [1, 2]
            assert plans[1].in_use
            assert plans[1].reason.startswith("small arrives at ")
            assert "times the plan's 0.5 per second" in plans[1].reason
            assert plans[1].arrival_rate["small"] > 2
            assert plans[1].load > 2 * rota.system_load(slots(4)).load
            assert plans[1].predicted_mean_response_s["small"] > 0
            assert service.job(running).state == "running"
            assert service.status().plan == 2
            assert any("designing anew" in text for text in service.told)
            service.planner._look()  # measured against the new plan, nothing drifts
            assert not service.status().redesigning
        async with open_service(tmp_path, plan) as service:
            assert service.status().plan == 2  # the same file as last time: what was learnt goes on
            assert service.status().types[0].arrival_rate > 2

    play(tmp_path, story())


@pytest.mark.parametrize("how", ["pinned", "not to learn"])
def test_a_plan_that_stays(tmp_path, how):
    """Pinned, or told not to learn, it stays whatever comes; the estimates are told all the same."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(4), ROTA, window=600.0, learn=how == "pinned")) as service:
            if how == "pinned":
                service.pin(True)
            busy(service)
            service.planner._look()
            assert not service.status().redesigning
            assert service.status().types[0].arrival_rate > 2

    play(tmp_path, story())


def test_a_load_above_one(tmp_path):
    """More work than the server can do is said with its amount, in the status and once in the log."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(4), ROTA, window=600.0, learn=False)) as service:
            assert not any("the load" in text for text in service.status().warnings)
            busy(service, rate=50.0)  # each a fifth of a second on one of four slots
            status = service.status()
            assert status.load > 1.2
            warning = next(text for text in status.warnings if "the load" in text)
            assert "% more work comes than the server can do" in warning
            service.planner._look()
            service.planner._look()
            assert sum("more work comes than the server can do" in text for text in service.told) == 1

    play(tmp_path, story())


def test_withdrawn_jobs_do_not_count(tmp_path):
    """Who is cancelled before it ran is no work: the estimate stays with the plan."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(4), ROTA, window=600.0)) as service:
            run(service, "sleep 60", type="large")
            before = service.planner.estimate().jobs[0]
            sent = service.submit(JobRequest(argv=["/bin/true"], type="small", array=(1, 200), hold=True))
            assert service.planner.estimate().jobs[0] == before  # held: it has not come yet
            for id in sent.ids:
                service.cancel(id)
            assert service.planner.estimate().jobs[0] == pytest.approx(before)

    play(tmp_path, story())


def test_what_is_written_is_what_runs(tmp_path):
    """The history holds whole plan files."""
    database = Database(tmp_path / "rota.db")
    plan = plan_of(slots(4), ROTA)
    choose_plan(database, plan)
    assert database.plans()[0].text == plan_file_to_json(plan)
    assert database.plans()[0].load == 0.5
    database.close()
