"""Policy iteration on one truncation: values and decisions, with bounds on the mean number of jobs that hold for any values.

A step improves the decisions by two pairs of Gauss–Seidel sweeps (up and down through the states), then solves for the values of these
decisions. A pair of sweeps under fixed decisions is an affine map W → A W + b, so the values solve (I − A) W = b: GMRES does, with
a pair of sweeps for each product with A. A step ends with the one-step differences, whose least and largest value bracket the optimum.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, gmres

from rota.arrays import Array
from rota.optimal import with_preemption, without_preemption
from rota.optimal.state_space import StateSpace
from rota.threads import one_thread

__all__ = ["BYTES_PER_VALUE", "OutOfTime", "Solved", "solve", "values_of"]

BYTES_PER_VALUE = 160  # a decision, the values, and the vectors of GMRES
_STEPS = 300
_PRODUCTS, _SHARE = 10, 0.3  # of GMRES in a step: at most so many, until the residual is this part; the decisions change anyway

Progress = Callable[[float, str], None]


class OutOfTime(Exception):
    """The time limit ended the iteration; it never leaves this package."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Values and decisions on a truncation, and the bounds on the mean number of jobs there."""

    space: StateSpace
    values: Array
    choice: NDArray[np.int16]
    least: float
    largest: float
    sweeps: int

    @property
    def gap(self) -> float:
        """The width of the bounds relative to the upper one."""
        return (self.largest - self.least) / self.largest


def values_of(space: StateSpace, preemptive: bool) -> int:
    """How many values there are."""
    return space.size if preemptive else space.size * len(space.schedules)


def solve(
    space: StateSpace,
    preemptive: bool,
    gap: float,
    until: float = np.inf,
    progress: Progress | None = None,
) -> Solved:
    """Solves until the relative gap of the bounds is small; raises `OutOfTime` when the clock (`time.monotonic`) is past `until`."""
    kind: ModuleType = with_preemption if preemptive else without_preemption
    n = values_of(space, preemptive)
    W = np.zeros(n)
    choice = np.zeros(n, dtype=np.int16)
    rate = space.uniform_rate
    sweeps = 0

    def pair(values: Array, improve: bool, cost: float = 1.0) -> Array:
        """A pair of sweeps, up and down, in place."""
        nonlocal sweeps
        if time.monotonic() > until:
            raise OutOfTime
        kind.sweep(space, values, choice, improve, cost, True)
        kind.sweep(space, values, choice, improve, cost, False)
        sweeps += 1
        return values

    def product(x: Any) -> Any:
        return x - pair(np.array(x), False, 0.0)

    best: Solved | None = None
    for _ in range(_STEPS):
        pair(W, True)
        pair(W, True)
        least, largest = kind.backup(space, W, choice, rate)
        if best is None or largest - least < best.largest - best.least:
            best = Solved(space, W.copy(), choice.copy(), float(least), float(largest), sweeps)
        if progress is not None:
            progress(best.gap, f"{n:,} values, {sweeps} pairs of sweeps, bounds {least:.5g} to {largest:.5g}")
        if best.gap <= gap:
            break
        for _ in range(3):
            pair(W, False)
        residual = pair(W.copy(), False) - W
        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        with one_thread(_PRODUCTS):  # products of long vectors gain nothing from threads that other work takes away
            W += gmres(operator, residual, rtol=_SHARE, restart=_PRODUCTS, maxiter=1)[0]
    assert best is not None
    return Solved(space, best.values, best.choice, best.least, best.largest, sweeps)
