"""The means of all types at once: those of the matrices, one type after the other."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from rota.analysis import analyze
from rotas import paper_case, systems_and_rotas


@settings(deadline=None)
@given(systems_and_rotas())
def test_as_one_after_the_other(case):
    """Every mean is that of the analysis of the type alone."""
    answer = analyze(*case)
    assume(answer.stable and answer.accuracy < 1e-9)
    assert answer.exact_means == pytest.approx(answer.exact, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("preemption", "rate"), [("full", 2.0), ("none", 0.06), ("setup", 0.5)])
def test_paper(preemption, rate):
    """The paper's example in all preemption models."""
    answer = analyze(*paper_case(0.9, preemption, rate))
    assert answer.exact_means == pytest.approx(answer.exact, rel=1e-9)


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
    """Beyond the size of the stacks the values are those of `exact` itself."""
    system = rota.System([80.0], [[1.0], [1.0]], [30.0, 30.0], [1.0, 1.0])
    answer = analyze(system, rota.MSR([[80, 0], [0, 80]], [0.5, 0.5], preemption="none", switching_rate=0.01))
    assert answer.exact_means is answer.exact
    assert np.isfinite(answer.exact_means).all()
