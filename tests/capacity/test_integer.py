"""Programs with whole numbers, against trying all of them; nothing is printed."""

import subprocess
import sys
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rota.capacity.integer import minimize_whole
from systems import EXAMPLES

whole = st.integers(-4, 4)


@given(cost=st.lists(st.integers(-3, 5), min_size=2, max_size=2), rows=st.lists(st.tuples(whole, whole, st.integers(0, 9)), max_size=3))
def test_against_all_whole_numbers(cost, rows):
    """The least value over 0 ≤ x ≤ 6 that are whole and fit, which is its own bound."""
    table = np.array([[a, b] for a, b, _ in rows] + [[1, 0], [0, 1]], dtype=float)
    right = np.array([b for _, _, b in rows] + [6, 6], dtype=float)
    best = min(np.dot(cost, x) for x in product(range(7), repeat=2) if (table @ x <= right).all())
    found = minimize_whole(np.array(cost, dtype=float), table, right, np.zeros(2), np.ones(2), gap=0.0, seconds=10.0)
    np.testing.assert_allclose(np.dot(cost, found.x), best, atol=1e-6)
    np.testing.assert_allclose(found.lower_bound, best, atol=1e-6)


def test_a_program_that_has_no_answer():
    """No x, in place of a wrong one."""
    one = np.ones(1)
    assert minimize_whole(one, -np.eye(1), np.array([-0.5]), np.zeros(1), np.zeros(1), gap=0.0, seconds=1.0).x == 0.5
    both = np.array([[1.0], [-1.0]])
    assert minimize_whole(one, both, np.array([0.7, -0.3]), np.zeros(1), one, gap=0.0, seconds=1.0).x is None


def test_designs_print_nothing():
    """Pinned servers of a fleet at which scipy's solver printed lines of its own, which would break `--json`."""
    code = f"import rota; rota.design_pinned(rota.read_system({str(EXAMPLES / 'fleet.toml')!r}).replace(count=[48, 5]))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b""
