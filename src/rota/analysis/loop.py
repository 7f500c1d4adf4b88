"""The queue of one type under a long loop, solved by its structure where a matrix per level would be too large.

A loop is left in one direction only. Let x_s(q) be the probability of state s with q jobs, and y_s(q) the flow into state s at level q.
Within a state the queue is a birth–death process that is killed at the exit rate ν_s, so x_s follows from y_s, and y_{s+1} from x_s:

    (λ + ν_s + d_s(q)) x_s(q) − λ x_s(q−1) − d_s(q+1) x_s(q+1) = y_s(q),        d_s(q) = a_s(q) = min(μq, c_s)
    y_{s+1}(q) = ν_s x_s(q)                                          left by a timer, a setup or another type's completion
    y_{s+1}(q) = a_s(q+1) x_s(q+1) + (c_s − a_s(q)) x_s(q)            left by this type's own completion (then d_s = 0, ν_s = c_s)

Levels up to β are followed one by one. From β on a_s = c_s, and the levels above are followed together, as power series

    S_s(z) = Σ_m x_s(β+1+m) z^m,         Y_s(z) = Σ_m y_s(β+1+m) z^m

which have no singularity within |z| < 1/η, with the decay rate η of the queue. The balance equations above β, times z^m and added up, are

    ((λ + ν + d) z − λz² − d) S(z) = z (Y(z) + λ x(β)) − e,        e = d x(β+1), the flow back to level β

On the left is λ (z − r)(r⁺ − z) with 0 ≤ r < 1 < 1/η ≤ r⁺. At z = r the right side must be zero, as S is finite there. So

    e = r (Y(r) + λ x(β)),      S(z) = ((z Y(z) − r Y(r))/(z − r) + λ x(β)) / (λ (r⁺ − z))
    y_{s+1}: ν S(z),  or, after an own completion, c x(β+1) at level β and c (S(z) − x(β+1))/z above,  x(β+1) = (Y(0) + λ x(β))/(λ + c)

At level β the flow e adds r λ x(β) to what comes in, which makes the equation there (λ(1−r) + ν + d) x(β) − … = y(β) + r Y(r).
Nothing is cut off. Each series is given by its values at the points of a circle (`rota.analysis.contour`), about a hundred of them however
long the queue is, and Y(r) is a Cauchy integral, a weighted sum of these values.

The flow through one cut of the loop has D numbers: β − L + 1 levels and two per point, with L the lowest level that is ever seen
(`rota.analysis.window`). Going round once multiplies it by a matrix (`rota.analysis.turn`), and in steady state it returns to itself.
That takes N D² operations, and D³ for the linear system. The moments are those of the series at z = 1, again by Cauchy integrals. The mean
does not need them (`rota.analysis.queue`), so the two check each other, and the number of points: if they differ, more points are taken.
Some dozens of slow states in a row do that, which are left after an almost fixed time and let the queue grow to an almost fixed length.

The decay rate η of the tail is the root in (0, 1) of Σ_s log f_s(η) = Σ_s log g_s(η), where

    f_s(z) = (λ + ν_s + d_s) z − λ − d_s z²,      g_s(z) = ν_s z, or ν_s z² where the own completion moves the state

(put x_s(q) = v_s z^q into the balance equations and go round once): N operations per evaluation.
"""

from __future__ import annotations

import numpy as np
import scipy

from rota.analysis.contour import Contour, around
from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.analysis.turn import Sums, Turn, go_round
from rota.analysis.window import lowest_level
from rota.arrays import Array
from rota.errors import NotConverged
from rota.threads import one_thread

__all__ = ["loop_decay_rate", "solve_loop"]

_DENSITY, _DENSER = 10.0, 1.6  # of points: at first, which is enough almost always, and by what factor it then grows
_MOST_POINTS = 2000
_GROWTH = 4.0  # the circle is within |z| < 1 + _GROWTH/n for a queue that grows by n jobs in each turn
_ENOUGH = 1e-10  # an estimated relative error below which no more points are taken,
_ROUNDING = 1e-5  # and below which they are only taken as long as they help: what is left may be rounding
_COLUMNS, _CACHE = 32, 2**15  # that go round together: few enough for the cache


def loop_decay_rate(queue: TypeQueue) -> float:
    """η: P(Q > n) ~ const·ηⁿ, in O(N) per evaluation."""
    nu, own = queue.process.exit_rate, queue.triggers
    lam, d = queue.arrival_rate, np.where(own, 0.0, queue.ring_rate)
    # f_s is positive between its root r_s in (0, 1) and 1; the largest such root bounds η from below.
    total = lam + nu + d
    root = 2 * lam / (total + np.sqrt(total**2 - 4 * lam * d))
    low = float(root.max())

    def turn(above: float) -> float:
        """At z = low + above, with f_s(z) = (z − r_s)(λ + ν_s + d_s − d_s (z + r_s)): no digits are lost close to the root."""
        z = low + above
        f = (above + (low - root)) * (total - d * (z + root)) / nu
        return float(np.log(f).sum() - np.log(z) * (len(nu) + own.sum()))

    # turn(z = 1) = 0 always; just below 1 it is positive when the load is below 1, and towards `low` it falls to −∞.
    near, far = (1 - low) * 1e-290, (1 - low) / 2
    while turn(far) <= 0:
        near, far = far, 1 - low - (1 - low - far) / 2
        if 1 - low - far < 1e-14:
            raise NotConverged("no decay rate below 1 was found: is the load below 1?")
    if turn(near) >= 0:  # closer to `low` than floats can resolve: a queue that hardly ever leaves its slowest state
        return low
    solve = scipy.optimize.brentq
    return low + float(np.exp(solve(lambda log_above: turn(np.exp(log_above)), np.log(near), np.log(far), xtol=1e-15, rtol=1e-15)))


def solve_loop(queue: TypeQueue, *, single_server: bool = False) -> QueueLength:
    """The law of Q under a loop, whatever the length of the queue.

    `single_server`: of the MSR-1 companion, which serves one job at a time at rate c_s: a_s(q) = min(μq, c_s) with μ = ∞.
    """
    eta, density = loop_decay_rate(queue), _DENSITY
    # Where the queue grows by n jobs in each turn, to fall again, S is about ϱⁿ at ϱ if it is 1 at z = 1: digits are lost if that is large.
    within = max(eta, 1 - _GROWTH / (_growth(queue) + _GROWTH))
    best = _solve(queue, eta, around(within, density), single_server)
    while best.accuracy > _ENOUGH and len(contour := around(within, density := _DENSER * density)) <= _MOST_POINTS:
        found = _solve(queue, eta, contour, single_server)
        helped = found.accuracy < best.accuracy / 2
        if found.accuracy < best.accuracy:
            best = found
        if best.accuracy < _ROUNDING and not helped:
            break
    return best


def _growth(queue: TypeQueue) -> float:
    """The most by which the queue grows in a turn if every state lasts as long as it does on average: the largest sum of (λ − c_s)/ν_s
    over states that follow each other."""
    order = queue.process.loop
    gained = np.tile(((queue.arrival_rate - queue.ring_rate) / queue.process.exit_rate)[order], 2).cumsum()
    return float((gained - np.minimum.accumulate(gained)).max())


def _solve(queue: TypeQueue, eta: float, contour: Contour, single_server: bool) -> QueueLength:
    order = queue.process.loop
    assert order is not None
    beta, lowest = (1, 0) if single_server else (queue.max_parallel, lowest_level(queue))
    turn = _turn(queue, contour, lowest, single_server)
    after_ring = np.ascontiguousarray(queue.after_ring[order])
    n, points = beta - lowest + 1, len(contour)
    sums = Sums(np.zeros(n), np.zeros(points, dtype=np.complex128), np.zeros(2))

    def go(columns: Array, summed: bool = False) -> None:
        go_round(turn, columns[:n], columns[n : n + points], columns[n + points :], summed, after_ring, sums)

    size = n + 2 * points
    around_once = np.empty((size, size))
    width = min(max(_CACHE // size, 1), _COLUMNS)
    for start in range(0, size, width):
        columns = np.eye(size, min(width, size - start), -start)  # unit flows
        go(columns)
        around_once[:, start : start + width] = columns
    # flow = around_once · flow, one of these equations replaced by a total flow of 1: Σ_q y(q) + Y(1)
    system = around_once - np.eye(size)
    at_one = contour.weight / contour.beyond_one
    system[0] = np.concatenate([np.ones(n), at_one.real, -at_one.imag])
    with one_thread(size):
        flow = np.linalg.solve(system, np.eye(size)[0])
        residual = float(np.abs(around_once @ flow - flow).max() / np.abs(flow).max())
    go(flow[:, None].copy(), summed=True)

    # Rings without a job, at rate c − a(q), make up for what the server offers beyond the arrivals: E[c] − λ. That scales everything.
    unused, surplus = (float(part) for part in sums.unused)
    scale = (queue.capacity - queue.arrival_rate) / unused
    mass, tail = np.concatenate([np.zeros(lowest), scale * sums.law]), scale * sums.tail
    # E[Q] = Σ q x(q) + Σ_m (β+1+m) s_m and E[Q²] alike, with Σ s_m = S(1), Σ m s_m = S′(1), Σ m² s_m = S″(1) + S′(1)
    zero, one, two = contour.moments(tail)
    numbers, above = np.arange(beta + 1), beta + 1
    first = float(mass @ numbers + above * zero + one)
    second = float(mass @ numbers.astype(np.float64) ** 2 + above**2 * zero + (2 * above + 1) * one + two)

    def probabilities(count: int) -> Array:
        law: Array = np.concatenate([mass, contour.coefficients(tail, max(count - above, 0))])[:count]
        return np.maximum(law, 0.0, out=law)

    return QueueLength(
        mean=queue.mean_from(surplus / unused, first),
        variance=second - first**2,
        decay_rate=eta,
        mean_by_sum=first,
        residual=max(residual, abs(float(mass.sum() + zero) - 1)),
        method=f"loop of {len(order)} states, {beta - lowest} boundary levels, {points} points",
        probabilities=probabilities,
        unused_average=surplus / unused,
    )


def _turn(queue: TypeQueue, contour: Contour, lowest: int, single_server: bool) -> Turn:
    """The loop as the compiled code takes it, states in order."""
    order = queue.process.loop
    assert order is not None
    lam, c, nu, own = queue.arrival_rate, queue.ring_rate[order], queue.process.exit_rate[order], queue.triggers[order]
    # The roots r < 1 < r⁺ of λz² − (λ + ν + d) z + d: with z = 1 − t, λt² + (ν + d − λ) t − ν = 0, so that t = 1 − r and t = −(r⁺ − 1) are
    # found without subtraction; their product is −ν/λ. Where d = 0, r = 0.
    half = nu + np.where(own, 0.0, c) - lam
    root = np.sqrt(half**2 + 4 * lam * nu)
    below_one = np.where(half > 0, 2 * nu / np.where(half > 0, half + root, 1.0), (root - half) / (2 * lam))
    return Turn(
        arrival_rate=lam,
        job_rate=np.inf if single_server else queue.service_rate,
        ring_rate=c,
        exit_rate=nu,
        own=own,
        below_one=below_one,
        above_one=nu / (lam * below_one),
        lowest=lowest,
        beyond_one=contour.beyond_one,
        weight=contour.weight,
    )
