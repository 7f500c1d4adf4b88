"""The engine of fleets against the engine of one server and against a plain-Python simulator, event by event."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from every_policy import SYSTEM, policy_for
from fleet_reference import RETURNED, SENT, assert_agrees, engine_log
from fleets import small_fleets
from reference_simulator import ARRIVE, FINISH, PREEMPT, START, jobs_for
from rota.model.dispatch import DISPATCH_RULES
from rota.policy import records
from rota.simulation.fleet.policy import as_fleet_policy

SENDING = [name for name, record in DISPATCH_RULES.items() if not record.central]
LOOKING = [name for name in SENDING if DISPATCH_RULES[name].looks]
POLICIES = [rota.FirstFit(), rota.FCFS(), rota.MaxWeight(), rota.CMuM()]


@pytest.mark.parametrize("record", records(), ids=lambda record: record.name)
def test_one_server_is_the_engine_of_one_server(record):
    """A fleet of one server under each rule that sends jobs has the same events and the same numbers, bit for bit, under every policy."""
    policy = policy_for(record)
    alone = rota.simulate(SYSTEM, policy, jobs=3000, seed=5, log_jobs=400)
    rule = SENDING[len(record.name) % len(SENDING)]
    fleet = rota.simulate(rota.Fleet.equal(SYSTEM, 1), policy, dispatch=rule, jobs=3000, seed=5, log_jobs=400)
    assert fleet.log.drop("server").equals(alone.log)
    assert (fleet.log["server"] == 0).all()
    assert fleet.fingerprint == alone.fingerprint
    for name in ("mean_response_time", "interval", "events", "switching_fraction", "preemption_rate", "unproved_decisions", "growth"):
        assert getattr(fleet, name) == getattr(alone, name) or (math.isnan(getattr(fleet, name)) and math.isnan(getattr(alone, name)))
    for name in ("mean_queue_length", "response_time", "utilization", "counted", "batches"):
        np.testing.assert_array_equal(getattr(fleet, name), getattr(alone, name))


@pytest.mark.parametrize("rule", SENDING)
def test_one_server_under_every_rule(rule):
    """Under every rule that sends jobs, one server is the engine of one server; preemptions and timers included."""
    policy = policy_for(next(record for record in records() if record.name == "pMSR"))
    alone = rota.simulate(SYSTEM, policy, jobs=2000, log_jobs=300)
    fleet = rota.simulate(rota.Fleet.equal(SYSTEM, 1), policy, dispatch=rule, jobs=2000, log_jobs=300, check=True)
    assert fleet.log.drop("server").equals(alone.log)
    assert fleet.mean_response_time == alone.mean_response_time


@st.composite
def fleets_and_jobs(draw):
    """A fleet of at most eight servers, and jobs of all its types."""
    fleet = draw(small_fleets().filter(lambda fleet: fleet.servers <= 8))
    return fleet, draw(jobs_for(range(len(fleet.names)), most=30)), draw(st.lists(st.integers(1, 29), max_size=2))


def inside(cuts, jobs):
    """The cuts that are between two jobs."""
    return [cut for cut in cuts if cut < len(jobs.jobs)]


@pytest.mark.parametrize("rule", [*SENDING, "pull"])
@settings(max_examples=25)
@given(case=fleets_and_jobs(), policy=st.sampled_from(POLICIES), seed=st.integers(0, 99))
def test_rules_agree_with_plain_python(rule, case, policy, seed):
    """On random fleets with affinities and speeds every rule sends every job where plain Python does, and all events are the same."""
    fleet, jobs, cuts = case
    assert_agrees(as_fleet_policy(fleet, policy, rule), jobs, seed, inside(cuts, jobs))


@settings(max_examples=25)
@given(case=fleets_and_jobs(), seed=st.integers(0, 99))
def test_pinned_agrees_with_plain_python(case, seed):
    """Pinned servers take jobs from their queues as plain Python does; jobs of a type that runs at different speeds choose a queue."""
    fleet, jobs, _ = case
    try:
        pinned = rota.design_pinned(fleet.scaled(load=0.3))
    except rota.RotaError:
        return
    arriving = [job for job in jobs.jobs if fleet.arrival_rate[job[1]] > 0]
    if arriving:
        assert_agrees(as_fleet_policy(fleet, pinned), type(jobs)(tuple(arriving)), seed)


@pytest.mark.parametrize("rule", LOOKING)
@settings(max_examples=12)
@given(case=fleets_and_jobs(), policy=st.sampled_from(POLICIES), staleness=st.sampled_from([0.25, 1.0, 7.0]))
def test_stale_information(rule, case, policy, staleness):
    """A dispatcher that looks every so often sends jobs by what it saw at its last look."""
    fleet, jobs, _ = case
    assert_agrees(as_fleet_policy(fleet, policy, rule, staleness=staleness), jobs)


@pytest.mark.parametrize("rule", SENDING)
@settings(max_examples=12)
@given(case=fleets_and_jobs(), policy=st.sampled_from(POLICIES), cost=st.sampled_from([0.25, 1.0]))
def test_jobs_on_their_way(rule, case, policy, cost):
    """With a cost every job reaches its server so much later, and counts from its arrival."""
    fleet, jobs, _ = case
    log = assert_agrees(as_fleet_policy(fleet, policy, rota.Dispatch(rule, 2 if rule == "power-of-d" else None, cost=cost)), jobs)
    arrived = {job: time for time, event, _, job, _ in log if event == ARRIVE}
    assert all(time == arrived[job] + cost for time, event, _, job, _ in log if event == SENT)


@pytest.mark.parametrize("rule", [*SENDING, "pull"])
@settings(max_examples=15)
@given(case=fleets_and_jobs(), policy=st.sampled_from(POLICIES), cost=st.sampled_from([0.0, 0.5]), seed=st.integers(0, 99))
def test_failures(rule, case, policy, cost, seed):
    """Servers fail and work again as in plain Python; no job is lost, and one whose server fails is served again from the beginning."""
    fleet, jobs, _ = case
    dispatch = rota.Dispatch(rule, 2 if rule == "power-of-d" else None, cost=0.0 if rule == "pull" else cost)
    log = assert_agrees(as_fleet_policy(fleet, policy, dispatch, failures=(3.0, 1.0)), jobs, seed)
    assert sorted(job for _, event, _, job, _ in log if event == FINISH) == list(range(len(jobs.jobs)))
    began, left = {}, {}
    for time, event, i, job, m in log:
        if event == START:
            began[job] = time
        elif event == PREEMPT:
            left[job] = left.get(job, jobs.jobs[job][2] / speed_of(fleet, m, i)) - (time - began[job])
        elif event == RETURNED:
            left.pop(job, None)
        elif event == FINISH:
            assert time - began[job] == pytest.approx(left.get(job, jobs.jobs[job][2] / speed_of(fleet, m, i)))


def speed_of(fleet, m, i):
    """How fast a type runs on a server."""
    return fleet.speed[np.searchsorted(np.cumsum(fleet.count), m, side="right"), i]


@pytest.mark.parametrize("record", records(), ids=lambda record: record.name)
@settings(max_examples=4)
@given(jobs=jobs_for(range(2), most=40), rule=st.sampled_from([*SENDING, "pull"]), seed=st.integers(0, 99))
def test_failures_under_every_policy(record, jobs, rule, seed):
    """Under every policy, jobs that come back and servers that begin anew are as in plain Python: order, clocks and draws included."""
    fleet = rota.Fleet.equal(SYSTEM, 3)
    assert_agrees(as_fleet_policy(fleet, policy_for(record), rule, failures=(3.0, 1.0)), jobs, seed)


@pytest.mark.parametrize("rule", [*SENDING, "pull"])
@settings(max_examples=15)
@given(case=fleets_and_jobs(), seed=st.integers(0, 99))
def test_affinity_speed_and_capacity(rule, case, seed):
    """Jobs run only where they may, as fast as the kind is, and never more together than fit; every job ends once."""
    fleet, jobs, _ = case
    log = engine_log(as_fleet_policy(fleet, rota.MaxWeight("none"), rule), jobs, seed)
    kind = np.repeat(np.arange(len(fleet.kinds)), fleet.count)
    held, began = defaultdict(lambda: np.zeros(len(fleet.resources))), {}
    for time, event, i, job, m in log:
        assert event != PREEMPT
        if event == START:
            assert fleet.runs[kind[m], i]
            held[m] = held[m] + fleet.demand[i]
            assert (held[m] <= fleet.capacity[kind[m]] + 1e-9).all()
            began[job] = time
        elif event == FINISH:
            held[m] = held[m] - fleet.demand[i]
            assert time - began[job] == pytest.approx(jobs.jobs[job][2] / fleet.speed[kind[m], i])
    assert sorted(job for _, event, _, job, _ in log if event == FINISH) == list(range(len(jobs.jobs)))
