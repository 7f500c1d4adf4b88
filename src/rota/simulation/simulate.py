"""`simulate`: a policy on a system, with confidence intervals and quantiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rota.errors import Infeasible
from rota.model import System
from rota.model.workload import Chunk, Workload
from rota.policy import Policy, as_policy
from rota.simulation.arguments import checked_chunks, checked_run
from rota.simulation.compiled import will_compile
from rota.simulation.measuring import Measuring
from rota.simulation.named import as_workload
from rota.simulation.result import Result
from rota.simulation.start import Counts, Start, checked_start
from rota.simulation.statistics import WARMUP
from rota.simulation.streams import SystemArrivals
from rota.simulation.workload import initial_jobs

__all__ = ["JOBS", "Result", "SimulationProgress", "enough_jobs", "simulate"]

JOBS = 1_000_000  # of a workload without end
_OF_A_TYPE = 500  # jobs of the rarest type, if that takes no more than …
_MOST_JOBS = 20_000_000
_TIME_SCALES = 500  # how often the longest time scale of bursts goes into a run, at least
_LONGEST_SIZES = 50  # how often the longest mean size goes into a run, at least
_SHORT = 5.0  # mean sizes that warm-up takes at least; if it is shorter, the run does not begin empty
_PATIENCE_S = 0.2  # how long the engine runs on between two checks for progress and Ctrl-C
_AFTER = 0.25  # more jobs, relative to those that count, that may come until those that count are done
_PIECE = 256  # jobs, of these


@dataclass(frozen=True)
class SimulationProgress:
    """How far a simulation has come. `jobs` is None if it runs until an interval is narrow."""

    done: int
    jobs: int | None
    events_per_s: float
    half_width: float
    time_s: float
    compiling: bool = False  # the engine is being compiled; reported before that begins


def simulate(
    system: System,
    policy: Policy | str | Path,
    *,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    until: float | None = None,
    warmup: float | None = None,
    start: Start | Counts | None = None,
    log_jobs: int = 0,
    check: bool = False,
    progress: Callable[[SimulationProgress], None] | None = None,
) -> Result:
    """Simulates a policy (or its name, its file, or your own as "module:function") on a system.

    A name such as "nMSR" or "improved" (`rota.policy.DESIGNED_NAMES`) is designed for the system first.
    A `workload` that has an end is played until its last job is done, and every job counts. Otherwise `jobs` jobs count (a million, or more
    if a type is rare: see `enough_jobs`); with `until`, as many as make the 95 % interval of the mean response time that narrow relative
    to the mean, but at most `jobs`. Of a workload without end the first fifth is warm-up and does not count, unless `warmup` says
    another part; jobs go on coming until those that count are done. With `start`, jobs are there at time 0 (`Start`, or their numbers by
    type): nothing is warm-up, and they do not count, but those that come after them do. The first `log_jobs` jobs are logged event by event
    (those that were there have negative numbers). `check` verifies
    the laws of the engine after every event (slow). Ctrl-C ends the run; what was measured so far is returned.
    """
    jobs, seed, log_jobs = checked_run(system, jobs, seed, until, warmup, log_jobs)
    policy = as_policy(policy, system)
    workload = None if workload is None else as_workload(workload, system)
    if workload is None and system.arrival_rate.sum() == 0:
        raise Infeasible("no jobs arrive: there is nothing to simulate")
    begin_state = None if start is None else checked_start(system, policy, start)
    warmup = 0.0 if begin_state is not None and warmup is None else warmup
    finite = isinstance(workload, Sized)
    if isinstance(workload, Sized):
        jobs = min(jobs or len(workload), len(workload))
        if jobs == 0:
            raise Infeasible("the workload has no jobs: there is nothing to simulate")
    jobs = jobs or (enough_jobs(system) if workload is None else JOBS)
    measuring = Measuring(system, policy, seed, jobs, finite=finite, poisson=workload is None, log_jobs=log_jobs, check=check)
    stream = _Stream(checked_chunks(workload or SystemArrivals(), system, measuring.workload_seed))
    begin = time.perf_counter()
    interrupted, reached = False, None if until is None else False
    if progress is not None and will_compile(measuring.run.engine):
        progress(SimulationProgress(0, jobs if until is None else None, 0.0, np.inf, 0.0, compiling=True))
    if begin_state is not None:
        measuring.begin_in(begin_state)
    elif workload is None and _is_short(system, jobs):
        kinds, sizes = initial_jobs(system, measuring.initial_seed)
        measuring.run.begin_with(kinds, sizes, sizes)
    try:
        for chunk in _pieces(stream, jobs, measuring):
            measuring.feed(chunk)
            elapsed = time.perf_counter() - begin
            width = np.inf
            if until is not None and measuring.ready():
                partial = measuring.result(warmup, elapsed)
                width = partial.interval / partial.mean_response_time if partial.stable else np.inf
            if progress is not None:
                rate = measuring.run.events / max(elapsed, 1e-9)
                progress(SimulationProgress(measuring.done, jobs if until is None else None, rate, width, elapsed))
            if until is not None and width <= until:
                reached = True
                break
        _finish(measuring, stream)
    except KeyboardInterrupt:
        if not measuring.done_any():
            raise
        interrupted = True
    measuring.give_up()
    return measuring.result(warmup, time.perf_counter() - begin, interrupted=interrupted, reached=reached)


def enough_jobs(system: System, jobs: int = JOBS) -> int:
    """At least `jobs`, and enough that the rarest type has 500 and the run lasts 50 times the longest mean size; 20 million at most.

    With bursts it also lasts 500 times their longest time scale.
    """
    rate = system.arrival_rate[system.arrival_rate > 0]
    longest = 1 / system.service_rate[system.arrival_rate > 0].min()
    pairs = zip(system.arrivals, system.arrival_rate, strict=True)
    bursts = max((process.at(float(each)).time_scale for process, each in pairs if each > 0), default=0.0)
    lasts = max(_LONGEST_SIZES * longest, _TIME_SCALES * bursts)
    needed = max(_OF_A_TYPE / (1 - WARMUP) * rate.sum() / rate.min(), rate.sum() * lasts)
    return int(max(min(np.ceil(needed), _MOST_JOBS), jobs))


def _is_short(system: System, jobs: int) -> bool:
    """Whether warm-up is too short to fill the server with jobs of the longest mean size."""
    longest = (1 / system.service_rate[system.arrival_rate > 0]).max()
    return bool(WARMUP * jobs / system.arrival_rate.sum() < _SHORT * longest)


def _finish(measuring: Measuring, stream: _Stream) -> None:
    """Goes on until the jobs that count are done, or it is clear that they will not be."""
    if measuring.finite or stream.ended:
        measuring.play_to_the_end()
        return
    if not measuring.stop_counting():
        return
    more = max(int(_AFTER * measuring.done), 40 * _PIECE)
    while more > 0 and not measuring.all_done:
        chunk = stream.take(_PIECE)
        if chunk is None:
            measuring.drain()
            return
        measuring.run.feed(chunk)
        more -= len(chunk.times)


class _Stream:
    """A workload from which pieces of any length are taken."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._chunk: Chunk | None = None
        self._at = 0
        self.ended = False

    def take(self, most: int) -> Chunk | None:
        """The next jobs, at most this many; None if there are no more."""
        while self._chunk is None or self._at == len(self._chunk.times):
            self._chunk, self._at = next(self._chunks, None), 0
            if self._chunk is None:
                self.ended = True
                return None
        part = slice(self._at, self._at + most)
        self._at = min(self._at + most, len(self._chunk.times))
        times, kinds, sizes, estimates = self._chunk
        return Chunk(times[part], kinds[part], sizes[part], estimates[part])


def _pieces(stream: _Stream, jobs: int, measuring: Measuring) -> Iterator[Chunk]:
    """The first `jobs` jobs, in pieces that take a moment each, so that Ctrl-C is noticed; none reaches over the end of a segment."""
    pace = 256.0
    while measuring.done < jobs:
        piece = stream.take(min(jobs - measuring.done, int(pace), measuring.segment_end - measuring.done))
        if piece is None:
            return
        began = time.perf_counter()
        yield piece
        taken = max(time.perf_counter() - began, 1e-6)
        pace = min(max(_PATIENCE_S * len(piece.times) / taken, 16.0), 16.0 * pace)
