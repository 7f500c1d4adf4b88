"""Runs that stop when their interval is narrow."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.simulation.simulate import SimulationProgress
from rota.simulation.until import FIRST_LOOK, Until

MM1 = rota.System([1], [[1]], [0.5], [1.0])
TWO = rota.System([2], [[1], [1]], [0.6, 0.06], [1.0, 1.0], names=["often", "seldom"])


def test_the_end_does_not_depend_on_the_pace(monkeypatch):
    """A machine that gets through fewer jobs between two checks for Ctrl-C stops at the same job, with the same result."""
    quick = rota.simulate(MM1, "fcfs", seed=3, until=0.05)
    monkeypatch.setattr("rota.simulation.playing._PATIENCE_S", 1e-5)
    slow = rota.simulate(MM1, "fcfs", seed=3, until=0.05)
    assert (slow.jobs, slow.mean_response_time, slow.interval) == (quick.jobs, quick.mean_response_time, quick.interval)
    assert quick.reached


def test_it_ends_no_sooner_than_asked():
    """A narrower interval takes about the square as many jobs, and is as narrow as asked; the mean is the exact one within it."""
    wide, narrow = (rota.simulate(TWO, rota.MSR([[1, 1]]), seed=1, until=until) for until in (0.1, 0.02))
    assert wide.reached
    assert narrow.reached
    assert narrow.interval <= 0.02 * narrow.mean_response_time
    assert narrow.jobs > 4 * wide.jobs
    exact = rota.analyze(TWO, rota.MSR([[1, 1]])).mean_response_time
    assert abs(narrow.mean_response_time - exact) < 2 * narrow.interval


def test_every_type():
    """With `until_types` the interval of the rarest type is narrow too, which takes more jobs."""
    one = rota.simulate(TWO, "fcfs", seed=1, until=0.05)
    all_types = rota.simulate(TWO, "fcfs", seed=1, until=0.05, until_types=0.02)
    assert (all_types.response_time_interval <= 0.02 * all_types.response_time).all()
    assert all_types.jobs > one.jobs
    with pytest.raises(rota.BadSpec, match="until_types: must be between 0 and 1"):
        rota.simulate(TWO, "fcfs", until_types=1.0)


def test_a_growing_queue_ends_too():
    """If the queue grows, the run ends where one without `until` would have, and says that nothing was reached."""
    found = rota.simulate(MM1.replace(arrival_rate=[1.2]), "fcfs", until=0.01)
    assert not found.stable
    assert found.reached is False
    assert found.jobs < 4_000_000


def test_the_next_look():
    """One narrow interval is not believed; two are. Looks are 1.25 to 4 times as far, by the square of the width."""
    result = rota.simulate(MM1, "fcfs", jobs=FIRST_LOOK, seed=1)

    def with_width(part: float) -> rota.Result:
        return replace(result, interval=part * result.mean_response_time)

    rule = Until(0.1)
    assert rule.next_look(1000, with_width(0.9)) == 4000
    assert rule.next_look(1000, with_width(0.147)) == pytest.approx(1000 * (1.47 / 0.98) ** 2, abs=2)
    assert rule.next_look(1000, with_width(0.09)) == 1250
    assert rule.next_look(1250, with_width(0.2)) == pytest.approx(1250 * 4, rel=0.05)  # the first one was luck
    assert rule.next_look(5000, with_width(0.09)) == 6250
    assert rule.next_look(6250, with_width(0.09)) is None
    assert Until(0.1).next_look(1000, replace(result, stable=False)) == 4000
    assert Until(0.1).next_look(1000, with_width(np.nan)) == 4000


def test_intervals_hold_after_stopping():
    """M/M/1 at load 0.5, stopped at 5 %: of 60 intervals at least 50 hold E[T] = 2, which at 95 % fails once in ten thousand."""
    found = [rota.simulate(MM1, "fcfs", seed=seed, until=0.05) for seed in range(60)]
    assert all(result.reached for result in found)
    assert sum(abs(result.mean_response_time - 2) <= result.interval for result in found) >= 50


def test_progress_says_how_narrow_it_is():
    """Progress carries the last width, and no number of jobs."""
    seen: list[SimulationProgress] = []
    rota.simulate(MM1, "fcfs", until=0.05, progress=seen.append)
    assert seen[-1].jobs is None
    assert seen[-1].half_width < 0.1
