"""Queue-driven rotas as data: what is refused, files, equality."""

import numpy as np
import pytest

import rota
from rota.errors import BadSpec
from rota.policy import policy_from_dict, policy_to_dict

GOALS = [[0, 0, 2], [1, 4, 0]]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"goals": []}, "goals: must be a matrix of whole numbers"),
        ({"goals": [[0.5, 1]]}, "goals: must be a matrix of whole numbers"),
        ({"goals": [[1], [1, 2]]}, "goals: must be a matrix of whole numbers"),
        ({"goals": [[0, 0]]}, "goals: must each have a job"),
        ({"hold": -1.0}, "hold: must be a number, at least 0"),
        ({"hold": np.inf}, "hold: must be a number, at least 0"),
        ({"waive": "much"}, "waive: must be a number, at least 0"),
        ({"full": -0.5}, "full: must be a number, at least 0, or infinity"),
        ({"cap": -1.0}, "cap: must be a number, at least 0, or infinity"),
        ({"order": "size"}, "order: must be"),
        ({"free": np.nan}, "free: must be a number, at least 0, or infinity"),
        ({"slack": True}, "slack: must be a number, at least 0"),
        ({"importance": [1.0, 2.0]}, "importance: must be 3 positive numbers"),
        ({"importance": [1.0, 0.0, 2.0]}, "importance: must be 3 positive numbers"),
        ({"names": ["a"]}, "names: must be 3, one per type"),
    ],
)
def test_what_is_refused(given, rule):
    """Each bad value is named with its rule."""
    with pytest.raises(BadSpec, match=rule):
        rota.Adaptive(**{"goals": GOALS, **given})


@pytest.mark.parametrize("free", [0.0, 3.5, np.inf])
def test_files(free):
    """What is written is read back equal, infinity included; settings that a file leaves out have their defaults."""
    policy = rota.Adaptive(
        GOALS, 3.0, full=0.9, waive=2.0, free=free, slack=0.1, order="arrival", importance=[1.0, 0.5, 2.0], names=("a", "b", "c")
    )
    assert policy_from_dict(policy_to_dict(policy)) == policy
    assert "cap" not in policy_to_dict(policy)  # an older release reads what has none
    capped = policy.replace(cap=2.0)
    assert policy_from_dict(policy_to_dict(capped)) == capped != policy
    short = {"rota_policy": 1, "policy": "adaptive", "types": ["a", "b", "c"], "goals": [{"c": 2}, {"a": 1, "b": 4}]}
    assert policy_from_dict(short) == rota.Adaptive(GOALS, names=("a", "b", "c"))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"speed": 1}, "speed: is not a known key"),
        ({"goals": [{"d": 1}]}, "goals.d: no such type"),
        ({"goals": 3}, "goals: must be a list of counts by type"),
        ({"types": ["a", "a"]}, "types: must be a list of different names"),
        ({"importance": [1, 2]}, "importance: must be a number by type"),
        ({"importance": {"d": 2}}, "importance.d: no such type"),
        ({"hold": "long"}, "hold: must be a number, at least 0"),
    ],
)
def test_bad_files(change, rule):
    """What is wrong in a file is named."""
    content = {"rota_policy": 1, "policy": "adaptive", "types": ["a", "b"], "goals": [{"a": 1}]}
    with pytest.raises(BadSpec, match=rule):
        policy_from_dict({**content, **change})


def test_equal_and_replaced():
    """Policies of the same settings are equal and have the same hash; `replace` changes one setting."""
    one = rota.Adaptive(GOALS, full=0.5)
    assert one == rota.Adaptive(np.array(GOALS), full=0.5)
    assert hash(one) == hash(rota.Adaptive(GOALS, full=0.5))
    assert one.replace(full=0.0) == rota.Adaptive(GOALS) != one
    assert "hold 8, full 0.5" in repr(one)
    assert "cap" not in repr(one)
    assert "cap 2" in repr(one.replace(cap=2.0))
    assert "The queues choose" in one._repr_html_()
