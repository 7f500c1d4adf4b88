"""Rotas tuned on the exact 95 % quantile of the response time, and that quantile itself."""

import numpy as np
import pytest

import rota
from rota.design import Design, find_design
from rota.design.quantile import tuned_on_p95
from rota.errors import BadSpec
from systems import EXAMPLES

PAPER = rota.read_system(EXAMPLES / "paper.toml").scaled(load=0.8)


def gpu(load):
    """The example with GPUs, without preemption, with exponential sizes."""
    system = rota.read_system(EXAMPLES / "gpu.toml")
    return system.replace(mean_size=1 / system.service_rate, preemption="none", setup_time=None).scaled(load=load)


def p95(system, policy):
    """The exact quantile over all jobs."""
    return rota.analyze(system, policy).response_time_quantiles((0.95,))[0.95]


@pytest.mark.parametrize("preemption", ["full", "none"])
def test_the_quantile_of_all_jobs_is_that_of_their_mixture(preemption):
    """At the quantile the tails of the types, weighed by their arrivals, sum to 1 − p; it lies between the quantiles of the types."""
    policy = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), preemption, 2.0 if preemption == "full" else 0.06)
    answer = rota.analyze(PAPER, policy)
    share = PAPER.arrival_rate / PAPER.arrival_rate.sum()
    for p, t in answer.response_time_quantiles((0.1, 0.5, 0.95, 0.999)).items():
        tails = [float(answer.response_time_distribution(i).tail(t)) for i in range(3)]
        assert share @ tails == pytest.approx(1 - p, rel=1e-6)
        own = answer.type_response_time_quantiles((p,))[p]
        assert own.min() <= t <= own.max()


def test_the_quantile_of_all_jobs_is_what_is_simulated():
    """Exact and simulated quantiles agree within the interval of the simulation, which is narrow; a type that never arrives has no part."""
    system = PAPER.replace(arrival_rate=[*PAPER.arrival_rate[:2], 0.0], preemption="full").scaled(load=0.7)
    policy = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.1, 0.9), "full", 2.0)
    result = rota.simulate(system, policy, jobs=1_000_000, seed=3)
    exact = p95(system, policy)
    interval = result.response_time_quantile_intervals[0.95]
    assert abs(exact - result.response_time_quantiles[0.95]) < 1.5 * interval
    assert interval < 0.05 * exact


def test_its_rate_has_the_least_quantile():
    """No rate of a grid with a mean of at most 1.1 times the least is better by more than a thousandth; that of the mean is worse."""
    system = gpu(0.8)
    close = rota.MSR([[0, 5, 2, 2], [1, 3, 1, 2], [0, 4, 4, 2]], [0.262, 0.658, 0.08], "none", 1.025, names=system.names)
    found = tuned_on_p95(system, Design(close, None), keep_rate=False, time_limit_s=1.0)
    assert found.objective == "p95"
    assert found.policy.replace(switching_rate=close.switching_rate) == close
    least, mean = p95(system, found.policy), rota.analyze(system, close).mean_response_time
    grid = []
    for factor in 2.0 ** np.linspace(-3, 3, 25):
        answer = rota.analyze(system, close.replace(switching_rate=close.switching_rate * factor))
        if answer.stable and answer.mean_response_time <= 1.1 * mean:
            grid.append(answer.response_time_quantiles((0.95,))[0.95])
    assert len(grid) >= 3
    assert least <= 1.001 * min(grid)
    assert least < 0.97 * p95(system, close)
    assert rota.analyze(system, found.policy).mean_response_time <= 1.1 * mean
    assert f"95 % of all jobs are done within {least:.6g}, exact" in found.remarks[-1]


def test_what_it_leaves_alone():
    """A preemptive rota switches fast already, a rate that is given is kept, and one schedule has no rate: these are the close rota's."""
    turning = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "none", 0.06)
    one = rota.MSR([(1, 1, 1)], (1.0,), "none", 1.0)
    for policy, keep_rate in ((turning.replace(preemption="full"), False), (turning, True), (one, False)):
        assert tuned_on_p95(PAPER, Design(policy, None), keep_rate=keep_rate, time_limit_s=1.0).policy is policy
    with pytest.raises(BadSpec, match="tuned without limits"):
        rota.design_policy(PAPER, objective="p95", max_response_time={PAPER.names[0]: 9.0})


def test_where_the_quantile_takes_too_long_it_says_so():
    """By the estimate, never by the clock: the rate is then that of the least mean."""
    slow = rota.MSR([(0, 0, 20), (10, 40, 0)], (0.5, 0.5), "none", 0.005)
    system = PAPER.replace(capacity=10 * PAPER.capacity, arrival_rate=10 * PAPER.arrival_rate)
    assert rota.analyze(system, slow).laws_time_s > 10
    found = tuned_on_p95(system, Design(slow, None), keep_rate=False, time_limit_s=1.0)
    assert found.policy == slow
    assert "would take too long" in found.remarks[-1]


def test_by_its_name():
    """`design_policy` and the plan take "p95"; what it finds is no worse than at any other rate of the same rota."""
    found = find_design(PAPER, "none", objective="p95", time_limit_s=2.0)
    assert found.objective == "p95"
    assert found.remarks[-1].startswith("95 % of all jobs are done within")
    least = p95(PAPER, found.policy)
    mean = rota.analyze(PAPER, found.policy).mean_response_time
    for factor in (0.7, 0.9, 1.1, 1.4):
        other = rota.analyze(PAPER, found.policy.replace(switching_rate=factor * found.policy.switching_rate))
        assert other.mean_response_time > 1.05 * mean or other.response_time_quantiles((0.95,))[0.95] > 0.999 * least
