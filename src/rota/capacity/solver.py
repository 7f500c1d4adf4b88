"""The interface to HiGHS: the linear programs over schedules and the knapsacks that price them. (`rota.capacity.fleet_master` has another.)

Master (the MIQCP of the paper is this linear program over all schedules):

    ρ = min Σ_s w_s   s.t.  Σ_s w_s W_s ≥ λ⊘μ,  w ≥ 0          dual:  max y·(λ⊘μ)   s.t.  y·u ≤ 1 for all u ∈ 𝒮,  y ≥ 0

Knapsack (pricing): max y·u over u ∈ 𝒮, its linear relaxation, and the prices p of that relaxation.

HiGHS drops coefficients below 1e-9 and takes what is within its tolerance as met. Rates and demands may differ by many orders of magnitude,
so jobs are counted in parts of the most that fit alone, m_i, and the master's right-hand sides in parts of the largest: with w' = w/c,

    Σ_s w'_s (W_si/m_i) ≥ x_i/(m_i c),   c = max x_i/m_i,      prices y_i = y'_i/m_i

has coefficients and prices y' of at most about 1. (m and c are rounded to powers of 2²⁰, so that nothing is rounded and numbers that are
near 1 already stay as they are.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.errors import NotConverged

if TYPE_CHECKING:
    import highspy  # loaded where a program is built: most simulations need none

__all__ = ["MANY", "CoverMaster", "Knapsack", "Master", "NearKnapsack", "NearTable"]


_INF = np.inf  # as HiGHS has it
_LARGE = 1e6
_PRIMAL = 4  # HiGHS's number for the primal simplex method

MANY = 50
"""More types than this are many: what serves few of them best is then too slow, and the other way round."""


def _quiet() -> highspy.Highs:
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


def _run(solver: highspy.Highs, what: str) -> None:
    import highspy

    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise NotConverged(f"HiGHS ended the {what} with '{solver.modelStatusToString(status)}'")


def _magnitude(x: Array | Int) -> Array:
    """The nearest power of 2²⁰; 1 for 0."""
    power: Array = 2.0 ** (20 * np.round(np.log2(np.where(x > 0, x, 1)) / 20))
    return power


class Master:
    """The linear program over the schedules found so far. Simplex, so that at most K weights are positive.

    `most` (K,): how many jobs of each type fit alone.
    """

    def __init__(self, offered_work: Array, most: Int) -> None:
        self._most = _magnitude(most)
        self._unit = float(_magnitude((offered_work / self._most).max()))
        self._solver = _quiet()
        self._solver.setOptionValue("solver", "simplex")
        if len(most) > MANY:  # the last basis stays feasible when schedules are added
            self._solver.setOptionValue("simplex_strategy", _PRIMAL)
        self._solver.setOptionValue("presolve", "off")
        self._solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
        for share in offered_work / self._most / self._unit:
            self._solver.addRow(float(share), _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
        self._columns: dict[bytes, int] = {}
        self._schedules: list[Int] = []

    def add(self, schedule: Int) -> bool:
        """Adds a schedule; False if it was there."""
        before = len(self._schedules)
        return self.place(schedule) == before

    def place(self, schedule: Int) -> int:
        """The position of a schedule, which is added unless it was there."""
        key = schedule.tobytes()
        if key not in self._columns:
            self._columns[key] = len(self._schedules)
            self._schedules.append(schedule.copy())
            rows = np.flatnonzero(schedule).astype(np.int32)
            self._solver.addCol(1.0, 0.0, _INF, len(rows), rows, schedule[rows] / self._most[rows])
        return self._columns[key]

    def __len__(self) -> int:
        return len(self._schedules)

    def solve(self) -> tuple[Array, Array]:
        """Weights of all schedules (not normalised) and the dual prices of the types."""
        _run(self._solver, "master program")
        solution = self._solver.getSolution()
        weights: Array = self._unit * np.maximum(np.array(solution.col_value), 0.0)
        return weights, np.maximum(np.array(solution.row_dual), 0.0) / self._most

    def basis(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The last basis of the simplex method: positions of schedules, and types that may be served more than they must."""
        import highspy

        basis, basic = self._solver.getBasis(), highspy.HighsBasisStatus.kBasic
        columns, rows = ([status == basic for status in all_of] for all_of in (basis.col_status, basis.row_status))
        return np.flatnonzero(columns), np.flatnonzero(rows)

    def begin(self, schedules: list[int], types: list[int]) -> None:
        """Sets the basis from which the simplex method begins: as in `basis`, together as many as there are types."""
        import highspy

        basis = highspy.HighsBasis()
        basic, lower = highspy.HighsBasisStatus.kBasic, highspy.HighsBasisStatus.kLower
        chosen, free = set(schedules), set(types)
        basis.col_status = [basic if j in chosen else lower for j in range(len(self))]
        basis.row_status = [basic if i in free else lower for i in range(len(self._most))]
        basis.valid = True
        self._solver.setBasis(basis)

    def schedules(self, which: NDArray[np.intp]) -> Int:
        """The schedules with these positions, (n, K)."""
        return np.array([self._schedules[j] for j in which], dtype=np.int64).reshape(len(which), -1)


class Knapsack:
    """max y·u s.t. u·D ≤ P, 0 ≤ u ≤ most: as an integer program, and relaxed."""

    # HiGHS cuts off branches that gain less than its feasibility tolerance. The objective is scaled by 1000 (y·u is near 1 where it
    # matters), so its answers are right to 1e-12 relative; the slack below is added to every bound that rests on them.
    _SCALE, _TOLERANCE, SLACK = 1e3, 1e-9, 1e-11

    def __init__(self, demand: Int, capacity: Int, most: Int) -> None:
        import highspy

        self._demand, self._capacity = demand, capacity
        K, R = demand.shape
        self._index = np.arange(K, dtype=np.int32)
        self._relaxed, self._integer = _quiet(), _quiet()
        # The jobs that one of a program's variables stands for. A count that goes into the millions need not be whole for a bound.
        many = most > _LARGE
        self._relaxed_jobs = _magnitude(most)
        self._integer_jobs = np.where(many, self._relaxed_jobs, 1.0)
        for solver, jobs in ((self._relaxed, self._relaxed_jobs), (self._integer, self._integer_jobs)):
            for i in range(K):
                solver.addVar(0.0, float(most[i] / jobs[i]) if solver is self._integer else _INF)
            for r in range(R):
                rows = np.flatnonzero(demand[:, r]).astype(np.int32)
                scale = self._scale(solver, r)
                solver.addRow(-_INF, float(capacity[r]) / scale, len(rows), rows, demand[rows, r] / scale * jobs[rows])
            solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._relaxed.setOptionValue("presolve", "off")
        for column in self._index[~many]:
            self._integer.changeColIntegrality(int(column), highspy.HighsVarType.kInteger)
        self._integer.setOptionValue("mip_rel_gap", 0.0)
        self._integer.setOptionValue("mip_abs_gap", 0.0)
        self._integer.setOptionValue("mip_feasibility_tolerance", self._TOLERANCE)

    def _scale(self, solver: highspy.Highs, r: int) -> float:
        """What a row is divided by: units can be as small as 2⁻⁵² of the capacity, and HiGHS needs numbers near 1."""
        if solver is self._relaxed:
            return float(self._capacity[r])
        return max(float(self._capacity[r]) / _LARGE, 1.0)  # small whole numbers stay whole

    def relax(self, y: Array) -> tuple[float, Array]:
        """An upper bound on max y·u and the resource prices p that prove it: y ≤ D p, bound = p·P.

        The prices are scaled until y ≤ D p holds, so the bound is valid in spite of the solver's rounding.
        """
        self._relaxed.changeColsCost(len(y), self._index, np.asarray(y * self._relaxed_jobs, dtype=np.float64))
        _run(self._relaxed, "relaxed knapsack")
        price = np.maximum(np.array(self._relaxed.getSolution().row_dual), 0.0) / self._capacity
        cost = self._demand @ price
        if (cost[y > 0] <= 0).any():  # only by rounding: give every resource a little
            price = price + 1e-9 * max(float((y * self._relaxed_jobs).max()), 1e-300) / self._capacity
            cost = self._demand @ price
        price = price * max(float((y / np.where(cost > 0, cost, np.inf)).max()), 0.0)
        return float(price @ self._capacity), price

    def solve(self, y: Array, gap: float, seconds: float | None) -> tuple[float, Int]:
        """A proved upper bound on max y·u, within a relative `gap` unless time ran out, and the best schedule found."""
        self._integer.changeColsCost(len(y), self._index, np.asarray(y * self._integer_jobs * self._SCALE, dtype=np.float64))
        self._integer.setOptionValue("mip_rel_gap", gap)
        self._integer.setOptionValue("time_limit", _INF if seconds is None else self._integer.getRunTime() + max(seconds, 0.01))
        self._integer.run()
        whole = self._integer_jobs == 1
        bound = float(self._integer.getInfo().mip_dual_bound) / self._SCALE if whole.any() else self.relax(y)[0]
        values = self._integer.getSolution().col_value
        schedule = np.zeros(len(y), dtype=np.int64)
        if len(values):
            jobs = np.maximum(values, 0) * self._integer_jobs
            schedule = np.where(whole, np.round(jobs), np.floor(jobs)).astype(np.int64)
            # A tolerance of the solver may leave too many jobs: those of the last types go, and the bound stands.
            for i in np.flatnonzero(schedule)[::-1]:
                excess = np.maximum(schedule @ self._demand - self._capacity, 0)
                need = self._demand[i] > 0
                too_many = int((-(-excess[need] // self._demand[i][need])).max())
                schedule[i] -= min(too_many, int(schedule[i]))
        if not np.isfinite(bound):
            bound = np.inf
        return bound * (1.0 + self.SLACK), schedule


class CoverMaster:
    """The linear program of `rota.capacity.covering` over the schedules found so far, each written as its difference from `base`.

    min Σ π_s d_s   s.t.   Σ π_s (s − base) ≥ target − base,   Σ π_s = 1,   π ≥ 0. Near schedules have small differences.
    """

    def __init__(self, above: Array) -> None:
        """`above` = target − base (K,)."""
        self._solver = _quiet()
        self._solver.setOptionValue("solver", "simplex")
        self._solver.setOptionValue("presolve", "off")
        self._solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._K = len(above)
        for part in above:
            self._solver.addRow(float(part), _INF, 0, np.empty(0, dtype=np.int32), np.empty(0))
        self._solver.addRow(1.0, 1.0, 0, np.empty(0, dtype=np.int32), np.empty(0))

    def add(self, difference: Int, distance: float) -> None:
        """A schedule, as its difference from the base, and its distance from the target."""
        rows = np.append(np.flatnonzero(difference), self._K).astype(np.int32)
        values = np.append(difference[rows[:-1]], 1).astype(np.float64)
        self._solver.addCol(distance, 0.0, _INF, len(rows), rows, values)

    def solve(self) -> tuple[Array, Array]:
        """Weights of all schedules and the prices y ≥ 0 of the types."""
        _run(self._solver, "covering program")
        solution = self._solver.getSolution()
        return np.maximum(np.array(solution.col_value), 0.0), np.maximum(np.array(solution.row_dual)[: self._K], 0.0)


class NearKnapsack:
    """max Σ_i value of u_i − base_i, a concave function per type, over schedules u: what the first job above the base, each further one
    and each one below it are worth. Variables: one up (0 or 1), more up, down; concavity sees to their order.
    """

    def __init__(self, demand: Int, capacity: Int, base: Int, most: Int) -> None:
        import highspy

        K, R = demand.shape
        self._base = base
        self._demand, self._capacity = demand, capacity
        self._index = np.arange(3 * K, dtype=np.int32)
        self._solver = _quiet()
        for i in range(K):
            self._solver.addVar(0.0, float(min(most[i] - base[i], 1)))
        for i in range(K):
            self._solver.addVar(0.0, float(max(most[i] - base[i] - 1, 0)))
        for i in range(K):
            self._solver.addVar(0.0, float(base[i]))
        residual = capacity - base @ demand
        for r in range(R):
            need = np.flatnonzero(demand[:, r])
            scale = float(demand[need, r].min()) if len(need) else 1.0
            rows = np.concatenate([need, need + K, need + 2 * K]).astype(np.int32)
            values = np.concatenate([demand[need, r], demand[need, r], -demand[need, r]]) / scale
            self._solver.addRow(-_INF, float(residual[r]) / scale, len(rows), rows, values)
        for column in self._index:
            self._solver.changeColIntegrality(int(column), highspy.HighsVarType.kInteger)
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
        self._solver.setOptionValue("mip_rel_gap", 0.0)

    def solve(self, first: Array, further: Array, below: Array, gap: float, seconds: float | None) -> tuple[float, Int]:
        """A proved upper bound, within `gap` of the best unless time ran out, and the best schedule found (the base, if none)."""
        K = len(self._base)
        self._solver.changeColsCost(3 * K, self._index, np.concatenate([first, further, -below]))
        self._solver.setOptionValue("mip_abs_gap", gap)
        self._solver.setOptionValue("time_limit", _INF if seconds is None else self._solver.getRunTime() + max(seconds, 0.01))
        self._solver.run()
        bound = float(self._solver.getInfo().mip_dual_bound)
        values = np.round(np.array(self._solver.getSolution().col_value)).astype(np.int64)
        schedule = self._base.copy()
        if len(values):
            schedule = schedule + values[:K] + values[K : 2 * K] - values[2 * K :]
        if (schedule < 0).any() or (schedule @ self._demand > self._capacity).any():  # by a tolerance of the solver: the bound stands
            schedule = self._base.copy()
        return bound if np.isfinite(bound) else np.inf, schedule


class NearTable:
    """`NearKnapsack` of a small server: by a look at every schedule."""

    def __init__(self, demand: Int, capacity: Int, base: Int, most: Int) -> None:
        counts = np.indices(tuple(most + 1)).reshape(len(most), -1).T
        self._schedules: Int = np.ascontiguousarray(counts[(counts @ demand <= capacity).all(axis=1)])
        above = self._schedules - base
        self._parts = np.hstack([np.clip(above, 0, 1), np.maximum(above - 1, 0), np.minimum(above, 0)]).astype(np.float64)

    def solve(self, first: Array, further: Array, below: Array, gap: float, seconds: float | None) -> tuple[float, Int]:
        """The largest value, and the first schedule that has it."""
        values = self._parts @ np.concatenate([first, further, below])
        best = int(np.argmax(values))
        return float(values[best]), self._schedules[best]
