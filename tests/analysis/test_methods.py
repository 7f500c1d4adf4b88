"""Which method finds an exact law: by the number of states and levels, whether the process is a loop, sizes and arrivals."""

import pytest

import rota
from rota.analysis import analyze
from rota.analysis.methods import choose_method, solve_companion
from rota.analysis.qbd import solve_qbd
from rota.policy import MSR
from rota.process import build_process
from rotas import paper_case


def large_and_small(large, small, load=0.8):
    """A rota of two types, `large` jobs of one or `small` of the other at once, all drained in turn."""
    system = rota.System([large * small], [[small], [large]], [0, 0], [1.0, 0.5])
    policy = MSR([[large, 0], [0, small]], [0.4, 0.6], "none", 0.02)
    process = build_process(system, policy)
    return analyze(system.replace(arrival_rate=load * system.service_rate * process.mean_schedule), policy)


def method(answer, i):
    """How the law of a type was found."""
    return answer.queue_length(i).method


def test_more_than_four_thousand_states():
    """A rota of 4,532 states has exact values, between the bounds, and its two means agree."""
    answer = large_and_small(4500, 30)
    law = answer.queue_length(1)
    assert law.method.startswith("loop of 4532 states, 30 boundary levels")
    assert law.accuracy < 1e-9
    assert answer.lower[1] <= law.mean <= answer.upper[1]
    assert choose_method(answer.queues[1], None).cost.time_s < 1
    assert choose_method(answer.queues[0], None).cost.affordable


def test_small_processes_take_a_matrix_per_level():
    """Few states are solved level by level; from 151 on the way is round the loop."""
    assert method(analyze(*paper_case(0.9, "none", 0.06)), 1).startswith("matrix-analytic")
    assert method(large_and_small(30, 20), 0).startswith("matrix-analytic")
    assert method(large_and_small(130, 40), 1).startswith("loop of 172 states")


def test_no_loop_no_way_round():
    """Types that drain together make no loop: a matrix per level, whatever the number of states."""
    system = rota.System([60.0], [[1.0], [1.0]], [3.0, 3.0], [1.0, 2.0])
    answer = analyze(system, MSR([[22, 22], [4, 4]], [0.5, 0.5], "none", 0.5, route="parallel"))
    assert len(answer.process) > 150
    assert answer.process.loop is None
    assert method(answer, 0).startswith("matrix-analytic")


def test_companions_of_long_loops():
    """The single-server companion of a long loop is that of a matrix per level, without one."""
    answer = large_and_small(130, 40)
    for i, queue in enumerate(answer.queues):
        found, expected = solve_companion(queue), solve_qbd(queue, single_server=True)
        assert found.method.startswith("loop of 172 states")
        assert found.mean == pytest.approx(expected.mean, rel=1e-10)
        assert answer.single_server[i] == found.mean
