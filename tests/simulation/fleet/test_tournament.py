"""The tournament tree against a plain search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rota.simulation.fleet.tournament import best, best_key, new_tournaments, set_key


@given(
    servers=st.integers(1, 9) | st.integers(60, 70) | st.integers(500, 600),
    changes=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 599), st.sampled_from([0.0, 1.0, 2.0, np.inf])), max_size=60),
)
def test_the_smallest_key_wins(servers, changes):
    """After every change the winner of each tree is the server of smallest key, of equal ones that of lowest number."""
    keys, winners, levels = new_tournaments(2, servers)
    for tree, server, key in changes:
        set_key(keys, winners, levels, tree, server % servers, key)
        for each in range(2):
            assert best(winners, levels, each) == int(np.argmin(keys[each, :servers]))
            assert best_key(keys, levels, each) == keys[each, :servers].min()
