"""Queues of many levels: against a matrix per level from 0 on, against Erlang, and by what their law must add up to."""

import numpy as np
import pytest
from scipy.stats import poisson

import rota
from rota.analysis import analyze_process
from rota.analysis.erlang import solve_erlang
from rota.analysis.loop import loop_decay_rate
from rota.analysis.qbd import solve_qbd
from rota.analysis.window import MANY_LEVELS, lowest_level, solve_window


def queues(slots, trades, load, *, route="type-order", rate=0.5):
    """The queues of two types of one core that trade slots, at a load."""
    candidates = np.array([[slots, slots // 3], [slots - trades, slots // 3 + trades]])
    system = rota.System([float(candidates.sum(axis=1).max() + 1)], [[1.0], [1.0]], [1.0, 1.0], [1.0, 2.0], preemption="none")
    policy = rota.MSR(candidates, [0.4, 0.6], "none", switching_rate=rate, opening="early", route=route)
    served = rota.analyze(system, policy).process.mean_schedule * system.service_rate
    return rota.analyze(system.replace(arrival_rate=load * served), policy).queues


@pytest.mark.parametrize("slots", [4, 30, 150, 600])
@pytest.mark.parametrize("load", [0.2, 0.8, 0.99])
def test_as_a_matrix_per_level(slots, load):
    """Mean, variance, decay rate and law are those of `solve_qbd`, which goes the other way and leaves no level out."""
    for queue in queues(slots, 3, load):
        found, expected = solve_window(queue), solve_qbd(queue)
        assert found.mean == pytest.approx(expected.mean, rel=1e-10)
        assert found.mean_by_sum == pytest.approx(expected.mean_by_sum, rel=1e-10)
        assert found.variance == pytest.approx(expected.variance, rel=1e-7)
        assert found.decay_rate == pytest.approx(expected.decay_rate, rel=1e-9)
        assert found.residual < 1e-9
        n = queue.max_parallel + 20
        assert found.probabilities(n) == pytest.approx(expected.probabilities(n), abs=1e-12)


@pytest.mark.parametrize("load", [0.7, 0.95])
def test_the_balance_equations(load):
    """The law solves the balance of flows between neighbouring levels: λ P(Q = q) = μ E[min(q + 1, u); Q = q + 1], checked where all jobs
    of a level are in service whatever the state.
    """
    queue = queues(400, 5, load)[0]
    law = solve_window(queue).probabilities(390)
    q = np.arange(lowest_level(queue) + 5, 389)
    assert queue.arrival_rate * law[q] == pytest.approx(queue.service_rate * (q + 1) * law[q + 1], rel=1e-9, abs=1e-25)


def test_types_that_drain_together():
    """A process that is not a loop."""
    candidates = np.array([[90, 40, 30], [88, 38, 36]])
    system = rota.System([200.0], [[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0], [1.0, 2.0, 0.5], preemption="none")
    policy = rota.MSR(candidates, [0.4, 0.6], "none", switching_rate=0.5, opening="early", route="parallel")
    process = rota.build_process(system, policy)
    assert process.loop is None
    loaded = system.replace(arrival_rate=0.95 * process.mean_schedule * system.service_rate)
    for queue in rota.analyze(loaded, policy).queues:
        assert solve_window(queue).mean == pytest.approx(solve_qbd(queue).mean, rel=1e-10)


def test_slots_that_never_change():
    """M/M/k, by Erlang's formula."""
    system = rota.System([500.0], [[1.0]], [470.0], [1.0], preemption="none")
    queue = rota.analyze(system, rota.MSR([[500]], [1.0], "none")).queues[0]
    assert solve_window(queue).mean == pytest.approx(solve_erlang(queue).mean, rel=1e-11)
    assert solve_window(queue).variance == pytest.approx(solve_erlang(queue).variance, rel=1e-8)


def test_thousands_of_levels():
    """Far beyond what a matrix per level from 0 on takes little time for: bounds, and the decay rate of the loop."""
    queue = queues(20_000, 6, 0.99)[0]
    found = solve_window(queue)
    lower, upper = queue.bounds()
    assert lower <= found.mean <= upper
    assert found.mean == pytest.approx(found.mean_by_sum, rel=1e-6)
    assert found.decay_rate == pytest.approx(loop_decay_rate(queue), rel=1e-6)


@pytest.mark.parametrize("offered", [3.0, 50.0, 1000.0, 1e5])
def test_levels_that_are_left_out(offered):
    """Fewer jobs than the lowest level have a probability below 1e-19: a queue is never shorter than one with a slot for every job."""
    k = int(offered * 1.1) + 1
    queue = rota.analyze(rota.System([float(k)], [[1.0]], [offered], [1.0]), rota.MSR([[k]], [1.0], "full")).queues[0]
    low = lowest_level(queue)
    assert 0 <= low < k
    assert low == 0 or poisson.cdf(low, offered) < 1e-19
    assert low == 0 or low > offered - 12 * np.sqrt(offered)


def test_the_analysis_uses_it():
    """Where there are many levels."""
    for slots, used in ((MANY_LEVELS - 1, False), (3 * MANY_LEVELS, True)):
        queue = queues(slots, 2, 0.9)[0]
        system = rota.System([2.0 * slots], [[1.0], [1.0]], [queue.arrival_rate, 0.0], [1.0, 2.0], preemption="none")
        method = analyze_process(system, queue.process).queue_length(0).method
        assert ("boundary levels" in method and " to " in method) == used
