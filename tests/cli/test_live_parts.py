"""What the verbs that speak to a scheduler share: numbers of jobs and durations are read as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli import live_parts
from rota.display import duration


@given(st.floats(0.01, 1e8))
def test_a_duration_reads_back(seconds):
    """What is written can be read, and is right to a twentieth."""
    assert live_parts.parse_duration(duration(seconds), "it") == pytest.approx(seconds, rel=0.05)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20, unique=True))
def test_numbers_read_back(ids):
    """Numbers of jobs written as ranges are the same numbers."""
    assert live_parts.parse_ids([live_parts.ids_text(ids)]) == ids
