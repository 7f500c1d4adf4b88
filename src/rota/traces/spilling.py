"""Where an import keeps what does not fit in memory: parquet files in a temporary directory.

- `EventStore`: events in no order come in, whole lifecycles go out. Events are dealt into parts by a hash of their key (group, member), so
  that all events of one instance meet in one part, and each part fits in memory.
- `JobStore`: jobs in no order come in, jobs sorted by arrival go out, with their types. Jobs are kept as sorted runs; the runs are then
  read side by side, one stretch of arrival times after the other, each of which fits in memory.

What fits in memory as a whole never touches the disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from rota.arrays import Array

__all__ = ["EventStore", "JobStore", "Limits"]

_ORDER = [
    "arrival",
    "group",
    "member",
]  # jobs that arrive at one instant: by their key, so the result does not depend on the way it was made


@dataclass(frozen=True)
class Limits:
    """How many rows may be in memory at a time: of events that wait to be dealt out, of a part of them, and of a stretch of jobs.

    Of events with many columns fewer: `event_bytes` of those that wait.
    """

    events: int = 4_000_000
    part: int = 6_000_000
    jobs: int = 4_000_000
    event_bytes: int = 1 << 28


class EventStore:
    """Events, to be handed out again in parts that hold whole lifecycles."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self._directory, self._limits = directory, limits
        self._held: list[pl.DataFrame] = []
        self._rows = self._bytes = self._seen = self._spills = 0
        self.parts = 1

    def add(self, events: pl.DataFrame, share_read: float) -> None:
        """Takes events; `share_read` of the input was read by now, from which the number of parts is estimated."""
        self._held.append(events)
        self._rows += events.height
        self._seen += events.height
        self._bytes += int(events.estimated_size())
        if self._rows > self._limits.events or self._bytes > self._limits.event_bytes:
            if not self._spills:
                expected = self._seen / max(share_read, 1e-6)
                part = self._limits.part * self._rows / max(self._rows, self._limits.events)  # smaller in the same proportion
                self.parts = min(1024, int(1.2 * expected / part) + 1)
            self._spill()

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The parts, one after the other."""
        if not self._spills:
            if self._held:
                yield pl.concat(self._held)
            return
        if self._held:
            self._spill()
        for part in range(self.parts):
            files = sorted(self._directory.glob(f"events-{part}-*.parquet"))
            if files:
                yield pl.read_parquet(files)
            for file in files:
                file.unlink()

    def _spill(self) -> None:
        events = pl.concat(self._held)
        dealt = events.with_columns(part=(pl.col("group").hash(1) ^ pl.col("member").hash(2)) % self.parts)
        for (part,), some in dealt.partition_by("part", as_dict=True, include_key=False).items():
            some.write_parquet(self._directory / f"events-{part}-{self._spills}.parquet", compression="lz4", statistics=False)
        self._held, self._rows, self._bytes = [], 0, 0
        self._spills += 1


class JobStore:
    """Jobs with their demands, to be handed out sorted by arrival; and the table of the distinct demands, which are the types."""

    def __init__(self, directory: Path, limits: Limits, key: Sequence[str], types: pl.DataFrame | None = None) -> None:
        """`types`: the keys of all types there are, in an order to be kept; where None, types are what appears."""
        self._directory, self._limits, self._key = directory, limits, list(key)
        self._types: pl.DataFrame | None = None  # the key, `code` (in order of appearance) and `jobs`
        self._given = types is not None
        if types is not None:
            none = pl.lit(0, dtype=pl.Int64)
            self._types = types.select(*self._key, jobs=none, code=pl.int_range(pl.len(), dtype=pl.Int32))
        self._held: list[pl.DataFrame] = []
        self._runs: list[Path] = []
        self._rows = 0
        self._marks: list[Array] = []  # arrivals at even steps through every run: where to cut the stretches
        self.jobs = 0

    def add(self, jobs: pl.DataFrame) -> None:
        """Takes jobs: `arrival`, `size`, perhaps `estimate`, the columns of the key, `group`, `member`."""
        if not jobs.height:
            return
        self._held.append(self._coded(jobs))
        self._rows += jobs.height
        self.jobs += jobs.height
        if self._rows > self._limits.jobs:
            self._spill()

    def types(self) -> pl.DataFrame:
        """The types as given, or most frequent first, ties by their demand: the key, `jobs` and `code`, the number they have had so far."""
        assert self._types is not None, "no jobs, no types"
        if self._given:
            return self._types.sort("code")
        return self._types.sort("jobs", *self._key, descending=[True, *(False for _ in self._key)])

    def sorted_jobs(self) -> Iterator[pl.DataFrame]:
        """The jobs in order of arrival, in stretches; `type` counts through `types()`."""
        order = np.empty(self.types().height, dtype=np.int32)
        order[self.types()["code"].to_numpy()] = np.arange(len(order), dtype=np.int32)
        for part in self._stretches():
            ranked = part.sort(_ORDER)
            yield ranked.with_columns(type=pl.Series(order[ranked["code"].to_numpy()])).drop("code", "group", "member")

    def _stretches(self) -> Iterator[pl.DataFrame]:
        if not self._runs:
            yield pl.concat(self._held)
            return
        if self._held:
            self._spill()
        marks = np.sort(np.concatenate(self._marks))
        wanted = -(-self.jobs // self._limits.jobs)
        inner = np.unique(marks[np.linspace(0, len(marks) - 1, wanted + 1).astype(int)[1:-1]])
        cuts = [-np.inf, *inner.tolist(), np.inf]
        runs = pl.scan_parquet(self._runs)
        for low, high in pairwise(cuts):
            yield runs.filter((pl.col("arrival") >= low) & (pl.col("arrival") < high)).collect()

    def _coded(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """The jobs with the code of their type in place of its key; new types are added."""
        counts = jobs.group_by(self._key).agg(jobs=pl.len().cast(pl.Int64))
        if self._types is None:
            self._types = counts.with_columns(code=pl.int_range(pl.len(), dtype=pl.Int32))
        else:
            known = self._types.join(counts, on=self._key, how="left", suffix="_more", maintain_order="left")
            new = counts.join(self._types, on=self._key, how="anti")
            self._types = pl.concat(
                [
                    known.with_columns(jobs=pl.col("jobs") + pl.col("jobs_more").fill_null(0)).drop("jobs_more"),
                    new.with_columns(code=pl.int_range(known.height, known.height + new.height, dtype=pl.Int32, eager=True)),
                ],
                how="diagonal",
            )
        return jobs.join(self._types.drop("jobs"), on=self._key, how="left").drop(self._key)

    def _spill(self) -> None:
        run = pl.concat(self._held).sort(_ORDER)
        file = self._directory / f"jobs-{len(self._runs)}.parquet"
        run.write_parquet(file, compression="lz4", row_group_size=1 << 16, statistics=True)
        self._runs.append(file)
        self._marks.append(run["arrival"].to_numpy()[:: max(1, self._limits.jobs // 1024)])
        self._held, self._rows = [], 0
