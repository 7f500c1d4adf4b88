"""Tables of decisions: what they must hold, and how they are written."""

import numpy as np
import pytest

import rota
from rota.policy import policy_from_dict, policy_to_dict

SCHEDULES = [[0, 0], [0, 1], [1, 0]]


def table(**changes):
    """A table for one server and two types, the first type first."""
    q = np.array(np.unravel_index(np.arange(4 * 5), (4, 5)))
    given = {"schedules": SCHEDULES, "truncation": [3, 4], "choice": np.where(q[0] > 0, 2, np.where(q[1] > 0, 1, 0)), **changes}
    return rota.Tabulated(**given)


def test_frozen_data():
    """Arrays are read-only, and equal tables are equal."""
    policy = table()
    assert policy == table()
    assert hash(policy) == hash(table())
    assert policy != table(names=["a", "b"])
    assert policy != rota.FCFS()
    with pytest.raises(ValueError, match="read-only"):
        policy.choice[0] = 1
    assert repr(policy) == "<Tabulated: 20 decisions between 3 schedules, preemption full>"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choice": np.zeros(19, dtype=int)}, "must have 20 entries"),
        ({"choice": np.full(20, 3)}, "below 3"),
        ({"choice": np.full(20, 2)}, "more jobs of type 1 than are present"),
        ({"choice": np.full(20, 0.5)}, "whole numbers"),
        ({"choice": [[0], [1, 2]]}, "whole numbers"),
        ({"truncation": [3]}, "needs 2 numbers"),
        ({"truncation": [0, 4]}, "at least"),
        ({"preemption": "setup"}, 'must be "full" or "none"'),
        ({"names": ["a", "a"]}, "2 different names"),
    ],
)
def test_what_is_refused(changes, words):
    """A table that cannot be looked up."""
    with pytest.raises(rota.BadSpec, match=words):
        table(**changes)


def test_without_preemption_what_runs_runs_on():
    """An entry that would stop a running job is refused."""
    choice = np.zeros((20, 3), dtype=int)
    with pytest.raises(rota.BadSpec, match="keeps what runs"):
        table(choice=choice.ravel(), preemption="none")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"choice": "?"}, "zlib, base64"), ({"choice": "AAAA"}, "zlib, base64"), ({"more": 1}, "not a known key"), ({"types": []}, "types")],
)
def test_a_file_that_cannot_be_read(changes, words):
    """Each with its problem."""
    content = policy_to_dict(table(names=["a", "b"]))
    assert policy_from_dict(content) == table(names=["a", "b"])
    with pytest.raises(rota.BadSpec, match=words):
        policy_from_dict({**content, **changes})


def test_for_another_system():
    """A table is refused on a server that it was not made for."""
    with pytest.raises(rota.Infeasible, match="is for 2 types"):
        rota.simulate(rota.System([1], [[1]], [0.5], [1.0]), table(), jobs=100)
    with pytest.raises(rota.Infeasible, match="do not fit"):
        rota.simulate(rota.System([1], [[1]], [0.5], [1.0]), rota.Tabulated([[0], [2]], [3], [0, 0, 1, 1]), jobs=100)
