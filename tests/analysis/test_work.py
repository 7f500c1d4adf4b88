"""Bounds for phase-type sizes by the work in the system."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.analysis import TypeQueue, analyze
from rota.analysis.phase_type import solve_phase_type
from rota.analysis.qbd import solve_qbd
from rota.analysis.work import heavy_traffic_constant, work_bounds
from rota.policy import MSR
from rota.process import build_process
from rotas import systems_and_rotas
from truncated import mean_and_variance, phase_law


@st.composite
def two_phases(draw: st.DrawFn) -> rota.PhaseType:
    """Any size of two phases with mean about 1: Erlang-like, Coxian, hyperexponential, or with a way back."""
    first = draw(st.floats(0, 1))
    on, off, leave = draw(st.floats(0, 2)), draw(st.floats(0, 2)), [draw(st.floats(0.2, 4)) for _ in range(2)]
    return rota.PhaseType(initial=(first, 1 - first), generator=((-on - leave[0], on), (off, -off - leave[1])))


@settings(max_examples=50)
@given(systems_and_rotas("full", most_units=3) | systems_and_rotas("setup", most_units=3), two_phases(), st.floats(0.1, 0.95))
def test_bounds_bracket_the_exact_value(case, size, load):
    """lower ≤ E[Q] ≤ upper for every size of two phases under any pMSR or sMSR."""
    process = build_process(*case)
    for i, slots in enumerate(process.mean_schedule):
        if slots > 0:
            mu = 1 / size.moment(1)
            queue = TypeQueue(process, i, float(load * mu * slots), mu)
            lower, upper = work_bounds(queue, size)
            exact = solve_phase_type(queue, size).mean
            assert lower <= exact * (1 + 1e-10)
            assert exact <= upper * (1 + 1e-10)


def test_bounds_bracket_a_truncated_chain():
    """The same against a chain that knows nothing of the analysis."""
    size = rota.Hyperexponential(probabilities=(0.1, 0.9), means=(4.0, 0.5))
    system = rota.System([3], [[1]], [1.0], sizes=[size])
    answer = analyze(system, MSR([[1], [3]], [0.4, 0.6], switching_rate=0.5))
    mean, _ = mean_and_variance(phase_law(answer.process, 0, 1.0, size))
    assert answer.lower[0] < mean < answer.upper[0]
    assert answer.exact[0] == pytest.approx(mean, rel=1e-8)


@given(systems_and_rotas("full") | systems_and_rotas("setup"))
def test_exponential_sizes(case):
    """For exponential sizes it is Theorem msr-bound with β − 1 in place of β, and never below the busy slots."""
    for queue in analyze(*case).queues:
        if queue.arrival_rate == 0:
            continue
        size = rota.Hyperexponential(probabilities=(1.0,), means=(1 / queue.service_rate,))
        lower, upper = work_bounds(queue, size)
        busy = queue.arrival_rate / queue.service_rate
        assert lower == pytest.approx(max(queue.bounds()[0], busy), rel=1e-9)
        assert upper == pytest.approx(queue.bounds()[1] - 1, rel=1e-9)
        assert heavy_traffic_constant(queue, size) == pytest.approx(queue.heavy_traffic_constant, rel=1e-10)


def test_one_slot_in_heavy_traffic():
    """One slot is M/G/1: (1−ρ)E[Q] tends to (1 + cv²)/2."""
    for cv in (0.5, 1.0, 3.0):
        size = rota.Fitted(mean=2.0, cv=cv)
        system = rota.System([1], [[1]], [0.1], sizes=[size])
        assert analyze(system, MSR([[1]])).heavy_traffic_constant == pytest.approx([(1 + cv**2) / 2], rel=1e-9)


@pytest.mark.parametrize(
    "size", [rota.Erlang(mean=0.5, phases=2), rota.Hyperexponential(probabilities=(0.2, 0.8), means=(3.0, 0.5))], ids=repr
)
def test_heavy_traffic(size):
    """Under a rota (1−ρ)E[Q] tends to the constant as fast as 1−ρ."""
    process = build_process(rota.System([2], [[1]], [0.1], sizes=[size]), MSR([[0], [2]], [0.3, 0.7], switching_rate=1.0))
    mu = 1 / size.moment(1)
    off = []
    for rho in (0.99, 0.999, 0.9999):
        queue = TypeQueue(process, 0, rho * mu * float(process.mean_schedule[0]), mu)
        off.append(abs((1 - rho) * solve_phase_type(queue, size).mean - heavy_traffic_constant(queue, size)))
    assert off[1] == pytest.approx(off[0] / 10, rel=0.1)
    assert off[2] == pytest.approx(off[1] / 10, rel=0.02)


def test_edges():
    """No arrivals, no jobs; at load 1 and above both bounds are infinite."""
    size = rota.Erlang(mean=1.0, phases=2)
    process = build_process(rota.System([2], [[1]], [0.1], sizes=[size]), MSR([[2]]))
    assert work_bounds(TypeQueue(process, 0, 0.0, 1.0), size) == (0, 0)
    assert work_bounds(TypeQueue(process, 0, 2.0, 1.0), size) == (math.inf, math.inf)
    assert np.isfinite(work_bounds(TypeQueue(process, 0, 1.99, 1.0), size)).all()


def test_four_slow_slots_can_beat_one_fast_server():
    """With sizes of cv² = 10 at ρ = 0.5, M/H2/4 has fewer jobs than the single server of four times the speed.

    The single server is no lower bound then, so the route of Theorem msr-difference does not carry over to phase-type sizes (Appendix
    "Phase-Type Job Sizes"); the bound by the work in the system holds.
    """
    size, lam = rota.Fitted(mean=1.0, cv=math.sqrt(10)), 2.0
    queue = TypeQueue(build_process(rota.System([4], [[1]], [lam], sizes=[size]), MSR([[4]])), 0, lam, 1.0)
    four = solve_phase_type(queue, size).mean
    fast = 0.5 + lam**2 * (size.second_moment / 16) / (2 * (1 - 0.5))  # Pollaczek–Khinchine
    assert fast == pytest.approx(3.25, rel=1e-12)
    assert four == pytest.approx(2.6165, rel=1e-4)
    lower, upper = work_bounds(queue, size)
    assert lower <= four <= upper
    exponential = TypeQueue(queue.process, 0, lam, 1.0)  # where the theorem holds: four slots never beat one fast server
    assert solve_qbd(exponential).mean > solve_qbd(exponential, single_server=True).mean == pytest.approx(1.0, rel=1e-12)
