"""What an overloaded fleet needs: checked against the load itself."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from fleets import load_over_all_schedules, small_fleets
from rota.study.fleet_growth import overload_text
from systems import EXAMPLES


def loads(fleet, c, n):
    """The load with n servers of a kind, over all schedules, by scipy; not below n = 1."""
    return load_over_all_schedules(fleet.replace(count=[n if k == c else int(m) for k, m in enumerate(fleet.count)]))


@given(fleet=small_fleets())
@settings(max_examples=25, deadline=None)
def test_servers_that_suffice(fleet):
    """The servers named make the load at most 0.95, and one less of that kind does not; or all kinds together do."""
    best = rota.system_load(fleet)
    assume(best.load > 0)
    fleet = fleet.scaled(factor=1.3 / best.load)
    text = overload_text(rota.system_load(fleet))
    ways = re.findall(r"([\d,]+) '(kind\d)' servers in place of (\d)", text)
    for n, kind, now in ways:
        c = fleet.kinds.index(kind)
        assert fleet.count[c] == int(now)
        assert loads(fleet, c, int(n)) <= 0.95 + 1e-3
        assert loads(fleet, c, int(n) - 1) > 0.95 - 1e-3
    if not ways:
        counts = [int(n) for n in re.findall(r"(\d+) 'kind\d'", text)]
        assert load_over_all_schedules(fleet.replace(count=counts)) <= 0.95 + 1e-9
    assert "no plan was made" in text


def test_the_text():
    """How much too much it is, what to scale by, and how many servers suffice, of each kind that can help alone."""
    fleet = rota.read_system(EXAMPLES / "fleet.toml").scaled(load=1.05)
    with pytest.raises(rota.Unstable) as told:
        rota.plan(fleet)
    assert str(told.value).startswith(
        "the load of the fleet is 1.05: the jobs ask for 5.0% more than the fleet can carry, whatever the dispatcher and the policies. "
        "Scale arrivals by less than 0.9524, or have "
    )
    assert "or have 6 'gpu' servers in place of 4: that makes the load at most 0.95" in str(told.value)  # small ones alone do not help


def test_no_kind_alone_is_enough():
    """Two kinds that are each overloaded by a type of their own."""
    fleet = rota.Fleet([2, 3], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [4.0, 6.0], [1.0, 1.0], kinds=["left", "right"])
    text = overload_text(rota.system_load(fleet))
    assert "have 5 'left' and 7 'right' servers, as no kind alone is enough" in text
    assert np.isclose(rota.system_load(fleet.replace(count=[5, 7])).load, 6 / 7)
