"""Which of many servers has the smallest key: a tournament tree for each question, renewed in the logarithm of their number.

Leaf m of a tree is server m. An inner node holds the server that wins below it: the one of smaller key, of equal ones that of lower number.
A key that changes is compared on its way up, and no further than it can matter.
"""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.kernel import kernel

__all__ = ["best", "new_tournaments", "set_key"]


def new_tournaments(trees: int, servers: int) -> tuple[Array, Int]:
    """Keys (trees, n), infinite, and winners (trees, n), for n servers or the next power of two; node 1 is the root."""
    n = 1 << max(servers - 1, 0).bit_length()
    # The winner below a node of infinite keys is the first server there: of the leaves below node k, on the level of 2^b nodes.
    winners = np.zeros(n, dtype=np.int64)
    for level in range(n.bit_length() - 1):
        nodes = np.arange(1 << level)
        winners[(1 << level) + nodes] = nodes * (n >> level)
    return np.full((trees, n), np.inf), np.tile(winners, (trees, 1))


@kernel
def best(keys: Array, winners: Int, tree: int) -> int:
    """The server of smallest key."""
    return int(winners[tree, 1]) if winners.shape[1] > 1 else 0


@kernel
def set_key(keys: Array, winners: Int, tree: int, server: int, key: float) -> None:
    """Gives a server another key."""
    if keys[tree, server] == key:
        return
    keys[tree, server] = key
    n = winners.shape[1]
    node = (n + server) >> 1
    if node < 1:
        return
    left = server & ~1
    winner = left + int(keys[tree, left + 1] < keys[tree, left])
    while True:
        before = winners[tree, node]
        winners[tree, node] = winner
        if node == 1 or (before == winner and winner != server):
            return
        other = winners[tree, node ^ 1]
        if node & 1 == 0:
            winner = other if keys[tree, other] < keys[tree, winner] else winner
        else:
            winner = winner if keys[tree, winner] < keys[tree, other] else other
        node >>= 1
