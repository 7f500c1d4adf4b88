"""`compare_early`: policies that cannot be the best are stopped early, and what is said of them holds."""

import numpy as np
import pytest

import rota
from rota.policy import as_policy
from rota.simulation import compare_early
from systems import paper_example

TWO = rota.System([1], [[1], [1]], [0.2, 0.2], [1.0, 1.0])
RATES = (10.0, 0.3, 0.1)
ROTAS = [rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", rate) for rate in RATES]


def test_those_that_go_on_have_the_results_of_plain_runs():
    """A policy that is not stopped has the result of `simulate` to the bit; one whose queue grows, or clearly worse, sees fewer jobs."""
    system = paper_example(0.9)
    slow = rota.design_policy(system, "none", objective="load")
    found = compare_early(system, [as_policy(name, system) for name in ("fcfs", "first-fit", "max-weight-np")] + [slow], jobs=100_000)
    results = dict(zip(found.labels, found.results, strict=True))
    assert list(results) == ["fcfs", "first-fit", "max-weight-np", "nMSR"]
    assert {label: one.why for label, one in found.stopped.items()} == {"fcfs": "growing", "nMSR": "worse"}
    assert not results["fcfs"].stable
    assert results["fcfs"].jobs == 25_000
    assert results["nMSR"].jobs in (25_000, 50_000)
    for name in ("first-fit", "max-weight-np"):
        alone = rota.simulate(system, name, jobs=100_000)
        assert results[name].jobs == alone.jobs
        assert results[name].mean_response_time == alone.mean_response_time
        assert results[name].interval == alone.interval
        assert (results[name].batches == alone.batches).all()
        assert results[name].fingerprint == alone.fingerprint
    assert "fcfs because the queue grew; nMSR as clearly worse" in found.early_words()


def test_a_prefix_of_the_same_jobs():
    """A policy that was stopped saw the first jobs of the others: its result is that of `simulate` on so many, up to how it is cut."""
    found = compare_early(TWO, ROTAS, jobs=200_000, seed=1)
    worst = found.results[2]
    assert worst.jobs < 200_000
    alone = rota.simulate(TWO, ROTAS[2], jobs=worst.jobs, seed=1)
    assert worst.fingerprint == alone.fingerprint
    assert worst.mean_response_time == pytest.approx(alone.mean_response_time, rel=0.02)


def test_differences_have_a_direction():
    """The difference to a policy that was stopped early changes its sign with the order; of two that were stopped it is unknown."""
    found = compare_early(TWO, ROTAS, jobs=200_000, seed=1)
    best, _, worst = found.labels
    assert worst in found.stopped
    there, back = found.difference(worst, best), found.difference(best, worst)
    assert there.mean == -back.mean > 0
    assert there.interval == back.interval > 0
    assert there.significant
    if len(found.stopped) == 2:
        assert np.isnan(found.difference(found.labels[1], worst).mean)


def test_intervals_hold_although_policies_are_stopped():
    """Three rotas with exact means, 60 seeds: the intervals of all differences hold at once in 95 % or so, and those of stopped means.

    Of 60 runs that miss with probability 0.05 more than eight miss once in 400 times.
    """
    exact = [rota.analyze(TWO, policy).mean_response_time for policy in ROTAS]
    missed = stopped = missed_means = 0
    for seed in range(60):
        found = compare_early(TWO, ROTAS, jobs=40_000, seed=seed)
        apart = [found.difference(found.labels[k], found.labels[0]) for k in (1, 2)]
        missed += any(abs(one.mean - (exact[k] - exact[0])) > one.interval for k, one in zip((1, 2), apart, strict=True))
        for k, result in enumerate(found.results):
            if result.jobs < 40_000:
                stopped += 1
                missed_means += abs(result.mean_response_time - exact[k]) > result.interval
    assert stopped >= 60
    assert missed <= 8
    assert missed_means <= 0.13 * stopped


def test_the_pace_of_the_machine_does_not_matter(monkeypatch):
    """A machine that gets through fewer jobs between two checks for Ctrl-C stops the same policies at the same jobs."""

    def told():
        found = compare_early(TWO, ROTAS, jobs=40_000, seed=4)
        return [(result.jobs, result.mean_response_time, result.interval) for result in found.results], found.difference(
            "pMSR (3)", "pMSR (1)"
        )

    quick = told()
    monkeypatch.setattr("rota.simulation.playing._PATIENCE_S", 1e-5)
    assert told() == quick


def test_only_growing_queues_are_stopped_if_asked():
    """With `worse=False` a policy that is clearly worse sees all jobs."""
    found = compare_early(TWO, ROTAS, jobs=40_000, worse=False)
    assert not found.stopped
    assert [result.jobs for result in found.results] == [40_000] * 3
    assert found.early_words() == ""


def test_all_queues_grow():
    """Above what the server can carry every policy is stopped, and none has a mean."""
    found = compare_early(TWO.scaled(load=1.3), [as_policy("fcfs", TWO), ROTAS[0]], jobs=80_000)
    assert {one.why for one in found.stopped.values()} == {"growing"}
    assert len(found.stopped) == 2
    assert found.best is None


def test_a_policy_that_cannot_run_is_an_error():
    """ServerFilling needs powers of two: it is named with the reason, and the others are compared."""
    system = rota.System([6], [[3], [1]], [0.2, 0.2], [1.0, 1.0])
    found = compare_early(system, [as_policy(name, system) for name in ("fcfs", "server-filling")], jobs=5000)
    assert found.labels == ("fcfs",)
    assert "server-filling" in found.errors


def test_ctrl_c_ends_it():
    """Ctrl-C, which is heard where progress is reported, ends all runs."""

    def interrupt(label, at):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_early(TWO, ROTAS, jobs=2_000_000, progress=interrupt)
