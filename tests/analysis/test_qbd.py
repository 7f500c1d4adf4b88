"""The queue as a quasi-birth–death process: against truncated chains, closed forms and its own equations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import rota
from rota.analysis import TypeQueue, analyze
from rota.analysis.qbd import first_passage, m_matrix, rate_matrix, solve_qbd, tail_moments, tail_probabilities
from rota.policy import MSR
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas
from truncated import mean_and_variance, queue_law


def queues(case):
    """The queues of the types that arrive."""
    return [queue for queue in analyze(*case).queues if queue.arrival_rate > 0]


def alone(slots, arrival_rate, service_rate=1.0):
    """A type that always has the same slots: M/M/k."""
    system = rota.System([slots], [[1]], [arrival_rate], [service_rate])
    return TypeQueue(build_process(system, MSR([[slots]])), 0, arrival_rate, service_rate)


def homogeneous_part(queue):
    """λ, the rates within a level and downwards from level β on."""
    rings = queue.ring_rate[:, None] * queue.after.toarray()
    return queue.arrival_rate, queue.plain.toarray(), rings


def assert_same_law(found, law):
    """Mean and variance to 1e-8, every probability to 1e-8 of itself or 1e-12."""
    mean, variance = mean_and_variance(law)
    assert found.mean == pytest.approx(mean, rel=1e-8)
    assert found.mean_by_sum == pytest.approx(mean, rel=1e-8)
    assert found.variance == pytest.approx(variance, rel=1e-8)
    assert found.probabilities(len(law)) == pytest.approx(law, rel=1e-8, abs=1e-12)


# ------------------------------------------------------------------------------------------------------------ truncated chains


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@settings(max_examples=200)
@given(case=systems_and_rotas())
def test_law_against_a_truncated_chain(preemption, case):
    """Mean, variance and distribution are those of the chain on (queue length, state), for random systems and rotas of each kind."""
    system, policy = case
    policy = policy.replace(preemption=preemption, setup_rate=3.0 if preemption == "setup" else None)
    process = build_process(system, policy)
    served = system.service_rate * process.mean_schedule
    lam = np.minimum(system.arrival_rate, 0.85 * served)
    for i in np.flatnonzero(lam > 0):
        queue = TypeQueue(process, int(i), float(lam[i]), float(system.service_rate[i]))
        law = queue_law(process, int(i), lam[i], system.service_rate[i])
        assert_same_law(solve_qbd(queue), law.sum(axis=1))


@given(systems_and_rotas())
def test_single_server_companion_against_a_truncated_chain(case):
    """The MSR-1 companion serves one job at a time at rate c_s (Definition msr-1)."""
    for queue in queues(case):
        law = queue_law(queue.process, queue.type, queue.arrival_rate, queue.service_rate, single_server=True)
        assert_same_law(solve_qbd(queue, single_server=True), law.sum(axis=1))


@given(systems_and_rotas())
def test_decay_rate_against_a_truncated_chain(case):
    """Far out in the chain, each level has η times the probability of the one below."""
    for queue in queues(case):
        law = queue_law(queue.process, queue.type, queue.arrival_rate, queue.service_rate).sum(axis=1)
        far = 3 * len(law) // 4  # by then only the slowest mode is left, and the cut at the end is not felt yet
        if far > 4 * queue.max_parallel:
            assert law[far] / law[far - 1] == pytest.approx(solve_qbd(queue).decay_rate, rel=1e-3)


# ------------------------------------------------------------------------------------------------------------ equations


@given(systems_and_rotas(most_load=0.99))
def test_matrix_equations(case):
    """A₂ + A₁G + λG² = 0 with G stochastic; λ + RA₁ + R²A₂ = 0 with the spectral radius of R below 1; R and G go together."""
    for queue in queues(case):
        lam, local, down = homogeneous_part(queue)
        G, residual = first_passage(lam, local, down)
        R = rate_matrix(lam, local, down, G)
        A1 = local - np.diag(local.sum(axis=1) + down.sum(axis=1) + lam)
        scale = np.abs(A1).max()
        assert np.abs(down + A1 @ G + lam * G @ G).max() <= 1e-13 * scale
        assert residual <= 1e-13
        assert (G >= 0).all()
        assert G.sum(axis=1) == pytest.approx(np.ones(len(G)), rel=1e-12)
        assert np.abs(lam * np.eye(len(R)) + R @ A1 + R @ R @ down).max() <= 1e-12 * scale
        assert (R >= 0).all()
        radius = np.abs(np.linalg.eigvals(R)).max()
        assert radius < 1
        assert solve_qbd(queue).decay_rate == pytest.approx(radius, rel=1e-10)


@given(systems_and_rotas())
def test_probabilities_sum_to_one(case):
    """The probabilities are positive and sum to 1 without having been made to, and both ways to the mean agree."""
    for queue in queues(case):
        found = solve_qbd(queue)
        n = 50 + int(math.log(1e-14) / math.log(found.decay_rate))
        law = found.probabilities(n)
        assert law.sum() == pytest.approx(1, rel=1e-10)
        assert (law > 0).all()
        assert found.accuracy <= 1e-11


def test_m_matrix():
    """−S has the entries of S off the diagonal with the other sign, and rows that sum to what leaves."""
    inner = np.array([[9.0, 1, 2], [3, 9, 4], [5, 6, 9]])
    M = m_matrix(inner, np.array([1.0, 0, 2]))
    assert M.tolist() == [[4, -1, -2], [-3, 7, -4], [-5, -6, 13]]


def test_tail_sums():
    """The closed sums over the tail are the sums term by term."""
    R = np.array([[0.5, 0.1], [0.2, 0.3]])
    mass, top = np.array([0.3, 0.2, 0.1]), np.array([0.05, 0.1])
    law = tail_probabilities(mass, top, R, 400)
    assert law[:3].tolist() == mass.tolist()
    assert law[5] == pytest.approx((top @ R @ R).sum(), rel=1e-14)
    (first, second), total = tail_moments(mass, top, R)
    numbers = np.arange(400)
    assert (total, first, second) == pytest.approx((law.sum(), law @ numbers, law @ numbers**2), rel=1e-13)
    assert tail_probabilities(mass, top, R, 2).tolist() == [0.3, 0.2]
    assert tail_probabilities(mass, top, R, 0).tolist() == []


def test_no_answer_without_stability():
    """Above load 1 the iteration does not pretend to converge."""
    with pytest.raises(rota.NotConverged):
        first_passage(3.0, np.array([[0.0, 1], [1, 0]]), np.diag([2.0, 1.0]))


# ------------------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9, 0.999])
def test_mm1(rho):
    """One slot: M/M/1, geometric."""
    found = solve_qbd(alone(1, 2 * rho, 2.0))
    assert found.mean == pytest.approx(rho / (1 - rho), rel=1e-12)
    assert found.variance == pytest.approx(rho / (1 - rho) ** 2, rel=1e-11)
    assert found.decay_rate == pytest.approx(rho, rel=1e-13)
    assert found.probabilities(30) == pytest.approx((1 - rho) * rho ** np.arange(30), rel=1e-11)


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("rho", [0.3, 0.8, 0.99])
def test_mmk(k, rho):
    """k slots: M/M/k by the textbook, mean and distribution."""
    a = rho * k
    weights = np.array([a**q / math.factorial(q) if q <= k else a**k / math.factorial(k) * rho ** (q - k) for q in range(k + 60)])
    empty = 1 / (weights[:k].sum() + weights[k] / (1 - rho))
    waiting = weights[k] * empty / (1 - rho)
    found = solve_qbd(alone(k, 3 * a, 3.0))
    assert found.mean == pytest.approx(a + waiting * rho / (1 - rho), rel=1e-11)
    assert found.probabilities(k + 60) == pytest.approx(weights * empty, rel=1e-11)
    assert found.decay_rate == pytest.approx(rho, rel=1e-12)


def test_single_server_companion_of_mmk():
    """The companion of k slots is M/M/1 at k times the rate."""
    assert solve_qbd(alone(5, 4.0), single_server=True).mean == pytest.approx(4, rel=1e-12)


def test_interrupted_server():
    """On and off at rate a each, one slot: E[Q] has the closed form of a queue with exponential breakdowns."""
    # White and Christie (1958), service μ while on, off times exp(a), on times exp(a): with ρ' = 2λ/μ,
    # E[Q] = (ρ' + λ·(1/2)/a)/(1 − ρ').
    lam, mu, a = 0.3, 1.0, 0.7
    system = rota.System([2], [[1], [2]], [lam, 0.1], [mu, 1])
    queue = analyze(system, MSR([[1, 0], [0, 1]], generator=[[-a, a], [a, -a]])).queues[0]
    rho = 2 * lam / mu
    assert solve_qbd(queue).mean == pytest.approx((rho + lam / (2 * a)) / (1 - rho), rel=1e-11)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_slow_and_fast_switching(preemption):
    """The example agrees with its truncated chain at switching rates 100 times slower and faster than usual."""
    for alpha in (0.02, 200.0) if preemption == "full" else (0.02, 0.1):
        system, policy = paper_case(0.3, preemption, alpha)
        process = build_process(system, policy)
        for i in range(3):
            queue = TypeQueue(process, i, system.arrival_rate[i], 1.0)
            law = queue_law(process, i, system.arrival_rate[i], 1.0).sum(axis=1)
            assert_same_law(solve_qbd(queue), law)
