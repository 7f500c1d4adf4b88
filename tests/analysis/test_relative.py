"""Relative values of an MSR: the Poisson equation, means, a chain cut off high up, and what they say about starts."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from rota.analysis import analyze, relative_values
from rotas import paper_case, systems_and_rotas
from systems import EXAMPLES

CASES = [("full", 2.0), ("none", 0.06), ("setup", 0.5)]


@settings(deadline=None, max_examples=50)
@given(systems_and_rotas())
def test_means_and_residuals(case):
    """The equation at level 0 gives E[Q] of the analysis, and the values solve the equation at every level."""
    answer = analyze(*case)
    assume(answer.stable and answer.load.max() < 0.97 and answer.accuracy < 1e-9)
    found = relative_values(*case)
    assert [values.mean for values in found.types] == pytest.approx(answer.exact, rel=1e-7, abs=1e-9)
    assert found.residual < 1e-5


@pytest.mark.parametrize(("preemption", "rate"), CASES)
def test_against_a_chain_cut_off(preemption, rate):
    """On levels 0 to 600 the linear equations of the whole chain have the same solution, as long as the last levels are far away."""
    check_against_a_chain(*paper_case(0.6, preemption, rate), 1, levels=20)


def test_fast_switching_against_a_chain_cut_off():
    """The same for a rota that switches 50 times while a job runs, whose queue stays five times above the jobs in service."""
    system = rota.System([200], [[1], [200]], [36.0, 0.3], [1.0, 1.0])
    check_against_a_chain(system, rota.MSR([[200, 0], [0, 1]], [0.2, 0.8], "full", 50.0), 0, levels=250)


def check_against_a_chain(system, policy, type, levels):
    """The values of a type at so many levels."""
    found = relative_values(system, policy)
    queue, values = analyze(system, policy).queues[type], found.types[type]
    N, top = len(found.process), 600
    plain, after = queue.plain.toarray(), queue.after.toarray()
    A, right = np.zeros(((top + 1) * N, (top + 1) * N)), np.zeros((top + 1) * N)
    for q in range(top + 1):
        here = slice(q * N, (q + 1) * N)
        busy = queue.service_rate * np.minimum(q, queue.slots)
        A[here, here] += plain + (queue.ring_rate - busy)[:, None] * after
        if q > 0:
            A[here, (q - 1) * N : q * N] += busy[:, None] * after
        if q < top:
            A[here, (q + 1) * N : (q + 2) * N] += queue.arrival_rate * np.eye(N)
        right[here] = values.mean - q
    A -= np.diag(A.sum(axis=1))
    A[:, 0] = 0.0  # h(0, first state) = 0; its place is taken by the error of the mean
    A[:, 0] = 1.0
    solved = np.linalg.solve(A, right)
    expected = np.concatenate([[0.0], solved[1 : levels * N]]).reshape(levels, N)
    assert np.array([values(q) for q in range(levels)]) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_mm1():
    """For M/M/1 the values are known: h(q) = q(q + 1)/(2(μ − λ))."""
    system = rota.System([1.0], [[1.0]], [0.5], [1.0])
    values = relative_values(system, rota.MSR([[1]])).types[0]
    assert [values(q)[0] for q in (0, 1, 2, 7, 1000)] == pytest.approx([q * (q + 1) / (2 * 0.5) for q in (0, 1, 2, 7, 1000)], rel=1e-9)


def test_many_servers():
    """With 200 slots and 180 jobs on average in service, level 0 is never seen, and the equation is solved to many digits all the same."""
    system = rota.System([200.0], [[1.0]], [180.0], [1.0])
    found = relative_values(system, rota.MSR([[200]]))
    assert found.residual < 1e-9
    assert found.mean_response_time == pytest.approx(analyze(system, found.policy).mean_response_time, rel=1e-9)
    (values,) = found.types
    # h(q+1) − h(q) = δ_q with λ δ_q = min(q, 200) δ_{q−1} + E[Q] − q: stable upwards from δ_0 = E[Q]/λ as long as q is below λ
    step = values.mean / 180
    for q in range(1, 120):
        step = (q * step + values.mean - q) / 180
        assert values(q + 1)[0] - values(q)[0] == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize(("slots", "weight", "rate"), [(200, 0.2, 50.0), (400, 0.2, 50.0)])
def test_fast_switching(slots, weight, rate):
    """Under a rota far faster than its jobs all jobs present share the time, and only jobs beyond the slots wait for longer.

    The queue stays near 0.9 · slots; level λ/μ, a fifth of that, is hardly ever seen. The equation is solved to many digits, and the values
    are near those of a queue that is served at rate weight · q μ at level q.
    """
    lam = 0.9 * slots * weight
    system = rota.System([slots], [[1], [slots]], [lam, 0.3], [1.0, 1.0])
    policy = rota.MSR([[slots, 0], [0, 1]], [weight, 1 - weight], "full", rate)
    found = relative_values(system, policy)
    assert found.residual < 1e-9
    assert found.mean_response_time == pytest.approx(analyze(system, policy).mean_response_time, rel=1e-9)
    values = found.types[0]
    # h(q+1) − h(q) = δ_q with λ δ_q = weight · q δ_{q−1} + E[Q] − q, stable upwards from δ_0 = E[Q]/λ
    step = expected = values.mean / lam
    for q in range(1, slots // 2):
        step = (weight * q * step + values.mean - q) / lam
        expected += step
    assert float(np.mean(values(slots // 2) - values(0))) == pytest.approx(expected, rel=0.02)


def test_the_rota_of_the_paper_on_the_types_of_borg():
    """The paper's design switches 60 times while the shortest jobs run. Queues then stay far above the mean number of jobs in service."""
    system = rota.read_system(EXAMPLES / "borg.toml").scaled(load=0.9)
    policy = rota.design_policy(system, "full", objective="load", time_limit_s=4.0)
    for rate in (None, 0.1, 0.01):
        found = relative_values(system, policy if rate is None else policy.replace(switching_rate=rate))
        assert found.residual < 1e-6
        assert found.mean_response_time == pytest.approx(analyze(system, found.policy).mean_response_time, rel=1e-6)


@pytest.mark.parametrize(("preemption", "rate"), CASES)
def test_beyond_the_table(preemption, rate):
    """Where the table ends, the closed form goes on: the second differences are those of the square, the same for all states."""
    found = relative_values(*paper_case(0.9, preemption, rate))
    for values in found.types:
        last = len(values.table)
        rows = np.array([values(q) for q in range(last - 1, last + 4)])
        assert np.diff(rows, 2, axis=0) == pytest.approx(
            np.full((3, rows.shape[1]), 2 * values.x), rel=1e-4, abs=1e-8 * float(np.abs(rows).max())
        )


def test_more_jobs_cost_more():
    """In every state one more job is worse, which is why filling gaps never hurts a rota that may stop jobs."""
    found = relative_values(*paper_case(0.9, "none", 0.06))
    for values in found.types:
        assert (np.diff(np.array([values(q) for q in range(60)]), axis=0) > 0).all()


def test_no_arrivals():
    """A type that never arrives costs nothing."""
    system, policy = paper_case(0.5, "full", 2.0)
    system = system.replace(arrival_rate=[system.arrival_rate[0], 0.0, system.arrival_rate[2]])
    assert not relative_values(system, policy).types[1](5).any()


def test_refusals():
    """An unstable policy has no values, nor has one of very many states."""
    with pytest.raises(rota.Unstable):
        relative_values(*paper_case(1.2, "full", 2.0))
    system = rota.System([1200.0], [[1.0], [1.0]], [100.0, 100.0], [1.0, 1.0])
    with pytest.raises(rota.Infeasible, match=r"2,402 states"):
        relative_values(system, rota.MSR([[1200, 0], [0, 1200]], [0.5, 0.5], preemption="none", switching_rate=1e-4))
