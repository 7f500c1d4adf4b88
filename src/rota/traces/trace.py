"""`Trace`: a log of real or made jobs, each with an arrival time, a size and a type; and the table of types with their demands.

The jobs are a lazy table (`arrival`, `size`, `type` and, where known, `estimate`), sorted by arrival: nothing is read before it is needed,
and a month of Borg streams through in chunks. Times are in seconds, except for a log of `rota serve`, which uses the unit of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rota.arguments import whole
from rota.arrays import Array, Int
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Fleet, System
from rota.model.workload import Chunk
from rota.traces.units import warn_of_units

if TYPE_CHECKING:
    from rota.traces.machines import Machines

__all__ = ["COLUMNS", "Looped", "Trace"]

COLUMNS = {"arrival": pl.Float64, "size": pl.Float64, "type": pl.Int32}  # and, where known, "estimate": pl.Float64
_CHUNK = 1 << 18
_IN_MEMORY = 20_000_000  # jobs of a looped trace that are kept from one loop to the next


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in order of arrival, and the types they belong to. `capacity` is that of one machine, where the log gives it."""

    fixed: ClassVar[bool] = True  # the same jobs for every seed
    jobs: pl.LazyFrame
    names: tuple[str, ...]  # (K,)
    resources: tuple[str, ...]  # (R,)
    demand: Array  # (K, R)
    capacity: Array | None = None  # (R,)
    about: dict[str, Any] = field(default_factory=dict)  # where it came from and what was left out on the way

    def __post_init__(self) -> None:
        demand = np.array(self.demand, dtype=np.float64).reshape(len(self.names), len(self.resources))
        demand.flags.writeable = False
        object.__setattr__(self, "demand", demand)

    # ------------------------------------------------------------------------------------------------------ what it is

    def __len__(self) -> int:
        return int(self._extent["jobs"])

    @property
    def begin(self) -> float:
        """The first arrival."""
        return float(self._extent["begin"])

    @property
    def end(self) -> float:
        """The last arrival."""
        return float(self._extent["end"])

    @property
    def span(self) -> float:
        """The time that the log covers: the `period` it was made with, else from the first arrival to the last and one mean gap."""
        if "period" in self.about:
            return float(self.about["period"])
        return (self.end - self.begin) * (len(self) / max(len(self) - 1, 1))

    @property
    def unit_s(self) -> float | None:
        """Seconds in a unit of the trace's times, if it is known: it came from a log."""
        if "time_unit_s" in self.about:
            return float(self.about["time_unit_s"])
        return 1.0 if "import" in self.about else None

    @cached_property
    def _extent(self) -> dict[str, Any]:
        arrival = pl.col("arrival")
        row = self.jobs.select(jobs=pl.len(), begin=arrival.min(), end=arrival.max()).collect(engine="streaming").row(0, named=True)
        if row["jobs"] == 0:
            raise Infeasible("the trace has no jobs, or none is left of it")
        return row

    @cached_property
    def per_type(self) -> pl.DataFrame:
        """A row per type: `type`, `jobs`, `mean_size`, `cv` of the sizes (0 jobs: not a number)."""
        from rota.traces.sums import sums_by_type

        count, mean, deviation = sums_by_type(self.jobs, len(self.names))
        none = count == 0
        with np.errstate(invalid="ignore"):
            columns = {"mean_size": np.where(none, np.nan, mean), "cv": np.where(none, np.nan, deviation / mean)}
        every = pl.DataFrame({"type": np.arange(len(count), dtype=np.int32), "jobs": count, **columns})
        return every.with_columns(pl.col("mean_size", "cv").fill_nan(None))

    def __repr__(self) -> str:
        return f"<Trace of {len(self):,} jobs in {self.span:,.0f} s, {len(self.names):,} types of {', '.join(self.resources)}>"

    def _repr_html_(self) -> str:
        rows = []
        for row in self.per_type.sort("jobs", descending=True).iter_rows(named=True):
            demand = map(number, self.demand[row["type"]])
            rows.append((self.names[row["type"]], *demand, f"{row['jobs']:,}", number(row["mean_size"]), number(row["cv"], 3)))
        return html_title(repr(self)[1:-1]) + html_table(["", *self.resources, "jobs", "mean size (s)", "cv"], rows, most=10)

    # ------------------------------------------------------------------------------------------------------ parts of it

    def window(self, begin: float, end: float) -> Trace:
        """The jobs that arrive in [begin, end)."""
        if not begin < end:
            raise BadSpec([Problem("window", "must begin before it ends", (begin, end))])
        jobs = self.jobs.filter((pl.col("arrival") >= begin) & (pl.col("arrival") < end))
        return replace(self, jobs=jobs, about={**self.about, "period": end - begin})

    def thinned(self, share: float, seed: int = 0) -> Trace:
        """Each job kept with this probability, independently of all others (how the paper brings a cluster down to one server)."""
        if not 0 < share <= 1:
            raise BadSpec([Problem("share", "must be above 0 and at most 1", share)])
        if share == 1:
            return self
        jobs = self.jobs.with_row_index("row").filter(_uniform(pl.col("row"), seed) < share).drop("row")
        return replace(self, jobs=jobs, about={**self.about, "period": self.span, "thinned": share})

    def stretched(self, factor: float) -> Trace:
        """All arrival times multiplied by a factor: above 1 the load falls; sizes stay."""
        if not (factor > 0 and np.isfinite(factor)):
            raise BadSpec([Problem("factor", "must be positive and finite", factor)])
        return replace(self, jobs=self.jobs.with_columns(pl.col("arrival") * factor), about={**self.about, "period": self.span * factor})

    def without_long(self, limit: float) -> Trace:
        """Without the jobs longer than a limit (the paper leaves out those above 2e5 s)."""
        return replace(self, jobs=self.jobs.filter(pl.col("size") <= limit), about={**self.about, "period": self.span})

    def in_memory(self) -> Trace:
        """The same trace with its jobs read once and kept: for many runs of a small trace."""
        return replace(self, jobs=self.jobs.collect(engine="streaming").lazy())

    # ------------------------------------------------------------------------------------------------------ fewer types, a system

    def top_types(self, k: int, rest: Literal["leave", "enclose"] = "leave", grid: float | None = None) -> Trace:
        """The k most frequent types; the other jobs are left out, or put into a kept type that encloses them. `about` has the account."""
        return self.grouped(top=k, rest=rest, grid=grid)

    def grouped(self, **how: Any) -> Trace:
        """The same jobs in fewer types: `grouped(clusters=10)`; see `rota.traces.grouping.group_types`. `about` has the account."""
        from rota.traces.grouping import group_types

        return group_types(self, **how).trace

    def system(self, capacity: ArrayLike | None = None, **how: Any) -> System:
        """The system of these types, their rates and sizes: `system([1, 1], sizes="fitted")`; see `rota.traces.to_system`."""
        from rota.traces.to_system import to_system

        return to_system(self, capacity, **how)

    def scaled(self, load: float, **how: Any) -> tuple[Trace, System]:
        """This trace at a system load, and its system: `scaled(load=0.7, by="thinning", seed=1)`; see `rota.traces.to_system`."""
        from rota.traces.to_system import scaled_to

        return scaled_to(self, load, **how)

    def fleet(self, machines: Machines | str | Path, **how: Any) -> Fleet:
        """The fleet of these types on the machines of a list: `fleet("machines.csv", sizes="mean")`; see `rota.traces.to_fleet`."""
        from rota.traces.to_fleet import to_fleet

        return to_fleet(self, machines, **how)

    # ------------------------------------------------------------------------------------------------------ as a workload

    def chunks(self, system: System | Fleet, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs in order of arrival, from time 0, in the system's order of types and, where both are known, in its unit of time."""
        place, unit = self._places(system), self.units_in(system)
        begin = last = self.begin
        first = True
        for part in self.jobs.collect_batches(chunk_size=_CHUNK, maintain_order=True):
            arrivals, sizes, kinds = (part[name].to_numpy() for name in COLUMNS)
            self._check_jobs(last, arrivals, kinds, sizes)
            last = arrivals[-1] if len(arrivals) else last
            estimates = part["estimate"].to_numpy() if "estimate" in part.columns else sizes
            chunk = Chunk((arrivals - begin) * unit, place[kinds], sizes * unit, estimates * unit)
            if first and (self.unit_s is None or system.unit_s is None):
                warn_of_units(chunk, system, self.unit_s)
            first = False
            yield chunk

    def units_in(self, system: System | Fleet) -> float:
        """How many of the system's units of time one of the trace's is; 1 where one of the two is not known."""
        return 1.0 if self.unit_s is None or system.unit_s is None else self.unit_s / system.unit_s

    def looped(self, times: int) -> Looped:
        """The trace again and again, one `span` apart."""
        return Looped(self, whole("loops", times, 1))

    def _check_jobs(self, last: float, arrivals: Array, kinds: Int, sizes: Array) -> None:
        """Checks what holds for every log that Rota reads, but may not hold for a trace of your own."""
        if (np.diff(arrivals, prepend=last) < 0).any():
            raise BadSpec([Problem("trace", 'jobs must be sorted by arrival: use jobs.sort("arrival")')])
        if len(kinds) and not 0 <= kinds.min() <= kinds.max() < len(self.names):
            raise BadSpec([Problem("trace", f"types of jobs must be 0…{len(self.names) - 1}", (int(kinds.min()), int(kinds.max())))])
        if not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise BadSpec([Problem("trace", "sizes must be finite and at least 0", float(sizes[~(np.isfinite(sizes) & (sizes >= 0))][0]))])

    def check(self, system: System | Fleet) -> None:
        """Raises `BadSpec` unless the system has the types of the trace, in any order."""
        self._places(system)

    def _places(self, system: System | Fleet) -> Int:
        """Where the system has each type. Equal names are not enough: type1, type2, … are in every grouped trace."""
        difference = self._difference(system)
        if difference:
            way_out = "take the system made with it (rota trace scale, rota trace system, trace.system(…))"
            raise BadSpec([Problem("workload", f"is not of the system's types: {difference}; {way_out}")])
        return np.array([system.names.index(name) for name in self.names], dtype=np.int64)

    def _difference(self, system: System | Fleet) -> str:
        """The first thing in which the types of a system are not those of the trace, their order aside."""
        if set(system.resources) != set(self.resources):
            return f"the system's resources are {', '.join(system.resources)}, the trace's {', '.join(self.resources)}"
        if len(system.names) != len(self.names):
            return f"the system has {len(system.names):,} types, the trace {len(self.names):,}"
        demands = dict(zip(system.names, system.demand[:, [system.resources.index(name) for name in self.resources]].tolist(), strict=True))
        unknown = [name for name in system.names if name not in self.names]
        for name, demand in zip(self.names, self.demand.tolist(), strict=True):
            if name not in demands:
                return f"the system has '{unknown[0]}' where the trace has '{name}'"
            if not np.allclose(demands[name], demand, 1e-9, 0.0):
                return f"'{name}' demands {demands[name]} in the system and {demand} in the trace"
        return ""


@dataclass(frozen=True, eq=False)
class Looped:
    """A trace played several times over."""

    fixed: ClassVar[bool] = True
    trace: Trace
    times: int

    def __len__(self) -> int:
        return self.times * len(self.trace)

    def check(self, system: System | Fleet) -> None:
        """Raises `BadSpec` unless the system has the types of the trace."""
        self.trace.check(system)

    def chunks(self, system: System | Fleet, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs of all loops, in order of arrival. A trace that fits in memory is read once; many loops of a short one form a chunk."""
        jobs, span = len(self.trace), self.trace.span * self.trace.units_in(system)
        if self.times == 1 or jobs > _IN_MEMORY:
            for loop in range(self.times):
                for chunk in self.trace.chunks(system, seed):
                    yield chunk._replace(times=chunk.times + loop * span)
            return
        parts = list(self.trace.chunks(system, seed))
        together = max(1, _CHUNK // jobs)
        if together > 1:
            parts = [Chunk(*(np.concatenate(column) for column in zip(*parts, strict=True)))]
        for first in range(0, self.times, together):
            loops = np.arange(first, min(first + together, self.times))
            n = len(loops)
            for times, kinds, sizes, estimates in parts:
                yield Chunk((times + loops[:, None] * span).ravel(), np.tile(kinds, n), np.tile(sizes, n), np.tile(estimates, n))


def _uniform(row: pl.Expr, seed: int) -> pl.Expr:
    """A number in [0, 1) from a row's position: SplitMix64 (Steele, Lea, Flood 2014), whose arithmetic modulo 2⁶⁴ is that of UInt64."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    z = row.cast(pl.UInt64) * pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64) + pl.lit(int(start), dtype=pl.UInt64)
    z = (z ^ (z // (1 << 30))) * pl.lit(0xBF58476D1CE4E5B9, dtype=pl.UInt64)
    z = (z ^ (z // (1 << 27))) * pl.lit(0x94D049BB133111EB, dtype=pl.UInt64)
    return ((z ^ (z // (1 << 31))) // (1 << 11)).cast(pl.Float64) / float(1 << 53)
