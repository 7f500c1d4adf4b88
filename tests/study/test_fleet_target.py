"""Targets: what is refused, and how many servers keep them, against Erlang's formula."""

import numpy as np
import pytest

import rota
from rota.study.fleet_target import check_reachable, checked_targets, fastest
from systems import EXAMPLES


def example():
    """The bundled fleet."""
    return rota.read_system(EXAMPLES / "fleet.toml")


def test_units():
    """Times with units, in the unit of the file; all jobs are "mean", unless a type has that name."""
    fleet = example()
    assert checked_targets(fleet, {"train": "5h30m", "render": 90, "mean": "30m"}) == {"train": 5.5, "render": 90.0, "mean": 0.5}
    assert checked_targets(fleet, None) == {}
    named = fleet.replace(names=["mean", "render", "query", "test"])
    assert checked_targets(named, {"mean": 5}) == {"mean": 5.0}
    check_reachable(named, {"mean": 5.0})
    with pytest.raises(rota.Infeasible, match="a job of type 'mean' runs 4 h on average"):
        check_reachable(named, {"mean": 3.0})


@pytest.mark.parametrize(
    ("targets", "rule"),
    [
        ({"sleep": 3}, "targets.sleep: no such type (there are: train, render, query, test, mean)"),
        ({"train": 0}, "targets.train: must be a positive time"),
        ({"train": -2}, "targets.train: must be a positive time"),
        ({"train": float("nan")}, "targets.train: must be a positive time"),
        ({"train": "2 weeks"}, "targets.train: must be a duration"),
        ({"train": "-2h"}, "targets.train: must be a duration"),
        (["train"], "targets: must be a table by type"),
    ],
)
def test_wrong_targets(targets, rule):
    """The place and the rule."""
    with pytest.raises(rota.BadSpec, match="targets") as told:
        rota.plan(example(), targets=targets)
    assert rule in str(told.value)


def test_a_unit_that_the_file_does_not_say():
    """Only a plain number has a meaning there."""
    fleet = example().replace(time_unit=None)
    with pytest.raises(rota.BadSpec, match="has a unit, and the system does not say its own"):
        rota.plan(fleet, targets={"train": "5h"})


def test_below_the_size():
    """No number of servers makes a job faster than it runs, where it runs fastest: a clear answer, before any work."""
    fleet = example()
    np.testing.assert_allclose(fastest(fleet), [4, 1, 1, 0.25])  # rendering is three times as fast on gpu servers
    with pytest.raises(rota.Infeasible) as told:
        rota.plan(fleet, targets={"train": "2h"})
    assert str(told.value) == (
        "no number of servers can keep this target: train=2 h: a job of type 'train' runs 4 h on average on the fastest servers "
        "it can use. Ask for a longer time"
    )
    with pytest.raises(rota.Infeasible, match=r"mean=0.4 h: a job runs 0.419 h on average"):
        rota.plan(fleet, targets={"mean": 0.4})
    with pytest.raises(rota.Infeasible, match=r"train=2 h.*; render=0.5 h"):
        rota.plan(fleet, targets={"train": 2, "render": 0.5})
    check_reachable(fleet, {"train": 4.01, "mean": 0.43})


def test_types_that_never_arrive():
    """They have no response time, so no target."""
    fleet = example().replace(arrival_rate=[0, 12, 60, 300])
    with pytest.raises(rota.BadSpec, match="no jobs of this type arrive"):
        rota.plan(fleet, targets={"train": 9})


def test_targets_are_for_fleets():
    """One server has limits."""
    with pytest.raises(rota.BadSpec, match="are for a fleet"):
        rota.plan(rota.System([1], [[1]], [0.5], [1.0]), targets={"type1": 3})
