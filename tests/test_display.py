"""How things are shown to people: durations, and numbers with their intervals."""

import math

import pytest

from rota.display import duration, interval_cells, rough_duration, with_interval


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0234, "23 ms"),
        (3.21, "3.2 s"),
        (9.96, "10 s"),
        (59.7, "1 min"),
        (250, "4 min 10 s"),
        (3599.6, "1 h"),
        (7500, "2 h 5 min"),
        (86399, "1 d"),
        (100 * 86400 + 4 * 3600, "100 d 4 h"),
    ],
)
def test_durations(seconds, text):
    """Durations are written for people, with two parts at most."""
    assert duration(seconds) == text


def test_rough_durations():
    """As people say them."""
    assert [rough_duration(x) for x in (0.5, 90, 150, 10_800, 400_000)] == ["0.5 s", "90 s", "2.5 min", "3 h", "4.6 d"]


def test_intervals():
    """The half-width has two digits; what is not known is a dash, what is not bounded is ∞."""
    assert with_interval(4.213456, 0.04129) == "4.2135 ± 0.041"
    assert interval_cells(4.213456, math.inf, 3) == ("4.21", "∞")
    assert interval_cells(math.nan, math.nan) == ("–", "–")
