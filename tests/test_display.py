"""How things are shown to people: durations, and numbers with their intervals."""

import math

import pytest

from rota.display import duration, interval_cells, rota_rows, rough_duration, with_interval


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


def test_what_schedules_have_in_common_is_said_once():
    """Schedules that share most of their slots: these first, then what each has beside them. One schedule alone runs always."""
    assert rota_rows([[24, 5], [32, 4], [24, 4]], [0.25, 0.5, 0.25], ["small", "large"]) == [
        ("always", "24 × small + 4 × large"),
        ("25.00%", "+ 1 × large"),
        ("50.00%", "+ 8 × small"),
        ("25.00%", "+ nothing"),
    ]
    assert rota_rows([[440, 73]], [1.0], ["small", "large"]) == [("always", "440 × small + 73 × large")]


def test_schedules_far_apart_are_said_in_full():
    """Where the schedules share less than half of their slots, each is written as it is."""
    assert rota_rows([[0, 2], [5, 0]], [0.5, 0.5], ["a", "b"], 1) == [("50.0%", "2 × b"), ("50.0%", "5 × a")]
    assert rota_rows([[1, 2], [5, 0]], [0.5, 0.5], ["a", "b"], 1) == [("50.0%", "1 × a + 2 × b"), ("50.0%", "5 × a")]
