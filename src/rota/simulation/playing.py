"""A run that can be looked at and prolonged; several runs at once.

Nothing that is measured depends on the clock or on the number of cores: a run is cut into pieces that take a moment each only so that
Ctrl-C is noticed and progress can be shown.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor, wait

from rota.model import System
from rota.model.workload import Chunk, Workload
from rota.policy import Policy
from rota.simulation.arguments import checked_chunks
from rota.simulation.measured import Measured
from rota.simulation.measuring import Measuring
from rota.simulation.start import Start
from rota.simulation.statistics import WARMUP
from rota.simulation.streams import SystemArrivals
from rota.simulation.workload import initial_jobs

__all__ = ["Playing", "play_all"]

_SHORT = 5.0  # mean sizes that warm-up takes at least; if it is shorter, the run does not begin empty
_PATIENCE_S = 0.2  # how long the engine runs on between two checks for progress and Ctrl-C
_AFTER = 0.25  # more jobs, relative to those that count, that may come until those that count are done
_PIECE = 256  # jobs, of these
_FIRST = 1 << 11  # jobs that are drawn to begin with


class Playing:
    """One run of a policy, of at most `jobs` jobs. `first_look`: after so many jobs an interval may be asked for."""

    def __init__(
        self,
        system: System,
        policy: Policy,
        workload: Workload | None,
        seed: int,
        jobs: int,
        *,
        start: Start | None = None,
        log_jobs: int = 0,
        check: bool = False,
        first_look: int | None = None,
    ) -> None:
        finite = isinstance(workload, Sized)
        self.measuring = Measuring(
            system,
            policy,
            seed,
            jobs,
            finite=finite,
            poisson=workload is None,
            log_jobs=log_jobs,
            check=check,
            first_look=first_look,
        )
        self._stream = _Stream(checked_chunks(workload or SystemArrivals(first=_FIRST), system, self.measuring.workload_seed))
        self._start = start
        self._from_full = start is None and workload is None and _is_short(system, jobs if first_look is None else first_look)
        self._begun = False
        self._stopped = threading.Event()

    @property
    def done(self) -> int:
        """Jobs that came and count."""
        return self.measuring.done

    @property
    def events(self) -> int:
        """Events so far."""
        return self.measuring.run.events

    @property
    def ended(self) -> bool:
        """Whether the workload has no more jobs."""
        return self._stream.ended

    def play(self, to: int, tell: Callable[[], None] | None = None) -> None:
        """Goes on until `to` jobs have come in all, or the workload ends."""
        if not self._begun:
            self._begun = True
            if self._start is not None:
                self.measuring.begin_in(self._start)
            elif self._from_full:
                kinds, sizes = initial_jobs(self.measuring.system, self.measuring.initial_seed)
                self.measuring.run.begin_with(kinds, sizes, sizes)
        for chunk in _pieces(self._stream, to, self.measuring):
            if self._stopped.is_set():
                return
            self.measuring.feed(chunk)
            if tell is not None:
                tell()

    def stop(self) -> None:
        """Ends `play`, which another thread may be in, after the piece that it is at."""
        self._stopped.set()

    def finish(self, *, patient: bool = False) -> None:
        """No more jobs count. Goes on until those that count are done, or it is clear that they will not be.

        `patient`: also if the queue looks as if it grew, which in one of several runs may be chance.
        """
        measuring, stream = self.measuring, self._stream
        if measuring.finite or stream.ended:
            measuring.play_to_the_end()
            return
        if not measuring.stop_counting() and not patient:
            return
        more = max(int(_AFTER * measuring.done), 40 * _PIECE)
        while more > 0 and not measuring.all_done and not self._stopped.is_set():
            chunk = stream.take(_PIECE)
            if chunk is None:
                measuring.drain()
                return
            measuring.run.feed(chunk)
            more -= len(chunk.times)

    def measured(self, warmup: float | None) -> Measured:
        """What was measured so far."""
        return self.measuring.measured(warmup)

    @property
    def complete(self) -> int:
        """The first so many jobs have all left."""
        return min(max(self.measuring.run.oldest, 0), self.done)


def play_all(runs: Sequence[Playing], to: int, tell: Callable[[], None], *, finish: bool = False, workers: int | None = None) -> None:
    """Lets each run go on to `to` jobs, and to its end with `finish`; as many at once as there are `workers`, one per core if not given.

    The compiled engine does not hold the interpreter, so threads are enough.
    """
    if len(runs) == 1:
        runs[0].play(to, tell)
        if finish:
            runs[0].finish()
        return

    def one(run: Playing) -> None:
        run.play(to)
        if finish:
            run.finish(patient=True)

    runs[0].play(min(_PIECE, to))  # compiles, once for all
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        left = {pool.submit(one, run) for run in runs}
        try:
            while left:
                done, left = wait(left, timeout=_PATIENCE_S)
                for future in done:
                    future.result()
                tell()
        except BaseException:
            for run in runs:
                run.stop()  # Ctrl-C reaches the main thread only
            pool.shutdown(cancel_futures=True)
            raise


def _is_short(system: System, jobs: int) -> bool:
    """Whether warm-up is too short to fill the server with jobs of the longest mean size."""
    longest = (1 / system.service_rate[system.arrival_rate > 0]).max()
    return bool(WARMUP * jobs / system.arrival_rate.sum() < _SHORT * longest)


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
    """The next jobs, up to `jobs` in all, in pieces that take a moment each; none reaches over the end of a segment."""
    pace = 256.0
    while measuring.done < jobs:
        piece = stream.take(min(jobs - measuring.done, int(pace), measuring.segment_end - measuring.done))
        if piece is None:
            return
        began = time.perf_counter()
        yield piece
        taken = max(time.perf_counter() - began, 1e-6)
        pace = min(max(_PATIENCE_S * len(piece.times) / taken, 16.0), 16.0 * pace)
