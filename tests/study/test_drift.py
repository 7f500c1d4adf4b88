"""Drift: what changes from window to window is seen, and what does not change is not."""

import numpy as np
import polars as pl
import pytest

import rota
from rota.study.drift import drift
from rota.traces import Trace


def two_halves(rates: tuple[float, float], span: float = 2000.0, seed: int = 0) -> Trace:
    """Jobs of two types; the first has another rate in the second half."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([half * span / 2 + rng.random(rng.poisson(rate * span / 2)) * span / 2 for half, rate in enumerate(rates)])
    second = rng.random(rng.poisson(span)) * span
    kinds = np.repeat([0, 1], [len(first), len(second)]).astype(np.int32)
    jobs = pl.DataFrame({"arrival": np.concatenate([first, second]), "size": rng.exponential(1, len(kinds)), "type": kinds})
    return Trace(jobs.sort("arrival").lazy(), ("a", "b"), ("cpu",), np.array([[1.0], [2.0]]), np.array([8.0]), {"period": span})


def test_a_change_of_rate_is_seen():
    """The rate of the type that changes triples between the windows, the other stays; the load follows."""
    found = drift(two_halves((1.0, 3.0)), 2, evaluate=False)
    rates = found.types.pivot("type", index="window", values="arrival_rate")
    assert rates["a"][1] / rates["a"][0] == pytest.approx(3, rel=0.15)
    assert rates["b"][1] / rates["b"][0] == pytest.approx(1, rel=0.15)
    assert found.windows["load"].to_list() == pytest.approx([3 / 8, 5 / 8], rel=0.15)
    assert found.windows["jobs"].sum() == len(two_halves((1.0, 3.0)))
    assert found.policies.is_empty()


def test_without_drift_the_rota_of_the_window_before_does_as_well():
    """On a steady trace both rotas, and First-Fit, give about the same response times."""
    found = drift(two_halves((1.5, 1.5), span=8000.0), 2, preemption="full", loops=3)
    times = dict(zip(found.policies["designed_on"], found.policies["mean_response_time"], strict=True))
    assert times["window before"] == pytest.approx(times["this window"], rel=0.2)
    assert set(found.policies["reason"]) == {""}


def test_a_window_above_load_one_says_so():
    """No rota exists for a window that is overloaded: the reason stands in its place, and the others are shown."""
    found = drift(two_halves((1.0, 9.0)), 2)
    rows = {row["designed_on"]: row for row in found.policies.to_dicts()}
    assert np.isnan(rows["this window"]["mean_response_time"])
    assert "not below 1" in rows["this window"]["reason"]


def test_windows_without_jobs_are_refused():
    """More windows than the trace can fill is a mistake that is named."""
    with pytest.raises(rota.BadSpec, match="has no jobs"):
        drift(two_halves((0.0, 0.01), span=10.0), 500)
    with pytest.raises(rota.BadSpec, match="at least 2"):
        drift(two_halves((1.0, 1.0)), 1)
