"""The linear programs of the load of a fleet, by HiGHS.

Master over the schedules found so far, each of a kind c; x = λ⊘μ, and v_c ⊙ s is the work per unit of time of schedule s at the speeds of
kind c:

    ρ = min t   s.t.   Σ_c Σ_s w_cs (v_c ⊙ s) ≥ x,   Σ_s w_cs ≤ n_c t,   w ≥ 0                                      π_cs = w_cs / ρ
        dual:   max y·x   s.t.   y·(v_c ⊙ u) ≤ z_c for all schedules u of kind c,   Σ_c n_c z_c = 1,   y, z ≥ 0

As in `rota.capacity.solver`, rows and columns are divided by powers of 2²⁰ that bring coefficients near 1: the row of a type by the work
that the kind with most of it could do, the row and the columns of a kind by its number of servers, and t by the largest load of one type.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Bool, Int
from rota.capacity.solver import _INF, _magnitude, _quiet, _run

__all__ = ["FleetMaster", "divisible_load"]

_HOPELESS = 1e8  # a kind on which a type takes this many times more of the fleet than on the best kind is left out when jobs are divisible


class FleetMaster:
    """The linear program over the schedules found so far. `most` (C, K): the work per unit of time of a type alone on a server."""

    def __init__(self, work: Array, count: Int, most: Array) -> None:
        self._count = count
        self._servers = _magnitude(count)
        self._most = _magnitude((count[:, None] * most).max(axis=0))
        self._unit = float(_magnitude((work / self._most).max()))
        self._solver = _quiet()
        self._solver.setOptionValue("solver", "simplex")
        self._solver.setOptionValue("presolve", "off")
        self._solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._K, C = len(work), len(count)
        for share in work / self._most / self._unit:
            self._solver.addRow(float(share), _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
        for _ in range(C):
            self._solver.addRow(0.0, _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
        rows = np.arange(self._K, self._K + C, dtype=np.int32)
        self._solver.addCol(1.0, 0.0, _INF, C, rows, count / self._servers)  # t, in every row n_c t − Σ_s w_cs ≥ 0
        self._seen: set[tuple[int, bytes]] = set()
        self.kinds: list[int] = []
        self.schedules: list[Int] = []

    def add(self, c: int, schedule: Int, served: Array) -> bool:
        """Adds a schedule of kind c, which does `served` (K,) work per unit of time; False if it was there."""
        key = (c, schedule.tobytes())
        if key in self._seen:
            return False
        self._seen.add(key)
        self.kinds.append(c)
        self.schedules.append(schedule.copy())
        types = np.flatnonzero(served)
        rows = np.append(types, self._K + c).astype(np.int32)
        values = np.append(self._servers[c] * served[types] / self._most[types], -1.0)
        self._solver.addCol(0.0, 0.0, _INF, len(rows), rows, values)
        return True

    def __len__(self) -> int:
        return len(self.schedules)

    def solve(self) -> tuple[Array, Array, Array]:
        """Weights of all schedules (w, in servers times load), prices y of the types (K,) and z of the servers (C,)."""
        _run(self._solver, "master program of a fleet")
        solution = self._solver.getSolution()
        values = np.maximum(np.array(solution.col_value)[1:], 0.0)
        prices = np.maximum(np.array(solution.row_dual), 0.0)
        weights: Array = self._unit * self._servers[np.array(self.kinds, dtype=np.intp)] * values
        return weights, prices[: self._K] / self._most, prices[self._K :] / self._servers

    def with_one_more(self, c: int) -> tuple[float, Array]:
        """The load over the same schedules if there were one more server of kind c, and the prices y of the types then."""
        row = self._K + c
        self._solver.changeCoeff(row, 0, float((self._count[c] + 1) / self._servers[c]))
        _run(self._solver, "master program of a fleet")
        solution = self._solver.getSolution()
        load, prices = self._unit * float(solution.col_value[0]), np.maximum(np.array(solution.row_dual)[: self._K], 0.0)
        self._solver.changeCoeff(row, 0, float(self._count[c] / self._servers[c]))
        return load, prices / self._most


def divisible_load(use: NDArray[np.float64], runs: Bool) -> tuple[float, Array]:
    """The load if jobs could be split at will, and prices y_i x_i of the types (K,) that prove it, but for the solver's rounding.

    `use` (C, K, R): the part of a resource of all servers of a kind that a type would use if all its jobs ran there. With f_ci the part
    of type i on kind c:   min t   s.t.   Σ_i f_ci use_cir ≤ t,   Σ_c f_ci = 1,   f ≥ 0.
    """
    C, K, R = use.shape
    alone = np.where(runs, use.max(axis=2), np.inf)  # (C, K): the load of a type alone on a kind
    best = alone.min(axis=0)
    unit = float(_magnitude(best.max()))
    solver = _quiet()
    for _ in range(K):
        solver.addRow(1.0, _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
    for _ in range(C * R):
        solver.addRow(0.0, _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
    solver.addCol(1.0, 0.0, _INF, C * R, np.arange(K, K + C * R, dtype=np.int32), np.ones(C * R))
    pairs = np.argwhere(alone <= _HOPELESS * best)
    for c, i in pairs:
        needs = np.flatnonzero(use[c, i])
        rows = np.concatenate([[i], K + c * R + needs]).astype(np.int32)
        solver.addCol(0.0, 0.0, _INF, len(rows), rows, np.concatenate([[1.0], -use[c, i, needs] / unit]))
    _run(solver, "program of divisible jobs")
    solution = solver.getSolution()
    part = np.zeros((C, K))
    part[pairs[:, 0], pairs[:, 1]] = np.maximum(np.array(solution.col_value)[1:], 0.0)
    part = part / part.sum(axis=0)
    load = float(np.einsum("ci,cir->cr", part, use).max())
    return load, unit * np.maximum(np.array(solution.row_dual)[:K], 0.0)
