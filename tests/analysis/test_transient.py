"""Queues over time: closed forms, matrix exponentials of truncated chains, and the steady state."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import diags_array
from scipy.sparse.linalg import expm_multiply

import rota
from rotas import PREEMPTIONS, paper_case
from truncated import _queue_chain

TIMES = np.array([0.0, 0.2, 1.0, 5.0, 30.0])


def test_slots_for_everybody():
    """With a slot for every job, E[Q(t)] = q e^{−μt} + λ/μ (1 − e^{−μt}); without arrivals the jobs only leave."""
    system = rota.System([60], [[1]], [2.0], [0.5])
    answer = rota.analyze(system, rota.MSR([[60]]))
    stay = np.exp(-0.5 * TIMES)
    assert answer.queue_length_at(0, TIMES, present=7) == pytest.approx(7 * stay + 4 * (1 - stay), rel=1e-9)
    nobody = rota.analyze(system.replace(arrival_rate=[0.0]), rota.MSR([[60]]))
    assert nobody.queue_length_at(0, TIMES, present=7) == pytest.approx(7 * stay, rel=1e-9)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_against_a_matrix_exponential(preemption):
    """From each state, also above load 1, as the exponential of a truncated generator that is written from the policy."""
    for load in (0.6, 1.5):
        system, policy = paper_case(load, preemption, 0.4)
        answer = rota.analyze(system, policy)
        N, levels = len(answer.process), 150
        for i, present in ((0, 0), (1, 9), (2, 3)):
            rates = _queue_chain(answer.process, i, system.arrival_rate[i], system.service_rate[i], False, levels)
            Q = (rates - diags_array(np.asarray(rates.sum(axis=1)).ravel())).tocsc()
            numbers = np.repeat(np.arange(levels), N).astype(float)
            for t in (0.5, 6.0):
                expected = expm_multiply(Q * t, numbers)[present * N : (present + 1) * N]
                found = [answer.queue_length_at(i, t, present=present, state=s) for s in range(N)]
                assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_in_the_long_run(preemption):
    """From any number of jobs the mean goes to that of the steady state."""
    system, policy = paper_case(0.3, preemption, 1.0)
    answer = rota.analyze(system, policy)
    for i, present in ((0, 0), (1, 30), (2, 5)):
        found = answer.queue_length_at(i, [0.0, 800.0], present=present, state=0)
        assert found[0] == present
        assert found[1] == pytest.approx(answer.exact[i], rel=1e-7)


def test_one_time_or_many():
    """A number gives a number, an array its shape."""
    answer = rota.analyze(*paper_case(0.5, "none", 1.0))
    many = answer.queue_length_at("type1", [[0.0, 1.0], [2.0, 3.0]], present=2)
    assert many.shape == (2, 2)
    assert answer.queue_length_at("type1", 3.0, present=2) == pytest.approx(many[1, 1], rel=1e-12)


def test_what_is_refused():
    """Wrong times and counts, sizes that are not exponential, times so far away that it would take hours."""
    system, policy = paper_case(0.5, "full", 1.0)
    answer = rota.analyze(system, policy)
    for wrong, says in (({"t": -1.0}, "t: must be times"), ({"t": 1.0, "present": -2}, "present"), ({"t": np.nan}, "t: must be times")):
        with pytest.raises(rota.BadSpec, match=says):
            answer.queue_length_at(0, **wrong)
    with pytest.raises(rota.Infeasible, match="ask for earlier times"):
        answer.queue_length_at(0, 1e12)
    erlang = rota.analyze(system.replace(sizes=[rota.Erlang(mean=1.0, phases=2)] * 3), policy)
    with pytest.raises(rota.Infeasible, match="exponential sizes"):
        erlang.queue_length_at(0, 1.0)
