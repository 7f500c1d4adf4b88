"""A run with its batches and histograms, and what they hold at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.arrays import Bool, Int
from rota.decide import decider_of
from rota.model import System
from rota.model.workload import Chunk
from rota.policy import Custom, Policy
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.run import FleetRun
from rota.simulation.measured import About, Measured
from rota.simulation.run import Rates, Run
from rota.simulation.start import Start, begin_in
from rota.simulation.statistics import WARMUP, grows
from rota.simulation.tally import BUCKETS, PRESENT, Counts, joined

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Measuring"]

_ROWS = 128  # batches in a segment
_SEGMENTS = 32  # segments kept; when there are more, neighbours are joined, and so are their batches
_NUMBERS = 120_000  # batches in a segment times types, at most
_LARGEST_BATCH = 1 << 13  # to begin with
_LEFT_BEHIND = 0.02  # of a type's jobs: if more of them pile up along a line, it starves


class Growing(NamedTuple):
    """Which types have jobs that pile up (K,), and how many of these pile up per unit of time."""

    types: Bool
    growth: float


class Measuring:
    """A run with its batches and histograms.

    `finite`: the workload has an end, and every job of it counts. `poisson`: it is the system's own. `first_look`: after so many jobs there
    are enough batches for an interval.

    A job counts in the batch of its arrival. When all jobs to be counted have come, a finite workload is played until no job is left; an
    endless one goes on with jobs that do not count, until those that count are done.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        seed: int,
        jobs: int,
        *,
        finite: bool,
        poisson: bool,
        log_jobs: int,
        check: bool,
        first_look: int | None = None,
    ) -> None:
        K = len(system.names)
        self.system, self.policy, self.seed = system, policy, seed
        self.finite, self.poisson = finite, poisson
        batches = min(max(_NUMBERS // K // 2 * 2, 4), _ROWS)  # an even number
        self.workload_seed, policy_seed, self.initial_seed = np.random.SeedSequence(seed).spawn(3)
        batch_jobs = max(1, min(2 * (first_look or jobs) // (batches * _SEGMENTS), _LARGEST_BATCH))
        if isinstance(policy, FleetPolicy):
            # Closing a batch looks at all servers: it must not take more time than the jobs of the batch.
            least = min((policy.fleet.servers - 1) * K, (first_look or jobs) // 256)
            self.run: Run = FleetRun(policy, policy_seed, batch_jobs=max(batch_jobs, least), log_jobs=min(log_jobs, jobs), check=check)
        else:
            self.run = Run(
                system,
                decider_of(system, policy),
                policy_seed,
                batch_jobs=batch_jobs,
                log_jobs=min(log_jobs, jobs),
                check=check,
                compiled=policy.compiled if isinstance(policy, Custom) else None,
            )
        self.start: Start | None = None
        self.done = 0  # jobs that came and count
        self._fingerprint = 0
        self._segment = batches * self.run.batch_jobs
        self.segment_end = self._segment
        self._begun = 0  # batches closed before the segment that is open
        self._segments: list[tuple[int, Counts]] = []  # the same for each closed one, and what was counted in it
        self.unfinished = np.zeros(K, dtype=np.int64)
        self._rates: Rates | None = None
        self._growing: Growing | None = None

    def begin_in(self, start: Start) -> None:
        """Begins with jobs that are there; they do not count."""
        begin_in(self.run, start, self.initial_seed)
        self.start = start

    def feed(self, chunk: Chunk) -> None:
        """Jobs that count arrive."""
        self.run.feed(chunk)
        self.done += len(chunk.times)
        # A sum modulo 2⁶⁴ does not depend on how the jobs are cut into pieces.
        self._fingerprint += sum(int(column.view(np.uint64).sum()) for column in (chunk.times, chunk.sizes))
        if self.done == self.segment_end:
            self._segments.append((self._begun, self.run.take_histogram()))
            if len(self._segments) > _SEGMENTS and len(self._segments) % 2 == 0:
                self._join()
            self._begun, self.segment_end = self.done // self.run.batch_jobs, self.segment_end + self._segment

    def _join(self) -> None:
        """Joins neighbouring segments and batches, and makes the next ones twice as long."""
        self.run.join_batches()
        pairs = zip(self._segments[::2], self._segments[1::2], strict=True)
        self._segments = [(before // 2, joined(first, second)) for (before, first), (_, second) in pairs]
        self._segment *= 2

    # ------------------------------------------------------------------------------------------------------------ the end

    def stop_counting(self) -> bool:
        """No more jobs count. What is measured over time ends here, for a workload without end. Returns whether no type is growing."""
        self.run.stop_counting()
        self.run.close_batch()
        self._growing, self._rates = self.growing(), self._measured_rates()
        return not self._growing.types.any()

    def play_to_the_end(self) -> None:
        """No more jobs come; those that are here run to their end."""
        self.run.stop_counting()
        self._growing = self.growing()  # while jobs still came
        self.drain()
        self.run.close_batch()
        self._rates = self._measured_rates()

    def drain(self) -> None:
        """Lets the jobs that are here run to their end."""
        nothing = np.empty(0)
        self.run.feed(Chunk(nothing, np.empty(0, dtype=np.int64), nothing, nothing), drain=True)

    @property
    def all_done(self) -> bool:
        """Whether all jobs that count have left."""
        return self.run.oldest >= self.run.arrived

    def give_up(self) -> None:
        """Counts the jobs that are not done with the time they have been here."""
        if not self.all_done:
            self.unfinished = self.run.count_unfinished()

    def _measured_rates(self) -> Rates:
        return self.run.rates(self.policy)

    # ------------------------------------------------------------------------------------------------------------ answers

    def done_any(self) -> bool:
        """Whether anything can be reported."""
        return float(self.run.batches()[0][:, :, 0].sum()) > 0

    def growing(self) -> Growing:
        """Which types have jobs that pile up, all if the number of jobs present does, and how fast."""
        _, areas, spans = self.run.batches()
        lengths = spans[:, 1] - spans[:, 0]
        present = np.divide(areas[:, PRESENT], lengths[:, None], out=np.zeros(areas[:, PRESENT].shape), where=lengths[:, None] > 0)
        arrived, here = self.run.arrived_by_type, self.run.present_by_type
        types = np.array([here[i] > _LEFT_BEHIND * arrived[i] and grows(present[:, i]) for i in range(len(here))])
        if grows(present.sum(axis=1)):  # of a part of the types it may show only in their sum
            types |= ~types.any()
        half, series = len(present) // 2, present[:, types].sum(axis=1)
        return Growing(types, float((series[-1] - series[half]) / (spans[-1, 1] - spans[half, 1])) if types.any() else 0.0)

    def measured(self, warmup: float | None) -> Measured:
        """What was measured so far, without the warm-up."""
        rows, areas, spans = self.run.batches()
        growing, growth = self._growing or self.growing()
        part = warmup if warmup is not None else 0.0 if self.finite else WARMUP
        cut = int(part * self.done) // self.run.batch_jobs if part else 0
        cut = min(cut, max(len(areas) - 1, 0))
        return Measured(
            jobs=self.done,
            left_out=cut * self.run.batch_jobs,
            rows=rows[cut:],
            areas=areas[cut:],
            lengths=np.diff(spans[cut:])[:, 0],
            growing=growing,
            growth=growth,
            unfinished=self.unfinished,
            arrived=self.run.arrived_by_type,
            histogram=self._histogram(cut),
            segments=self._response_histograms(cut),
            simulated_time=float(spans[-1, 1]) if len(spans) else self.run.now,
            rates=self._rates or self._measured_rates(),
            fingerprint=self._fingerprint,
            by_kind=self.run.by_kind(cut) if isinstance(self.run, FleetRun) else None,
        )

    def about(self) -> About:
        """What the run is of."""
        return About(self.system, self.policy, self.seed, self.finite, self.poisson, self.start, self._log_table())

    def _histogram(self, cut: int) -> Int:
        """The counts of the segments that begin after the warm-up; of the last one at least."""
        total = self.run.histogram.copy()  # of the segment that is open
        closed = [counts for before, counts in self._segments if before >= cut]
        if not closed and self._segments:
            closed = [self._segments[-1][1]]
        for places, counts in closed:
            total.flat[places] += counts
        return total

    def _response_histograms(self, cut: int) -> Int:
        """The histograms of the response time of all types (segments, BUCKETS)."""
        segments = [counts for before, counts in self._segments if before >= cut]
        kinds = self.run.histogram.shape[1]
        parts = np.zeros((len(segments) + 1, BUCKETS), dtype=np.int64)
        for part, (places, counts) in zip(parts, segments, strict=False):
            responses = places < kinds * BUCKETS  # the first of the three histograms
            np.add.at(part, places[responses] % BUCKETS, counts[responses])
        parts[-1] = self.run.histogram[0].sum(axis=0)  # of the segment that is open
        return parts

    def _log_table(self) -> pl.DataFrame | None:
        log = self.run.log
        if not log:
            return None
        import polars as pl

        entries = np.concatenate(log)
        kinds = pl.Series(entries[:, 1].astype(np.int64)).replace_strict(
            {0: "arrive", 1: "start", 2: "preempt", 3: "finish", 4: "send", 5: "return"}, return_dtype=pl.String
        )
        types = [self.system.names[int(i)] for i in entries[:, 2]]
        table = pl.DataFrame({"time": entries[:, 0], "event": kinds, "type": types, "job": entries[:, 3].astype(np.int64)})
        return table if entries.shape[1] == 4 else table.with_columns(server=pl.Series(entries[:, 4].astype(np.int64)))
