"""`simulate`: a policy on a system, with warm-up left out, confidence intervals and quantiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rota.arrays import Array, Int
from rota.decide import brain_of
from rota.errors import Infeasible
from rota.model import System
from rota.model.workload import Chunk, Workload
from rota.policy import MSR, Custom, MaxWeight, Policy
from rota.process import build_process
from rota.simulation.arguments import checked_chunks, checked_run
from rota.simulation.compiling import will_compile
from rota.simulation.named import as_policy, as_workload
from rota.simulation.result import Result
from rota.simulation.run import Run
from rota.simulation.statistics import QUANTILES, grows, half_width, mser, quantiles
from rota.simulation.tally import Counts, joined
from rota.simulation.workload import PoissonArrivals

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Result", "SimulationProgress", "simulate"]

JOBS = 1_000_000  # of a workload without end
_ROWS = 128  # batches in a segment
_SEGMENTS = 32  # segments kept; when there are more, neighbours are joined, and so are their batches
_NUMBERS = 120_000  # batches in a segment times types, at most
_PATIENCE_S = 0.2  # how long the engine runs on between two looks at the world: progress, Ctrl-C


@dataclass(frozen=True)
class SimulationProgress:
    """How far a simulation has come. `jobs` is None if it runs until an interval is narrow."""

    done: int
    jobs: int | None
    events_per_s: float
    half_width: float
    time_s: float
    compiling: bool = False  # the engine is compiled first, which is told before it begins


def simulate(
    system: System,
    policy: Policy | str,
    *,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    until: float | None = None,
    warmup: float | None = None,
    log_jobs: int = 0,
    check: bool = False,
    progress: Callable[[SimulationProgress], None] | None = None,
) -> Result:
    """Simulates a policy (or its name, as "first-fit" or "module:function") on a system.

    Runs until `jobs` have arrived (a million; all of a `workload` that has an end), or, with `until`, until the 95 % interval of the mean
    response time is that narrow relative to the mean, at most `jobs` all the same. Warm-up is found by MSER unless given as a fraction.
    The first `log_jobs` jobs are logged event by event. `check` verifies the laws of the engine after every event (slow). Ctrl-C ends the
    run; what was measured so far is returned.
    """
    policy = as_policy(policy)
    jobs, seed, log_jobs = checked_run(system, jobs, seed, until, warmup, log_jobs)
    workload = None if workload is None else as_workload(workload, system)
    if workload is None and system.arrival_rate.sum() == 0:
        raise Infeasible("no jobs arrive: there is nothing to simulate")
    if isinstance(workload, Sized):
        jobs = min(jobs or len(workload), len(workload))
        if jobs == 0:
            raise Infeasible("the workload has no jobs: there is nothing to simulate")
    jobs = jobs or JOBS
    measuring = _Measuring(system, policy, seed, jobs, log_jobs, check)
    begin = time.perf_counter()
    interrupted = False
    if progress is not None and will_compile(measuring.run):
        progress(SimulationProgress(0, jobs if until is None else None, 0.0, np.inf, 0.0, compiling=True))
    try:
        for chunk in _pieces(checked_chunks(workload or PoissonArrivals(), system, measuring.workload_seed), jobs, measuring):
            measuring.feed(chunk)
            elapsed = time.perf_counter() - begin
            width = np.inf
            if until is not None and measuring.ready():
                partial = measuring.result(warmup, elapsed, False)
                width = partial.interval / partial.mean_response_time if partial.stable else np.inf
            if progress is not None:
                rate = measuring.run.events / max(elapsed, 1e-9)
                progress(SimulationProgress(measuring.done, jobs if until is None else None, rate, width, elapsed))
            if until is not None and width <= until:
                break
    except KeyboardInterrupt:
        if not measuring.done_any():
            raise
        interrupted = True
    return measuring.result(warmup, time.perf_counter() - begin, interrupted)


def _pieces(chunks: Iterator[Chunk], jobs: int, measuring: _Measuring) -> Iterator[Chunk]:
    """The first `jobs` jobs, in pieces that take a moment each, so that Ctrl-C is heard; none reaches over the end of a segment."""
    pace = 256.0
    for chunk in chunks:
        at = 0
        while at < len(chunk.times) and measuring.done < jobs:
            n = min(jobs - measuring.done, len(chunk.times) - at, int(pace), measuring.segment_end - measuring.done)
            part = slice(at, at + n)
            began = time.perf_counter()
            yield Chunk(chunk.times[part], chunk.kinds[part], chunk.sizes[part], chunk.estimates[part])
            taken = max(time.perf_counter() - began, 1e-6)
            pace = min(max(_PATIENCE_S * n / taken, 16.0), 16.0 * pace)
            at += n
        if measuring.done >= jobs:
            return


class _Measuring:
    """A run with its batches and histograms."""

    def __init__(self, system: System, policy: Policy, seed: int, jobs: int, log_jobs: int, check: bool) -> None:
        K = len(system.names)
        self.system, self.policy, self.seed = system, policy, seed
        batches = min(max(_NUMBERS // K // 2 * 2, 4), _ROWS)  # an even number
        batch_jobs = max(1, min(2 * jobs // (batches * _SEGMENTS), 10_000))
        self.workload_seed, policy_seed = np.random.SeedSequence(seed).spawn(2)
        compiled = policy.compiled if isinstance(policy, Custom) else None
        self.run = Run(
            system,
            brain_of(system, policy),
            policy_seed,
            batch_jobs=batch_jobs,
            log_jobs=log_jobs,
            check=check,
            compiled=compiled,
        )
        self.rows: Array = np.zeros((0, K, 7))
        self.areas: Array = np.zeros((0, 2, K))
        self.spans: Array = np.zeros((0, 2))
        self.done = 0
        self._segment = batches * batch_jobs
        self.segment_end = self._segment
        self._begun = 0  # batches closed before the segment that is open
        self._segments: list[tuple[int, Counts]] = []  # the same for each closed one, and what was counted in it

    def feed(self, chunk: Chunk) -> None:
        self.run.feed(chunk)
        self.done += len(chunk.times)
        closed = self.run.take_batches()
        self.rows, self.areas, self.spans = (
            np.concatenate([old, new]) for old, new in zip((self.rows, self.areas, self.spans), closed, strict=True)
        )
        if self.done == self.segment_end:
            self._segments.append((self._begun, self.run.take_histogram()))
            if len(self._segments) > _SEGMENTS and len(self._segments) % 2 == 0:
                self._join()
            self._begun, self.segment_end = len(self.rows), self.segment_end + self._segment

    def _join(self) -> None:
        """Joins neighbouring segments and batches, and makes the next ones twice as long."""
        n = len(self.rows) // 2
        self.rows = self.rows.reshape(n, 2, *self.rows.shape[1:]).sum(axis=1)
        self.areas = self.areas.reshape(n, 2, *self.areas.shape[1:]).sum(axis=1)
        self.spans = np.column_stack([self.spans[::2, 0], self.spans[1::2, 1]])
        pairs = zip(self._segments[::2], self._segments[1::2], strict=True)
        self._segments = [(before // 2, joined(first, second)) for (before, first), (_, second) in pairs]
        self.run.batch_jobs *= 2
        self._segment *= 2

    def ready(self) -> bool:
        """Whether there is enough for an interval."""
        return len(self.rows) >= 40 and self.done_any()

    def done_any(self) -> bool:
        """Whether there is anything to tell."""
        return float(self.rows[:, :, 0].sum()) > 0

    def result(self, warmup: float | None, elapsed: float, interrupted: bool) -> Result:
        rows, areas, spans, K = self.rows, self.areas, self.spans, len(self.system.names)
        lengths = spans[:, 1] - spans[:, 0]
        jobs_present = areas[:, 0].sum(axis=1)  # a batch of jobs that came all at once takes no time
        present = np.divide(jobs_present, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        growing = grows(present)
        cut = int(warmup * len(rows)) if warmup is not None else mser(present)
        rows, areas, lengths = rows[cut:], areas[cut:], lengths[cut:]
        total_time = float(lengths.sum())
        counts = rows[:, :, 0]
        done = counts.sum(axis=0)

        def per_job(column: int) -> Array:
            return np.asarray(np.divide(rows[:, :, column].sum(axis=0), done, out=np.full(K, np.nan), where=done > 0))

        def overall(column: int) -> float:
            return float(rows[:, :, column].sum() / done.sum()) if done.sum() > 0 else np.nan

        def per_type_interval(column: int) -> Array:
            series = np.divide(rows[:, :, column], counts, out=np.zeros_like(counts), where=counts > 0)
            return np.array([half_width(series[:, i], counts[:, i]) for i in range(K)])

        queue = np.divide(areas[:, 0], lengths[:, None], out=np.zeros((len(rows), K)), where=lengths[:, None] > 0)
        jobs_done, sums = counts.sum(axis=1), rows[:, :, 1].sum(axis=1)
        means = np.divide(sums, jobs_done, out=np.zeros_like(sums), where=jobs_done > 0)
        histogram = self._histogram(cut)
        busy = areas[:, 1].sum(axis=0) / total_time if total_time > 0 else np.full(K, np.nan)
        hidden = np.nan if growing else 1.0  # an unstable queue has no means
        response = per_job(1)
        return Result(
            system=self.system,
            policy=self.policy,
            seed=self.seed,
            jobs=self.done,
            warmup=cut / max(len(self.rows), 1),
            stable=not growing,
            growth=self._growth(present, spans) if growing else 0.0,
            interrupted=interrupted,
            mean_queue_length=hidden * (areas[:, 0].sum(axis=0) / total_time if total_time > 0 else np.full(K, np.nan)),
            mean_queue_length_interval=hidden * np.array([half_width(queue[:, i], lengths) for i in range(K)]),
            response_time=hidden * response,
            response_time_interval=hidden * per_type_interval(1),
            response_time_variance=hidden * (per_job(2) - response**2),
            waiting_time=hidden * per_job(3),
            waiting_time_variance=hidden * (per_job(4) - per_job(3) ** 2),
            slowdown=hidden * per_job(5),
            slowdown_variance=hidden * (per_job(6) - per_job(5) ** 2),
            mean_response_time=hidden * overall(1),
            interval=hidden * half_width(means, jobs_done),
            mean_waiting_time=hidden * overall(3),
            mean_slowdown=hidden * overall(5),
            response_time_quantiles=self._quantiles(histogram[0].sum(axis=0), hidden),
            waiting_time_quantiles=self._quantiles(histogram[1].sum(axis=0), hidden),
            slowdown_quantiles=self._quantiles(histogram[2].sum(axis=0), hidden),
            type_response_time_quantiles=self._type_quantiles(histogram[0], hidden),
            type_waiting_time_quantiles=self._type_quantiles(histogram[1], hidden),
            type_slowdown_quantiles=self._type_quantiles(histogram[2], hidden),
            utilization=np.asarray(busy @ self.system.demand / self.system.capacity),
            unused_service=self._unused(busy),
            preemption_rate=float(self.run.tally.preemptions.sum() / max(self.run.now, 1e-300)),
            switch_rate=float(self.run.state.mode[1] / max(self.run.now, 1e-300)),
            switching_fraction=float(self.run.tally.times[2] / max(self.run.now, 1e-300)),
            unproved_decisions=int(self.run.state.counters[0]) if isinstance(self.policy, MaxWeight) else 0,
            simulated_time=self.run.now,
            events=self.run.events,
            time_s=elapsed,
            batches=np.column_stack([jobs_done, sums, lengths]),
            log=self._log_table(),
        )

    def _histogram(self, cut: int) -> Int:
        """The counts of the segments that begin after the warm-up; of the last one at least."""
        total = self.run.tally.buckets.copy()  # of the segment that is open
        closed = [counts for before, counts in self._segments if before >= cut]
        if not closed and self._segments:
            closed = [self._segments[-1][1]]
        for places, counts in closed:
            total.flat[places] += counts
        return total

    def _quantiles(self, counts: Int, hidden: float) -> dict[float, float]:
        return dict(zip(QUANTILES, (hidden * quantiles(counts)).tolist(), strict=True))

    def _type_quantiles(self, counts: Int, hidden: float) -> dict[float, Array]:
        K = len(self.system.names)
        per_type = hidden * np.array([quantiles(row) for row in counts]) if len(counts) == K else np.full((K, len(QUANTILES)), np.nan)
        return dict(zip(QUANTILES, per_type.T, strict=True))

    def _unused(self, busy: Array) -> Array:
        """The part of the slots that an MSR opened for each type without a job to fill them; not a number for other policies."""
        policy = self.policy
        if not isinstance(policy, MSR) or policy.backfill or (policy.empty_slots == "skip" and policy.preemption == "none"):
            return np.full(len(busy), np.nan)
        slots = build_process(self.system, policy).mean_schedule
        return np.asarray(1 - np.divide(busy, slots, out=np.full(len(busy), np.nan), where=slots > 0))

    def _growth(self, present: Array, spans: Array) -> float:
        """Jobs that pile up per unit of time, over the second half."""
        half = len(present) // 2
        return float((present[-1] - present[half]) / (spans[-1, 1] - spans[half, 1]))

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
