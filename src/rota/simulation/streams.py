"""The jobs of a system as its arrival processes bring them: bursts, Markovian arrival processes and batches, a stream for each type.

Each type has random numbers of its own, for its arrivals and for its sizes, so that a type has the same jobs whatever the others do. The
phases of a process are followed event by event from their stationary law on; the streams are merged in windows of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
from rota.kernel import compiled
from rota.model import ArrivalProcess, System
from rota.model.workload import CHUNK, Chunk
from rota.simulation.workload import PoissonArrivals

__all__ = ["SystemArrivals"]

_EVENTS = 1 << 16  # of the phases of a process, followed at a time


@dataclass(frozen=True)
class SystemArrivals:
    """The model's own workload: arrivals by the processes of the types, sizes of their distributions. Without end.

    If all types are Poisson, these are the jobs of `PoissonArrivals`, with its `first` chunk.
    """

    chunk: int = CHUNK
    first: int | None = None

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """Chunks of about so many jobs, for ever."""
        if not system.bursty:
            yield from PoissonArrivals(self.chunk, self.first).chunks(system, seed)
            return
        streams = [
            _Stream(process, float(rate), child) if rate > 0 else None
            for process, rate, child in zip(system.arrivals, system.arrival_rate, seed.spawn(len(system.names)), strict=True)
        ]
        sizes = [np.random.default_rng(child) for child in seed.spawn(len(system.names))]
        window = self.chunk / float(system.arrival_rate.sum())
        turn = 0
        while True:
            turn += 1
            times = [np.empty(0) if stream is None else stream.by(turn * window) for stream in streams]
            drawn = [law.sample(rng, len(part)) for law, rng, part in zip(system.sizes, sizes, times, strict=True)]
            kinds = np.repeat(np.arange(len(times)), [len(part) for part in times])
            together = np.concatenate(times)
            order = np.argsort(together, kind="stable")
            chosen = np.concatenate(drawn)[order]
            yield Chunk(together[order], kinds[order], chosen, chosen)


class _Stream:
    """The arrival times of one type, in order."""

    def __init__(self, process: ArrivalProcess, rate: float, seed: np.random.SeedSequence) -> None:
        arrivals = process.at(rate)
        self._batch = process.batch
        self._gaps, self._marks, self._batches = (np.random.default_rng(child) for child in seed.spawn(3))
        moves: Array = np.hstack([arrivals.moves, arrivals.marked])
        self._exit = moves.sum(axis=1)
        self._cumulative = np.cumsum(moves / self._exit[:, None], axis=1)
        self._cumulative[:, -1] = 1.0
        first = np.searchsorted(np.cumsum(arrivals.stationary), self._marks.random(), side="right")
        self._phase, self._now = min(int(first), len(arrivals) - 1), 0.0
        self._left: list[Array] = []

    def by(self, until: float) -> Array:
        """The arrivals before a time that were not returned before."""
        while self._now < until:
            # Drawn by numpy and not in the compiled loop: numba crashes on a Ctrl-C while it unpacks a generator.
            times = self._gaps.standard_exponential(_EVENTS)
            marks, place = self._marks.random(_EVENTS), (self._phase, self._now)
            count, self._phase, self._now = _follow(times, marks, self._exit, self._cumulative, *place)
            found = times[:count]
            if self._batch is not None:
                found = np.repeat(found, self._batch.sample(self._batches, count))
            self._left.append(found)
        known = np.concatenate(self._left)
        n = int(np.searchsorted(known, until, side="left"))
        self._left = [known[n:]]
        return known[:n]


@compiled
def _follow(times: Array, marks: Array, exit_rate: Array, cumulative: Array, phase: int, now: float) -> tuple[int, int, float]:
    """The next events of the phases, one for each of the gaps of mean 1 in `times`, whose beginning then holds the times of arrivals.

    A row of `cumulative` (M, 2M) has the moves from a phase without an arrival, then those with one. Returns how many arrivals there were,
    the phase and the time.
    """
    M, count = len(exit_rate), 0
    for k in range(len(times)):
        now += times[k] / exit_rate[phase]
        move = 0
        while marks[k] >= cumulative[phase, move]:
            move += 1
        phase = move % M
        if move >= M:
            times[count] = now
            count += 1
    return count, phase, now
