"""One turn round a loop, for many starts at once: the compiled part of `rota.analysis.loop`, which derives the equations.

A start is a column: y(q) of the levels L…β in the rows of `y`, and the values of the tail S at the points of the contour in the rows of
`re` and `im`. State by state the flow into it becomes the probabilities x in it, and these the flow into the next, in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.analysis.contour import Complex
from rota.arrays import Array
from rota.kernel import compiled

__all__ = ["Sums", "Turn", "go_round"]


class Turn(NamedTuple):
    """A loop for one type, states in order, and the points of its contour.

    `job_rate` μ, `ring_rate` c (N,), `exit_rate` ν (N,), `own`: left by rings of this type (N,). `below_one` 1 − r and `above_one` r⁺ − 1
    of the roots of each state (N,). `lowest` L. `beyond_one` z − 1 and `weight` of the points (J,).
    """

    arrival_rate: float
    job_rate: float
    ring_rate: Array
    exit_rate: Array
    own: NDArray[np.bool_]
    below_one: Array
    above_one: Array
    lowest: int
    beyond_one: Complex
    weight: Complex


class Sums(NamedTuple):
    """Over all states: the law of the levels (β−L+1,), the tail (J,), the unused rings, and these times q − Δ(s⁺)."""

    law: Array
    tail: Complex
    unused: Array  # (2,)


@compiled
def go_round(turn: Turn, y: Array, re: Array, im: Array, summed: bool, after_ring: Array, sums: Sums) -> None:
    """Every column once round the loop, in place; `summed`: the first column is added up over the states, with Δ(s⁺) `after_ring`."""
    lam, mu = turn.arrival_rate, turn.job_rate
    last, width, points = y.shape[0] - 1, y.shape[1], re.shape[0]
    busy, below, inverse = np.zeros(last + 1), np.empty(last + 1), np.empty(last + 1)
    at_root, upwards = np.empty(width), np.empty(width)
    for s in range(len(turn.ring_rate)):
        c, nu, own = turn.ring_rate[s], turn.exit_rate[s], turn.own[s]
        below_one, above_one = turn.below_one[s], turn.above_one[s]
        root = 0.0 if own else c / (lam * (1.0 + above_one))  # r, as r r⁺ = c/λ
        for i in range(1, last + 1):
            busy[i] = min(mu * (turn.lowest + i), c)  # a(q); at level L a job that ends is replaced

        at_root[:] = 0.0  # S(r) of the flow into the state, r = 0 if it is left by its own rings
        for j in range(points):
            part = turn.weight[j] / (turn.beyond_one[j] + below_one)
            a, b = part.real, part.imag
            for k in range(width):
                at_root[k] += a * re[j, k] - b * im[j, k]

        # (λ + ν + d(q)) x(q) − λ x(q−1) − d(q+1) x(q+1) = y(q), eliminated upwards; d = a, or 0 if the state is left by its own rings.
        # What leaves level β upwards comes back to it, in this state, with probability r.
        pivot = lam + nu
        inverse[0] = 1.0 / pivot
        for i in range(1, last + 1):
            below[i] = lam / pivot
            stays = root if i == last else 0.0
            pivot = lam * (1.0 - stays) + nu + (0.0 if own else busy[i]) * (1.0 - below[i])
            inverse[i] = 1.0 / pivot
        for k in range(width):
            y[last, k] += root * at_root[k]
        for i in range(1, last + 1):
            share = below[i]
            for k in range(width):
                y[i, k] += share * y[i - 1, k]
        for k in range(width):
            y[last, k] *= inverse[last]
            upwards[k] = lam * y[last, k]
        for i in range(last - 1, -1, -1):
            down, scale = 0.0 if own else busy[i + 1], inverse[i]
            for k in range(width):
                y[i, k] = (y[i, k] + down * y[i + 1, k]) * scale

        if summed:
            for i in range(last + 1):
                q = turn.lowest + i
                sums.law[i] += y[i, 0]
                rings = (c - (min(mu * q, c) if q > 0 else 0.0)) * y[i, 0]
                sums.unused[0] += rings
                sums.unused[1] += rings * (q - after_ring[s])

        if own:
            for k in range(width):
                at_root[k] = (at_root[k] + upwards[k]) / (lam + nu)  # x(β+1)
            for i in range(last):
                done, idle = busy[i + 1], c - busy[i]
                for k in range(width):
                    y[i, k] = done * y[i + 1, k] + idle * y[i, k]
            for k in range(width):
                y[last, k] = c * at_root[k]
        else:
            for i in range(last + 1):
                for k in range(width):
                    y[i, k] *= nu

        for j in range(points):
            z = 1.0 + turn.beyond_one[j]
            # S of x is inside·S + above·λx(β) − back·S(r)
            above = 1.0 / (lam * (above_one - turn.beyond_one[j]))  # 1/(λ (r⁺ − z))
            back = above * root / (turn.beyond_one[j] + below_one)
            inside = above + back  # z/(z − r) = 1 + r/(z − r)
            if summed:
                sums.tail[j] += inside * (re[j, 0] + 1j * im[j, 0]) + above * upwards[0] - back * (0.0 if own else at_root[0])
            if own:  # c (S(z) − x(β+1))/z
                inside, above, back = c * inside / z, c * above / z, c / z
            else:
                inside, above, back = nu * inside, nu * above, nu * back
            a, b, e, f, g, h = inside.real, inside.imag, above.real, above.imag, back.real, back.imag
            for k in range(width):
                x, w = re[j, k], im[j, k]
                re[j, k] = a * x - b * w + e * upwards[k] - g * at_root[k]
                im[j, k] = a * w + b * x + f * upwards[k] - h * at_root[k]
