"""The numbers of the status."""

from __future__ import annotations

import pytest

import rota
from live_service import finished, open_service, plan_of, play, run, slots, until
from rota.live.messages import JobRequest

FOREVER = "sleep 99"


def own(service, **demand):
    """A job of its own class that stays."""
    return service.submit(JobRequest(argv=["/bin/sleep", "99"], demand=demand)).ids[0]


def test_the_numbers_of_the_status(tmp_path):
    """Resources in use, counts by type, what was planned, seen, measured and predicted."""
    system = rota.System([4, 10], [[1, 4], [2, 0]], [0.5, 0.25], [2.0, 4.0], names=("a", "b"), resources=("slots", "space"))

    async def story():
        plan = plan_of(system, "first-fit", time_unit="min")
        async with open_service(tmp_path, plan) as service:
            status = service.status()
            assert (status.plan, status.pinned, status.preemption, status.policy) == (1, False, "none", "first-fit")
            assert (status.phase, status.next_switch_s, status.own, status.redesigning) == ("", None, None, False)
            assert [type.demand for type in status.types] == [{"slots": 1, "space": 4}, {"slots": 2, "space": 0}]
            assert status.types[0].planned_arrival_rate == pytest.approx(0.5 / 60)
            assert [type.planned_mean_size_s for type in status.types] == [30, 15]
            assert [type.predicted_mean_response_s for type in status.types] == [60, 60]
            assert [type.predicted_p95_response_s for type in status.types] == [180, 180]
            assert status.planned_load == pytest.approx(rota.system_load(system).load)
            done = await finished(service, run(service, "exit 0", type="b"))
            ids = [run(service, FOREVER, type=type) for type in ("a", "b", "a", "a")]
            await until(lambda: service.status().counts.get("running") == 3)
            status = service.status()
            assert [(use.name, use.capacity, use.used, use.kept) for use in status.resources] == [("slots", 4, 4, 0), ("space", 10, 8, 0)]
            assert [(type.waiting, type.running, type.ended) for type in status.types] == [(1, 2, 0), (0, 1, 1)]
            assert status.counts == {"done": 1, "running": 3, "waiting": 1}
            assert status.types[1].mean_response_s == pytest.approx(done.response_s)
            assert status.types[1].p95_response_s == pytest.approx(done.response_s, rel=0.03)
            assert status.types[0].mean_response_s is None
            assert status.types[0].arrival_rate > status.types[0].planned_arrival_rate  # drawn to the plan, and three came at once
            assert status.starts == 4
            assert status.decisions >= 5
            assert status.decision_us > 0
            assert any("space is counted only" in text for text in status.warnings)
            assert service.job(ids[0]).demand == {"slots": 1, "space": 4}
            assert 'rota_jobs{state="running",type="a"} 2' in service.metrics()

    play(tmp_path, story())


def test_the_load_of_an_idle_machine_is_explained(tmp_path):
    """Ten short jobs where long ones were planned: nothing runs, and the load is not 0. It comes with its error and what it is made of."""
    system = rota.System([2], [[1]], [0.05], [0.01], names=("long",), resources=("slots",))

    async def story():
        async with open_service(tmp_path, plan_of(system, "first-fit", learn=False)) as service:
            for id in [run(service, "exit 0", type="long") for _ in range(10)]:
                await finished(service, id)
            status = service.status()
            assert status.resources[0].used == 0
            assert status.load > 0.2  # two planned jobs of 100 s weigh more than ten that took no time
            assert status.load_error > 0.2 * status.load  # and it is not sure at all
            words = "the work that arrives, not what runs now: 10 jobs came and 10 ended in the last "
            assert status.load_basis.startswith(words)
            assert status.load_basis.endswith(", beside 2 of each type as planned")
            assert not any("the load" in text for text in status.warnings)

    play(tmp_path, story())


def test_a_demand_that_is_no_unit_of_the_plan(tmp_path):
    """Types of 4 on a server of 10: what is shown is 4, not a half of the server; and an own job gets what it asked for."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(10, four=4))) as service:
            run(service, FOREVER, type="four")
            assert service.status().resources[0].used == 4
            big = own(service, slots=5.5)
            await until(lambda: service.job(big).state == "running")
            assert service.status().resources[0].used == 9.5

    play(tmp_path, story())
