"""The capacity region of two types."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.errors import BadSpec
from rota.report import capacity_region, region_corners, region_points
from systems import paper_example


@st.composite
def two_types(draw):
    """A small system of two types on up to three resources."""
    R = draw(st.integers(1, 3))
    capacity = [draw(st.integers(2, 12)) for _ in range(R)]
    some = st.tuples(*(st.integers(0, unit) for unit in capacity)).filter(any)
    rate = st.floats(0.1, 4)
    return rota.System(capacity, [draw(some), draw(some)], [draw(rate), draw(rate)], [draw(rate), draw(rate)])


@settings(max_examples=40)
@given(two_types())
def test_the_edge_is_where_the_load_is_one(system):
    """λ/ρ, with ρ from the linear program, lies on the edge that the corners draw; every schedule lies within."""
    corners = region_corners(system)
    spec = capacity_region(system).to_dict()
    points = [row for rows in spec["datasets"].values() for row in rows if row.get("text") == "λ/ρ"]
    load = rota.system_load(system).load
    assert [points[0]["x"], points[0]["y"]] == pytest.approx((system.arrival_rate / load).tolist(), rel=1e-6)
    served = region_points(system)
    for (x0, y0), (x1, y1) in pairwise(corners):
        a, b = y0 - y1, x1 - x0
        assert a >= 0
        assert b >= 0  # the edge falls to the right
        assert (a * served["x"] + b * served["y"]).max() <= (a * x0 + b * y0) * (1 + 1e-9) + 1e-9


def test_corners_of_the_paper_example():
    """Types 2 and 3: (0, 2) and (5, 0), and the mix (2, 1) lies below the line between them."""
    system = paper_example(0.9)
    pair = rota.System(system.capacity, system.demand[1:], system.arrival_rate[1:], system.service_rate[1:])
    assert region_corners(pair).tolist() == [[0, 2], [5, 0]]
    spec = capacity_region(system, ("type2", "type3")).to_dict()
    title = spec["layer"][0]["encoding"]["x"]["title"]
    assert title == "arrival rate of type2 (jobs per unit of time)"
    rows = [row for rows in spec["datasets"].values() for row in rows if "schedule" in row]
    assert {row["schedule"] for row in rows if row["maximal"]} == {"(0, 2)", "(2, 1)", "(5, 0)"}


def test_no_arrivals_no_arrow():
    """A system without arrivals has a region all the same."""
    spec = capacity_region(rota.System([4], [[1], [2]], [0, 0], [1, 1])).to_dict()
    assert not [row for rows in spec["datasets"].values() for row in rows if "text" in row]


def test_two_types_only():
    """Of more than two types, two must be named."""
    with pytest.raises(BadSpec, match="two"):
        capacity_region(paper_example())
    for wrong in (("type1", "type1"), ("type1", "nobody")):
        with pytest.raises(BadSpec, match="must name two of"):
            capacity_region(paper_example(), wrong)


def test_many_schedules():
    """Where there are too many schedules to draw, the maximal ones are."""
    points = region_points(rota.System([100], [[1], [1]], [1, 1], [1, 1]))
    assert len(points) == 101
    assert points["maximal"].all()
    assert np.allclose(points["x"] + points["y"], 100)
