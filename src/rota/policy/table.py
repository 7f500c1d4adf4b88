"""A policy as a table: the decision for every number of jobs present, up to a truncation. `rota.optimal_policy` makes the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Int
from rota.display import html_lines, html_title
from rota.errors import BadSpec, Problem
from rota.policy.registry import Policy, Record, register

__all__ = ["Tabulated"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Tabulated(Policy):
    """The schedule for every number of jobs present, looked up in a table. Beyond the truncation the table is read at its edge.

    `schedules` (S, K); `truncation` (K,) the largest number of jobs present per type that the table has; `choice`: the number of the
    schedule to run. With preemption "full" it has an entry per jobs present, in lexicographic order. With preemption "none" it has S
    entries for each: what to run if schedule s runs now, which keeps all of s; entries that cannot come up are 0.
    """

    schedules: Int
    truncation: Int
    choice: Int
    preemption: Literal["full", "none"]
    names: tuple[str, ...] | None

    def __init__(
        self,
        schedules: ArrayLike,
        truncation: ArrayLike,
        choice: ArrayLike,
        preemption: Literal["full", "none"] = "full",
        names: Sequence[str] | None = None,
    ) -> None:
        u, N, table = _whole("schedules", schedules, 2), _whole("truncation", truncation, 1), _whole("choice", choice, 1)
        if preemption not in ("full", "none"):
            raise BadSpec([Problem("preemption", 'must be "full" or "none"', preemption)])
        if problems := _problems(u, N, table, preemption, names):
            raise BadSpec(problems)
        compact = table.astype(np.int16 if len(u) < 2**15 else np.int64)
        for array in (u, N, compact):
            array.flags.writeable = False
        for field, value in [
            ("schedules", u),
            ("truncation", N),
            ("choice", compact),
            ("preemption", preemption),
            ("names", None if names is None else tuple(names)),
        ]:
            object.__setattr__(self, field, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tabulated):
            return NotImplemented
        arrays = ("schedules", "truncation", "choice")
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
        return same and (self.preemption, self.names) == (other.preemption, other.names)

    def __hash__(self) -> int:
        return hash((self.preemption, self.names, tuple(self.truncation.tolist()), self.choice.tobytes()))

    def __repr__(self) -> str:
        return f"<Tabulated: {len(self.choice):,} decisions between {len(self.schedules)} schedules, preemption {self.preemption}>"

    def _repr_html_(self) -> str:
        return html_title("A table of decisions") + html_lines(repr(self)[1:-1])


def _whole(name: str, values: ArrayLike, ndim: int) -> Int:
    try:
        array = np.array(values)
    except ValueError:
        raise BadSpec([Problem(name, "must be an array of whole numbers")]) from None
    if array.ndim != ndim or array.size == 0 or not np.issubdtype(array.dtype, np.integer) or array.min() < 0:
        raise BadSpec([Problem(name, f"must be whole numbers, 0 or more, in {ndim} dimension{'s' if ndim > 1 else ''}")])
    return cast("Int", array.astype(np.int64))


def _problems(u: Int, N: Int, table: Int, preemption: str, names: Sequence[str] | None) -> list[Problem]:
    S, K = u.shape
    if len(N) != K:
        return [Problem("truncation", f"needs {K} numbers, as the schedules have {K} types", N.tolist())]
    if names is not None and (len(names) != K or len(set(names)) != K):
        return [Problem("names", f"must be {K} different names, as the schedules have {K} types", list(names))]
    if (u.max(axis=0) > N).any():
        return [Problem("truncation", f"must hold the jobs of every schedule: at least {u.max(axis=0).tolist()}", N.tolist())]
    size = int(np.prod(N + 1)) * (S if preemption == "none" else 1)
    if len(table) != size:
        return [Problem("choice", f"must have {size:,} entries: one for all jobs present{' and schedule' * (size > len(N))}", len(table))]
    if table.max() >= S:
        return [Problem("choice", f"must be numbers of schedules, below {S}", int(table.max()))]
    chosen = u[table].reshape(*(N + 1).tolist(), -1, K)
    for i in range(K):
        present = np.arange(N[i] + 1).reshape([-1 if axis == i else 1 for axis in range(K + 1)])
        if (chosen[..., i] > present).any():
            return [Problem("choice", f"has schedules with more jobs of type {i + 1} than are present")]
    if preemption == "none":
        for s in range(S):
            possible: Any = (*(slice(count, None) for count in u[s].tolist()), s)  # the entries that can come up: u ≤ q
            if (chosen[possible] < u[s]).any():
                return [Problem("choice", "must be a schedule that keeps what runs, without preemption", u[s].tolist())]
    return []


def _register(preemption: Literal["full", "none"], name: str, title: str, colour: str, mark: str) -> None:
    register(
        Record(
            name=name,
            policy=Tabulated,
            rule="rota.decide.table:TABLE_RULE",
            title=title,
            preemption=preemption,
            throughput_optimal=False,
            colour=colour,
            mark=mark,
            where={"preemption": preemption},
            kind="table",
            codec="rota.policy.table_codec:TABLE_CODEC",
            designed=True,
            looks_at="lengths",
        )
    )


_register("full", "table", "a table of decisions", "#322303", "diamond")
_register("none", "table-np", "a table of decisions without preemption", "#240A06", "diamond")
