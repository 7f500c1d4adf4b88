"""Which of many servers has the smallest key: a tree for each question, renewed in the logarithm of their number.

Leaf m of a tree is server m. Eight neighbours, which share a cache line, have one parent: it holds the smallest of their keys and the
server whose key that is, of equal ones that of lowest number. A key that changes is compared on its way up, and no further than it can
matter; with its neighbours only if it won and got larger.
"""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.kernel import kernel

__all__ = ["best", "best_key", "new_tournaments", "set_key"]

_FAN = 8


def new_tournaments(trees: int, servers: int) -> tuple[Array, Int, Int]:
    """Keys (trees, n), infinite, winners (trees, n), and where the levels begin, the leaves first; the last level is the root."""
    sizes, levels = [servers], [0]
    while sizes[-1] > 1 or len(sizes) == 1:
        levels.append(levels[-1] + -(-sizes[-1] // _FAN) * _FAN)
        sizes.append(-(-sizes[-1] // _FAN))
    length = levels[-1] + _FAN
    winners = np.zeros(length, dtype=np.int64)
    for level, (begin, size) in enumerate(zip(levels, sizes, strict=True)):
        winners[begin : begin + size] = np.arange(size) * _FAN**level  # of infinite keys, the first server below
    space = np.full(trees * length + _FAN, np.inf)
    first = -space.ctypes.data // 8 % _FAN  # eight neighbours share a cache line
    keys = space[first : first + trees * length].reshape(trees, length)
    return keys, np.tile(winners, (trees, 1)), np.array(levels, dtype=np.int64)


@kernel
def best(winners: Int, levels: Int, tree: int) -> int:
    """The server of smallest key."""
    return int(winners[tree, levels[levels.shape[0] - 1]])


@kernel
def best_key(keys: Array, levels: Int, tree: int) -> float:
    """The smallest key."""
    return float(keys[tree, levels[levels.shape[0] - 1]])


@kernel
def set_key(keys: Array, winners: Int, levels: Int, tree: int, server: int, key: float) -> None:
    """Gives a server another key."""
    if keys[tree, server] == key:
        return
    keys[tree, server] = key
    node, winner, was = server, server, server  # below the node wins `winner`, and before it was `was`
    for level in range(levels.shape[0] - 1):
        place, node = levels[level] + (node & ~7), node >> 3
        above = levels[level + 1] + node
        best, champion = keys[tree, above], winners[tree, above]
        better = key < best or (key == best and winner < champion)
        if champion != was and not better:
            return
        if champion == was and not better:
            # Three rounds without branches: which of two neighbours wins is as good as random.
            a, b, c, d = keys[tree, place], keys[tree, place + 2], keys[tree, place + 4], keys[tree, place + 6]
            p, q, r, s = keys[tree, place + 1], keys[tree, place + 3], keys[tree, place + 5], keys[tree, place + 7]
            at_a, at_b, at_c, at_d = int(p < a), 2 + int(q < b), 4 + int(r < c), 6 + int(s < d)
            a, b, c, d = p if p < a else a, q if q < b else b, r if r < c else c, s if s < d else d
            at_a, a = (at_b, b) if b < a else (at_a, a)
            at_c, c = (at_d, d) if d < c else (at_c, c)
            at_a, key = (at_c, c) if c < a else (at_a, a)
            winner = winners[tree, place + at_a] if level > 0 else place + at_a
        keys[tree, above], winners[tree, above], was = key, winner, champion
