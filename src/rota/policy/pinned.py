"""Servers of a fleet that each hold one schedule for good: the jobs of a type wait in one queue for the slots of all of them.

Nothing switches and nothing drains. Where a type runs at different speeds, it has a queue for each speed, and arriving jobs choose one of
them at random by `split`; kinds of servers on which it has the same speed share a queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array, Int
from rota.display import html_table, html_title, jobs_together
from rota.errors import BadSpec, Problem
from rota.model import Fleet

__all__ = ["Pinned", "PinnedQueue"]


@dataclass(frozen=True)
class PinnedQueue:
    """One queue of a type: the kinds of servers that it waits for, its slots there, and the part of the type's arrivals that it gets."""

    type: int
    kinds: tuple[int, ...]
    speed: float
    slots: int
    share: float


@dataclass(frozen=True, eq=False, init=False)
class Pinned:
    """`servers[j]` servers of the kind `kind[j]` hold the schedule `candidates[j]` (K,); the rest of a kind, if any, runs nothing.

    `split` (C, K): the part of each type that goes to each kind. Only its sums over kinds of the same speed matter.
    """

    kind: Int
    candidates: Int
    servers: Int
    split: Array

    def __init__(self, kind: ArrayLike, candidates: ArrayLike, servers: ArrayLike, split: ArrayLike) -> None:
        fields: dict[str, Int | Array] = {}
        for name, values, ndim in (("kind", kind, 1), ("candidates", candidates, 2), ("servers", servers, 1)):
            numbers = _numbers(name, values, ndim)
            if (numbers != np.round(numbers)).any() or (numbers < 0).any():
                raise BadSpec([Problem(name, "must be whole numbers, not negative", numbers.tolist())])
            fields[name] = numbers.astype(np.int64)
        fields["split"] = _numbers("split", split, 2)
        if not len(fields["kind"]) == len(fields["candidates"]) == len(fields["servers"]):
            raise BadSpec([Problem("candidates", "needs as many rows as kind and servers have entries", len(fields["candidates"]))])
        if fields["split"].shape[1] != fields["candidates"].shape[1]:
            raise BadSpec([Problem("split", "needs a column per type", fields["split"].shape)])
        if (fields["split"] < 0).any():
            raise BadSpec([Problem("split", "must not be negative", fields["split"].tolist())])
        for name, array in fields.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pinned):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)

    def __hash__(self) -> int:
        return hash((self.kind.tobytes(), self.candidates.tobytes(), self.servers.tobytes()))

    def queues(self, fleet: Fleet) -> tuple[PinnedQueue, ...]:
        """The queues of the types that arrive, by type and speed; raises `BadSpec` if this does not fit the fleet."""
        self.check(fleet)
        slots = np.zeros((len(fleet.kinds), len(fleet.names)), dtype=np.int64)
        np.add.at(slots, self.kind, self.servers[:, None] * self.candidates)
        runs = fleet.runs
        found = []
        for i in np.flatnonzero(fleet.arrival_rate > 0):
            total = float(self.split[:, i].sum())
            for speed in dict.fromkeys(fleet.speed[runs[:, i], i].tolist()):
                where = np.flatnonzero(runs[:, i] & (fleet.speed[:, i] == speed))
                share = float(self.split[where, i].sum()) / total if total > 0 else 0.0
                found.append(PinnedQueue(int(i), tuple(where.tolist()), float(speed), int(slots[where, i].sum()), share))
        return tuple(found)

    def check(self, fleet: Fleet) -> None:
        """Raises `BadSpec` unless the schedules fit the servers and there are enough of them."""
        from rota.capacity import fits

        C, K = len(fleet.kinds), len(fleet.names)
        if self.split.shape != (C, K) or (len(self.kind) and self.kind.max() >= C):
            raise BadSpec([Problem("pinned", f"is for another fleet: this one has {C} kinds and {K} types", self.split.shape)])
        runs = fleet.runs
        problems = []
        for c, kind in enumerate(fleet.kinds):
            rows = self.candidates[self.kind == c]
            if (rows[:, ~runs[c]] > 0).any() or (self.split[c, ~runs[c]] > 0).any():
                problems.append(Problem("pinned", "has a type on a kind on which it cannot run", kind))
            elif len(rows) and runs[c].any() and not np.all(fits(fleet.server(c), rows[:, runs[c]])):
                problems.append(Problem("pinned.candidates", "has a schedule that does not fit a server of its kind", kind))
            used = int(self.servers[self.kind == c].sum())
            if used > fleet.count[c]:
                problems.append(Problem("pinned.servers", f"uses more servers of kind {kind!r} than the {fleet.count[c]} there are", used))
        if problems:
            raise BadSpec(problems)

    def rows(self, fleet: Fleet) -> list[tuple[str, str, str]]:
        """In words: kind, servers, jobs together."""
        return [
            (fleet.kinds[c], f"{n:,}", jobs_together(row, fleet.names))
            for c, n, row in zip(self.kind, self.servers, self.candidates, strict=True)
        ]

    def __repr__(self) -> str:
        return f"<Pinned: {int(self.servers.sum())} servers hold {len(self.servers)} schedules>"

    def _repr_html_(self) -> str:
        rows = [(str(c), f"{n:,}", str(row.tolist())) for c, n, row in zip(self.kind, self.servers, self.candidates, strict=True)]
        return html_title("Pinned servers") + html_table(["kind", "servers", "schedule"], rows)


def _numbers(place: str, values: ArrayLike, ndim: int) -> Array:
    try:
        numbers: Array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem(place, "must be numbers in a regular shape", values)]) from None
    if numbers.ndim != ndim or not np.isfinite(numbers).all():
        raise BadSpec([Problem(place, f"must be finite numbers with {ndim} axes", numbers.shape)])
    return numbers
