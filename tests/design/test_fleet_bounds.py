"""Bounds of a fleet: below what is designed, above it random splitting."""

import pytest

import rota

FLEET = rota.Fleet([3, 2], [[2, 0], [4, 2]], [[2, 0], [1, 1]], [2.0, 1.5], [1.0, 1.0], preemption="full")


def test_between():
    """Pinned servers are between the bound and random splitting here; a split that is given is the reference."""
    bounds = rota.fleet_bounds(FLEET, time_limit_s=6)
    pinned = rota.analyze(FLEET, rota.design_pinned(FLEET))
    assert bounds.lower == pinned.lower_bound
    assert bounds.lower <= pinned.mean_response_time < bounds.split_time
    assert rota.fleet_bounds(FLEET, split=bounds.split).split_time == pytest.approx(bounds.split_time)
    assert bounds.explain().startswith("No dispatcher and no policy can have a mean response time below ")
    assert repr(bounds).startswith("<FleetBounds: at least ")
    assert "at random" in bounds._repr_html_()


def test_one_slot_each():
    """One slot per server: the bound is that of M/M/3, and splitting is three M/M/1 queues."""
    fleet = rota.Fleet([3], [[1]], [[1]], [2.4], [1.0], preemption="full")
    bounds = rota.fleet_bounds(fleet)
    assert bounds.split_time == pytest.approx(1 / (1 - 0.8))
    assert bounds.lower == pytest.approx(rota.analyze(fleet, rota.Pinned([0], [[1]], [3], [[1.0]])).mean_response_time)


def test_refused():
    """Overload has no bounds."""
    with pytest.raises(rota.Unstable, match="of the fleet is not below 1"):
        rota.fleet_bounds(FLEET.scaled(factor=5))
