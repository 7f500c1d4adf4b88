"""`compare`: policies side by side on the same jobs."""

import math

import numpy as np
import pytest

import rota
from rota.simulation import compare_relative
from rotas import paper_rota
from systems import paper_example


@pytest.fixture(scope="module")
def comparison():
    """Some policies on the example at load 0.6, and one that cannot run on it."""
    return rota.compare(
        paper_example(0.6), ["first-fit", "easy", "max-weight", paper_rota("full", 2.0), "server-filling"], jobs=300_000, seed=1
    )


def test_results_are_those_of_simulate(comparison):
    """Each result is what `simulate` gives with the same seed; the best is the one of lowest mean."""
    assert [result.name for result in comparison.results] == ["first-fit", "easy", "max-weight", "pMSR"]
    alone = rota.simulate(paper_example(0.6), "easy", jobs=300_000, seed=1)
    assert comparison.results[1].mean_response_time == alone.mean_response_time
    assert comparison.best.mean_response_time == min(result.mean_response_time for result in comparison.results)


def test_errors_are_reported_by_policy(comparison):
    """A policy that cannot run is reported with its reason; the others run."""
    assert list(comparison.errors) == ["server-filling"]
    assert "powers of two" in comparison.errors["server-filling"]


def test_table(comparison):
    """One row per policy, with quantiles and the difference to the best."""
    table = comparison.table()
    assert table.columns == [
        "policy",
        "stable",
        "mean_response_time",
        "interval",
        *("p50", "p90", "p95", "p99", "p99.9"),
        "mean_waiting_time",
        "mean_slowdown",
        "worse_than_best_by",
        "worse_interval",
        "preemption_rate",
        "utilization",
        "events_per_s",
    ]
    assert table["policy"].to_list() == ["first-fit", "easy", "max-weight", "pMSR"]
    assert sorted(table["worse_than_best_by"])[0] == 0
    assert (table["worse_than_best_by"] >= 0).all()
    assert table["p50"].to_list() == [result.response_time_quantiles[0.5] for result in comparison.results]


def test_pairs_tell_more(comparison):
    """On the same jobs the interval of the difference of similar policies is narrower than from two independent runs."""
    first, second = comparison.results[:2]
    pair = rota.compare_pair(first, second)
    assert pair.mean == first.mean_response_time - second.mean_response_time
    assert pair.interval < 0.7 * math.hypot(first.interval, second.interval)
    opposite = rota.compare_pair(second, first)
    assert opposite.mean == -pair.mean
    assert opposite.interval == pytest.approx(pair.interval, rel=0.05)


def test_significance(comparison):
    """pMSR is worse than MaxWeight beyond doubt; a policy does not differ from itself."""
    _, _, best, rotating = comparison.results
    assert rota.compare_pair(rotating, best).significant
    assert rota.compare_pair(rotating, best).mean > 0
    same = rota.compare_pair(best, best)
    assert (same.mean, same.interval, same.significant) == (0.0, 0.0, False)


def test_differences_hold_for_all_pairs_at_once(comparison):
    """The intervals of the table are those of all six pairs: wider than that of one pair alone, and said to be so; one pair needs none."""
    first, best = comparison.results[0], comparison.best
    assert comparison.pairs == 6
    alone, at_once = rota.compare_pair(first, best), rota.compare_pair(first, best, comparisons=6)
    assert alone.mean == at_once.mean
    assert alone.interval < at_once.interval == comparison.table()["worse_interval"][0]
    assert "all 6 pairs" in comparison._repr_html_()
    two = rota.compare(paper_example(0.6), ["first-fit", "easy"], jobs=5000)
    assert two.pairs == 1
    assert "pairs" not in two._repr_html_()
    with pytest.raises(rota.BadSpec, match="comparisons: must be at least 1"):
        rota.compare_pair(first, best, comparisons=0)


def test_a_name_is_designed_for_the_system():
    """ "nMSR" and "improved" are designed first; one that cannot be designed is an error of its own, a wrong name is wrong use."""
    system = paper_example(0.7)
    found = rota.compare(system, ["first-fit", "improved", "nMSR", "sMSR"], jobs=5000)
    assert found.labels == ("first-fit", "improved nMSR+backfill", "nMSR")
    assert all(rota.analyze(system, rota_).stable for rota_ in (found.results[1].policy.base, found.results[2].policy))
    assert list(found.errors) == ["sMSR"]
    assert "setup_rate" in found.errors["sMSR"]
    with pytest.raises(rota.BadSpec, match=r"must be one of fcfs, .*nMSR, .*improved"):
        rota.compare(system, ["nMSR", "best-fit"], jobs=1000)


def test_times_by_mean_size_are_paired(comparison):
    """The mean of response time by mean size is that of the types, weighted by their jobs, and its difference that of the results."""
    first, second = comparison.results[:2]
    pair = compare_relative(first, second)
    assert pair.mean == first.relative_response_time - second.relative_response_time
    by_type = first.response_time * first.system.service_rate
    assert first.relative_response_time == pytest.approx(np.average(by_type, weights=first.counted))
    assert 0 < pair.interval < 0.1 * first.relative_response_time


def test_unstable_policies_have_no_rank():
    """An unstable policy is in the table without numbers; if all are, there is no best."""
    found = rota.compare(paper_example(0.93), ["fcfs", "max-weight"], jobs=200_000)
    lost, best = found.table().to_dicts()
    assert (lost["stable"], best["stable"]) == (False, True)
    assert np.isnan([lost["mean_response_time"], lost["worse_than_best_by"], lost["p99"]]).all()
    assert found.best is found.results[1]
    assert rota.compare(paper_example(2.0), ["fcfs"], jobs=50_000).best is None


def test_unknown_names_are_wrong_use():
    """A name that no policy has is an error of the call, not of a policy."""
    with pytest.raises(rota.BadSpec, match="must be one of fcfs"):
        rota.compare(paper_example(0.5), ["fcfs", "best-fit"], jobs=1000)


def test_progress_names_the_policy():
    """Progress comes with the policy it is of, one call at a time, and of each policy the jobs done only grow."""
    seen = []
    rota.compare(paper_example(0.5), ["fcfs", "first-fit"], jobs=1000, progress=lambda label, at: seen.append((label, at.done)))
    assert dict(seen) == {"fcfs": 1000, "first-fit": 1000}
    for policy in ("fcfs", "first-fit"):
        done = [jobs for label, jobs in seen if label == policy]
        assert done == sorted(done)
