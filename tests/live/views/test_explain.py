"""Why a job waits, in each situation."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

import rota
from live_service import finished, open_service, plan_of, play, run, slots
from rota.live.clock import boot_now
from rota.live.errors import NoSuchJob
from rota.live.messages import Explanation, JobRequest
from rota.live.scheduling.forecast import Outlook
from rota.live.scheduling.starts import Starts
from rota.live.views.explain import with_forecast

FOREVER = "sleep 99"


def own(service, **demand):
    """A job of its own class that stays."""
    return service.submit(JobRequest(argv=["/bin/sleep", "99"], demand=demand)).ids[0]


def test_first_come_first_served(tmp_path):
    """Held, blocked, running, ended; waiting for those before it and for room, with a forecast."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(2))) as service:
            over = await finished(service, run(service, "exit 3", type="small"))
            first = run(service, FOREVER, type="large")
            second, third, fourth = (run(service, "exit 0", type="small") for _ in range(3))
            held = run(service, "exit 0", type="small", hold=True)
            one, both = run(service, "exit 0", type="small", after=[first]), run(service, "exit 0", type="small", after_any=[first, second])

            async def said(id):
                return (await service.explain(id)).text

            assert await said(over.id) == "It has ended: failed (exit code 3)."
            assert await said(first) == "It runs."
            assert await said(held) == f"It is held (held by request): rota release {held} lets it join the queue."
            assert await said(one) == f"It waits for job {first} to end."
            assert await said(both) == f"It waits for jobs {first}, {second} to end."
            many = service.submit(JobRequest(argv=["true"], type="small", array=(1, 30), hold=True)).ids
            after_many = run(service, "exit 0", type="small", after=many)
            assert (await said(after_many)).endswith(f", {many[19]} and 10 more to end.")
            assert (await said(second)).startswith("It needs 1 slots (0 free). It starts within ")
            assert (await said(third)).startswith("1 job of type small is before it. It needs 1 slots (0 free).")
            asked = time.time()
            last = await service.explain(fourth)
            assert last.as_of is not None
            assert asked <= last.as_of <= time.time()  # its times count from the answer, not from the question
            assert last.text.startswith("2 jobs of type small are before it.")
            assert (last.id, last.state, last.ahead, last.runs, last.method) == (fourth, "waiting", 2, 99, "simulation")
            assert last.text.endswith(" with 95 % (by 99 simulated futures).")
            assert 0 < last.start_median_s <= last.start_p80_s <= last.start_p90_s <= last.start_p95_s < 20
            assert last.at_least == []
            assert (await service.explain(first)).start_median_s is None
            assert (await service.explain(first)).as_of is None
            with pytest.raises(NoSuchJob):
                await service.explain(99)

    play(tmp_path, story())


def test_a_rota(tmp_path):
    """A type without a place now is told where it has one, and when the rota moves on; a full one that its places are taken."""
    policy = rota.MSR([[2, 0], [0, 1]], [0.5, 0.5], "none", 0.001)
    hours = slots(3).replace(service_rate=[1e-4, 1e-4])  # nothing is learnt in a moment about such jobs

    async def story():
        async with open_service(tmp_path, plan_of(hours, policy)) as service:
            status = service.status()
            assert status.phase == "2 × small"
            assert status.policy == "nMSR"
            assert status.next_switch_s > 0
            assert [type.slots for type in status.types] == [2, 0]
            small = [run(service, FOREVER, type="small") for _ in range(3)]
            large = run(service, "exit 0", type="large")
            text = (await service.explain(large)).text
            assert "The rota now has 2 × small, without a place for its type; it has one in: 1 × large." in text
            assert "The rota moves on in about" in text
            text = (await service.explain(small[2])).text
            assert "The rota now has 2 × small: 2 places for its type, all taken." in text
            found = await service.explain(large)
            assert found.text.endswith(" with 95 % (by the exact law of the rota).")
            assert 0 < found.start_median_s < found.start_p80_s < found.start_p95_s
            assert (found.method, found.runs) == ("theory", 0)

    play(tmp_path, story())


def test_a_policy_that_keeps_room(tmp_path):
    """EASY keeps the head of the queue its room: a job that would fit is told so."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(3, small=1, large=3), "easy")) as service:
            run(service, FOREVER, type="small", estimate_s=5.0)
            run(service, FOREVER, type="large", estimate_s=5.0)
            small = run(service, FOREVER, type="small", estimate_s=50.0)
            text = (await service.explain(small)).text
            assert text.startswith("There is enough free capacity for it, but easy keeps that for others.")

    play(tmp_path, story())


def test_an_own_class(tmp_path):
    """It is told that it has to wait for room that the policy leaves, and what it lacks."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(2.5, small=1))) as service:
            run(service, FOREVER, type="small")
            found = await service.explain(own(service, slots=2.5))
            assert found.text.startswith(
                "It needs 2.5 slots (1.5 free). "
                "No type of the plan encloses it, so it starts only when the policy leaves enough free capacity."
            )
            assert found.runs == 99  # and it has an estimate, as others do
            assert 0 < found.start_median_s < found.start_p90_s

    play(tmp_path, story())


@pytest.mark.parametrize("what", ["starts", "ends"])
def test_an_answer_is_of_one_moment(tmp_path, what, monkeypatch):
    """The job starts, or is cancelled, while its futures are played: the answer tells what it is then, and nothing of before."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(1, small=1))) as service:
            first, waits = run(service, FOREVER, type="small"), run(service, FOREVER, type="small")
            loop, job = asyncio.get_running_loop(), service.executor.lifecycle.jobs[waits]

            def slow(outlook, **options):
                loop.call_soon_threadsafe(service.cancel, first if what == "starts" else waits, True)
                limit = time.monotonic() + 20
                while job.state == "waiting" and time.monotonic() < limit:
                    time.sleep(0.005)
                return Starts(times=(1.0,) * 50)

            monkeypatch.setattr(Outlook, "starts", slow)
            found = await service.explain(waits)
            if what == "starts":
                assert found.state in ("starting", "running")
                assert found.text == "It runs."
            else:
                assert found.state == "cancelled"
                assert found.text == "It has ended: cancelled (cancelled by request)."
            assert (found.ahead, found.start_median_s, found.runs) == (None, None, 0)

    play(tmp_path, story())


def test_the_learnt_sizes_are_what_counts(tmp_path):
    """Jobs take 20 s where the plan says 0.2: once that has been seen, forecasts go by it."""

    async def story():
        async with open_service(tmp_path, plan_of(slots(1, small=1), learn=False)) as service:
            run(service, FOREVER, type="small")
            waiting = [run(service, FOREVER, type="small") for _ in range(5)]
            before = (await service.explain(waiting[-1])).start_median_s
            learner, now = service.planner.learner, boot_now()
            learner._ends[0].at = now - 4000.0
            learner.serving(0, now - 4000.0, 1)
            for k in range(200):
                learner.finished(0, now - 4000.0 + 20.0 * (k + 1), 20.0)
            after = (await service.explain(waiting[-1])).start_median_s
            assert before < 5
            assert 60 < after < 160  # five jobs of 20 s each

    play(tmp_path, story())


NOW = Explanation(id=7, state="waiting", text="It waits.", ahead=3)


@pytest.mark.parametrize(
    ("starts", "says", "bounds"),
    [
        (
            Starts(times=tuple(range(60, 100 * 60, 60))),
            "It starts within 50 min with probability 50 %, 80 min with 80 % and 95 min with 95 % (by 99 simulated futures).",
            [],
        ),
        (
            Starts(times=tuple(range(60, 10 * 60, 60))),
            "It starts within 5 min with probability 50 % and 8 min with 80 %; for 95 % it is at least 9 min (by 9 simulated futures).",
            ["start_p95_s"],
        ),
        (
            Starts(times=(120.0,), cut=(7200.0, 9000.0)),
            "For a start with probability 50 % it is at least 2 h (by 3 simulated futures; there was no time for more).",
            ["start_median_s", "start_p80_s", "start_p90_s", "start_p95_s"],
        ),
        (
            Starts(cut=(7200.0,)),
            "It does not start in 1 simulated future, the shortest of which was followed for 2 h.",
            ["start_median_s", "start_p80_s", "start_p90_s", "start_p95_s"],
        ),
        (
            Starts(cut=(np.inf,) * 99),
            "It does not start in 99 simulated futures.",
            [],
        ),
    ],
    ids=["all known", "few", "cut", "one", "never"],
)
def test_the_words_of_a_forecast(starts, says, bounds):
    """Times in people's units; where futures were too few, or not followed far enough, `at least`."""
    found = with_forecast(NOW, starts, 1e9)
    assert found.text == f"It waits. {says}"
    assert found.at_least == bounds
    assert (found.ahead, found.runs, found.method, found.as_of) == (3, starts.runs, "simulation", 1e9)


def test_without_a_future_nothing_is_said():
    """No time for a single future: the explanation stays as it is."""
    assert with_forecast(NOW, Starts(), 1e9) == NOW
