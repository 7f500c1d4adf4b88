"""From runs to cases."""

import numpy as np
import pytest

from rota.study import grid, over_seeds, sweep
from rota.study.results import as_table
from rota.study.runs import failed
from systems import paper_example

SYSTEM = paper_example(0.6)


@pytest.fixture(scope="module")
def runs():
    """Two policies, one that cannot run, three seeds."""
    return sweep(SYSTEM, ["first-fit", "max-weight", "server-filling"], loads=[0.5, 0.7], jobs=2000, seeds=3, workers=0)


def test_means_and_intervals(runs):
    """The mean of the runs' means, with Student's t over them (2 degrees of freedom), and the means of all else."""
    cases = over_seeds(runs)
    assert cases.select("policy", "load", "runs").rows() == [
        ("first-fit", 0.5, 3),
        ("first-fit", 0.7, 3),
        ("max-weight", 0.5, 3),
        ("max-weight", 0.7, 3),
        ("server-filling", 0.5, 0),
        ("server-filling", 0.7, 0),
    ]
    values = runs["mean_response_time"].to_numpy()[3:6]
    case = cases.row(1, named=True)
    assert case["mean_response_time"] == pytest.approx(values.mean(), rel=1e-12)
    assert case["interval"] == pytest.approx(4.302653 * values.std(ddof=1) / np.sqrt(3), rel=1e-6)
    assert case["p99"] == pytest.approx(runs["p99"].to_numpy()[3:6].mean(), rel=1e-12)
    assert case["mean_queue_length"] == pytest.approx(np.mean(runs["mean_queue_length"].to_list()[3:6], axis=0), rel=1e-12)
    assert case["error"] is None


def test_what_could_not_run(runs):
    """A case without a run has its reason and no means."""
    case = over_seeds(runs).row(4, named=True)
    assert "powers of two" in case["error"]
    assert case["mean_response_time"] is case["stable"] is case["utilization"] is None


def test_one_run_has_its_own_interval(runs):
    """With one seed the interval is that of the run."""
    (case,) = over_seeds(runs.head(1)).to_dicts()
    assert (case["mean_response_time"], case["interval"]) == runs.select("mean_response_time", "interval").row(0)


def test_one_unstable_run_is_enough():
    """If one of the runs found a growing queue, there is no mean."""
    crowded = sweep(SYSTEM, ["fcfs"], loads=[2.0], jobs=20_000, seeds=2, workers=0)
    (case,) = over_seeds(crowded).to_dicts()
    assert case["stable"] is False
    assert np.isnan(case["mean_response_time"])
    assert np.isnan(case["interval"])


def test_a_failed_run_is_left_out(runs):
    """The means are over the runs that were done; the case has the error of the other."""
    (lost,) = grid(SYSTEM, ["first-fit"], loads=[0.5], jobs=2000, seeds=[2])
    table = as_table([*runs.head(2).to_dicts(), failed(lost, "its worker died")])
    (case,) = over_seeds(table).to_dicts()
    assert (case["runs"], case["error"]) == (2, "its worker died")
    assert case["mean_response_time"] == runs["mean_response_time"].head(2).mean()


def test_nothing_gives_nothing():
    """No runs, no cases."""
    assert over_seeds(as_table([])).is_empty()
