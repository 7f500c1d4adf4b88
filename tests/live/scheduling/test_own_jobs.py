"""Own jobs that want to start: the oldest that fits, at a cost that does not grow with their number."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.decide import seeded
from rota.live.scheduling.own_jobs import OwnJobs
from rota.live.scheduling.scheduler import OWN, Scheduler

needs = st.tuples(st.integers(0, 3), st.integers(0, 3))
steps = st.lists(
    st.tuples(st.just("add"), st.integers(0, 30), needs)
    | st.tuples(st.just("discard"), st.integers(0, 30), st.none())
    | st.tuples(st.just("first"), st.none(), needs)
    | st.tuples(st.just("copy"), st.none(), st.none()),
    max_size=60,
)


@given(steps)
def test_the_oldest_that_fits(steps):
    """Whatever comes and goes, the answer is that of a search through all jobs in their order."""
    own, plain = OwnJobs(2), {}
    for step, (what, job, value) in enumerate(steps):
        if what == "add" and job not in plain:
            own.add(job, sequence := (37 * job + 11 * step) % 101 * 100 + job, np.array(value))
            plain[job] = (sequence, value)
        elif what == "discard":
            own.discard(job)
            plain.pop(job, None)
        elif what == "first":
            fitting = [(sequence, job) for job, (sequence, need) in plain.items() if need[0] <= value[0] and need[1] <= value[1]]
            assert own.first(np.array(value)) == (min(fitting)[1] if fitting else None)
        elif what == "copy":
            left = own
            own = own.copy()
            for other in plain:
                left.discard(other)
        assert len(own) == len(plain)


def calls(work):
    """How many functions, Python's and C's, are called while something is done."""
    count = 0

    def hear(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hear)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("different", [False, True], ids=["one demand", "a demand each"])
@pytest.mark.parametrize("policy", [rota.FCFS(), rota.MaxWeight()], ids=["fcfs", "max-weight"])
def test_the_cost_of_an_event_does_not_grow_with_own_jobs(policy, different):
    """Jobs that no type encloses: 200 arrivals, ends and starts are as much work with 2,000 of them in the queue as with 200."""
    system = rota.System([100_000], [[1]], [1.0], [1.0], names=("one",), resources=("slots",))

    def work_with(waiting):
        scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(0)), stop="suspend")
        scheduler.begin(0.0)
        scheduler.arrive(0, OWN, 0.0, demand=scheduler.units_of([99_999]))
        for id in range(1, waiting + 1):
            scheduler.arrive(id, OWN, 0.0, demand=scheduler.units_of([90_000 + id * different]))
        assert scheduler.jobs[0].state == "running"

        def events():
            for id in range(10_000, 10_200):
                scheduler.arrive(id, OWN, 1.0, demand=scheduler.units_of([85_000 + id * different]))
            for id in range(20_000, 20_200):
                assert scheduler.arrive(id, 0, 1.0).start == ([id] if id == 20_000 else [])
            scheduler.leave(0, 2.0)
            started = next(job for job in scheduler.jobs.values() if job.kind == OWN and job.state == "running")
            for _ in range(100):
                (following,) = (id for id in scheduler.leave(started.id, 3.0).start if id < 20_000)
                assert following > started.id
                started = scheduler.jobs[following]

        return calls(events)

    few, many = work_with(200), work_with(2000)
    assert many < 1.2 * few
