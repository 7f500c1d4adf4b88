"""What exact values cost: an estimate that decides beforehand."""

import numpy as np
import pytest

import rota
from rota.analysis.cost import cost_by_level, cost_by_window, cost_of_loop
from rota.policy import MSR
from rotas import paper_case


@pytest.mark.parametrize("cost", [cost_by_level, cost_by_window, cost_of_loop])
def test_more_costs_more(cost):
    """More phases and more levels take more time and memory."""
    sizes = [1, 10, 100, 1000, 100_000]
    table = np.array([[(cost(N, beta).time_s, cost(N, beta).entries) for beta in sizes] for N in sizes])
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) > 0).all()


def test_small_processes_have_exact_values():
    """The example's exact values take a fraction of a second, and are at hand; those of an unstable policy are not."""
    system, policy = paper_case(0.9, "none", 0.06)
    answer = rota.analyze(system, policy)
    assert 0 < answer.exact_time_s < 0.1
    assert answer.has_exact
    assert not rota.analyze(system, policy.replace(switching_rate=10.0)).has_exact


def test_the_estimate_is_the_same_everywhere():
    """The estimate depends on the sizes of the matrices alone, so it is a number that never changes."""
    answers = [rota.analyze(*paper_case(0.9, "none", rate)) for rate in (0.01, 0.06)]
    assert answers[0].exact_time_s == answers[1].exact_time_s


def test_half_a_million_levels_are_refused_at_once():
    """62 states with half a million boundary levels need more memory than there is: said at once, with what to do."""
    n = 500_000
    system = rota.System([n], [[1], [1]], [0.5 * n, 5.0], [1.0, 1.0])
    answer = rota.analyze(system, MSR([[n, 0], [n - 30, 30]], [0.5, 0.5], "setup", 1.0, setup_rate=10.0))
    assert len(answer.process) == 62
    assert not answer.has_exact
    with pytest.raises(rota.Infeasible, match=r"500,000 boundary levels, which would take about .* s and .* GB: use the bounds"):
        _ = answer.exact
    assert (answer.lower <= answer.prediction).all()
    assert (answer.prediction <= answer.upper).all()


def test_exact_values_that_take_minutes_are_not_at_hand():
    """Twenty million levels of two states take most of a minute: not at hand, but there for who asks."""
    n = 20_000_000
    system = rota.System([n], [[1], [2]], [0.45 * n, 0.225 * n], [1.0, 1.0])
    answer = rota.analyze(system, MSR([[n, 0], [0, n // 2]], [0.5, 0.5], "full", 100.0))
    assert 10 < answer.exact_time_s < 100
    assert not answer.has_exact
