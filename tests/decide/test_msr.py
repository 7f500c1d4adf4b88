"""pMSR, nMSR and sMSR, with and without backfilling, against the definition of their process, event by event."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from reference_simulator import ARRIVE, PREEMPT, START, Given, assert_agrees, engine_log, jobs_for
from rota.decide import decider_of
from rota.model.workload import Chunk
from rota.simulation.run import Run
from rota.simulation.workload import PoissonArrivals
from rotas import PREEMPTIONS, systems_and_rotas


def served(policy):
    """The types that some candidate serves."""
    return [i for i, most in enumerate(policy.candidates.max(axis=0)) if most]


@pytest.mark.parametrize("empty_slots", ["virtual", "skip"])
@pytest.mark.parametrize("backfill", [False, True, "hold"], ids=["plain", "backfill", "hold"])
@pytest.mark.parametrize("preemption", PREEMPTIONS)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_agrees_with_its_definition(preemption, backfill, empty_slots, data, seed):
    """Rotas with all routes, openings and generators follow the definition of their process; nMSR never preempts."""
    if preemption != "none" and (empty_slots == "skip" or backfill == "hold"):
        return  # nothing is drained: the same as "virtual"; only the nMSR holds
    system, policy = data.draw(systems_and_rotas(preemption, again=True))
    policy = policy.replace(backfill=backfill, empty_slots=empty_slots)
    log = assert_agrees(system, policy, data.draw(jobs_for(served(policy), most=15)), seed)
    assert preemption != "none" or all(kind != PREEMPT for _, kind, _, _ in log)


PAIR = rota.System([4], [[1], [2]], [1, 1], [1, 1])


def test_early_slots_stay_open_while_others_drain():
    """Draining together with early opening: a slot that has opened for a small job is not closed again for a larger one.

    Of three slots of type 0 one is empty, so type 2 (one unit) starts before type 1 (two units) has room, and is never stopped.
    """
    system = rota.System([3], [[1], [2], [1]], [1, 1, 1], [1, 1, 1])
    policy = rota.MSR([[3, 0, 0], [0, 1, 1]], [0.5, 0.5], "none", 5.0, route="parallel", opening="early")
    jobs = Given(tuple((0.0, i, size, size) for i, size in [(0, 2.0), (0, 3.0), (0, 4.0), (1, 9.0), (2, 9.0)]))
    for seed in range(20):
        log = assert_agrees(system, policy, jobs, seed)
        assert all(kind != PREEMPT for _, kind, _, _ in log)


def test_one_candidate_never_moves():
    """A rota of one schedule asks for nothing but its slots: no timer rings."""
    policy = rota.MSR([[2, 1]])
    jobs = Given(tuple((0.0, i, 1.0, 1.0) for i in (0, 0, 0, 1, 1)))
    run = Run(PAIR, decider_of(PAIR, policy), np.random.SeedSequence(0), batch_jobs=10**9, log_jobs=10**9, check=True)
    run.feed(Chunk(*jobs.columns()), drain=True)
    assert run.events == 10
    assert [job for time, kind, _, job in engine_log(PAIR, policy, jobs) if kind == START and time == 0.0] == [0, 1, 3]


def test_skipping_needs_no_completion_of_an_empty_slot():
    """With "skip" a rota whose slots are empty is at its next schedule at once; with "virtual" it waits for them."""
    policy = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 100.0)
    jobs = Given(((1.0, 1, 1.0, 1.0),))
    waits = {}
    for empty_slots in ("virtual", "skip"):
        logs = [engine_log(PAIR, policy.replace(empty_slots=empty_slots), jobs, seed) for seed in range(40)]
        waits[empty_slots] = sum(log[1][0] - 1.0 for log in logs) / 40
    assert waits["skip"] < 0.1
    assert waits["virtual"] > 0.3


def test_backfilled_jobs_give_way_with_preemption_and_stay_without():
    """A job that was backfilled yields to the schedule's own as soon as one comes, if it may be stopped; else it runs to its end."""
    schedules = [[4, 0]]
    jobs = Given(((0.0, 1, 5.0, 5.0), *(((1.0, 0, 1.0, 1.0),) * 4)))
    log = engine_log(PAIR, rota.MSR(schedules, backfill=True), jobs)
    assert (0.0, START, 1, 0) in log
    assert (1.0, PREEMPT, 1, 0) in log
    assert log[-1][0] == 6.0  # it had 4 left at 1, and goes on at 2
    log = engine_log(PAIR, rota.MSR(schedules, preemption="none", backfill=True), jobs)
    assert [(time, job) for time, kind, _, job in log if kind == START] == [(0, 0), (1, 1), (1, 2), (2, 3), (2, 4)]


SLOW_SETUPS = rota.System([4], [[1], [2]], [8, 0.1], [5, 0.1], preemption="setup", setup_time=50.0).scaled(load=0.75)


def stops_of(log, kinds):
    """Of every moment at which jobs are stopped: (time, the jobs stopped, those that run on or start then, when their room is taken)."""
    moments, running = [], set()
    for time, entries in itertools.groupby(log, key=lambda entry: entry[0]):
        stopped = set()
        for _, kind, _, job in entries:
            if kind == START:
                running.add(job)
            elif kind != ARRIVE:
                running.remove(job)
                if kind == PREEMPT:
                    stopped.add(job)
        held = sum(SLOW_SETUPS.demand[kinds[job], 0] for job in running)
        for moment in moments:
            if moment["taken"] is None and held + moment["needs"] > SLOW_SETUPS.capacity[0]:
                moment["taken"] = time
        if stopped:
            needs = sum(SLOW_SETUPS.demand[kinds[job], 0] for job in stopped)
            taken = time if held + needs > SLOW_SETUPS.capacity[0] else None
            moments.append({"time": time, "jobs": stopped, "needs": needs, "taken": taken})
    return moments


def test_every_preemption_pays_a_setup():
    """With setups and backfilling a stopped job, backfilled or not, holds its room for a setup: what runs fits beside it meanwhile.

    The room of n stopped jobs is taken when the first setup is done at the earliest, after 50/n on average.
    """
    policy = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "setup", 0.02, setup_rate=0.02, backfill=True)
    jobs = next(iter(PoissonArrivals().chunks(SLOW_SETUPS, np.random.SeedSequence(1))))
    jobs = Given(tuple(zip(*(column[:20_000].tolist() for column in (jobs.times, jobs.kinds, jobs.sizes, jobs.estimates)), strict=True)))
    moments = stops_of(engine_log(SLOW_SETUPS, policy, jobs, 1), [kind for _, kind, _, _ in jobs.jobs])
    assert len(moments) >= 5
    assert all(moment["taken"] is None or moment["taken"] > moment["time"] for moment in moments)
    paid = [len(moment["jobs"]) * (moment["taken"] - moment["time"]) for moment in moments if moment["taken"] is not None]
    assert np.mean(paid) > 25


def test_a_rota_that_never_switches_stops_nobody():
    """With setups, a rota of one schedule pays for nothing, and so its backfilled jobs run to their end, as without preemption."""
    jobs = random_given(400)
    policy = rota.MSR([[4, 0]], backfill=True, preemption="setup", setup_rate=0.02)
    log = engine_log(PAIR, policy, jobs)
    assert all(kind != PREEMPT for _, kind, _, _ in log)
    assert log == engine_log(PAIR, policy.replace(preemption="none", setup_rate=None), jobs)


def test_stopping_spares_jobs_that_are_not_in_the_way():
    """At a switch only jobs that hold some of what is short are stopped, though others are younger; the others go on."""
    system = rota.System([2, 2], [[1, 0], [2, 0], [0, 1]], [1, 1, 1], [1, 1, 1])
    policy = rota.MSR([[2, 0, 0], [0, 1, 0]], [0.5, 0.5], "setup", 1.0, setup_rate=1.0, backfill=True)
    jobs = Given(tuple((0.0, i, 30.0, 30.0) for i in (0, 0, 1, 2)))
    log = assert_agrees(system, policy, jobs)
    first = next(time for time, kind, _, _ in log if kind == PREEMPT)
    assert [job for time, kind, _, job in log if kind == PREEMPT and time == first] == [1, 0]
    assert all(kind != PREEMPT for _, kind, _, job in log if job == 3)


def random_given(n):
    """Random jobs of two types."""
    rng = np.random.default_rng(0)
    sizes = rng.standard_exponential(n).tolist()
    return Given(tuple(zip(np.cumsum(rng.random(n)).tolist(), rng.integers(0, 2, n).tolist(), sizes, sizes, strict=True)))


def test_during_a_switch_jobs_start_in_slots_that_are_open_or_ahead():
    """nMSR with backfilling: until a switch ends, a job starts if it has a slot that is still open or one in the schedule ahead; else not.

    Read off the decisions: both kinds of starts happen. What starts in the same moment as the switch ends is backfilled, and not counted.
    """
    policy = rota.MSR([[4, 0, 1], [0, 2, 0], [1, 0, 3]], [0.4, 0.3, 0.3], "none", 2.0, backfill=True)
    system = rota.System([6], [[1], [3], [1]], [1, 0.4, 1], [1, 1, 1])
    decider = decider_of(system, policy)
    open_slots = ahead = 0

    def spy(state, target):
        nonlocal open_slots, ahead
        before = state.running.copy()
        again = decider.decide(state, target)
        s = state.counters[0]
        if not decider.data.working[s]:
            for i in np.flatnonzero(target > before):
                slots, coming = decider.data.schedules[s, i], decider.data.schedules[decider.data.goal[s], i]
                assert target[i] <= max(slots, coming)
                open_slots += slots > coming
                ahead += coming >= slots
        return again

    spied = rota.Custom(spy, data=decider.data, memory=decider.memory, counters=decider.counters, compiled=False)
    rota.simulate(system, spied, jobs=2000)
    assert open_slots > 20
    assert ahead > 20


HOLDING = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 1.0, backfill="hold")


def test_a_rota_holds_while_nothing_weighs_more():
    """The clock rings in vain while four small jobs are there and one large one waits, 16 against 1; at 10 against 9 it moves."""
    small, large = (0, 100.0, 100.0), (1, 1.0, 1.0)
    crowd = Given(tuple((0.0, *job) for job in [small] * 4 + [large]))
    for seed in range(20):
        starts = {job: time for time, kind, _, job in engine_log(PAIR, HOLDING, crowd, seed) if kind == START}
        assert starts[4] == 100.0
        assert [time for time, kind, _, job in engine_log(PAIR, HOLDING.replace(backfill=True), crowd, seed) if (kind, job) == (START, 4)]
    ends = [*((0, size, size) for size in (10.0, 20.0, 30.0, 40.0)), *[(1, 100.0, 100.0)] * 5]
    mixed = Given(tuple((0.0, *job) for job in ends))
    for seed in range(20):
        starts = {job: time for time, kind, _, job in engine_log(PAIR, HOLDING, mixed, seed) if kind == START}
        assert starts[4] >= 20.0  # 4 small weigh 16, 3 weigh 9, and 2·5 = 10 is more: then two ends make room for one


def test_one_schedule_is_held_anyway():
    """A rota of one schedule has no clock: with "hold" it does what it does with backfilling, job by job."""
    policy = rota.MSR([[2, 1]], preemption="none", backfill="hold")
    jobs = random_given(400)
    assert engine_log(PAIR, policy, jobs) == engine_log(PAIR, policy.replace(backfill=True), jobs)


def test_only_without_preemption_does_a_rota_hold():
    """Elsewhere a backfilled job gives way, and "hold" is refused."""
    for preemption, setup in (("full", None), ("setup", 1.0)):
        with pytest.raises(rota.BadSpec, match='can be "hold" with preemption = "none" only'):
            rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], preemption, 1.0, setup_rate=setup, backfill="hold")
    with pytest.raises(rota.BadSpec, match='must be True, False or "hold"'):
        HOLDING.replace(backfill="safe")


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_backfilling_serves_types_without_a_slot(preemption, data, seed):
    """With backfilling, types that no candidate serves are served all the same, and the definition holds for them too."""
    system, policy = data.draw(systems_and_rotas(preemption))
    jobs = data.draw(jobs_for(range(len(system.names)), most=8))
    assert_agrees(system, policy.replace(backfill=True), jobs, seed)


def test_policy_of_another_system():
    """A rota whose schedules do not fit, or have other types, is refused with the reason."""
    with pytest.raises(rota.BadSpec, match="needs 2 counts per candidate"):
        rota.simulate(PAIR, rota.MSR([[1, 1, 1]]), jobs=1000)
    with pytest.raises(rota.Infeasible, match=r"\[5, 0\] does not fit"):
        rota.simulate(PAIR, rota.MSR([[5, 0]]), jobs=1000)
    with pytest.raises(rota.BadSpec, match="differ from those of the system"):
        rota.simulate(PAIR, rota.MSR([[1, 1]], names=["x", "y"]), jobs=1000)
