"""Policies of a fleet as files: what is written is read, and what is wrong is told."""

import json

import pytest

import rota
from rota.policy import fleet_policy_from_dict, fleet_policy_to_dict

PINNED = rota.Pinned([0, 1], [[4, 0], [2, 3]], [2, 1], [[0.5, 0.0], [0.25, 0.5]])
NONE = rota.Pinned([], PINNED.candidates[:0], [], [[0.0, 0.0], [0.0, 0.0]])
ROTA = rota.MSR([[8, 0], [0, 4]], [0.25, 0.75], switching_rate=1.0, names=("a", "b"))
DESIGNS = {
    "pinned": PINNED,
    "none": NONE,
    "split": rota.Split([None, ROTA], [[0.0, 0.0], [1.0, 1.0]]),
    "partly": rota.PartlyPinned(PINNED, [0, 1], [None, ROTA], [[0.0, 0.0], [0.25, 0.5]]),
    "all turn": rota.PartlyPinned(NONE, [0, 2], [None, ROTA], [[0.0, 0.0], [1.0, 1.0]]),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_written_and_read(tmp_path, name):
    """The file gives the same policy."""
    rota.save_fleet_policy(DESIGNS[name], tmp_path / "policy.json")
    assert rota.read_fleet_policy(tmp_path / "policy.json") == DESIGNS[name]
    assert json.loads((tmp_path / "policy.json").read_text(encoding="utf-8"))["rota_policy"] == 1


def test_other_policies(tmp_path):
    """A policy of one server is none of a fleet, and the other way round; each says what reads it."""
    rota.save_policy(ROTA, tmp_path / "rota.json")
    with pytest.raises(rota.BadSpec, match="must be one of pinned, split, partly-pinned: a policy of a fleet"):
        rota.read_fleet_policy(tmp_path / "rota.json")
    rota.save_fleet_policy(PINNED, tmp_path / "pinned.json")
    with pytest.raises(rota.BadSpec, match=r"is that of a fleet: read it with rota\.read_fleet_policy"):
        rota.read_policy(tmp_path / "pinned.json")
    with pytest.raises(rota.BadSpec, match=r"must be a rota\.Pinned, rota\.Split or rota\.PartlyPinned"):
        fleet_policy_to_dict(ROTA)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"rota_policy": 99}, "rota_policy"),
        ({"turning": None}, "turning: is missing"),
        ({"extra": 1}, "extra: is not a known key"),
        ({"policies": 3}, "policies: must be a list"),
        ({"policies": [None, {"rota_policy": 1, "policy": "first-fit"}]}, "policies: must be rotas"),
        ({"pinned": []}, "pinned: must be a table"),
        ({"turning": [0, -1]}, "turning: needs 2 whole numbers"),
    ],
)
def test_refused(changes, rule):
    """What is missing, unknown or wrong is named."""
    content = {name: value for name, value in {**fleet_policy_to_dict(DESIGNS["partly"]), **changes}.items() if value is not None}
    with pytest.raises(rota.BadSpec, match=rule):
        fleet_policy_from_dict(content)
    with pytest.raises(rota.BadSpec, match="is not a policy of Rota"):
        fleet_policy_from_dict([])
