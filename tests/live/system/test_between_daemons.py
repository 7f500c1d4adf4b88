"""What the next daemon makes of the jobs of the one before; and decisions that are taken back before anything was done."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import rota
from live_service import finished, open_service, plan_of, play, run, slots, until
from rota.live.service import Service


def told_of(service: Service, id: int) -> list[str]:
    """What the event log says of a job."""
    return [event["event"] for event in service.events(0, 1000) if event.get("job") == id]


@pytest.mark.parametrize("preemption", ["suspend", "requeue"])
def test_started_and_stopped_in_one_turn(tmp_path: Path, preemption: str) -> None:
    """A job that is to start and to yield before anything was done is not started: it is at no time beside those that took its place."""

    async def story() -> None:
        async with open_service(tmp_path, plan_of(slots(), "max-weight", preemption=preemption, releasable={"slots": True})) as service:
            stamp = f"echo begin $ROTA_JOB_ID >> {tmp_path}/stamps; sleep 0.1; echo end $ROTA_JOB_ID >> {tmp_path}/stamps"
            first = run(service, stamp, type="small")
            larger = [run(service, stamp, type="large") for _ in range(3)]
            assert service.job(first).state == "waiting"
            assert service.job(first).started is None
            assert service.job(first).cores is None
            for id in (first, *larger):
                job = await finished(service, id)
                assert (job.state, job.restarts) == ("done", 0)
            lines = (tmp_path / "stamps").read_text().split("\n")
            assert all(lines[k].removeprefix("begin ") == lines[k + 1].removeprefix("end ") for k in range(0, 8, 2)), lines
            assert told_of(service, first)[:3] == ["submit", "start", preemption]
            assert (service.executor.lifecycle.scheduler.state.free == service.executor.lifecycle.scheduler.state.capacity).all()

    play(tmp_path, story())


def test_ended_while_the_daemon_was_down(tmp_path: Path) -> None:
    """A job that ended in the meantime is not told to yield: it is booked as ended, with the time that it took."""

    plan = plan_of(slots(), "first-fit", preemption="suspend", releasable={"slots": True})

    async def before() -> tuple[int, float]:
        async with open_service(tmp_path, plan, leave=True) as service:
            id = run(service, "sleep 0.2", type="small")
            for _ in range(3):
                run(service, "true", type="large")
            await until(lambda: service.job(id).pid is not None)
            return id, time.monotonic()

    async def after(id: int, since: float) -> None:
        async with open_service(tmp_path, plan_of(slots(), "max-weight", preemption="suspend", releasable={"slots": True})) as service:
            down_s = time.monotonic() - since
            job = await finished(service, id)
            assert (job.state, job.restarts) == ("done", 0)
            assert told_of(service, id) == ["submit", "start", "end"]
            assert job.run_s is not None
            assert 0.2 <= job.run_s < down_s
            assert service.executor.measures.size("small").mean == pytest.approx(job.run_s, rel=0.1)

    async def story() -> None:
        id, since = await before()
        await asyncio.sleep(1.5)
        await after(id, since)

    play(tmp_path, story())


def test_the_policy_hears_of_ends_while_the_daemon_was_down(tmp_path: Path) -> None:
    """Ends in the meantime come to the policy as completions, before it is asked anything else: a rota that drains goes on draining."""
    heard: list[tuple[int, int]] = []

    async def before() -> None:
        async with open_service(tmp_path, plan_of(slots(), "first-fit"), leave=True) as service:
            ids = [run(service, "sleep 0.1", type="small") for _ in range(2)]
            await until(lambda: all(service.job(id).pid is not None for id in ids))

    async def after() -> None:
        service = Service(tmp_path, None, log_line=lambda text: None)
        decide = service.executor.lifecycle.scheduler._decide
        service.executor.lifecycle.scheduler._decide = lambda kind, i, now: (heard.append((kind, i)), decide(kind, i, now))[1]  # type: ignore[method-assign]
        await service.open()
        await service.close()

    async def story() -> None:
        await before()
        await asyncio.sleep(0.5)
        await after()

    play(tmp_path, story())
    assert heard[:3] == [(rota.decide.COMPLETION, 0), (rota.decide.COMPLETION, 0), (rota.decide.CHANGE, 0)]
