"""One colour per policy, colours that all can tell apart, axes and numbers that people can read."""

from itertools import combinations

import altair as alt
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.policy import POLICY_NAMES, records
from rota.report import below, beside, policy_colour, response_time_ccdf, response_times_against_load, type_colour
from rota.report.style import TYPE_COLOURS, log_axis, number, policy_shape, text_colour

POLICY_COLOURS = {record.name: record.colour for record in records()}

# How people see who lack one kind of cone, on linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
)
TO_OKLAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099], [0.0259040371, 0.7827717662, -0.8086757660]]
)


def linear(colour):
    """Linear RGB of a colour."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def difference(a, b):
    """The distance of two colours in Oklab (times 100) for those who see it least."""
    seen = [[TO_OKLAB @ np.cbrt(TO_CONES @ np.clip(vision @ linear(c), 0, 1)) for c in (a, b)] for vision in VISIONS.values()]
    return 100 * min(np.linalg.norm(first - second) for first, second in seen)


def test_policies_can_be_told_apart_by_everybody():
    """Any two policies of a plan differ by 8 or more in Oklab for any kind of colour vision; others by that or by their marks.

    All stand out from white paper. There are more policies than colours that differ so much.
    """
    for a, b in combinations(records(), 2):
        compared = a.plan is not None and b.plan is not None
        assert difference(a.colour, b.colour) > 8 or (not compared and a.mark != b.mark), (a.name, b.name)
    for name, colour in POLICY_COLOURS.items():
        assert 1.05 / (linear(colour) @ [0.2126, 0.7152, 0.0722] + 0.05) > 1.75, name


def test_the_first_types_can_be_told_apart_by_everybody():
    """The first six types differ by 8 or more; more types than colours get darker ones, none twice."""
    for first, second in combinations(TYPE_COLOURS[:6], 2):
        assert difference(first, second) > 8
    assert len({type_colour(i) for i in range(40)}) == 40


def test_every_built_in_policy_has_its_own_colour():
    """All policies that have a name have a colour in the table, and each but one; those that are made for a system too."""
    designed = {record.name for record in records() if record.designed}
    assert set(POLICY_COLOURS) == set(POLICY_NAMES) | designed
    assert len({policy_colour(name) for name in POLICY_COLOURS}) == len(POLICY_COLOURS)


@given(st.text(min_size=1))
def test_other_policies_have_a_colour_by_name(name):
    """A policy of any name has a colour and a shape that depend on nothing but its name; the first of several is drawn as the only one."""
    plain = name.removesuffix(" (1)")
    assert policy_colour(f"{plain} (1)") == policy_colour(plain)
    assert policy_shape(f"{plain} (1)") == policy_shape(plain)
    if plain not in POLICY_COLOURS:
        assert policy_colour(name) not in POLICY_COLOURS.values()


def colours(chart):
    """The colours of the policies in a chart, by name."""
    found = {}

    def look(part):
        if isinstance(part, dict):
            scale = part.get("color", {}).get("scale") if isinstance(part.get("color"), dict) else None
            if scale and part["color"].get("field") == "policy":
                found.update(zip(scale["domain"], scale["range"], strict=True))
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(chart.to_dict())
    return found


def test_same_policy_same_colour_in_every_chart():
    """Whatever else is in a chart, a policy keeps its colour."""
    load = pl.DataFrame({"policy": ["nMSR", "fcfs", "mine"], "load": [0.5] * 3, "mean_response_time": [1.0, 2.0, 3.0]})
    tail = pl.DataFrame({"policy": ["easy", "nMSR", "mine"], "response_time": [1.0, 2.0, 3.0], "ccdf": [0.5, 0.1, 0.1]})
    first, second = colours(response_times_against_load(load)), colours(response_time_ccdf(tail))
    assert set(first) == {"nMSR", "fcfs", "mine"}
    for name in set(first) & set(second):
        assert first[name] == second[name] == policy_colour(name)


def test_charts_can_stand_together():
    """Charts side by side or below each other keep their data and have one configuration at the top."""
    load = pl.DataFrame({"policy": ["nMSR"], "load": [0.5], "mean_response_time": [1.0]})
    one = response_times_against_load(load)
    for join, key in ((beside, "hconcat"), (below, "vconcat")):
        spec = join(one, one, title="both").to_dict()
        assert len(spec[key]) == 2
        assert "config" in spec
        assert not any("config" in part for part in spec[key])
    assert one.to_dict()["config"]  # the chart itself is as it was


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.05274, "0.0527"),
        (3, "3"),
        (12345.6, "12,346"),
        (1_234_567, "1.23e6"),
        (0.00001234, "1.23e-5"),
        (2e-5, "2e-5"),
        (0.001, "0.001"),
    ],
)
def test_numbers(value, text):
    """Three digits, thousands set apart, exponents only far out."""
    assert number(value) == text


def ticks(low, high):
    """The labelled values of a logarithmic axis."""
    return log_axis(alt.Y, "y", "y", low, high).to_dict()["axis"]["values"]


def test_log_axes():
    """Labels at 1, 2, 5 over few decades, at powers of ten over many, at every second or so over very many; all within the axis."""
    assert ticks(0.9, 60) == pytest.approx([1, 2, 5, 10, 20, 50])
    assert ticks(0.1, 1000) == pytest.approx([0.1, 1, 10, 100, 1000])
    assert len(ticks(1e-20, 1)) <= 12
    assert ticks(1, 10) == pytest.approx([1, 2, 5, 10])


def test_text_is_read_on_its_background():
    """White on dark, black on light."""
    assert text_colour("#000000") == text_colour("#332288") == "#ffffff"
    assert text_colour("#ffffff") == text_colour("#DDCC77") == "#000000"
