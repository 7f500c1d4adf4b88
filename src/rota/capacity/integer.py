"""A linear program with whole numbers: min c·x s.t. A x ≤ b, x ≥ low, some x whole. `scipy.optimize.milp` would do, but the HiGHS that it
brings prints to standard output at times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rota.arrays import Array
from rota.capacity.solver import _quiet

__all__ = ["WholeProgram", "minimize_whole"]


class WholeProgram(NamedTuple):
    """The best x that was found, None if there is none; and a proved lower bound on c·x."""

    x: Array | None
    lower_bound: float


def minimize_whole(cost: Array, table: Array, right: Array, low: Array, whole: Array, *, gap: float, seconds: float) -> WholeProgram:
    """Solves the program within a relative `gap`, or until time is over."""
    import highspy
    from scipy.sparse import csc_matrix

    columns = csc_matrix(table)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(right)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost.tolist(), low.tolist(), [np.inf] * len(cost)
    model.row_lower_, model.row_upper_ = [-np.inf] * len(right), right.tolist()
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    model.integrality_ = [kinds[bool(each)] for each in whole]
    solver = _quiet()
    solver.setOptionValue("mip_rel_gap", gap)
    solver.setOptionValue("time_limit", max(seconds, 0.01))
    solver.passModel(model)
    solver.run()
    info = solver.getInfo()
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else -np.inf
    return WholeProgram(np.array(solver.getSolution().col_value) if feasible else None, bound)
