"""`Trace`: a log of real or made jobs, each with an arrival time, a size and a type; and the table of types with their demands.

The jobs are a lazy table (`arrival`, `size`, `type` and, where known, `estimate`), sorted by arrival: nothing is read before it is needed,
and a month of Borg streams through in chunks. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import System
from rota.model.workload import Chunk

__all__ = ["COLUMNS", "Looped", "Trace"]

COLUMNS = {"arrival": pl.Float64, "size": pl.Float64, "type": pl.Int32}  # and, where known, "estimate": pl.Float64
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in order of arrival, and the types they belong to. `capacity` is that of one machine, where the log tells it."""

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

    @cached_property
    def _extent(self) -> dict[str, Any]:
        arrival = pl.col("arrival")
        row = self.jobs.select(jobs=pl.len(), begin=arrival.min(), end=arrival.max()).collect(engine="streaming").row(0, named=True)
        if row["jobs"] == 0:
            raise Infeasible("the trace has no jobs")
        return row

    @cached_property
    def per_type(self) -> pl.DataFrame:
        """A row per type: `type`, `jobs`, `mean_size`, `cv` of the sizes (0 jobs: not a number)."""
        size = pl.col("size")
        found = (
            self.jobs.group_by("type")
            .agg(jobs=pl.len(), mean_size=size.mean(), cv=size.std(ddof=0) / size.mean())
            .collect(engine="streaming")
        )
        every = pl.DataFrame({"type": np.arange(len(self.names), dtype=np.int32)})
        return every.join(found, on="type", how="left").with_columns(pl.col("jobs").fill_null(0)).sort("type")

    def __repr__(self) -> str:
        return f"<Trace of {len(self):,} jobs in {self.span:,.0f} s, {len(self.names):,} types of {', '.join(self.resources)}>"

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

    # ------------------------------------------------------------------------------------------------------ as a workload

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs in order of arrival, from time 0; the system's types are the trace's."""
        self._check_types(system)
        begin = self.begin
        for part in self.jobs.collect_batches(chunk_size=_CHUNK, maintain_order=True):
            sizes = part["size"].to_numpy()
            estimates = part["estimate"].to_numpy() if "estimate" in part.columns else sizes
            yield Chunk(part["arrival"].to_numpy() - begin, part["type"].cast(pl.Int64).to_numpy(), sizes, estimates)

    def looped(self, times: int) -> Looped:
        """The trace again and again, one `span` apart."""
        if times < 1:
            raise BadSpec([Problem("loops", "must be at least 1", times)])
        return Looped(self, times)

    def _check_types(self, system: System) -> None:
        if system.names != self.names:
            raise BadSpec(
                [Problem("workload", "the trace's types are not the system's: use trace.system(…), or group both alike", len(self.names))]
            )


@dataclass(frozen=True, eq=False)
class Looped:
    """A trace played several times over."""

    trace: Trace
    times: int

    def __len__(self) -> int:
        return self.times * len(self.trace)

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs of all loops, in order of arrival."""
        trace = self.trace if self.times == 1 or len(self.trace) > 20_000_000 else self.trace.in_memory()
        for loop in range(self.times):
            for chunk in trace.chunks(system, seed):
                yield chunk._replace(times=chunk.times + loop * self.trace.span)


def _uniform(row: pl.Expr, seed: int) -> pl.Expr:
    """A number in [0, 1) from a row's position: SplitMix64 (Steele, Lea, Flood 2014), whose arithmetic modulo 2⁶⁴ is that of UInt64."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    z = row.cast(pl.UInt64) * pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64) + pl.lit(int(start), dtype=pl.UInt64)
    z = (z ^ (z // (1 << 30))) * pl.lit(0xBF58476D1CE4E5B9, dtype=pl.UInt64)
    z = (z ^ (z // (1 << 27))) * pl.lit(0x94D049BB133111EB, dtype=pl.UInt64)
    return ((z ^ (z // (1 << 31))) // (1 << 11)).cast(pl.Float64) / float(1 << 53)
