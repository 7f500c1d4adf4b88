"""Relative values of an MSR: how many more jobs a start in one state costs than in another, for ever after.

Given the modulating process the queues are independent, so the relative value of the jobs in the system is a sum of one function per type,
which solves the Poisson equation of that type's queue (levels and matrices as in `rota.analysis.qbd`):

    λ h(q+1) + A₁(q) h(q) + A₂(q) h(q−1) = E[Q] − q,       h(q) a vector over the states s of the process

Let G_q be the first-passage matrix from level q to q−1, and g_q(s) the cost ∫ (Q − E[Q]) dt on the way. Then

    h(q) = g_q + G_q h(q−1),        (−A₁(q) − λG_{q+1}) g_q = (q − E[Q])·1 + λ g_{q+1}

Below a level that is often seen the passages go upwards, in the same way, because those down to level 0 may take almost for ever: the level
where the mean number of jobs in service is that of the arriving work.
From level β on nothing but q changes: g_q = (q − E[Q]) τ + w, with τ the mean time of the passage, (−A₁ − λG − λ) τ = 1, and
(−A₁ − λG − λ) w = λ τ. There h has a closed form, with γ the stationary law of G:

    h(q) = x q² + y q + z + G^{q−β} e,     x = γ·τ/2,    (I − G) y = τ − 2x,    (I − G) z = w − E[Q] τ + x − G y,    γ·e = 0

whose last term fades. A table holds the levels up to where it has; beyond, the first three terms are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rota.analysis.entry import analyze
from rota.analysis.qbd import first_passage, m_matrix
from rota.analysis.queue import TypeQueue
from rota.arrays import Array, Int
from rota.errors import Infeasible, NotConverged
from rota.model import System
from rota.policy import MSR, stationary_law
from rota.process import ModulatingProcess
from rota.threads import one_thread

__all__ = ["MOST_STATES", "RelativeValues", "TypeValues", "relative_values"]

MOST_STATES = 1000  # of the process; a table of all levels and states is kept
_LEVELS = 20_000
_FADED = 1e-11  # of the values at level β: what is left of the last term where the table ends
_AT_ONCE = 256  # levels whose residual is computed together
_RESIDUAL = 1e-5  # of the Poisson equation, relative to its right side


@dataclass(frozen=True, eq=False)
class TypeValues:
    """h_i of one type: a table (levels, N), and beyond it h(q, s) = x q² + y_s q + z_s. `mean` is E[Q_i]; `residual` of the equation."""

    mean: float
    table: Array
    x: float
    y: Array
    z: Array
    residual: float

    def __call__(self, q: int) -> Array:
        """h(q, ·) (N,)."""
        if q < len(self.table):
            row: Array = self.table[q]
            return row
        beyond: Array = self.x * q * q + self.y * q + self.z
        return beyond


@dataclass(frozen=True, eq=False)
class RelativeValues:
    """The relative values of a policy: h(q, s) = Σ_i h_i(q_i, s), with h_i(0, first state) = 0."""

    system: System
    policy: MSR
    process: ModulatingProcess
    types: tuple[TypeValues, ...]

    def __call__(self, jobs: Int) -> Array:
        """h(q, ·) for q jobs of each type (K,), one value per state of the process (N,)."""
        total: Array = np.sum([values(int(q)) for values, q in zip(self.types, jobs, strict=True)], axis=0)
        return total

    @property
    def mean_response_time(self) -> float:
        """E[T] of the policy, by the equation at level 0."""
        return float(sum(values.mean for values in self.types) / self.system.arrival_rate.sum())

    @property
    def residual(self) -> float:
        """The largest relative residual of the Poisson equations."""
        return max(values.residual for values in self.types)


@one_thread()
def relative_values(system: System, policy: MSR, *, process: ModulatingProcess | None = None) -> RelativeValues:
    """Exact relative values of a stable MSR policy; sizes are taken as exponential.

    `process`: that of the policy with more states, which it never enters (`rota.process.with_ways`); they have values too.
    Raises `Infeasible` for more than a thousand states and for arrivals that are not Poisson, whose phase the values would depend on; and
    `NotConverged` where the equations are not solved to five digits.
    """
    if system.bursty:
        raise Infeasible(
            f"relative values are for Poisson arrivals, and those of type {system.bursty[0]!r} are not: "
            "take those of system.with_poisson_arrivals()"
        )
    analysis = analyze(system, policy, sizes="exponential")
    analysis.require_stable()
    process = process or analysis.process
    if len(process) > MOST_STATES:
        raise Infeasible(
            f"relative values of {len(process):,} states and {len(system.names)} types take too much time and memory: "
            f"at most {MOST_STATES:,} states"
        )
    types = tuple(_solve(replace(queue, process=process), _balanced(queue)) for queue in analysis.queues)
    found = RelativeValues(system, policy, process, types)
    if not found.residual <= _RESIDUAL:
        raise NotConverged(f"the Poisson equation has a relative residual of {found.residual:.1e}, more than {_RESIDUAL:.0e}")
    return found


def _balanced(queue: TypeQueue) -> int:
    """The least level at which completions keep up with arrivals: Σ_s p_s μ min(q, u_s) ≥ λ, p the stationary law of the process.

    A queue under a fast process stays near it, and under a slow one it goes through it again and again.
    """
    levels = np.arange(queue.max_parallel + 1)
    rates = queue.service_rate * np.minimum(levels[:, None], queue.slots) @ queue.process.stationary
    enough = np.flatnonzero(rates >= queue.arrival_rate)
    return int(enough[0]) if len(enough) else queue.max_parallel


def _solve(queue: TypeQueue, middle: int) -> TypeValues:
    """`middle`: a level that is often seen, at most β. A passage to one that hardly ever is takes so long that no digits are left."""
    N = len(queue.process)
    if queue.arrival_rate == 0:  # no jobs, no cost
        return TypeValues(0.0, np.zeros((1, N)), 0.0, np.zeros(N), np.zeros(N), 0.0)
    lam, mu, c, u = queue.arrival_rate, queue.service_rate, queue.ring_rate, queue.slots
    beta = queue.max_parallel
    plain, after = queue.plain.toarray(), queue.after.toarray()
    one = np.ones(N)

    def busy(q: int) -> Array:
        real: Array = mu * np.minimum(q, u)
        return real

    def local(q: int) -> Array:
        moves: Array = plain + (c - busy(q))[:, None] * after
        return moves

    def minus_s(q: int, passage: Array) -> Array:
        """−A₁(q) − λG_{q+1}."""
        return m_matrix(local(q) + lam * passage, busy(q))

    G, _ = first_passage(lam, local(beta), busy(beta)[:, None] * after)
    # Costs of a passage are those of q itself and, E[Q] times, those of time: g_q = f_q − E[Q] τ_q.
    drift = minus_s(beta, G) - lam * np.eye(N)
    tau = np.linalg.solve(drift, one)
    w = np.linalg.solve(drift, lam * tau)
    down = {beta + 1: _Passage(G, (beta + 1) * tau + w, tau)}  # from each level to the one below
    for q in range(beta, middle, -1):
        above = down[q + 1]
        down[q] = _passage(minus_s(q, above.to), q * one + lam * above.cost, one + lam * above.time, busy(q)[:, None] * after)
    up: dict[int, _Passage] = {}  # from each level to the one above
    nothing = _Passage(np.zeros((N, N)), np.zeros(N), np.zeros(N))
    for q in range(middle):
        less, below = busy(q)[:, None] * after, up.get(q - 1, nothing)
        outward = m_matrix(local(q) + less @ below.to, lam * one)
        up[q] = _passage(outward, q * one + less @ below.cost, one + less @ below.time, lam * np.eye(N))

    less, below, above = busy(middle)[:, None] * after, up.get(middle - 1, nothing), down[middle + 1]
    moves = local(middle) + lam * above.to + less @ below.to  # of the process, seen at that level only
    law = stationary_law(moves)
    cost, time = middle + lam * above.cost + less @ below.cost, 1 + lam * above.time + less @ below.time
    mean = float(law @ cost / (law @ time))
    minus = m_matrix(moves, np.zeros(N))
    minus[:, 0] = one  # the unknown h(middle, 0) is replaced by the solvability of the equation, which holds: its value is 0
    known = {middle: np.linalg.solve(minus, cost - mean * time)}
    known[middle][0] = 0.0
    for q in range(middle - 1, -1, -1):
        known[q] = up[q].cost - mean * up[q].time + up[q].to @ known[q + 1]
    for q in range(middle + 1, beta + 1):
        known[q] = down[q].cost - mean * down[q].time + down[q].to @ known[q - 1]
    values = [known[q] - known[0][0] for q in range(beta + 1)]  # h(0, 0) = 0

    x, y, z = _far(G, tau, w - mean * tau)
    rest = values[beta] - (x * beta * beta + y * beta + z)
    gamma = _recurrent_law(G)
    z = z + float(gamma @ rest)
    rest = rest - float(gamma @ rest)
    size = max(float(np.abs(rest).max()), 1e-300)
    scale = max(size, float(np.abs(values[beta]).max()))
    q = beta
    while float(np.abs(rest).max()) > _FADED * scale and q < _LEVELS:
        q += 1
        rest = G @ rest
        values.append(x * q * q + y * q + z + rest)
    found = TypeValues(mean, np.array(values), x, y, z, np.nan)
    return replace(found, residual=_residual(queue, found))


class _Passage(NamedTuple):
    """To the next level: where it is entered, ∫ Q dt on the way, and how long it takes, from each state."""

    to: Array  # (N, N)
    cost: Array  # (N,)
    time: Array  # (N,)


def _passage(minus: Array, cost: Array, time: Array, out: Array) -> _Passage:
    """Solves minus · passage = (out, cost, time)."""
    solved = np.linalg.solve(minus, np.column_stack([cost, time, out]))
    return _Passage(solved[:, 2:], solved[:, 0], solved[:, 1])


def _far(G: Array, tau: Array, w: Array) -> tuple[float, Array, Array]:
    """x, y and z up to a constant; `w` is w − E[Q] τ."""
    N = len(G)
    gamma = _recurrent_law(G)
    fundamental = np.linalg.inv(
        np.eye(N) - G + np.outer(np.ones(N), gamma)
    )  # maps v with γ·v = 0 to the solution of (I − G) u = v, γ·u = 0
    x = float(gamma @ tau) / 2
    y = fundamental @ (tau - 2 * x)
    y = y + float(gamma @ w) + x - float(gamma @ y)  # so that the last equation has a solution
    z = fundamental @ (w + x - G @ y)
    return x, y, z


def _recurrent_law(G: Array) -> Array:
    """The stationary law of a stochastic matrix with one recurrent class; a state without slots is never reached from above."""
    v = np.full(len(G), 1 / len(G))
    law: Array = np.linalg.solve((np.eye(len(G)) - G + np.outer(np.ones(len(G)), v)).T, v)
    return law


def _residual(queue: TypeQueue, found: TypeValues) -> float:
    """The largest residual of the Poisson equation over all levels of the table, relative to its right side and to the values' size."""
    lam, plain, after = queue.arrival_rate, queue.plain, queue.after
    leaving = np.asarray(plain.sum(axis=1)).ravel()
    worst = 0.0
    for start in range(0, len(found.table), _AT_ONCE):
        levels = np.arange(start, min(start + _AT_ONCE, len(found.table)))
        rows = np.array([found(int(q)) for q in range(max(start - 1, 0), int(levels[-1]) + 2)])
        h, above = rows[-len(levels) - 1 : -1], rows[-len(levels) :]
        below = rows[: len(levels)] if start > 0 else np.concatenate([rows[:1], rows])[: len(levels)]
        busy = queue.service_rate * np.minimum(levels[:, None], queue.slots)
        unused = queue.ring_rate - busy
        left = lam * (above - h) + (plain @ h.T).T - leaving * h + unused * ((after @ h.T).T - h) + busy * ((after @ below.T).T - h)
        right = (found.mean - levels)[:, None]
        size = np.abs(right) + 1 + 1e-9 * (lam + leaving + queue.ring_rate) * np.abs(h)
        worst = max(worst, float((np.abs(left - right) / size).max()))
    return worst
