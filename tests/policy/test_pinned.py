"""Pinned servers as data: which queues they make, and what they refuse."""

import numpy as np
import pytest

import rota

FLEET = rota.Fleet(
    count=[3, 2],
    capacity=[[4], [8]],
    demand=[[1], [2]],
    arrival_rate=[1.0, 2.0],
    service_rate=[1.0, 1.0],
    kinds=["small", "large"],
    speed=[[1, 1], [1, 2]],
)
FIELDS = {"kind": [0, 1], "candidates": [[4, 0], [2, 3]], "servers": [3, 2], "split": [[0.5, 0.25], [0.5, 0.75]]}


def pinned(**changes) -> rota.Pinned:
    """The servers above, with changes."""
    return rota.Pinned(**{**FIELDS, **changes})


def test_queues():
    """Kinds on which a type has the same speed share a queue; at another speed it has another one, with its part of the arrivals."""
    first, slow, fast = pinned().queues(FLEET)
    assert (first.type, first.kinds, first.slots, first.share) == (0, (0, 1), 3 * 4 + 2 * 2, 1.0)
    assert (slow.type, slow.kinds, slow.speed, slow.slots, slow.share) == (1, (0,), 1.0, 0, 0.25)
    assert (fast.kinds, fast.speed, fast.slots, fast.share) == ((1,), 2.0, 6, 0.75)


def test_equality_and_words():
    """Equal fields make equal servers; arrays are read-only."""
    assert pinned() == pinned()
    assert hash(pinned()) == hash(pinned())
    assert pinned() != pinned(servers=[3, 1])
    assert pinned() != "pinned"
    assert repr(pinned()) == "<Pinned: 5 servers hold 2 schedules>"
    assert "Pinned servers" in pinned()._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        pinned().servers[0] = 1


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"servers": [3, 3]}, "uses more servers of kind 'large' than the 2 there are"),
        ({"candidates": [[5, 0], [2, 3]]}, "has a schedule that does not fit a server of its kind"),
        ({"kind": [0, 2]}, "is for another fleet: this one has 2 kinds and 2 types"),
        ({"split": [[1.0, 1.0]]}, "is for another fleet"),
        ({"servers": [3]}, "needs as many rows as kind and servers have entries"),
        ({"servers": [3, -1]}, "must be whole numbers, not negative"),
        ({"candidates": [[0.5, 0], [2, 3]]}, "must be whole numbers, not negative"),
        ({"candidates": [4, 0]}, "must be finite numbers with 2 axes"),
        ({"candidates": "all"}, "must be numbers in a regular shape"),
        ({"split": [[np.nan, 1], [1, 1]]}, "must be finite numbers"),
        ({"split": [[-1, 1], [1, 1]]}, "must not be negative"),
        ({"split": [[1], [1]]}, "needs a column per type"),
    ],
)
def test_refused(changes, rule):
    """What makes no sense, by itself or for the fleet, is told."""
    with pytest.raises(rota.BadSpec, match=rule):
        pinned(**changes).check(FLEET)


def test_a_type_where_it_cannot_run():
    """Affinities hold for pinned servers too."""
    with pytest.raises(rota.BadSpec, match="has a type on a kind on which it cannot run"):
        pinned().check(FLEET.replace(only=[["small"], None]))
