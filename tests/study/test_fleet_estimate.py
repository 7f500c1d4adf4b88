"""Means from independent runs, without the noise of sizes: against exact values and against the plain means."""

import numpy as np
import pytest

import rota
from rota.simulation.student import student_quantile
from rota.study.fleet_estimate import RUNS, estimate, estimate_of, mean_by_type
from rota.study.fleet_options import FleetOption
from systems import EXAMPLES


def example():
    """The bundled fleet, in which rendering runs at two speeds."""
    return rota.read_system(EXAMPLES / "fleet.toml")


def test_pinned_servers_exactly():
    """Within a few widths of Erlang's values for every type, and far narrower than the plain interval of a run."""
    fleet = example()
    pinned = rota.design_pinned(fleet)
    exact = rota.analyze(fleet, pinned)
    found = estimate(fleet, FleetOption("pinned", pinned, rota.Dispatch("pinned")), jobs=200_000, seed=3, tell=lambda part: None)
    assert (np.abs(found.response_time - exact.response_time) <= 2 * found.response_time_interval + 1e-4).all()
    assert abs(found.mean_response_time - exact.mean_response_time) <= 2 * found.interval
    plain = rota.simulate(fleet, pinned, jobs=200_000, seed=3)
    assert found.interval < 0.5 * plain.interval
    assert found.response_time_interval[0] < plain.response_time_interval[0]  # jobs of this type wait
    assert found.response_time_interval[2] < 0.1 * plain.response_time_interval[2]  # those of this one hardly do


def test_one_type_that_never_waits():
    """Its mean is its mean size, to the last digits, whatever sizes were drawn."""
    fleet = rota.Fleet([50], [[10]], [[1]], [5.0], [1.0])
    found = estimate(fleet, FleetOption("x", rota.FirstFit(), rota.Dispatch("jsq")), jobs=5000, seed=0, tell=lambda part: None)
    assert found.mean_response_time == pytest.approx(1.0, abs=1e-9)
    assert found.response_time_interval[0] == pytest.approx(0.0, abs=1e-9)


def test_formulas():
    """The mean of a run is its wait and the known running times by kind; the interval is Student's, over runs."""
    fleet = example()
    runs = [rota.simulate(fleet, "first-fit", dispatch="jsq", jobs=20_000, seed=seed) for seed in range(3)]
    one = mean_by_type(fleet, runs[0])
    for i in range(len(fleet.names)):
        running = sum(runs[0].parts[c, i] / (fleet.service_rate[i] * fleet.speed[c, i]) for c in range(2))
        assert one[i] == pytest.approx(runs[0].waiting_time[i] + running)
    found = estimate_of(fleet, runs)
    every = np.array([mean_by_type(fleet, run) for run in runs])
    np.testing.assert_allclose(found.response_time, every.mean(axis=0))
    np.testing.assert_allclose(found.response_time_interval, student_quantile(0.975, 2) * every.std(axis=0, ddof=1) / np.sqrt(3))
    assert found.mean_response_time == pytest.approx(float(found.response_time @ fleet.arrival_rate / fleet.arrival_rate.sum()))
    assert RUNS > 2


def test_a_queue_that_grows_has_no_mean():
    """Not a number, so that it keeps no target."""
    fleet = rota.Fleet([2], [[1]], [[1]], [2.2], [1.0])
    found = estimate(fleet, FleetOption("x", rota.FirstFit(), rota.Dispatch("jsq")), jobs=20_000, seed=0, tell=lambda part: None)
    assert np.isnan(found.mean_response_time)
    assert np.isnan(found.response_time).all()


def test_types_that_never_arrive_do_not_count():
    """They have no mean, and the mean over all jobs is that of the others."""
    fleet = rota.Fleet([20], [[10]], [[1], [2]], [5.0, 0.0], [1.0, 1.0])
    found = estimate(fleet, FleetOption("x", rota.FirstFit(), rota.Dispatch("jsq")), jobs=5000, seed=0, tell=lambda part: None)
    assert np.isnan(found.response_time[1])
    assert found.mean_response_time == pytest.approx(1.0, abs=1e-3)


def test_servers_that_fail_have_plain_means():
    """A long job meets more failures than a short one, so its running time is not that of any job there."""
    fleet = rota.Fleet([20], [[10]], [[1]], [5.0], [1.0], up_time=[50.0], down_time=[1.0])
    result = rota.simulate(fleet, "first-fit", dispatch="jsq", jobs=5000)
    assert mean_by_type(fleet, result) is result.response_time
