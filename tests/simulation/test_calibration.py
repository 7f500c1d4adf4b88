"""Simulated means against exact ones over several systems, rare types included: intervals hold what they say."""

import numpy as np
import pytest

import rota
from rotas import paper_case

JOBS, RUNS = 100_000, 40
CASES = {
    "M/M/1": (rota.System([1], [[1]], [0.8], [1.0]), rota.MSR([[1]])),
    "M/M/50": (rota.System([50], [[1]], [45.0], [1.0]), rota.MSR([[50]])),
    "pMSR": paper_case(0.8, "full", 2.0),
    "rates 1 : 100": (rota.System([2], [[1], [1]], [70.0, 0.7], [100.0, 1.0]), rota.MSR([[1, 1]])),
    "rates 1 : 20 : 200": (rota.System([12], [[1], [2], [4]], [4.0, 0.2, 0.02], [1.0, 0.4, 0.05]), rota.MSR([[6, 1, 1]])),
}


@pytest.fixture(scope="module")
def answers():
    """For each case, of every run: (value − exact) / half-width, over all jobs and for each type."""
    found = {}
    for name, (system, policy) in CASES.items():
        exact = rota.analyze(system, policy)
        off = []
        for seed in range(RUNS):
            result = rota.simulate(system, policy, jobs=JOBS, seed=seed)
            off.append((result.mean_response_time - exact.mean_response_time) / result.interval)
            off.extend((result.response_time - exact.response_time) / result.response_time_interval)
        found[name] = np.array(off)
    return found


def test_intervals_hold_what_they_say(answers):
    """Of all means of runs of 100,000 jobs, 93 to 97 % lie within their 95 % interval, up to the noise of so many runs; few are refused."""
    together = np.concatenate(list(answers.values()))
    known = together[np.isfinite(together)]
    assert len(known) > 0.95 * len(together)
    assert 0.92 <= (np.abs(known) <= 1).mean() <= 0.975


@pytest.mark.parametrize("name", CASES)
def test_no_case_is_far_off(name, answers):
    """In no system are the intervals wrong more often than in one of eight cases, or the errors on one side only."""
    known = answers[name][np.isfinite(answers[name])]
    assert (np.abs(known) <= 1).mean() >= 0.875
    assert 0.2 < (known < 0).mean() < 0.8
