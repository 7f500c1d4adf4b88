"""Policy iteration on one truncation: values and decisions, with bounds on the mean number of jobs that hold for any values.

A step improves the decisions by two pairs of Gauss–Seidel sweeps (up and down through the states), then solves for the values of these
decisions, without preemption on those states alone in which no job starts (`rota.optimal.kept`). A pair of sweeps under fixed decisions is
an affine map x → A x + b, so the values solve (I − A) x = b: BiCGSTAB does, with a pair of sweeps for each product with A. It keeps a few
vectors only: with GMRES, whose step goes through all that it has kept, two thirds of the time went into these. A step ends with the
one-step differences, whose least and largest value bracket the optimum.
The clock is looked at before every sweep. When the time is over, or at Ctrl-C, the best step so far is the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, bicgstab

from rota.arrays import Array
from rota.optimal import with_preemption, without_preemption
from rota.optimal.chain import OutOfTime
from rota.optimal.kept import KeptStates, kept_states, sweep_kept
from rota.optimal.state_space import StateSpace
from rota.threads import one_thread

__all__ = ["BYTES_PER_VALUE", "Solved", "solve", "values_of"]

BYTES_PER_VALUE = 130  # a decision, the values, and the vectors of BiCGSTAB
_STEPS = 300
_COARSE, _LACK = 0.05, 0.1  # with such a gap of the bounds, the proof lacks this part of the lower one because of an edge that is too near
_ROUNDS, _SHARE = 60, 0.1  # of BiCGSTAB in a step, two products each: at most so many, until the residual is this part

Progress = Callable[[str], None]
Stopped = Literal["gap", "edge", "time", "interrupt"]


@dataclass(frozen=True, eq=False)
class Solved:
    """Values and decisions on a truncation, and the bounds on the mean number of jobs there.

    The best policy of the truncated system has a mean cost from `least` to `largest`; no policy without truncation has one below `proved`.
    `edge` (K,) is the least one-step difference with a job of each type beyond the edge. `stopped` says what ended the iteration: "gap",
    "edge" (`lacking` says which), "time" or "interrupt".
    """

    space: StateSpace
    values: Array
    choice: NDArray[np.int16]
    least: float
    largest: float
    proved: float
    edge: Array
    sweeps: int
    stopped: Stopped

    @property
    def gap(self) -> float:
        """The width of the bounds relative to the upper one."""
        return (self.largest - self.least) / self.largest

    @property
    def lacking(self) -> NDArray[np.bool_]:
        """The types (K,) whose edge is too near: the values that go on beyond it are so wrong there that little is proved."""
        return np.asarray((self.edge < (1 - _LACK) * self.least) & (self.edge == self.edge.min()))


def values_of(space: StateSpace, preemptive: bool) -> int:
    """How many values there are."""
    return space.size if preemptive else space.size * len(space.schedules)


def solve(
    space: StateSpace,
    preemptive: bool,
    gap: float,
    start: Array,
    until: float = np.inf,
    progress: Progress | None = None,
    give_up: bool = False,
) -> Solved:
    """Solves, from values to start with, until the relative gap of the bounds is small or the clock (`time.monotonic`) is past `until`.

    `give_up`: also when it is plain that the edge of some types is too near for a proof.
    Raises `OutOfTime` if that was before the first step was done.
    """
    kind: ModuleType = with_preemption if preemptive else without_preemption
    n = values_of(space, preemptive)
    W = start.copy()
    choice = np.zeros(n, dtype=np.int16)
    rate, edge = space.uniform_rate, np.empty(len(space.truncation))
    sweeps, most = 0, -np.inf

    def pair(sweep: Callable[[bool], None]) -> None:
        """A pair of sweeps, up and down."""
        nonlocal sweeps
        for ascending in (True, False):
            if time.monotonic() > until:
                raise OutOfTime
            sweep(ascending)
        sweeps += 1

    def improve() -> None:
        pair(lambda ascending: kind.improve(space, W, choice, ascending))

    def evaluate() -> None:
        """Brings W near the values of the decisions."""
        fixed = _Fixed(space, choice, preemptive)
        x = fixed.gathered(W)

        def after_pair(values: Array, cost: float = 1.0) -> Array:
            pair(lambda ascending: fixed.sweep(values, cost, ascending))
            return values

        def product(values: Any) -> Any:
            return values - after_pair(np.array(values), 0.0)

        for _ in range(3):
            after_pair(x)
        residual = after_pair(x.copy()) - x
        operator = LinearOperator((len(x), len(x)), matvec=product, dtype=np.float64)
        with one_thread(_ROUNDS):  # products of long vectors gain nothing from threads that other work takes away
            step = bicgstab(operator, residual, rtol=_SHARE, maxiter=_ROUNDS)[0]
        if np.linalg.norm(residual - product(step)) < np.linalg.norm(residual):  # else it broke down: the sweeps go on alone
            x += step
        fixed.spread(x, W)

    best: Solved | None = None
    stopped: Stopped = "gap"
    try:
        for _ in range(_STEPS):
            improve()
            improve()
            least, largest, proved = kind.backup(space, W, choice, rate, edge)
            most = max(most, float(proved))
            if best is None or largest - least < best.largest - best.least:
                best = Solved(space, W.copy(), choice.copy(), float(least), float(largest), most, edge.copy(), sweeps, "gap")
            if progress is not None:
                progress(f"{n:,} values, {sweeps} pairs of sweeps, bounds {least:.5g} to {largest:.5g}")
            if give_up and best.gap <= _COARSE and best.lacking.any():
                stopped = "edge"
                break
            if best.gap <= gap:
                break
            evaluate()
    except OutOfTime:
        if best is None:
            raise
        stopped = "time"
    except KeyboardInterrupt:
        if best is None:
            raise
        stopped = "interrupt"
    assert best is not None
    return replace(best, proved=most, sweeps=sweeps, stopped=stopped)


class _Fixed:
    """The unknown values under fixed decisions: with full preemption all, without it those of the kept states."""

    def __init__(self, space: StateSpace, choice: NDArray[np.int16], preemptive: bool) -> None:
        self._space, self._choice = space, choice
        self._kept: KeptStates | None = None if preemptive else kept_states(space, choice)

    def gathered(self, W: Array) -> Array:
        return W.copy() if self._kept is None else W[self._kept.place]

    def spread(self, x: Array, W: Array) -> None:
        if self._kept is None:
            W[:] = x
        else:
            np.copyto(W, x[self._kept.of], where=self._kept.of >= 0)  # what cannot be stays as it is

    def sweep(self, x: Array, cost: float, ascending: bool) -> None:
        if self._kept is None:
            with_preemption.sweep(self._space, x, self._choice, False, cost, ascending)
        else:
            sweep_kept(self._kept, x, cost, ascending)
