"""Pinned servers, exactly: against the sums of M/M/k, a single schedule on one server, and a bound that holds for every policy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.analysis import mean_waiting


def waiting_by_sums(slots: int, offered: float) -> float:
    """Σ (n − k)⁺ P(n) from the stationary law of M/M/k, level by level."""
    weights = [offered**n / math.factorial(n) for n in range(slots + 1)]
    ratio = offered / slots
    tail = weights[-1] * ratio / (1 - ratio)
    above = weights[-1] * ratio / (1 - ratio) ** 2
    return above / (sum(weights) + tail)


@given(st.integers(1, 40), st.floats(0.01, 0.99))
def test_waiting_jobs(slots, load):
    """Erlang's formula is the sum over the levels of the queue."""
    assert mean_waiting(slots, slots * load) == pytest.approx(waiting_by_sums(slots, slots * load), rel=1e-9)


def test_waiting_at_the_edges():
    """No work, no waiting; too much of it, no end."""
    assert mean_waiting(3, 0.0) == 0
    assert mean_waiting(3, 3.0) == mean_waiting(0, 0.1) == np.inf
    assert mean_waiting(10**6, 9.99e5) < 1e6


def test_one_server_with_one_schedule():
    """The exact analysis of one server that never switches gives the same."""
    system = rota.System([8], [[1], [2]], [3.0, 0.9], [1.0, 0.5])
    one = rota.analyze(system, rota.MSR([[4, 2]], [1.0], preemption="none"))
    fleet = rota.Fleet.equal(system, 1)
    design = rota.Pinned([0], [[4, 2]], [1], [[1.0, 1.0]])
    answer = rota.analyze(fleet, design)
    assert answer.exact == pytest.approx(one.exact, rel=1e-9)
    assert answer.mean_response_time == pytest.approx(one.mean_response_time, rel=1e-9)
    assert answer.load == pytest.approx(one.load)
    assert answer.response_time == pytest.approx(one.response_time)


def test_two_speeds():
    """A queue per speed, each an M/M/k queue with its part of the arrivals."""
    fleet = rota.Fleet([3, 2], [[2], [2]], [[1]], [6.0], [1.0], kinds=["slow", "fast"], speed=[[1], [2]])
    answer = rota.analyze(fleet, rota.Pinned([0, 1], [[2], [2]], [3, 2], [[0.5], [0.5]]))
    slow, fast = 3.0, 1.5
    assert answer.exact == pytest.approx([slow + waiting_by_sums(6, slow) + fast + waiting_by_sums(4, fast)])
    assert answer.load == pytest.approx([0.5])
    assert answer.stable
    assert (answer.pooled <= answer.exact).all()
    assert answer.pooled == pytest.approx([3.0 + waiting_by_sums(10, 3.0)])
    assert answer.explain().startswith(f"With pinned servers the mean response time is {answer.mean_response_time:.4g}, exactly.")


def test_unstable():
    """Too few slots, or none, is told with the type."""
    fleet = rota.Fleet([2], [[2]], [[1], [1]], [1.0, 1.0], [1.0, 1.0], names=["a", "b"])
    for row, load in (([2, 0], "inf"), ([1, 1], "1")):
        answer = rota.analyze(fleet, rota.Pinned([0], [row], [1], [[1.0, 1.0]]))
        assert not answer.stable
        with pytest.raises(rota.Unstable, match=f"load {load} of type '.' on its pinned slots is not below 1"):
            _ = answer.mean_response_time


def test_refused():
    """Arrivals and sizes for which it is not exact, and a policy for the wrong thing."""
    fleet = rota.Fleet.equal(rota.System([2], [[1]], [1.0], [1.0], names=["a"]), 2)
    design = rota.Pinned([0], [[2]], [2], [[1.0]])
    bursts = fleet.replace(arrivals=[rota.Bursts(factor=3.0, share=0.2, length=10.0)])
    with pytest.raises(rota.Infeasible, match="analyzed for Poisson arrivals"):
        rota.analyze(bursts, design)
    fixed = fleet.replace(sizes=[rota.Deterministic(mean=1.0)])
    with pytest.raises(rota.Infeasible, match='sizes="exponential"'):
        rota.analyze(fixed, design)
    assert rota.analyze(fixed, design, sizes="exponential").exact == pytest.approx(rota.analyze(fleet, design).exact)
    for system, policy in ((fleet, rota.MSR([[2]], [1.0])), (fleet.server(0), design)):
        with pytest.raises(rota.BadSpec, match=r"must be a rota.Fleet with pinned servers or a split"):
            rota.analyze(system, policy)
