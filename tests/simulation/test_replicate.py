"""`replicate`: independent runs."""

import sys

import numpy as np
import pytest

import rota

MM1 = rota.System([1], [[1]], [0.5], [1.0])


def test_workers_do_not_change_the_result():
    """On one core or two the runs are the same, bit by bit, and differ from each other."""
    alone, shared = (rota.replicate(MM1, "fcfs", replications=3, jobs=20_000, seed=1, workers=workers) for workers in (1, 2))
    means = [result.mean_response_time for result in alone.results]
    assert means == [result.mean_response_time for result in shared.results]
    assert len(set(means)) == 3


def test_the_spread_between_runs_covers():
    """M/M/1 at load 0.5: E[T] = 2 and E[Q] = 1 lie within twice the half-width, which is narrower than 1 %."""
    found = rota.replicate(MM1, "fcfs", replications=20, jobs=100_000, seed=2)
    assert found.stable
    assert found.interval < 0.01 * 2
    assert abs(found.mean_response_time - 2) < 2 * found.interval
    assert abs(found.mean_queue_length[0] - 1) < 2 * found.mean_queue_length_interval[0]
    values = np.array([result.mean_response_time for result in found.results])
    assert found.interval == pytest.approx(2.0930 * values.std(ddof=1) / np.sqrt(20), rel=1e-4)  # Student's t, 19 degrees of freedom


def test_one_unstable_run_is_enough():
    """If a run finds a growing queue, there is no mean."""
    found = rota.replicate(MM1.replace(arrival_rate=[1.5]), "fcfs", replications=2, jobs=50_000)
    assert not found.stable
    assert np.isnan(found.mean_response_time)


@pytest.mark.parametrize(
    ("options", "rule"), [({"replications": 1}, "replications: must be"), ({"workers": 0}, "workers: must be")], ids=str
)
def test_bad_options(options, rule):
    """Fewer than two runs or no worker are refused."""
    with pytest.raises(rota.BadSpec, match=rule):
        rota.replicate(MM1, "fcfs", jobs=1000, **options)


def test_your_own_policy_in_two_processes(own):
    """A function of this very module, of a module and a lambda go to other processes; the result is that of one."""
    name, _ = own

    def one_at_a_time(state, target):
        target[0] = min(1, state.system[0])
        return np.inf

    for policy in (rota.Custom(one_at_a_time), f"{name}:small_first"):
        alone, shared = (rota.replicate(MM1, policy, replications=2, jobs=2000, workers=workers) for workers in (1, 2))
        assert [run.mean_response_time for run in alone.results] == [run.mean_response_time for run in shared.results]


def test_what_cannot_travel(monkeypatch):
    """Without cloudpickle, a function that plain pickle cannot take is refused with the way out."""
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(rota.BadSpec, match=r"cannot go to another process .*pip install cloudpickle"):
        rota.replicate(MM1, rota.Custom(lambda _state, _target: np.inf), replications=2, jobs=1000, workers=2)


def test_a_workload_in_every_run(own):
    """Each run draws the workload from its own seed, on one core or two."""
    name, _ = own
    alone, shared = (
        rota.replicate(MM1, "fcfs", workload=f"{name}:Pairs", replications=2, jobs=2000, workers=workers) for workers in (1, 2)
    )
    means = [run.mean_response_time for run in alone.results]
    assert means == [run.mean_response_time for run in shared.results]
    assert means[0] != means[1]
    expected = rota.simulate(MM1, "fcfs", workload=f"{name}:Pairs", jobs=2000, seed=alone.results[0].seed)
    assert expected.mean_response_time == means[0]


def test_a_fixed_workload_is_no_spread():
    """On the same jobs in every run, a policy without chance is refused; one with chance runs on all of them."""
    times = np.arange(1.0, 401.0)
    jobs = rota.Jobs(times, np.zeros(400, dtype=int), np.full(400, 0.5))
    with pytest.raises(rota.BadSpec, match="all runs would be one"):
        rota.replicate(MM1, "fcfs", workload=jobs, replications=2)
    found = rota.replicate(MM1, rota.RandomizedTimers(rate=1.0), workload=jobs, replications=2, workers=2)
    assert [run.jobs for run in found.results] == [400, 400]
