"""Simulated fleets against what is known exactly: random splitting, pinned servers, pooled servers, and laws of single runs."""

import numpy as np

import rota


def near(result, exact, *, most=0.03):
    """Whether the exact mean is within the interval (a little wider, as many are looked at), and the interval is narrow."""
    assert result.interval < most * exact
    assert abs(result.mean_response_time - exact) < 1.8 * result.interval


def test_random_splitting():
    """Random splitting over two kinds with rotas of their own has the exact mean response time, and that of each type."""
    fleet = rota.Fleet(
        count=[3, 2],
        capacity=[[4], [8]],
        demand=[[1], [4]],
        arrival_rate=[12.0, 2.0],
        service_rate=[2.0, 1.0],
        speed=[[1.0, 1.0], [1.0, 2.0]],
    )
    split = rota.design_split(fleet)
    exact = rota.analyze(fleet, split)
    result = rota.simulate(fleet, split, jobs=600_000, seed=1)
    near(result, exact.mean_response_time, most=0.05)
    np.testing.assert_allclose(result.parts, split.split, atol=0.01)
