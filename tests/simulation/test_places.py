"""Places for jobs: they grow without taking memory twice."""

import sys

import numpy as np
import pytest

from rota.simulation.server import JOB, moved_to, new_places


@pytest.mark.parametrize("count", [0, 1, 1024, 200_000])
def test_jobs_move_to_a_larger_array(count):
    """All jobs are at the same places of the new array, the rest of it is empty, and every place has a cache line of its own."""
    old = new_places(count)
    old["sequence"], old["size"] = np.arange(1, count + 1), 0.5
    expected = old.copy()
    new = new_places(2 * count + 1)
    moved_to(new, old)
    assert (new[:count] == expected).all()
    assert (new[count:] == np.zeros(1, dtype=JOB)).all()
    assert JOB.itemsize == 64
    assert new.ctypes.data % 64 == 0
    if sys.platform == "linux":  # the pages of the old array were given back: what is read there now is new and empty
        assert (old == np.zeros(1, dtype=JOB)).all()
