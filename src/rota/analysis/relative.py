"""Relative values of an MSR: how many more jobs a start in one state costs than in another, for ever after.

Given the modulating process the queues are independent, so the relative value of the jobs in the system is a sum of one function per type,
which solves the Poisson equation of that type's queue (levels and matrices as in `rota.analysis.qbd`):

    λ h(q+1) + A₁(q) h(q) + A₂(q) h(q−1) = E[Q] − q,       h(q) a vector over the states s of the process

Let G_q be the first-passage matrix from level q to q−1, and g_q(s) the cost ∫ (Q − E[Q]) dt on the way. Then

    h(q) = g_q + G_q h(q−1),        (−A₁(q) − λG_{q+1}) g_q = (q − E[Q])·1 + λ g_{q+1}

From level β on nothing but q changes: g_q = (q − E[Q]) τ + w, with τ the mean time of the passage, (−A₁ − λG − λ) τ = 1, and
(−A₁ − λG − λ) w = λ τ. There h has a closed form, with γ the stationary law of G:

    h(q) = x q² + y q + z + G^{q−β} e,     x = γ·τ/2,    (I − G) y = τ − 2x,    (I − G) z = w − E[Q] τ + x − G y,    γ·e = 0

whose last term fades. A table holds the levels up to where it has; beyond, the first three terms are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rota.analysis.analyze import analyze
from rota.analysis.qbd import first_passage, m_matrix
from rota.analysis.queue import TypeQueue
from rota.arrays import Array, Int
from rota.errors import Infeasible, NotConverged
from rota.model import System
from rota.policy import MSR, stationary_law
from rota.process import ModulatingProcess
from rota.threads import one_thread

__all__ = ["RelativeValues", "TypeValues", "relative_values"]

_STATES = 1000  # of the process; a table of all levels and states is kept
_LEVELS = 20_000
_FADED = 1e-11  # of the values at level β: what is left of the last term where the table ends
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
def relative_values(system: System, policy: MSR) -> RelativeValues:
    """Exact relative values of a stable MSR policy; sizes are taken as exponential.

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
    if len(analysis.process) > _STATES:
        raise Infeasible(
            f"relative values of {len(analysis.process):,} states and {len(system.names)} types take too much time and memory: "
            f"at most {_STATES:,} states"
        )
    types = tuple(_solve(queue) for queue in analysis.queues)
    found = RelativeValues(system, policy, analysis.process, types)
    if not found.residual <= _RESIDUAL:
        raise NotConverged(f"the Poisson equation has a relative residual of {found.residual:.1e}, more than {_RESIDUAL:.0e}")
    return found


def _solve(queue: TypeQueue) -> TypeValues:
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
    # The passage costs g_q are those of q itself and, E[Q] times, those of time: g_q = f_q − E[Q] τ_q, and so is h.
    drift = minus_s(beta, G) - lam * np.eye(N)
    tau = np.linalg.solve(drift, one)
    w = np.linalg.solve(drift, lam * tau)
    passages, costs, times = [G], [(beta + 1) * tau + w], [tau]  # from β+1 to β, and then from β to β−1, …, 1 to 0
    for q in range(beta, 0, -1):
        right = np.column_stack([q * one + lam * costs[-1], one + lam * times[-1], busy(q)[:, None] * after])
        solved = np.linalg.solve(minus_s(q, passages[-1]), right)
        costs.append(solved[:, 0])
        times.append(solved[:, 1])
        passages.append(solved[:, 2:])
    bottom = local(0) + lam * passages[-1]
    law = stationary_law(bottom)
    mean = float(law @ costs[-1] / (law @ (1 / lam + times[-1])))  # per passage to level 1 and back: 1/λ at level 0 on average

    # h(0) with h(0, 0) = 0, then upwards.
    minus = m_matrix(bottom, np.zeros(N))
    minus[:, 0] = one  # the unknown h(0, 0) is replaced by the solvability of the equation, which holds: its value is 0
    h0 = np.linalg.solve(minus, -mean * one + lam * (costs[-1] - mean * times[-1]))
    h0[0] = 0.0
    values = [h0]
    for q in range(1, beta + 1):
        values.append(costs[beta + 1 - q] - mean * times[beta + 1 - q] + passages[beta + 1 - q] @ values[-1])

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
    lam, worst = queue.arrival_rate, 0.0
    plain, after = queue.plain, queue.after
    leaving = np.asarray(plain.sum(axis=1)).ravel()
    for q in range(len(found.table)):
        h, above, below = found(q), found(q + 1), found(max(q - 1, 0))
        busy = queue.service_rate * np.minimum(q, queue.slots)
        unused = queue.ring_rate - busy
        left = lam * (above - h) + plain @ h - leaving * h + unused * (after @ h - h) + busy * (after @ below - h)
        size = abs(found.mean - q) + 1 + 1e-9 * (lam + leaving + queue.ring_rate) * np.abs(h)
        worst = max(worst, float((np.abs(left - (found.mean - q)) / size).max()))
    return worst
