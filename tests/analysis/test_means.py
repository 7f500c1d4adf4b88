"""The mean queues in compiled code: those of the matrices, one type after the other."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from rota.analysis import analyze
from rota.analysis.means import LoopMeans
from rotas import paper_case, systems_and_rotas


@settings(deadline=None)
@given(systems_and_rotas())
def test_as_one_after_the_other(case):
    """Every mean is that of the analysis of the type alone."""
    answer = analyze(*case)
    assume(answer.stable and answer.accuracy < 1e-10)
    assert answer.exact_means == pytest.approx(answer.exact, rel=1e-8, abs=1e-9)


@settings(deadline=None)
@given(systems_and_rotas())
def test_prediction_as_one_after_the_other(case):
    """Every prediction is that of the type alone, and infinite where a type is not stable."""
    answer = analyze(*case)
    expected = np.where(answer.load < 1, answer.prediction, np.inf)
    assert answer.quick_prediction == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("preemption", "rate"), [("full", 2.0), ("none", 0.06), ("setup", 0.5)])
def test_paper(preemption, rate):
    """The paper's example in all preemption models."""
    answer = analyze(*paper_case(0.9, preemption, rate))
    assert answer.exact_means == pytest.approx(answer.exact, rel=1e-9)


def test_a_load_of_one():
    """A type with as many slots as work, always, has no mean: it is infinite, also where the time in the states sums to a little over 1."""
    system = rota.System([8, 64], [[1, 16], [1, 4], [0, 24]], [0.3, 2.0, 1.0], [0.25, 2.0, 1.0])
    policy = rota.MSR([[2, 0, 1], [1, 3, 1]], [0.5, 0.5], preemption="none", switching_rate=1.0)
    loop = LoopMeans(system, policy)
    rng = np.random.default_rng(0)
    for _ in range(50):
        part, rate = rng.uniform(0.001, 0.999), rng.uniform(0.1, 2.0)
        assert np.isinf(loop(np.array([part, 1 - part]), rate)[2])


def test_many_slots():
    """Three hundred slots: levels that differ by a hundred orders of magnitude."""
    system = rota.System([300.0], [[1.0], [1.0], [20.0]], [100.0, 10.0, 5.0], [1.0, 1.0, 1.0])
    policy = rota.MSR([[170, 10 + 10, 5], [128, 12, 8]], [0.5, 0.5], preemption="none", switching_rate=0.1, opening="early")
    answer = analyze(system, policy)
    assert answer.exact_means == pytest.approx(answer.exact, rel=1e-8)


def test_unstable():
    """There are no means without stability."""
    with pytest.raises(rota.Unstable):
        _ = analyze(*paper_case(1.2, "full", 2.0)).exact_means


def test_large_processes_go_the_other_way():
    """Beyond the size of the compiled code the values are those of `exact` itself."""
    system = rota.System([90.0], [[1.0], [1.0]], [30.0, 30.0], [1.0, 1.0])
    answer = analyze(system, rota.MSR([[90, 0], [0, 90]], [0.5, 0.5], preemption="none", switching_rate=0.01))
    assert answer.exact_means is answer.exact
    assert np.isfinite(answer.exact_means).all()
