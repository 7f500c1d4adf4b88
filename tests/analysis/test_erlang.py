"""Slots that never change: M/M/k in closed form, against the matrices, also where there are hundreds of thousands of slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.analysis import TypeQueue, analyze, erlang_c
from rota.analysis.erlang import has_constant_slots, solve_erlang
from rota.analysis.qbd import solve_qbd


def queue_of(slots: int, load: float, service_rate: float = 1.0) -> TypeQueue:
    """A type with so many slots, always."""
    system = rota.System([float(slots)], [[1.0]], [load * slots * service_rate], [service_rate])
    return analyze(system, rota.MSR([[slots]], preemption="none")).queues[0]


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.floats(0.1, 10))
def test_against_the_matrices(slots, load, service_rate):
    """Mean, variance, decay rate, law and the average over unused rings agree with those of the matrix-analytic method."""
    queue = queue_of(slots, load, service_rate)
    closed, matrices = solve_erlang(queue), solve_qbd(queue)
    assert closed.mean == pytest.approx(matrices.mean, rel=1e-9)
    assert closed.variance == pytest.approx(matrices.variance, rel=1e-7)
    assert closed.decay_rate == pytest.approx(matrices.decay_rate, rel=1e-10)
    assert closed.unused_average == pytest.approx(matrices.unused_average, rel=1e-8, abs=1e-12)
    assert closed.probabilities(200) == pytest.approx(matrices.probabilities(200), rel=1e-8, abs=1e-15)
    assert closed.probabilities(3) == pytest.approx(closed.probabilities(200)[:3])
    assert closed.accuracy < 1e-9


def test_single_server():
    """M/M/1: E[Q] = ρ/(1−ρ), Var[Q] = ρ/(1−ρ)²."""
    law = solve_erlang(queue_of(1, 0.9))
    assert law.mean == pytest.approx(9, rel=1e-12)
    assert law.variance == pytest.approx(90, rel=1e-12)


@pytest.mark.parametrize("slots", [5_000, 300_000])
def test_many_slots(slots):
    """E[Q] = a + C(k, a) ρ/(1−ρ) for one schedule with hundreds of thousands of slots; the law sums to 1."""
    system = rota.System([float(slots)], [[1.0]], [0.999 * slots], [1.0])
    answer = analyze(system, rota.MSR([[slots]], preemption="none"))
    expected = 0.999 * slots + erlang_c(slots, 0.999 * slots) * 0.999 / (1 - 0.999)
    assert answer.exact[0] == pytest.approx(expected, rel=1e-12)
    assert answer.accuracy < 1e-7
    assert answer.has_exact


def test_hardly_any_load():
    """Where the probability of waiting is below every float, the law is that of Poisson and the mean is the offered work."""
    law = solve_erlang(queue_of(1000, 0.01))
    assert law.mean == pytest.approx(10, rel=1e-12)
    assert law.variance == pytest.approx(10, rel=1e-9)
    assert law.probabilities(3) == pytest.approx(np.exp(-10) * np.array([1, 10, 50]), rel=1e-9)


def test_a_type_that_never_changes_in_a_rota_that_does():
    """Type 1 has two slots in both schedules and between them, so its queue is M/M/2; the law is that of the matrices."""
    system = rota.System([4.0], [[1.0], [1.0], [1.0]], [1.5, 0.4, 0.4], [1.0, 1.0, 1.0])
    policy = rota.MSR([[2, 2, 0], [2, 0, 2]], [0.5, 0.5], preemption="none", switching_rate=0.1)
    queues = analyze(system, policy).queues
    assert [has_constant_slots(queue) for queue in queues] == [True, False, False]
    assert solve_erlang(queues[0]).mean == pytest.approx(solve_qbd(queues[0]).mean, rel=1e-10)
    assert analyze(system, policy).queue_length(0).method == "Erlang C, 2 slots"
