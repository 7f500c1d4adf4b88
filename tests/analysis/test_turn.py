"""One turn round a loop: the compiled code against plain linear algebra on levels that are cut off far out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.analysis import TypeQueue
from rota.analysis.contour import around
from rota.analysis.loop import _turn
from rota.analysis.turn import Sums, go_round
from rota.process import TIMER, ModulatingProcess

FAR = 120  # levels, of which the last are hardly ever reached


def a_loop(slots, exit_rates, own):
    """A loop of one type; states that are left by its own rings have the rate of these."""
    slots, own = np.array(slots)[:, None], np.array(own) & (np.array(slots) > 0)
    N = len(slots)
    rate = np.where(own, slots[:, 0], exit_rates)
    states = np.arange(N)
    return ModulatingProcess(slots, slots, states, states, (states + 1) % N, rate, np.where(own, 0, TIMER), ("type1",))


def plain_turn(process, lam, mu, own, y):
    """The flow y over the levels 0…FAR once round; also the sum of all x, and the rings without a job."""
    law, unused = np.zeros(len(y)), 0.0
    q = np.arange(len(y))
    for slots, nu, left_by_ring in zip(process.schedules[:, 0], process.rate, own, strict=True):
        busy = mu * np.minimum(q, slots)
        down = 0 * busy if left_by_ring else busy
        balance = np.diag(lam + nu + down) - np.diag(np.full(len(q) - 1, lam), -1) - np.diag(down[1:], 1)
        x = np.linalg.solve(balance, y)
        law += x
        unused += x @ (mu * slots - busy)
        y = np.append((busy * x)[1:], 0.0) + (mu * slots - busy) * x if left_by_ring else nu * x
    return y, law, unused


states = st.lists(st.tuples(st.integers(0, 5), st.floats(0.2, 5), st.booleans()), min_size=1, max_size=6)


@given(states, st.floats(0.1, 0.6), st.integers(0, 5), st.floats(0.05, 0.4))
def test_a_turn_of_any_flow(states, lam, start, ratio):
    """Unit flow into one level with a geometric tail above β comes out as from linear algebra: levels, values at the points, and sums."""
    slots, rates, own = zip(*states, strict=True)
    slots = (5, *slots)
    process = a_loop(slots, (1.0, *rates), (False, *own))
    queue = TypeQueue(process, 0, lam, 1.0)
    own, beta = queue.triggers, 5
    contour = around(max(0.5, (2 * lam / (lam + process.rate.min()) + 1) / 3), 16.0)  # within 1/ratio and every r⁺ = (λ + ν)/λ or more
    y = np.zeros((FAR, 1))
    y[start, 0] = 1.0
    y[beta + 1 :, 0] = 0.3 * ratio ** np.arange(FAR - beta - 1)
    expected, law, unused = plain_turn(process, lam, 1.0, own, y[:, 0])

    z = 1 + contour.beyond_one
    tail = 0.3 / (1 - ratio * z)
    columns, re, im = y[: beta + 1].copy(), tail.real[:, None].copy(), tail.imag[:, None].copy()
    sums = Sums(np.zeros(beta + 1), np.zeros(len(z), dtype=complex), np.zeros(2))
    turn = _turn(queue, contour, 0, single_server=False)
    go_round(turn, columns, re, im, True, np.zeros(len(process)), sums)

    assert columns[:, 0] == pytest.approx(expected[: beta + 1], rel=1e-9, abs=1e-10)
    above = expected[beta + 1 :]
    assert contour.coefficients(re[:, 0] + 1j * im[:, 0], 40) == pytest.approx(above[:40], rel=1e-8, abs=1e-10)
    assert sums.law == pytest.approx(law[: beta + 1], rel=1e-9, abs=1e-10)
    assert contour.coefficients(sums.tail, 40) == pytest.approx(law[beta + 1 :][:40], rel=1e-8, abs=1e-10)
    assert sums.unused[0] == pytest.approx(unused, rel=1e-9)


def test_columns_do_not_mix():
    """Several columns go round as each alone, and what a turn makes of a sum is the sum of what it makes of the parts."""
    process = a_loop([4, 0, 2, 3], [1.0, 0.5, 2.0, 1.0], [False, False, True, True])
    queue = TypeQueue(process, 0, 0.7, 1.0)
    contour = around(0.8, 10.0)
    turn = _turn(queue, contour, 0, single_server=False)
    sums = Sums(np.zeros(5), np.zeros(len(contour), dtype=complex), np.zeros(2))
    size = 5 + 2 * len(contour)
    start = np.random.default_rng(1).normal(size=(size, 7))
    start[:, 6] = start[:, :6].sum(axis=1)

    def go(columns):
        columns = columns.copy()
        go_round(turn, columns[:5], columns[5 : 5 + len(contour)], columns[5 + len(contour) :], False, np.zeros(4), sums)
        return columns

    together = go(start)
    assert together == pytest.approx(np.hstack([go(start[:, [k]]) for k in range(7)]), rel=1e-12, abs=1e-12)
    assert together[:, 6] == pytest.approx(together[:, :6].sum(axis=1), rel=1e-10, abs=1e-10)
    assert not sums.law.any()
