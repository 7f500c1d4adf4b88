"""Ways into a process: other schedules as states that it never enters."""

import numpy as np
import pytest
from hypothesis import given, settings

import rota
from rota.analysis import analyze, relative_values
from rota.process import Ways, build_process, with_ways
from rotas import paper_case, systems_and_rotas


@settings(deadline=None, max_examples=60)
@given(systems_and_rotas("none"))
def test_laws(case):
    """All states fit; none of the process's own leads to a way; a way loses a slot, keeps the jobs of all others, and its excess falls."""
    system, policy = case
    process = build_process(system, policy)
    ways = with_ways(system, process, 60)
    wider, N = ways.process, len(process)
    assert rota.fits(system, wider.held).all()
    assert (wider.schedules[:N] == process.schedules).all()
    assert (wider.candidate[N:] == -1).all()
    assert ((ways.excess > 0) == (np.arange(len(wider)) >= N)).all()
    for source, target, rate, trigger in zip(wider.source, wider.target, wider.rate, wider.trigger, strict=True):
        if source < N:
            assert target < N
            continue
        left = wider.schedules[source].copy()
        assert rate == pytest.approx(left[trigger] * system.service_rate[trigger])
        left[trigger] -= 1
        assert (wider.schedules[target] >= left).all()
        assert ways.excess[target] == ways.excess[source] - 1
    assert set(wider.source[wider.source >= N].tolist()) == set(range(N, len(wider)))  # each has a move


@settings(deadline=None, max_examples=25)
@given(systems_and_rotas("none"))
def test_the_values_of_the_process_do_not_change(case):
    """A process that never enters a state has the same means and relative values with it and without it."""
    system, policy = case
    if analyze(system, policy).load.max() > 0.95:
        return
    ways = with_ways(system, build_process(system, policy), 40)
    plain, wider = relative_values(system, policy), relative_values(system, policy, process=ways.process)
    N = len(plain.process)
    assert wider.mean_response_time == pytest.approx(plain.mean_response_time, rel=1e-8)
    for jobs in ([0] * len(system.names), [3] * len(system.names), [50] * len(system.names)):
        assert wider(np.array(jobs))[:N] == pytest.approx(plain(np.array(jobs)), rel=1e-6, abs=1e-6)
    assert wider.residual < 1e-5


def test_all_maximal_schedules():
    """On the paper's example every full schedule is on a way to every candidate, unless it is that candidate."""
    system, policy = paper_case(0.8, "none", 0.06)
    process = build_process(system, policy)
    ways = with_ways(system, process, 1000)
    schedules = rota.list_schedules(system, maximal=True)
    found = {tuple(row) for row in ways.process.schedules[len(process) :].tolist()}
    assert {tuple(row) for row in schedules.tolist()} - {(0, 0, 2), (1, 4, 0)} <= found
    assert isinstance(ways, Ways)


def test_a_large_server():
    """Where there are too many schedules, those next to a candidate are taken, and no more than asked for."""
    system = rota.System([400.0], [[1.0], [2.0], [3.0]], [60.0, 40.0, 20.0], [1.0, 1.0, 1.0])
    process = build_process(system, rota.MSR([[100, 60, 60], [106, 60, 58]], [0.5, 0.5], "none", 0.1))
    ways = with_ways(system, process, 30)
    assert len(process) < len(ways.process) <= 40
    assert len(with_ways(system, process, 0).process) == len(process)
