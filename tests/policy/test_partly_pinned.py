"""Partly pinned servers as data: what they say and what they refuse."""

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
    names=["a", "b"],
)
PINNED = rota.Pinned([0, 1], [[4, 0], [2, 3]], [2, 1], [[0.5, 0.0], [0.25, 0.5]])
ROTA = rota.MSR([[8, 0], [0, 4]], [0.25, 0.75], switching_rate=1.0)
FIELDS = {"pinned": PINNED, "turning": [0, 1], "policies": [None, ROTA], "split": [[0.0, 0.0], [0.25, 0.5]]}


def partly(**changes) -> rota.PartlyPinned:
    """The servers above, with changes."""
    return rota.PartlyPinned(**{**FIELDS, **changes})


def test_in_words():
    """Each schedule with its servers, and the rota of those that turn."""
    assert partly().rows(FLEET) == [
        ("small", "2", "4 × a"),
        ("large", "1", "2 × a + 3 × b"),
        ("large", "1", "turns: 25.0% 8 × a; 75.0% 4 × b"),
    ]
    assert repr(partly()) == "<PartlyPinned: 3 servers hold 2 schedules, 1 turn>"
    assert "Servers that turn" in partly()._repr_html_()
    assert partly().pinned_share == pytest.approx([0.75, 0.5])
    partly().check(FLEET)


def test_equality():
    """Equal fields make equal servers; arrays are read-only."""
    assert partly() == partly()
    assert hash(partly()) == hash(partly())
    assert partly() != partly(turning=[0, 2])
    assert partly() != "partly"
    with pytest.raises(ValueError, match="read-only"):
        partly().split[0] = 1


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"turning": [0, 2]}, "are more servers of kind 'large' than the 2 there are"),
        ({"turning": [0, 0]}, "sends jobs to servers of a kind of which none turns, or without a policy"),
        ({"policies": [None, None]}, "sends jobs to servers of a kind of which none turns, or without a policy"),
        ({"policies": ["first-fit", None]}, r"must be a list with a rota\.MSR, or None"),
        ({"turning": [0, 0.5]}, "needs 2 whole numbers that are not negative"),
        ({"turning": [0, 1, 0]}, "needs 2 whole numbers that are not negative"),
        ({"turning": [0, np.nan]}, "needs 2 whole numbers that are not negative"),
        ({"split": [[0.0, 0.0], [1.25, 0.5]]}, "needs columns that sum to at most 1"),
        ({"split": [[0.25, 0.5]]}, "needs 2 rows of 2 numbers that are not negative"),
        ({"split": [[0.0, -0.5], [0.25, 0.5]]}, "needs 2 rows of 2 numbers that are not negative"),
        ({"pinned": "all"}, r"must be a rota\.Pinned"),
    ],
)
def test_refused(changes, rule):
    """What makes no sense, by itself or for the fleet, is told."""
    with pytest.raises(rota.BadSpec, match=rule):
        partly(**changes).check(FLEET)


def test_another_fleet():
    """Servers for one fleet are refused for another."""
    with pytest.raises(rota.BadSpec, match="is for another fleet"):
        partly().check(rota.Fleet.equal(FLEET.server("large"), 4))
