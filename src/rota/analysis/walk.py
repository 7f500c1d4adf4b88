"""Steps of the chain (number of jobs k, state s of the process) of one type: the transient laws behind forecasts and queues over time.

With a step at every point of a Poisson process whose rate θ is above every rate out of a state (*uniformisation*), a step from (k, s) is

    an arrival          λ/θ                        k → k + 1
    an end              μ min(k, u_s)/θ            k → k − 1, and the ring may move s
    another ring        (c_s − μ min(k, u_s))/θ    of a slot without one of the k jobs; it may move s
    any other move      its rate/θ
    nothing             else

All numbers are positive, and none is subtracted. Only levels that hold more than 10⁻²⁰ are followed.
"""

from __future__ import annotations

import numpy as np
import scipy

from rota.analysis.queue import TypeQueue
from rota.arrays import Array, Int
from rota.errors import Infeasible
from rota.kernel import compiled

__all__ = ["Walk"]

_SLACK = 1.25  # θ over the largest rate
_TINY = 1e-20  # a level that holds less is left out
_PIECE = 4096  # steps between two looks at whether it is enough
_ENTRY_S, _STEP_S = 3e-9, 2e-7  # seconds per entry and step, per step


class Walk:
    """The chain of one type. `arrivals`: jobs come. Else the k jobs are those ahead of one job, which ends at rate μ while it runs
    (k < u_s) and with it the walk; `until_start`: the walk ends as soon as it runs. `frozen`: the state moves by no clock."""

    def __init__(self, queue: TypeQueue, *, arrivals: bool = False, until_start: bool = False, frozen: bool = False) -> None:
        self.slots = np.ascontiguousarray(queue.slots, dtype=np.int64)
        self._mu, self._lam = queue.service_rate, queue.arrival_rate if arrivals else 0.0
        self._own, self._until_start = not arrivals, until_start
        plain = scipy.sparse.csr_array(queue.plain.shape) if frozen else queue.plain
        leaves = queue.ring_rate + plain.sum(axis=1) + self._lam
        self.rate = _SLACK * float(leaves.max()) or 1.0  # θ
        self._stays = 1 - leaves / self.rate
        self._plain, self._after = _rows(plain, 1 / self.rate), _rows(queue.after, 1.0)
        self._entries = 2 * len(self.slots) + plain.nnz + queue.after.nnz

    def step_s(self, levels: int) -> float:
        """About how many seconds a step takes with so many levels."""
        return _STEP_S + _ENTRY_S * float(self._entries) * levels

    def begin(self, k: int, law: Array) -> Array:
        """The vector (k+1, N) of k jobs and this law of the state; without what has ended already."""
        x = np.zeros((k + 1, len(self.slots)))
        x[k] = law
        return x * (np.arange(k + 1)[:, None] >= self.slots) if self._until_start else x

    def go(self, x: Array, weights: Array, *, steps: int | None, gone: float, most_s: float) -> tuple[Array, Array, Array]:
        """Walks from x until less than `gone` is left, or for `steps` steps: w_n, what is left after n steps; the sums over k·x_n; and
        Σ weights_n x_n. `Infeasible` if that takes longer than about `most_s` seconds."""
        x, top = np.array(x), len(x) - 1
        mixed = np.zeros_like(x)
        masses, moments, done, cost = [], [], 0, 0.0
        while True:
            if self._lam > 0 and top + 1 >= len(x):  # a level more may be needed
                more = np.zeros((len(x) + 64, x.shape[1]))
                x, mixed = np.concatenate([x, more]), np.concatenate([mixed, more])
            count = _PIECE if steps is None else min(_PIECE, steps + 1 - done)
            mass, moment = np.empty(count), np.empty(count)
            own, given = (self._own, self._until_start, self._stays, *self._plain, *self._after), weights[done : done + count]
            n, top = _walk(x, mixed, top, self.slots, self._mu / self.rate, self._lam / self.rate, *own, mass, moment, given, gone)
            masses.append(mass[:n])
            moments.append(moment[:n])
            done, cost = done + n, cost + n * self.step_s(top + 1)
            if mass[n - 1] < gone or (steps is not None and done > steps):
                return np.concatenate(masses), np.concatenate(moments), mixed
            if cost > most_s:
                raise Infeasible(
                    f"{done:,} steps of {len(self.slots):,} states and {top + 1:,} levels are not enough, in {most_s:g} s: simulate"
                )


def _rows(matrix: scipy.sparse.csr_array, scale: float) -> tuple[Int, Int, Array]:
    """Where each row begins, columns, values."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data * scale


@compiled
def _walk(
    x: Array,
    mixed: Array,
    top: int,
    slots: Int,
    mu: float,
    lam: float,
    own: bool,
    until_start: bool,
    stays: Array,
    plain_row: Int,
    plain_to: Int,
    plain_rate: Array,
    after_row: Int,
    after_to: Int,
    after_part: Array,
    mass: Array,
    moment: Array,
    weights: Array,
    gone: float,
) -> tuple[int, int]:
    """Steps until the arrays are full, less than `gone` is left or a level more is needed; how many, and the highest level. In place."""
    levels, N = x.shape
    y = np.zeros_like(x)
    for n in range(mass.shape[0]):
        if lam > 0.0 and top + 1 >= levels:
            return n, top
        total, first = 0.0, 0.0
        for k in range(top + 1):
            row = 0.0
            for s in range(N):
                row += x[k, s]
                if n < weights.shape[0]:
                    mixed[k, s] += weights[n] * x[k, s]
            total += row
            first += k * row
        mass[n], moment[n] = total, first
        if total < gone:
            return n + 1, top
        for k in range(top + 1):
            for s in range(N):
                value = x[k, s]
                if value == 0.0:
                    continue
                y[k, s] += value * stays[s]
                for m in range(plain_row[s], plain_row[s + 1]):
                    if not until_start or k >= slots[plain_to[m]]:
                        y[k, plain_to[m]] += value * plain_rate[m]
                if lam > 0.0:
                    y[k + 1, s] += value * lam
                ends = value * mu * min(k, slots[s])
                others = value * mu * (slots[s] - min(k + 1 if own else k, slots[s]))  # not of the job itself: with that the walk ends
                for m in range(after_row[s], after_row[s + 1]):
                    to = after_to[m]
                    if ends > 0.0 and (not until_start or k - 1 >= slots[to]):
                        y[k - 1, to] += ends * after_part[m]
                    if others > 0.0:
                        y[k, to] += others * after_part[m]
        if lam > 0.0:
            top += 1
        for k in range(top + 1):
            for s in range(N):
                x[k, s], y[k, s] = y[k, s], 0.0
        while top > 0 and x[top].sum() < _TINY:
            x[top, :] = 0.0
            top -= 1
    return mass.shape[0], top
