"""A run with its batches and histograms, and the `Result` that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.arrays import Array, Bool, Int
from rota.decide import decider_of, describe
from rota.decide.state import SWITCHES
from rota.model import System
from rota.model.workload import Chunk
from rota.policy import MSR, Custom, Policy
from rota.process import build_process
from rota.simulation.result import Result
from rota.simulation.run import Run
from rota.simulation.start import Start, begin_in
from rota.simulation.statistics import QUANTILES, WARMUP, effective_jobs, grows, quantile_interval, quantiles, ratio_interval
from rota.simulation.tally import BUCKETS, COUNT, PRESENT, RESPONSE, SERVED, SLOWDOWN, SQUARE, SWITCHED, WAITING, Counts, joined

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FEWEST", "Measuring", "too_little"]

FEWEST = 100  # jobs of a type, for a mean of them
_ROWS = 128  # batches in a segment
_SEGMENTS = 32  # segments kept; when there are more, neighbours are joined, and so are their batches
_NUMBERS = 120_000  # batches in a segment times types, at most
_LARGEST_BATCH = 1 << 13  # to begin with
_UNKNOWN_PART = 0.05  # of the jobs present that may be of types of which too little is known
_LEFT_BEHIND = 0.02  # of a type's jobs: if more of them pile up along a line, it starves


def too_little(unknown: Bool, counted: Array, present: Array) -> bool:
    """Whether there is no mean over all: one unknown type, or all together, hold too large a part of the jobs present (K,)."""
    parts = present * unknown / max(float(present.sum()), 1e-300)
    return bool(parts.max() > _UNKNOWN_PART or (parts.sum() > _UNKNOWN_PART and counted[unknown].sum() < FEWEST))


class Growing(NamedTuple):
    """Which types have jobs that pile up (K,), and how many of these pile up per unit of time."""

    types: Bool
    growth: float


class Measuring:
    """A run with its batches and histograms.

    `finite`: the workload has an end, and every job of it counts. `poisson`: it is the system's own.

    A job counts in the batch of its arrival. When all jobs to be counted have come, a finite workload is played until no job is left; an
    endless one goes on with jobs that do not count, until those that count are done.
    """

    def __init__(
        self, system: System, policy: Policy, seed: int, jobs: int, *, finite: bool, poisson: bool, log_jobs: int, check: bool
    ) -> None:
        K = len(system.names)
        self.system, self.policy, self.seed = system, policy, seed
        self.finite, self.poisson = finite, poisson
        batches = min(max(_NUMBERS // K // 2 * 2, 4), _ROWS)  # an even number
        self.workload_seed, policy_seed, self.initial_seed = np.random.SeedSequence(seed).spawn(3)
        self.run = Run(
            system,
            decider_of(system, policy),
            policy_seed,
            batch_jobs=max(1, min(2 * jobs // (batches * _SEGMENTS), _LARGEST_BATCH)),
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
        self._rates: tuple[float, float, float, int, int] | None = None
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

    def _measured_rates(self) -> tuple[float, float, float, int, int]:
        run, now = self.run, max(self.run.now, 1e-300)
        preemptions, switches = float(run.tally.preemptions.sum() / now), float(run.state.mode[SWITCHES] / now)
        unproved = describe(self.policy, run.state).unproved
        return preemptions, switches, float(run.tally.times[SWITCHED] / now), unproved, run.events

    # ------------------------------------------------------------------------------------------------------------ answers

    def ready(self) -> bool:
        """Whether there is enough for an interval."""
        rows, areas, _ = self.run.batches()
        counts = rows[:, :, COUNT].sum(axis=0)
        return len(areas) >= 40 and bool((counts[self.system.arrival_rate > 0] >= 2 * FEWEST).all())

    def done_any(self) -> bool:
        """Whether anything can be reported."""
        return float(self.run.batches()[0][:, :, 0].sum()) > 0

    def growing(self) -> Growing:
        """Which types have jobs that pile up, all if the number of jobs present does, and how fast."""
        _, areas, spans = self.run.batches()
        lengths = spans[:, 1] - spans[:, 0]
        present = np.divide(areas[:, PRESENT], lengths[:, None], out=np.zeros(areas[:, PRESENT].shape), where=lengths[:, None] > 0)
        arrived, here = self.run.tally.arrived, self.run.state.system
        types = np.array([here[i] > _LEFT_BEHIND * arrived[i] and grows(present[:, i]) for i in range(len(here))])
        if grows(present.sum(axis=1)):  # of a part of the types it may show only in their sum
            types |= ~types.any()
        half, series = len(present) // 2, present[:, types].sum(axis=1)
        return Growing(types, float((series[-1] - series[half]) / (spans[-1, 1] - spans[half, 1])) if types.any() else 0.0)

    def result(self, warmup: float | None, elapsed: float, *, interrupted: bool = False, reached: bool | None = None) -> Result:
        """What was measured so far."""
        system, K = self.system, len(self.system.names)
        all_rows, all_areas, all_spans = self.run.batches()
        growing, growth = self._growing or self.growing()
        part = warmup if warmup is not None else 0.0 if self.finite else WARMUP
        cut = int(part * self.done) // self.run.batch_jobs if part else 0
        cut = min(cut, max(len(all_areas) - 1, 0))
        rows, areas, lengths = all_rows[cut:], all_areas[cut:], np.diff(all_spans[cut:])[:, 0]
        total_time = float(lengths.sum())
        counts = rows[:, :, COUNT]
        counted = counts.sum(axis=0)
        area = areas[:, PRESENT].sum(axis=0)
        comes = (self.run.tally.arrived > 0) | (system.arrival_rate > 0) & (not self.finite)
        few = comes & ((counted - self.unfinished < FEWEST) | (self._expected(counted) < FEWEST))
        unsettled = growing.any() and not self.finite
        unknown = np.zeros(K, dtype=bool) if self.finite or unsettled else few
        refused = too_little(unknown, counted, np.maximum(area, total_time * system.offered_work * unknown))
        hidden = np.nan if unsettled else 1.0  # an unstable queue has no means
        overall_hidden = np.nan if refused else hidden
        type_hidden = np.where(unknown, np.nan, hidden)

        def per_job(column: int) -> Array:
            return np.asarray(np.divide(rows[:, :, column].sum(axis=0), counted, out=np.full(K, np.nan), where=counted > 0))

        def overall(column: int) -> float:
            return overall_hidden * float(rows[:, :, column].sum() / counted.sum()) if counted.sum() > 0 else np.nan

        jobs_done, sums = counts.sum(axis=1), rows[:, :, RESPONSE].sum(axis=1)
        histogram = self._histogram(cut)
        busy = areas[:, SERVED].sum(axis=0) / total_time if total_time > 0 else np.full(K, np.nan)
        response = per_job(RESPONSE)
        preemption_rate, switch_rate, switching_fraction, unproved, events = self._rates or self._measured_rates()
        over = min(len(rows), len(areas))
        little = float(area.sum() / jobs_done[:over].sum()) if over and jobs_done[:over].sum() > 0 else np.nan
        mean = overall(RESPONSE)
        variance = float(rows[:, :, RESPONSE + SQUARE].sum() / max(counted.sum(), 1) - (sums.sum() / max(counted.sum(), 1)) ** 2)
        interval = overall_hidden * ratio_interval(sums, jobs_done, effective_jobs(sums, jobs_done, variance))
        type_variance = per_job(RESPONSE + SQUARE) - response**2
        worth = [effective_jobs(rows[:, i, RESPONSE], counts[:, i], type_variance[i]) if counted[i] else 0.0 for i in range(K)]
        names = np.array(system.names, dtype=object)
        return Result(
            system=system,
            policy=self.policy,
            seed=self.seed,
            jobs=self.done,
            counted=counted.astype(np.int64),
            unfinished=self.unfinished,
            warmup=cut * self.run.batch_jobs / max(self.done, 1),
            stable=not unsettled,
            growth=growth,
            growing=tuple(names[growing]),
            unknown=tuple(names[unknown]),
            interrupted=interrupted,
            reached=reached,
            mean_queue_length=type_hidden * (area / total_time if total_time > 0 else np.full(K, np.nan)),
            mean_queue_length_interval=type_hidden * np.array([ratio_interval(areas[:, PRESENT, i], lengths, worth[i]) for i in range(K)]),
            response_time=type_hidden * response,
            response_time_interval=type_hidden * np.array([ratio_interval(rows[:, i, RESPONSE], counts[:, i], worth[i]) for i in range(K)]),
            response_time_variance=type_hidden * type_variance,
            waiting_time=type_hidden * per_job(WAITING),
            waiting_time_variance=type_hidden * (per_job(WAITING + SQUARE) - per_job(WAITING) ** 2),
            slowdown=type_hidden * per_job(SLOWDOWN),
            slowdown_variance=type_hidden * (per_job(SLOWDOWN + SQUARE) - per_job(SLOWDOWN) ** 2),
            mean_response_time=mean,
            interval=interval,
            little_response_time=overall_hidden * little,
            mean_waiting_time=overall(WAITING),
            mean_slowdown=overall(SLOWDOWN),
            response_time_quantiles=self._quantiles(histogram[0].sum(axis=0), overall_hidden),
            waiting_time_quantiles=self._quantiles(histogram[1].sum(axis=0), overall_hidden),
            slowdown_quantiles=self._quantiles(histogram[2].sum(axis=0), overall_hidden),
            type_response_time_quantiles=self._type_quantiles(histogram[0], type_hidden),
            type_waiting_time_quantiles=self._type_quantiles(histogram[1], type_hidden),
            type_slowdown_quantiles=self._type_quantiles(histogram[2], type_hidden),
            utilization=np.asarray(busy @ system.demand / system.capacity),
            unused_service=self._unused(busy),
            preemption_rate=preemption_rate,
            switch_rate=switch_rate,
            switching_fraction=switching_fraction,
            unproved_decisions=unproved,
            simulated_time=float(all_spans[-1, 1]) if len(all_spans) else self.run.now,
            events=events,
            time_s=elapsed,
            totals=np.stack([counted, rows[:, :, RESPONSE].sum(axis=0), area, np.full(K, total_time)]),
            batches=np.column_stack([jobs_done[:over], sums[:over], lengths[:over], rows[:over, :, RESPONSE] @ system.service_rate]),
            fingerprint=f"{self._fingerprint % (1 << 64):016x}",
            log=self._log_table(),
            start=self.start,
            response_time_quantile_intervals=self._quantile_intervals(cut, overall_hidden),
        )

    def _expected(self, counted: Array) -> Array:
        """The expected number of jobs of each type, where it is known.

        Runs that happen to have enough jobs of a rare type are not typical: whether there is a mean must not depend on chance.
        """
        rate = self.system.arrival_rate
        return rate / rate.sum() * counted.sum() if self.poisson else counted

    def _histogram(self, cut: int) -> Int:
        """The counts of the segments that begin after the warm-up; of the last one at least."""
        total = self.run.tally.buckets.copy()  # of the segment that is open
        closed = [counts for before, counts in self._segments if before >= cut]
        if not closed and self._segments:
            closed = [self._segments[-1][1]]
        for places, counts in closed:
            total.flat[places] += counts
        return total

    def _quantile_intervals(self, cut: int, hidden: float) -> dict[float, float]:
        """The half-widths of the quantiles of the response time, from the histograms of the segments."""
        segments = [counts for before, counts in self._segments if before >= cut]
        kinds = self.run.tally.buckets.shape[1]
        parts = np.zeros((len(segments) + 1, BUCKETS), dtype=np.int64)
        for part, (places, counts) in zip(parts, segments, strict=False):
            responses = places < kinds * BUCKETS  # the first of the three histograms
            np.add.at(part, places[responses] % BUCKETS, counts[responses])
        parts[-1] = self.run.tally.buckets[0].sum(axis=0)  # of the segment that is open
        return {level: hidden * quantile_interval(parts, level) for level in QUANTILES}

    def _quantiles(self, counts: Int, hidden: float) -> dict[float, float]:
        return dict(zip(QUANTILES, (hidden * quantiles(counts)).tolist(), strict=True))

    def _type_quantiles(self, counts: Int, hidden: Array) -> dict[float, Array]:
        K = len(self.system.names)
        per_type = np.array([quantiles(row) for row in counts]) if len(counts) == K else np.full((K, len(QUANTILES)), np.nan)
        return dict(zip(QUANTILES, (hidden[:, None] * per_type).T, strict=True))

    def _unused(self, busy: Array) -> Array:
        """The part of the slots that an MSR opened for each type without a job to fill them; not a number for other policies."""
        policy = self.policy
        if not isinstance(policy, MSR) or policy.backfill or (policy.empty_slots == "skip" and policy.preemption == "none"):
            return np.full(len(busy), np.nan)
        slots = build_process(self.system, policy).mean_schedule
        return np.asarray(1 - np.divide(busy, slots, out=np.full(len(busy), np.nan), where=slots > 0))

    def _log_table(self) -> pl.DataFrame | None:
        log = self.run.log
        if not log:
            return None
        import polars as pl

        entries = np.concatenate(log)
        kinds = pl.Series(entries[:, 1].astype(np.int64)).replace_strict(
            {0: "arrive", 1: "start", 2: "preempt", 3: "finish"}, return_dtype=pl.String
        )
        types = [self.system.names[int(i)] for i in entries[:, 2]]
        return pl.DataFrame({"time": entries[:, 0], "event": kinds, "type": types, "job": entries[:, 3].astype(np.int64)})
