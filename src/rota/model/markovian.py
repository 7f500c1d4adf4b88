"""A Markovian arrival process as matrices: its law of phases, its relative arrivals and its index of dispersion.

Phase m changes to n at rate D₀(m, n) without an arrival and at rate D₁(m, n) with a batch of B jobs, which does not depend on anything
else. With D = D₀ + D₁ (its diagonal set), p its stationary law, λ_m = E[B] Σ_n D₁(m, n) and λ = p·λ_m the mean rate of jobs,

    D Δᴬ = λ·1 − λ_m,      p·Δᴬ = 0                                              the relative arrivals of each phase
    I = Σ_{m,n} p_m (D₁(m, n) E[(B + Δᴬ_n − Δᴬ_m)²] + D₀(m, n) (Δᴬ_n − Δᴬ_m)²) / λ = lim Var N(t) / E N(t)

as N(t) − λt + Δᴬ is a martingale. I is the *index of dispersion*: 1 for a Poisson process.

Unfolded, a process has no batches: the jobs of one come after each other, and while they come all else stands still. Of the time
that passes such phases have no part, so they may be given any speed; they are left out of every probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Bool

__all__ = ["MarkovianArrivals", "Unfolded", "irreducible", "stationary_law"]


class Unfolded(NamedTuple):
    """A process of single arrivals: rates without one (no diagonal) and with one (M', M'), and the phases in which time passes (M',)."""

    moves: Array
    marked: Array
    real: Bool


@dataclass(frozen=True, eq=False)
class MarkovianArrivals:
    """`moves` D₀ without its diagonal and `marked` D₁ (M, M); E[B], E[B²] and the steps of a batch (`rota.model.arrivals.BatchSize`)."""

    moves: Array
    marked: Array
    batch_mean: float = 1.0
    batch_second: float = 1.0
    begin: Array | None = None
    go: Array | None = None

    def __len__(self) -> int:
        return len(self.marked)

    @cached_property
    def generator(self) -> Array:
        """D (M, M)."""
        D: Array = self.moves + self.marked
        np.fill_diagonal(D, 0.0)
        np.fill_diagonal(D, -D.sum(axis=1))
        return D

    @cached_property
    def stationary(self) -> Array:
        """p (M,)."""
        return stationary_law(self.generator)

    @cached_property
    def phase_rate(self) -> Array:
        """λ_m: jobs per unit of time in each phase (M,)."""
        return np.asarray(self.batch_mean * self.marked.sum(axis=1))

    @cached_property
    def rate(self) -> float:
        """λ."""
        return float(self.stationary @ self.phase_rate)

    @cached_property
    def relative_arrivals(self) -> Array:
        """Δᴬ (M,): how many more jobs come, for ever after, if the phase is m now."""
        p, M = self.stationary, len(self)
        if M == 1:
            return np.zeros(1)
        scale = -np.diag(self.generator).min()
        delta = np.linalg.solve(self.generator - scale * p, self.rate - self.phase_rate)  # p·Δᴬ = 0 follows from p·(λ − λ_m) = 0
        return np.asarray(delta - p @ delta)

    @cached_property
    def dispersion(self) -> float:
        """I."""
        if self.rate == 0:
            return 1.0
        step = self.relative_arrivals - self.relative_arrivals[:, None]  # Δᴬ_n − Δᴬ_m
        jump = self.batch_second + 2 * self.batch_mean * step + step**2
        return float(self.stationary @ (self.marked * jump + self.moves * step**2).sum(axis=1) / self.rate)

    @property
    def time_scale(self) -> float:
        """−1 over the largest eigenvalue of D below 0; 0 if there is one phase."""
        return float(-1 / np.sort(np.linalg.eigvals(self.generator).real)[-2]) if len(self) > 1 else 0.0

    @cached_property
    def unfolded(self) -> Unfolded:
        """The process of single arrivals, with a phase (m, j) for every phase m and state j of a batch under way."""
        M = len(self)
        if self.begin is None or self.go is None or not self.begin.any():
            return Unfolded(self.moves, self.marked, np.ones(M, dtype=bool))
        begin, go = self.begin, self.go
        J = len(begin)
        moves, marked = np.zeros((M * (1 + J),) * 2), np.zeros((M * (1 + J),) * 2)
        moves[:M, :M] = self.moves
        marked[:M, :M] = self.marked * (1 - begin.sum())
        marked[:M, M:] = np.kron(self.marked, begin)  # phase (m, j) is at M + mJ + j
        speed = float(self.marked.sum(axis=1).max())  # any
        marked[M:, :M] = speed * np.kron(np.eye(M), 1 - go.sum(axis=1)[:, None])
        marked[M:, M:] = speed * np.kron(np.eye(M), go)
        return Unfolded(moves, marked, np.arange(M * (1 + J)) < M)


def irreducible(rates: Array) -> bool:
    """Whether every phase is reached from every other one."""
    reach = (rates > 0) | np.eye(len(rates), dtype=bool)
    for _ in range(max(len(rates) - 1, 1).bit_length()):
        reach = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
    return bool(reach.all())


def stationary_law(generator: Array) -> Array:
    """π with π G = 0 and π·1 = 1, by elimination without subtractions (Grassmann, Taksar, Heyman 1985)."""
    A = np.array(generator, dtype=np.float64)
    n = len(A)
    np.fill_diagonal(A, 0.0)
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    pi = np.zeros(n)
    pi[0] = 1.0
    for k in range(1, n):
        pi[k] = pi[:k] @ A[:k, k]
    total: Array = pi / pi.sum()
    return total
