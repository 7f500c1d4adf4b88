"""Most Servers First, cμ/m, Adaptive Quickswap and Balanced Splitting against their definitions, event by event."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from reference_simulator import PREEMPT, START, Given, assert_agrees, engine_log, jobs_for
from rota.decide import suits
from rota.decide.server_needs import dominant_shares, reserved_places
from systems import small_systems

EVERY = [rota.MostServersFirst(), rota.CMuM(), rota.Quickswap(), rota.Quickswap(2)]


def all_types(system):
    """Every type of a system."""
    return range(len(system.names))


def starts(system, policy, *jobs):
    """When each job (time, type, size) starts."""
    log = engine_log(system, policy, Given(tuple((*job, job[2]) for job in jobs)))
    return {job: time for time, kind, _, job in log if kind == START}


@pytest.mark.parametrize("policy", EVERY, ids=repr)
@given(data=st.data(), system=small_systems())
def test_agrees_with_its_definition(policy, data, system):
    """The jobs that the definition names start, at the same times; no job is stopped."""
    log = assert_agrees(system, policy, data.draw(jobs_for(all_types(system))))
    assert all(kind != PREEMPT for _, kind, _, _ in log)


@given(data=st.data(), system=small_systems().filter(lambda system: suits(system, rota.BalancedSplitting())))
def test_balanced_splitting_agrees_with_its_definition(data, system):
    """Jobs take the places of their type, and then what is left, in order of arrival; no job is stopped."""
    log = assert_agrees(system, rota.BalancedSplitting(), data.draw(jobs_for(all_types(system))))
    assert all(kind != PREEMPT for _, kind, _, _ in log)


def test_dominant_shares_are_exact():
    """The largest part of any resource, as decimals: 0.1 of 0.3 is a third, as 1 of 3 is."""
    system = rota.System([0.3, 8], [[0.1, 0], [0, 1], [0.1, 4]], [1.0] * 3, [1.0] * 3)
    assert [str(share) for share in dominant_shares(system)] == ["1/3", "1/8", "1/2"]


def test_most_servers_first_and_c_mu_m_differ_as_they_should():
    """The server of 4 is full until 1; a job of 1 and then one of 4 wait: the larger goes first, or the one that frees more per time."""
    system = rota.System([4], [[1], [4]], [1.0, 1.0], [1.0, 1.0])
    jobs = [(0.0, 1, 1.0), (0.1, 0, 2.0), (0.2, 1, 1.0)]
    assert starts(system, rota.MostServersFirst(), *jobs) == {0: 0.0, 1: 2.0, 2: 1.0}
    assert starts(system, rota.CMuM(), *jobs) == {0: 0.0, 1: 1.0, 2: 3.0}
    faster = rota.System([4], [[1], [4]], [1.0, 1.0], [1.0, 5.0])  # 5 over 1 beats 1 over ¼
    assert starts(faster, rota.CMuM(), *jobs) == {0: 0.0, 1: 2.0, 2: 1.0}


def test_equal_needs_start_in_order_of_arrival():
    """Types of equal share, of different resources, are served as they come."""
    system = rota.System([2, 4], [[2, 0], [1, 4], [2, 1]], [1.0] * 3, [1.0] * 3)
    jobs = [(0.0, 1, 1.0), (0.1, 2, 1.0), (0.2, 0, 1.0), (0.3, 2, 1.0)]
    assert starts(system, rota.MostServersFirst(), *jobs) == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}


@given(data=st.data(), system=small_systems())
def test_threshold_0_is_most_servers_first(data, system):
    """A Quickswap that may only drain when nothing runs never does."""
    jobs = data.draw(jobs_for(all_types(system)))
    assert engine_log(system, rota.Quickswap(0), jobs) == engine_log(system, rota.MostServersFirst(), jobs)


def test_quickswap_drains_for_those_that_wait():
    """Jobs of 1 keep coming while one of 4 waits: Most Servers First lets it wait, Quickswap drains for it, with a threshold later.

    At 0.5 two jobs of 1 run and none waits, so Quickswap starts none of the later ones until the large one has run.
    """
    system = rota.System([4], [[1], [4]], [1.0, 1.0], [1.0, 1.0])
    jobs = [(0.0, 0, 2.0), (0.0, 0, 3.0), (0.5, 1, 1.0), (1.0, 0, 3.0), (2.5, 0, 3.0)]
    assert starts(system, rota.MostServersFirst(), *jobs) == {0: 0.0, 1: 0.0, 2: 5.5, 3: 1.0, 4: 2.5}
    assert starts(system, rota.Quickswap(), *jobs) == {0: 0.0, 1: 0.0, 2: 3.0, 3: 4.0, 4: 4.0}
    assert starts(system, rota.Quickswap(1), *jobs) == {0: 0.0, 1: 0.0, 2: 5.5, 3: 1.0, 4: 2.5}
    assert starts(system, rota.Quickswap(1), *jobs[:3], (2.5, 0, 3.0)) == {0: 0.0, 1: 0.0, 2: 3.0, 3: 4.0}


def test_the_largest_waiting_type_ends_a_drain():
    """Jobs of 2 run and one of 3 waits, so it drains; one of 4 comes later and is then the largest: it starts first."""
    system = rota.System([4], [[2], [3], [4]], [1.0] * 3, [1.0] * 3)
    jobs = [(0.0, 0, 2.0), (0.5, 1, 1.0), (1.0, 2, 1.0), (1.5, 0, 1.0)]
    assert starts(system, rota.Quickswap(), *jobs) == {0: 0.0, 1: 3.0, 2: 2.0, 3: 4.0}


@pytest.mark.parametrize("threshold", [-1, 1.5, "2", True], ids=str)
def test_quickswap_needs_a_whole_threshold(threshold):
    """A threshold that is no number of jobs is named."""
    with pytest.raises(rota.BadSpec, match="threshold"):
        rota.Quickswap(threshold)


def test_quickswap_helps_large_jobs_among_small_ones():
    """On a server of 8 at load 0.8, with jobs that need one unit or all, Quickswap is far ahead of Most Servers First."""
    system = rota.System([8], [[1], [8]], [4.0, 0.3], [1.0, 1.0])
    plain, adaptive, threshold = (
        rota.simulate(system, policy, jobs=200_000, seed=3) for policy in (rota.MostServersFirst(), rota.Quickswap(), rota.Quickswap(4))
    )
    assert adaptive.mean_response_time < 0.7 * plain.mean_response_time
    assert threshold.mean_response_time < 0.7 * plain.mean_response_time


@given(system=small_systems())
def test_places_fit_and_leave_little(system):
    """The places of all types fit together, none could have one more than its part of the most used resource."""
    places = reserved_places(system)
    assert rota.fits(system, places)
    load = (system.offered_work @ system.demand / system.capacity).max()
    assert ((places + 1) * load > system.offered_work * (1 - 1e-9)).all()


def test_places_by_load():
    """Work of 3 and 1 in jobs of 1 and 2 on 10 units: 6 places and 2, which fill the server; on 11, still 6 and 2."""
    for capacity in (10, 11):
        assert reserved_places(rota.System([capacity], [[1], [2]], [3.0, 1.0], [1.0, 1.0])).tolist() == [6, 2]


def test_without_helpers_each_type_is_a_queue_of_its_own():
    """Where places fill the server each type is an M/M/c queue: Erlang's formula gives its mean response time."""
    system = rota.System([10], [[1], [2]], [4.5, 1.5], [1.0, 1.0])
    assert reserved_places(system).tolist() == [6, 2]
    result = rota.simulate(system, "balanced-splitting", jobs=400_000, seed=5)
    for i, (arrivals, c) in enumerate([(4.5, 6), (1.5, 2)]):
        terms = np.cumprod([1.0, *(arrivals / k for k in range(1, c + 1))])
        full = terms[-1] / (1 - arrivals / c)
        mean = 1 + full / (terms[:-1].sum() + full) / (c - arrivals)
        assert abs(result.response_time[i] - mean) < 2 * result.response_time_interval[i]


def test_helpers_are_first_come_first_served():
    """5 units: two places of 1, one of 2, and 1 unit that helps. A job of 2 that waits for its place holds up the helper's queue."""
    system = rota.System([5], [[1], [2]], [1.0, 0.4], [1.0, 1.0])
    assert reserved_places(system).tolist() == [2, 1]
    jobs = [(0.0, 1, 4.0), (0.1, 1, 1.0), (0.2, 0, 9.0), (0.3, 0, 9.0), (0.4, 0, 1.0)]
    assert starts(system, rota.BalancedSplitting(), *jobs) == {0: 0.0, 1: 4.0, 2: 0.2, 3: 0.3, 4: 4.0}
    assert starts(system, rota.BalancedSplitting(), *jobs[2:]) == {0: 0.2, 1: 0.3, 2: 0.4}


def test_a_type_without_a_place_is_refused():
    """Places for the small jobs leave 1 unit of 4, and a job of 3 would never run."""
    with pytest.raises(rota.Infeasible, match="no place for type2"):
        rota.simulate(rota.System([4], [[1], [3]], [3.0, 0.2], [1.0, 1.0]), "balanced-splitting", jobs=1000)
