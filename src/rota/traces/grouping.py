"""Grouping the demands of a trace into few job types, with an account of what that costs.

Real logs hold thousands of distinct demands; a rota works well with about ten types. Three ways to reduce them, which can be combined:

1. round demands up to a grid, absolute (multiples of 0.001) or relative (powers of 1.001, counted from the capacity);
2. keep the types that come most often, or those that cover a part of the jobs or of the work; the others go into the kept type that
   encloses them with the least waste, or are left out;
3. or choose k new types such that the capacity lost by rounding up is least (`rota.traces.clustering`).

The *work* of a job is its size times the largest part of the server that it takes of any resource. The *capacity lost* of a resource is how
much more of it all jobs ask for after the grouping, Σ size · (type − demand), as a part of what they asked for before.
Where no capacity is known, the largest demand of each resource stands for it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rota.arrays import Array, Int
from rota.errors import BadSpec, Infeasible, Problem
from rota.traces.clustering import choose_types, sums
from rota.traces.trace import Trace

__all__ = ["Grouping", "LeftOut", "group_types", "round_up", "round_up_relative"]

_NEAR = 1e-12  # demands this close, relatively, are the same: 0.1 + 0.2 is on the grid of 0.1

NOTHING = "demands nothing"
TOO_LARGE = "larger than the server"
NOT_KEPT = "not among the kept types"
NOT_ENCLOSED = "enclosed by no kept type"


@dataclass(frozen=True)
class LeftOut:
    """Jobs that a grouping left out for one reason: how many, and their part of all jobs and of all work."""

    reason: str
    jobs: int
    job_share: float
    work_share: float


@dataclass(frozen=True, eq=False)
class Grouping:
    """A trace of few types, and what the grouping cost."""

    trace: Trace
    types_before: int  # distinct demands of jobs that occur
    moved_share: float  # part of the kept jobs whose demand was rounded up
    lost: dict[str, float]  # by resource: the additional demand of the kept jobs, as a part of what they asked for
    left_out: tuple[LeftOut, ...]

    @property
    def job_share_left_out(self) -> float:
        """Part of all jobs that is not in the new trace."""
        return sum(part.job_share for part in self.left_out)

    @property
    def work_share_left_out(self) -> float:
        """Part of all work that is not in the new trace."""
        return sum(part.work_share for part in self.left_out)

    def explain(self) -> str:
        """The account in words."""
        lost = ", ".join(f"{name} {part:.2%}" for name, part in self.lost.items())
        types = len(self.trace.names)
        lines = [
            f"{self.types_before:,} distinct demands became {types:,} type{'s' if types != 1 else ''}.",
            f"Rounding up moved {self.moved_share:.2%} of the jobs and costs additional demand: {lost}.",
        ]
        left = self.left_out
        out = [f"Left out: {part.jobs:,} jobs ({part.job_share:.2%}, {part.work_share:.2%} of the work), {part.reason}." for part in left]
        return "\n".join([*lines, *(out or ["No job was left out."])])


def group_types(
    trace: Trace,
    *,
    grid: float | None = None,
    relative_grid: float | None = None,
    top: int | None = None,
    cover: float | None = None,
    of: Literal["jobs", "work"] = "work",
    clusters: int | None = None,
    rest: Literal["leave", "enclose"] = "leave",
    capacity: ArrayLike | None = None,
) -> Grouping:
    """Groups the types of a trace; types with equal demands always become one.

    `grid` or `relative_grid` rounds demands up first. Then either `top` keeps this many of the most frequent types, or `cover` the most
    frequent ones (`of="work"`: those with most work) that hold this part of all, and `rest` says what happens to the others; or `clusters`
    chooses at most this many types that lose the least capacity; no job is left out. Jobs that demand nothing, or more than the server's
    `capacity` (the trace's, unless given), cannot be scheduled: they are left out. The new trace has the capacity that it was grouped for.
    """
    _check(grid, relative_grid, top, cover, of, clusters, rest)
    server = _server(trace, capacity)
    jobs = trace.per_type["jobs"].to_numpy().astype(np.float64)
    time = np.where(jobs > 0, jobs * trace.per_type["mean_size"].fill_null(0).to_numpy(), 0.0)  # how long all jobs of a type run
    unit = server if server is not None else np.where(trace.demand.max(axis=0) > 0, trace.demand.max(axis=0), 1.0)
    work = time * (trace.demand / unit).max(axis=1)

    rounded = trace.demand
    if grid is not None:
        rounded = round_up(rounded, grid)
    elif relative_grid is not None:
        rounded = unit * round_up_relative(rounded / unit, relative_grid)
    if server is not None:  # what fits before rounding still does
        rounded = np.where(trace.demand <= server * (1 + _NEAR), np.minimum(rounded, server), rounded)

    occurs = jobs > 0
    reason = np.where(rounded.any(axis=1), "", NOTHING).astype(object)
    if server is not None:
        reason[(rounded > server * (1 + _NEAR)).any(axis=1)] = TOO_LARGE
    usable = np.flatnonzero(occurs & (reason == ""))
    if len(usable) == 0:
        raise Infeasible("no job of the trace can be scheduled: every one demands nothing, or more than the server has")
    distinct, member = np.unique(rounded[usable], axis=0, return_inverse=True)
    member = member.reshape(-1)
    if clusters is not None:
        found = choose_types(distinct, sums(member, time[usable]), clusters, unit)
        types, place = found.types, found.member
    else:
        measure = sums(member, (jobs if top is not None or of == "jobs" else work)[usable])
        types, place = _keep(distinct, measure, top, cover, rest, unit)

    new = np.full(len(jobs), -1)
    new[usable] = place[member]
    reason[usable[new[usable] < 0]] = NOT_KEPT if rest == "leave" else NOT_ENCLOSED
    return _account(replace(trace, capacity=server), types, new, reason, jobs, time, work)


def round_up(demand: Array, grid: float) -> Array:
    """Demands rounded up to multiples of `grid`; what is on the grid stays, in spite of the rounding error of 0.57 / 0.01."""
    steps = demand / grid
    steps = np.ceil(steps - _NEAR * np.maximum(steps, 1.0))
    per_unit = round(1 / grid)  # 3 / 10 is the decimal 0.3, which 3 · 0.1 is not
    rounded: Array = steps / per_unit if per_unit > 0 and abs(per_unit * grid - 1) < _NEAR else steps * grid
    return rounded


def round_up_relative(demand: Array, step: float) -> Array:
    """Demands rounded up to powers of 1 + step; 0 stays 0 and 1 stays 1."""
    positive = demand > 0
    power = np.ceil(np.log(np.where(positive, demand, 1.0)) / np.log1p(step) - _NEAR / np.log1p(step))
    return np.where(positive, np.exp(power * np.log1p(step)), 0.0)


def _check(
    grid: float | None, relative_grid: float | None, top: int | None, cover: float | None, of: str, clusters: int | None, rest: str
) -> None:
    problems = [
        Problem(name, "must be positive and finite", value)
        for name, value in (("grid", grid), ("relative_grid", relative_grid))
        if value is not None and not (0 < value < np.inf)
    ]
    for name, number in (("top", top), ("clusters", clusters)):
        if number is not None and number < 1:
            problems.append(Problem(name, "must be at least 1", number))
    if cover is not None and not 0 < cover <= 1:
        problems.append(Problem("cover", "must be above 0 and at most 1", cover))
    if grid is not None and relative_grid is not None:
        problems.append(Problem("grid", "give either grid or relative_grid, and only one of them"))
    if sum(value is not None for value in (top, cover, clusters)) > 1:
        problems.append(Problem("top", "give only one of top, cover and clusters"))
    if of not in ("jobs", "work"):
        problems.append(Problem("of", 'must be "jobs" or "work"', of))
    if rest not in ("leave", "enclose"):
        problems.append(Problem("rest", 'must be "leave" or "enclose"', rest))
    if problems:
        raise BadSpec(problems)


def _server(trace: Trace, capacity: ArrayLike | None) -> Array | None:
    """The capacity to group for, if one is known."""
    chosen = capacity if capacity is not None else trace.capacity
    if chosen is None:
        return None
    server = np.asarray(chosen, dtype=np.float64)
    if server.shape != (len(trace.resources),) or not (np.isfinite(server).all() and (server > 0).all()):
        raise BadSpec([Problem("capacity", f"needs {len(trace.resources)} positive numbers: {', '.join(trace.resources)}", chosen)])
    return server


def _keep(distinct: Array, measure: Array, top: int | None, cover: float | None, rest: str, unit: Array) -> tuple[Array, Int]:
    """The kept types, largest measure first, and for each demand its place among them (−1: none)."""
    order = np.argsort(-measure, kind="stable")
    if cover is not None:
        covered = np.cumsum(measure[order])
        top = int(np.searchsorted(covered, cover * covered[-1] * (1 - _NEAR))) + 1
    kept = order[:top]
    place = np.full(len(distinct), -1)
    place[kept] = np.arange(len(kept))
    if rest == "enclose":
        price = (distinct[kept] / unit).sum(axis=1)
        others = np.flatnonzero(place < 0)
        for a in np.argsort(-price, kind="stable"):  # descending price: the cheapest that encloses a demand is assigned last and stays
            place[others[(distinct[others] <= distinct[kept[a]]).all(axis=1)]] = a
    return distinct[kept], place


def _account(trace: Trace, types: Array, new: Int, reason: Array, jobs: Array, time: Array, work: Array) -> Grouping:
    """The new trace, its types in order of their jobs, and what was left out and lost."""
    count = sums(new[new >= 0], jobs[new >= 0])
    order = np.argsort(-count, kind="stable")
    rank = np.append(np.argsort(order), -1)  # rank[-1] = −1: left out stays left out
    types, new = types[order], rank[new]
    kept = new >= 0
    rise = np.zeros_like(trace.demand)
    rise[kept] = np.maximum(types[new[kept]] - trace.demand[kept], 0.0)
    moved = (rise > _NEAR * np.maximum(trace.demand, 1e-300)).any(axis=1)
    asked = time[kept] @ trace.demand[kept]
    lost = np.divide(time @ rise, asked, out=np.zeros_like(asked), where=asked > 0)
    left_out = tuple(
        LeftOut(why, int(jobs[out].sum()), float(jobs[out].sum() / jobs.sum()), float(work[out].sum() / max(work.sum(), 1e-300)))
        for why in (NOTHING, TOO_LARGE, NOT_KEPT, NOT_ENCLOSED)
        if (out := (reason == why) & ~kept & (jobs > 0)).any()
    )
    before = len(np.unique(trace.demand[jobs > 0], axis=0))
    share = float(jobs[kept & moved].sum() / jobs[kept].sum())
    grouped = replace(trace, jobs=_renumber(trace.jobs, new), names=_names(trace, types, new, jobs), demand=types)
    found = Grouping(grouped, before, share, dict(zip(trace.resources, map(float, lost), strict=True)), left_out)
    account = {
        "types_before": found.types_before,
        "moved_share": found.moved_share,
        "lost": found.lost,
        "left_out": [asdict(part) for part in left_out],
    }
    # The time that the log covers does not shrink because jobs are left out at its ends.
    about = {**trace.about, "period": trace.span, "grouping": [*trace.about.get("grouping", []), account]}
    return replace(found, trace=replace(grouped, about=about))


def _renumber(jobs: pl.LazyFrame, new: Int) -> pl.LazyFrame:
    """The jobs with their new types, without those that have none. Morsel by morsel: `replace_strict` would hold all jobs at once."""
    table = pl.Series(new.astype(np.int32))
    look_up = pl.col("type").map_batches(table.gather, return_dtype=pl.Int32, is_elementwise=True)
    jobs = jobs.with_columns(type=look_up)
    return jobs if (new >= 0).all() else jobs.filter(pl.col("type") >= 0)


def _names(trace: Trace, types: Array, new: Int, jobs: Array) -> tuple[str, ...]:
    """The old names if every new type has the demand of an old one; else type1, type2, …"""
    unnamed = len(trace.names)
    namesake = np.full(len(types), unnamed)
    near = np.abs(trace.demand - types[new]) <= _NEAR * types[new]
    same = np.flatnonzero((new >= 0) & near.all(axis=1) & (jobs > 0))
    same = same[np.argsort(jobs[same], kind="stable")]
    namesake[new[same]] = same  # the last one, with most jobs, stays
    if (namesake == unnamed).any():
        return tuple(f"type{i + 1}" for i in range(len(types)))
    return tuple(trace.names[i] for i in namesake)
