"""What the jobs of an earlier daemon become under another plan: those that run keep what they have, the others get what it says now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rota
from live_service import finished, is_stopped, open_service, plan_of, play, run, until
from rota.live.errors import Refused
from rota.live.messages import JobRequest

CORES = sorted(os.sched_getaffinity(0))
N = max(len(CORES), 2)


def server(capacity: float, resource: str = "slots", **types: float) -> rota.System:
    """One resource, and types that need so much of it."""
    K = len(types)
    demand = [[need] for need in types.values()]
    return rota.System([capacity], demand, [0.1] * K, [1.0] * K, names=tuple(types), resources=(resource,))


@pytest.mark.parametrize("resource", ["slots", "cores"])
def test_a_new_plan_in_which_a_type_needs_less(tmp_path: Path, resource: str) -> None:
    """One runs with all cores, two wait, and the next plan says that their type needs fewer: the daemon starts, the one that runs keeps
    what it has, and the others start when it has ended, with what the plan says now, side by side."""

    async def story() -> None:
        async with open_service(tmp_path, plan_of(server(N, resource, train=N)), leave=True) as service:
            first = run(service, "while [ ! -e go ]; do sleep 0.02; done", type="train", cwd=str(tmp_path))
            waiting = service.submit(JobRequest(argv=["/bin/sleep", "30"], type="train", array=(1, 2))).ids
            await until(lambda: service.job(first).pid is not None)
        async with open_service(tmp_path, plan_of(server(N, resource, train=1))) as service:
            states = [service.job(id).state for id in (first, *waiting)]
            assert states == ["running", "waiting", "waiting"]
            assert service.status().resources[0].used == N
            assert service.job(first).demand == {resource: N}
            assert [service.job(id).demand for id in waiting] == [{resource: 1}] * 2
            (tmp_path / "go").touch()
            assert (await finished(service, first)).state == "done"
            await until(lambda: all(service.job(id).state == "running" and service.job(id).pid is not None for id in waiting))
            assert service.status().resources[0].used == 2
            if service.executor.lifecycle.allocation.free("cores") is not None:
                assert [len(service.job(id).cores) for id in waiting] == [1, 1]

    play(tmp_path, story())


@pytest.mark.parametrize("resource", ["slots", "cores"])
def test_the_server_shrinks_and_the_type_goes(tmp_path: Path, resource: str) -> None:
    """What runs is counted until it ends; who waits and is too large for the server is held, and says so; others start. Under a plan that
    has room again it joins the queue by itself."""
    large, small = plan_of(server(N, resource, train=N)), plan_of(server(1, resource, test=1))

    async def story() -> None:
        async with open_service(tmp_path, large, leave=True) as service:
            first = run(service, "while [ ! -e go ]; do sleep 0.02; done", type="train", cwd=str(tmp_path))
            waits = run(service, "exit 0", type="train")
            await until(lambda: service.job(first).pid is not None)
        async with open_service(tmp_path, small, leave=True) as service:
            assert service.job(first).state == "running"
            assert (service.job(waits).state, service.job(waits).reason) == (
                "held",
                f"it is too large for the server of this plan: demand.{resource}: the server has 1 (got {float(N)})",
            )
            with pytest.raises(Refused, match="is held because it is too large for the server of this plan"):
                service.release(waits)
            test = run(service, "exit 0", type="test")
            assert service.job(test).state == "waiting"
            (tmp_path / "go").touch()
            assert (await finished(service, first)).state == "done"
            assert (await finished(service, test)).state == "done"
            assert service.status().resources[0].used == 0
        async with open_service(tmp_path, small, leave=True) as service:
            assert service.job(waits).state == "held"
        async with open_service(tmp_path, plan_of(server(N, resource, train=N, test=1))) as service:
            assert (await finished(service, waits)).state == "done"

    play(tmp_path, story())


def test_who_asked_for_amounts_never_gets_less(tmp_path: Path) -> None:
    """Two slots were asked for and the type that gave them shrank: it runs as the next that encloses it, or as its own; who named the type
    follows the type."""

    async def story() -> None:
        async with open_service(tmp_path, plan_of(server(8, train=2, block=8)), leave=True) as service:
            run(service, "sleep 60", type="block")
            asked, named = run(service, "exit 0", demand={"slots": 2}), run(service, "exit 0", type="train")
            lone = run(service, "exit 0", demand={"slots": 5})
            assert [service.job(id).type for id in (asked, named, lone)] == ["train", "train", "block"]
        async with open_service(tmp_path, plan_of(server(8, train=1, big=3, block=8)), leave=True) as service:
            assert [(job.type, job.demand["slots"]) for job in map(service.job, (asked, named, lone))] == [
                ("big", 3),
                ("train", 1),
                ("block", 8),
            ]
        async with open_service(tmp_path, plan_of(server(8, train=1))) as service:
            assert [(job.type, job.demand["slots"]) for job in map(service.job, (asked, named, lone))] == [
                ("own", 2),
                ("train", 1),
                ("own", 5),
            ]
            service.cancel(1, now=True)
            for id in (asked, named, lone):
                assert (await finished(service, id)).state == "done"

    play(tmp_path, story())


def test_a_suspended_job_whose_type_goes(tmp_path: Path) -> None:
    """It goes on where there is room, to its end, and everything is given back."""
    before = plan_of(server(N, "cores", a=N, b=N), "max-weight", preemption="suspend")

    async def story() -> None:
        async with open_service(tmp_path, before, leave=True) as service:
            first = run(service, "for i in 1 2 3 4; do sleep 0.1; done", type="a")
            await until(lambda: service.job(first).pid is not None)
            pid = service.job(first).pid
            others = [run(service, "sleep 0.3", type="b") for _ in range(2)]
            await until(lambda: service.job(first).state == "suspended" and is_stopped(pid))
        async with open_service(tmp_path, plan_of(server(N, "cores", b=N), "fcfs")) as service:
            for id in (first, *others):
                assert (await finished(service, id)).state == "done"
            assert service.status().resources[0].used == 0
            if (free := service.executor.lifecycle.allocation.free("cores")) is not None:
                assert free == tuple(CORES)

    play(tmp_path, story())


def test_parts_of_cores_that_are_handed_out_whole_now(tmp_path: Path) -> None:
    """Half a core was asked for where cores are counted only; under a plan that hands them out it gets a whole one."""

    async def story() -> None:
        async with open_service(tmp_path, plan_of(server(2, "cores", half=0.5, both=2)), leave=True) as service:
            held = run(service, "exit 0", demand={"cores": 1.5}, hold=True)
        async with open_service(tmp_path, plan_of(server(len(CORES), "cores", one=1))) as service:
            if len(CORES) >= 2:
                assert (service.job(held).type, service.job(held).demand) == ("own", {"cores": 2})
                service.release(held)
                assert (await finished(service, held)).state == "done"

    play(tmp_path, story())
