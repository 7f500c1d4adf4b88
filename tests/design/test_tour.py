"""The order of a loop: against all orders, and never worse than the order given."""

from itertools import permutations

import numpy as np
import pytest

from rota.design.tour import short_tour


def length(cost, order):
    """The length of a closed tour."""
    return cost[list(order), np.roll(order, -1)].sum()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7])
def test_the_shortest_of_all_orders(n):
    """For few places no order is shorter, also where the way back costs something else."""
    for seed in range(5):
        cost = np.random.default_rng(seed).random((n, n))
        found = short_tour(cost)
        assert sorted(found) == list(range(n))
        assert length(cost, found) == pytest.approx(min(length(cost, (0, *rest)) for rest in permutations(range(1, n))))


def test_many_places():
    """Places on a circle, shuffled: the tour goes round it."""
    rng = np.random.default_rng(1)
    angle = rng.permutation(30) * 2 * np.pi / 30
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    cost = np.linalg.norm(place[:, None] - place[None], axis=2)
    found = short_tour(cost)
    assert sorted(found) == list(range(30))
    assert length(cost, found) <= 1.1 * 30 * 2 * np.sin(np.pi / 30)


def test_many_places_with_ways_of_one_direction():
    """It is never longer than going on to the nearest place."""
    cost = np.random.default_rng(2).random((25, 25))
    order, left = [0], set(range(1, 25))
    while left:
        order.append(min(left, key=lambda k: cost[order[-1], k]))
        left.remove(order[-1])
    assert length(cost, short_tour(cost)) <= length(cost, order)
