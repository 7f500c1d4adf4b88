"""FCFS, First-Fit, EASY and ServerFilling against their definitions, event by event."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rota
from reference_simulator import FINISH, PREEMPT, START, Given, assert_agrees, engine_log, jobs_for, server_filling_systems
from systems import small_systems


def all_types(system):
    """Every type of a system."""
    return range(len(system.names))


@pytest.mark.parametrize("policy", [rota.FCFS(), rota.FirstFit()], ids=lambda policy: type(policy).__name__)
@given(data=st.data(), system=small_systems())
def test_agrees_with_its_definition(policy, data, system):
    """FCFS and First-Fit start the jobs that their definition names, at the same times, and never preempt."""
    log = assert_agrees(system, policy, data.draw(jobs_for(all_types(system))))
    assert all(kind != PREEMPT for _, kind, _, _ in log)


@given(data=st.data(), system=small_systems())
def test_easy_agrees_with_its_definition(data, system):
    """EASY agrees with its definition, with estimates that are right, too long or too short."""
    log = assert_agrees(system, rota.EASY(), data.draw(jobs_for(all_types(system), estimates=True)))
    assert all(kind != PREEMPT for _, kind, _, _ in log)


@given(data=st.data(), system=server_filling_systems())
def test_server_filling_agrees_with_its_definition(data, system):
    """ServerFilling serves the largest of the oldest jobs that fill the server; of equal ones the oldest, whatever their type."""
    assert_agrees(system, rota.ServerFilling(), data.draw(jobs_for(all_types(system))))


@given(data=st.data(), system=server_filling_systems())
def test_server_filling_wastes_nothing(data, system):
    """Whenever the jobs present could fill the server, ServerFilling does."""
    given_jobs = data.draw(jobs_for(all_types(system)))
    log = engine_log(system, rota.ServerFilling(), given_jobs)
    present = running = 0.0
    for k, (time, kind, i, _) in enumerate(log):
        need = system.demand[i, 0]
        present += need * ((kind == 0) - (kind == FINISH))
        running += need * ((kind == START) - (kind in (FINISH, PREEMPT)))
        if k + 1 == len(log) or log[k + 1][0] > time:
            assert running == pytest.approx(min(present, system.capacity[0]))


@given(data=st.data(), system=small_systems())
def test_fcfs_starts_in_order_of_arrival(data, system):
    """Under FCFS jobs start in the order in which they come."""
    log = engine_log(system, rota.FCFS(), data.draw(jobs_for(all_types(system))))
    started = [job for _, kind, _, job in log if kind == START]
    instants = {job: time for time, kind, _, job in log if kind == START}
    assert [instants[job] for job in sorted(started)] == sorted(instants.values())


@given(data=st.data(), system=small_systems())
def test_easy_never_delays_the_head(data, system):
    """With exact estimates a backfilled job delays no head: each job that was head starts no later than under the reservation.

    The first job that ever waits under FCFS is a head from its arrival, and starts at the same time under both.
    """
    jobs = data.draw(jobs_for(all_types(system)))
    begins = []
    for policy in (rota.FCFS(), rota.EASY()):
        log = engine_log(system, policy, jobs)
        begins.append({job: time for time, kind, _, job in log if kind == START})
    waited = [k for k, (time, *_) in enumerate(jobs.jobs) if begins[0][k] > time]
    assume(waited)
    assert begins[1][waited[0]] == begins[0][waited[0]]


def one_resource(*demand, capacity=4):
    """A server with one resource, and a type for each demand."""
    return rota.System([capacity], [[d] for d in demand], [1.0] * len(demand), [1.0] * len(demand))


def starts(system, policy, *jobs):
    """When each job (time, type, size, or also estimate) starts."""
    log = engine_log(system, policy, Given(tuple(job if len(job) == 4 else (*job, job[2]) for job in jobs)))
    return {job: time for time, kind, _, job in log if kind == START}


def test_the_three_differ_as_they_should():
    """3 of 4 units are busy until 10; a job of 4 waits; one of 1 for 5 and one of 1 for 20 come.

    FCFS starts neither, EASY the one that ends before 10, First-Fit both, one after the other.
    """
    jobs = [(0.0, 1, 10.0), (1.0, 2, 1.0), (2.0, 0, 5.0), (3.0, 0, 20.0)]
    system = one_resource(1, 3, 4)
    assert starts(system, rota.FCFS(), *jobs) == {0: 0, 1: 10, 2: 11, 3: 11}
    assert starts(system, rota.EASY(), *jobs) == {0: 0, 1: 10, 2: 2, 3: 11}
    assert starts(system, rota.FirstFit(), *jobs) == {0: 0, 1: 27, 2: 2, 3: 7}


def test_easy_lets_long_jobs_into_what_the_head_leaves():
    """A long job starts beside a reservation if the head leaves it room; one that is too wide does not."""
    jobs = [(0.0, 2, 10.0), (1.0, 2, 5.0), (2.0, 0, 50.0), (3.0, 1, 50.0)]
    assert starts(one_resource(1, 2, 3), rota.EASY(), *jobs) == {0: 0, 1: 10, 2: 2, 3: 15}


def test_easy_goes_by_the_estimates():
    """A job that claims to end before the reservation starts even if it does not; what a job claims, not what it does, counts."""
    system = one_resource(1, 3, 4)
    jobs = [(0.0, 1, 10.0, 10.0), (1.0, 2, 1.0, 1.0), (2.0, 0, 20.0, 5.0), (3.0, 0, 1.0, 30.0)]
    assert starts(system, rota.EASY(), *jobs) == {0: 0, 1: 22, 2: 2, 3: 23}


def test_easy_counts_all_that_end_at_the_reservation():
    """Two jobs are to end at 10, and the head needs the room of one: what the other leaves is free for a long job."""
    system = one_resource(2, 3, 1, capacity=5)
    jobs = [(0.0, 0, 10.0), (0.0, 0, 10.0), (1.0, 1, 1.0), (2.0, 2, 100.0)]
    assert starts(system, rota.EASY(), *jobs)[3] == 2


def test_server_filling_serves_the_oldest_of_equal_jobs():
    """Jobs of 1 of two types and then one of 2 on a server of 4: the two oldest of 1 go on, of whatever type."""
    system = one_resource(1, 1, 2)
    log = engine_log(system, rota.ServerFilling(), Given(((0.0, 1, 9.0, 9.0), (1.0, 0, 9.0, 9.0), (2.0, 0, 9.0, 9.0), (3.0, 2, 1.0, 1.0))))
    assert [entry for entry in log if entry[0] == 3.0] == [(3.0, 0, 2, 3), (3.0, PREEMPT, 0, 2), (3.0, START, 2, 3)]


@pytest.mark.parametrize(
    "system",
    [rota.System([4, 4], [[1, 1]], [1], [1]), rota.System([6], [[1]], [1], [1]), rota.System([8], [[1], [3]], [1, 1], [1, 1])],
    ids=["two resources", "capacity", "demand"],
)
def test_server_filling_needs_powers_of_two(system):
    """ServerFilling on two resources, or with numbers that are not powers of two, says so."""
    with pytest.raises(rota.Infeasible, match="powers of two"):
        rota.simulate(system, "server-filling", jobs=1000)
