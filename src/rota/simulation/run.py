"""One run of one policy: the arrays of the engine, fed with chunks of jobs."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.arrays import Array
from rota.decide import Brain, new_state, seeded
from rota.model import System
from rota.model.workload import Chunk
from rota.simulation.compiled import runner_of
from rota.simulation.engine import FULL_LOG, Body
from rota.simulation.tally import Counts, Tally, new_tally

__all__ = ["Run"]

_LOG = 1 << 16

# What is known of one job lies together, in one cache line: with many jobs waiting, memory is what takes the time.
_JOB = np.dtype(
    [
        ("kind", np.int32),
        ("position", np.int32),
        ("older", np.int32),
        ("newer", np.int32),
        ("sequence", np.int64),
        ("arrival", np.float64),
        ("size", np.float64),
        ("remaining", np.float64),
        ("estimate", np.float64),
        ("finish", np.float64),
    ]
)


def _aligned(jobs: int) -> Any:
    """Room for so many jobs, each in a cache line of its own."""
    line = _JOB.itemsize
    room = np.zeros((jobs + 1) * line, dtype=np.uint8)
    first = -room.ctypes.data % line
    return room[first : first + jobs * line].view(_JOB)


class Run:
    """The state of a simulation between chunks."""

    def __init__(
        self,
        system: System,
        brain: Brain,
        seed: np.random.SeedSequence,
        *,
        batch_jobs: int,
        log_jobs: int = 0,
        check: bool = False,
        compiled: bool | None = None,
    ) -> None:
        self.system, self.batch_jobs, self.check = system, batch_jobs, check
        self.log: list[Array] = []
        self._log_jobs = log_jobs  # the first jobs, of which everything is logged; 0 once all of them have left
        self._jobs = np.zeros(0, dtype=_JOB)
        self._engine = runner_of(brain.decide, compiled)
        self.state = new_state(system, brain, seeded(seed))
        empty_int, empty = np.empty(0, dtype=np.int64), np.empty(0)
        self.body = Body(
            kind=empty_int,
            arrival=empty,
            size=empty,
            remaining=empty,
            position=empty_int,
            heap=empty_int,
            ends=empty,
            unused=empty_int,
            numbers=np.zeros(10, dtype=np.int64),
            times=np.full(2, np.inf),
            log=np.empty((_LOG if log_jobs else 0, 4)),
        )
        self.target = np.zeros(len(system.names), dtype=np.int64)
        self.tally: Tally = new_tally(len(system.names), 0)

    @property
    def now(self) -> float:
        """The simulated time."""
        return float(self.state.clock[0])

    @property
    def events(self) -> int:
        """Events so far."""
        return int(self.body.numbers[5])

    @property
    def present(self) -> int:
        """Jobs in the system."""
        return int(self.state.system.sum())

    def feed(self, chunk: Chunk, *, drain: bool = False) -> None:
        """Lets the jobs of a chunk arrive; with `drain`, goes on until no job is left."""
        self._make_room(len(chunk.times))
        self._make_rows(len(chunk.times) // self.batch_jobs + 2)
        self.body.numbers[6] = 0
        while True:
            logging = self._log_jobs > 0
            if logging:
                self._make_log()
            stopped: Any = self._engine(
                self.state,
                self.target,
                self.body,
                self.tally,
                np.ascontiguousarray(chunk.times),
                np.ascontiguousarray(chunk.kinds),
                np.ascontiguousarray(chunk.sizes),
                np.ascontiguousarray(chunk.estimates),
                self.batch_jobs,
                drain,
                logging,
                self.check,
            )
            if logging:
                self._take_log()
            if stopped != FULL_LOG:
                return

    def _make_room(self, arriving: int) -> None:
        """Doubles the places for jobs until a whole chunk fits beside those present."""
        have, body, state = len(self.body.kind), self.body, self.state
        free = int(body.numbers[1])
        if free >= arriving:
            return
        need = max(2 * have, have + arriving - free, 1024)

        def grown(array: Any) -> Any:
            return np.concatenate([array, np.zeros(need - have, dtype=array.dtype)])

        jobs = _aligned(need)
        jobs[:have] = self._jobs
        self._jobs = jobs
        self.state = state._replace(
            newer=jobs["newer"],
            older=jobs["older"],
            sequence=jobs["sequence"],
            finish=jobs["finish"],
            estimate=jobs["estimate"],
            keys=grown(state.keys),
            places=grown(state.places),
        )
        unused = grown(body.unused)
        unused[free : free + need - have] = np.arange(need - 1, have - 1, -1)  # low places are used first
        body.numbers[1] = free + need - have
        self.body = body._replace(
            kind=jobs["kind"],
            arrival=jobs["arrival"],
            size=jobs["size"],
            remaining=jobs["remaining"],
            position=jobs["position"],
            heap=grown(body.heap),
            ends=grown(body.ends),
            unused=unused,
        )

    def _make_rows(self, batches: int) -> None:
        """Room for the batches of the next chunk beside those that were not taken yet."""
        tally, closed = self.tally, int(self.tally.numbers[0])
        if len(tally.rows) >= closed + batches:
            return
        fresh = new_tally(len(self.system.names), closed + batches)
        for old, new in ((tally.rows, fresh.rows), (tally.areas, fresh.areas), (tally.span, fresh.span)):
            new[:closed] = old[:closed]
        self.tally = tally._replace(rows=fresh.rows, areas=fresh.areas, span=fresh.span)

    def _make_log(self) -> None:
        need = 4 * self.present + 64
        if len(self.body.log) < max(need, _LOG):
            self.body = self.body._replace(log=np.empty((2 * max(need, _LOG), 4)))

    def _take_log(self) -> None:
        """Keeps the entries of the jobs that are to be logged, and ends the log when all of them have left."""
        entries = self.body.log[: int(self.body.numbers[4])]
        self.body.numbers[4] = 0
        self.log.append(entries[entries[:, 3] < self._log_jobs])
        oldest = self.state.oldest[self.state.oldest >= 0]
        here = int(self.state.sequence[oldest].min()) if len(oldest) else int(self.body.numbers[2])
        if min(here, int(self.body.numbers[2])) >= self._log_jobs:
            self._log_jobs = 0

    def take_batches(self) -> tuple[Array, Array, Array]:
        """Sums (n, K, 7), areas (n, 2, K) and spans (n, 2) of the batches closed since the last call."""
        n = int(self.tally.numbers[0])
        self.tally.numbers[0] = 0
        return self.tally.rows[:n].copy(), self.tally.areas[:n].copy(), self.tally.span[:n].copy()

    def take_histogram(self) -> Counts:
        """What the histograms counted since the last call."""
        flat = self.tally.buckets.reshape(-1)
        places = np.flatnonzero(flat)
        counts = flat[places]
        flat[places] = 0
        return Counts(places, counts)
