"""One run of one policy: the arrays of the engine, fed with chunks of jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.decide import Decider, built_in, describe, new_state, seeded
from rota.decide.job_lists import link
from rota.decide.state import SWITCHES
from rota.model import System
from rota.model.workload import Chunk
from rota.policy import Policy
from rota.simulation.compiled import runner_of
from rota.simulation.engine import FULL_LOG
from rota.simulation.server import (
    BACK,
    BEGUN,
    CHUNK,
    EVENTS,
    FIRST_CHUNK,
    GROUPS,
    HORIZON,
    IN_BATCH,
    IN_GROUPS,
    JOB,
    LOGGED,
    NEXT_ARRIVAL,
    NEXT_JOB,
    NUMBERS,
    PAUSED,
    PAUSED_JOBS,
    RUNNING,
    TIMES,
    UNUSED,
    VACANT,
    WITH_JOBS,
    Server,
    moved_to,
    new_places,
    with_places,
)
from rota.simulation.tally import BATCH_BEGAN, CLOSED, LIMIT, SHIFT, SWITCHED, Counts, Tally, new_tally

__all__ = ["Rates", "Run", "new_server"]

_LOG = 1 << 16
_ROWS = 4352  # batches that the arrays hold to begin with: all that there are as a rule, and memory that is never used is never touched


def new_server(K: int, *, logging: bool) -> Server:
    """A server of K types without places for jobs yet."""
    empty_int, empty = np.empty(0, dtype=np.int64), np.empty(0)
    groups = np.zeros((K, GROUPS), dtype=np.int64)
    groups[:, [VACANT, FIRST_CHUNK]] = -1
    return Server(
        jobs=np.zeros(0, dtype=JOB),
        heap=empty_int,
        ends=empty,
        left=empty,
        chunks=empty_int,
        groups=groups,
        unused=empty_int,
        numbers=np.zeros(NUMBERS, dtype=np.int64),
        times=np.full(TIMES, np.inf),
        log=np.empty((_LOG if logging else 0, 4)),
    )


def _longer(values: Array, length: int) -> Array:
    """The same values, with zeros behind them."""
    longer = np.zeros((length, *values.shape[1:]))
    longer[: len(values)] = values
    return longer


class Rates(NamedTuple):
    """What is counted over the whole run, warm-up included."""

    time: float
    preemptions: float
    switches: float
    switching: float  # time
    unproved: int
    events: int


class Run:
    """The state of a simulation between chunks. What is counted is in batches of `batch_jobs` jobs, or the next power of two."""

    def __init__(
        self,
        system: System,
        decider: Decider,
        seed: np.random.SeedSequence,
        *,
        batch_jobs: int,
        log_jobs: int = 0,
        check: bool = False,
        compiled: bool | None = None,
    ) -> None:
        self.system, self.check = system, check
        self.log: list[Array] = []
        self._log_jobs = log_jobs  # the first jobs, of which everything is logged; 0 once all of them have left
        self._log_from = 0  # the first job that is logged
        self.engine = runner_of(decider.decide, compiled, check)
        self.state = new_state(system, decider, seeded(seed))
        self.server = new_server(len(system.names), logging=log_jobs > 0)
        # Of Rota's own decision functions only EASY looks at expected ends, and it stops no job.
        self.server.numbers[IN_GROUPS] = decider.decide in built_in()
        self._jobs = self.server.jobs
        self.target = np.zeros(len(system.names), dtype=np.int64)
        self.tally: Tally = new_tally(len(system.names), 0, (batch_jobs - 1).bit_length())

    @property
    def now(self) -> float:
        """The simulated time."""
        return float(self.state.clock[0])

    @property
    def events(self) -> int:
        """Events so far."""
        return int(self.server.numbers[EVENTS])

    @property
    def present(self) -> int:
        """Jobs in the system."""
        return int(self.state.system.sum())

    @property
    def present_by_type(self) -> Int:
        """Jobs in the system (K,)."""
        return self.state.system

    @property
    def arrived_by_type(self) -> Int:
        """Jobs that came (K,)."""
        return self.tally.arrived

    @property
    def histogram(self) -> Int:
        """What the histograms counted since the last `take_histogram`, (3, K or 1, BUCKETS)."""
        return self.tally.buckets

    def rates(self, policy: Policy) -> Rates:
        """What was counted over the whole run."""
        switches, unproved = float(self.state.mode[SWITCHES]), describe(policy, self.state).unproved
        return Rates(self.now, float(self.tally.preemptions.sum()), switches, float(self.tally.times[SWITCHED]), unproved, self.events)

    @property
    def batch_jobs(self) -> int:
        """Jobs in a batch."""
        return 1 << int(self.tally.numbers[SHIFT])

    @property
    def arrived(self) -> int:
        """Jobs that came and count."""
        return max(min(int(self.server.numbers[NEXT_JOB]), int(self.tally.numbers[LIMIT])), 0)

    @property
    def oldest(self) -> int:
        """The number of the job that has been here longest; that of the next to come if there is none."""
        first = self.state.oldest[self.state.oldest >= 0]
        return int(self.state.sequence[first].min()) if len(first) else int(self.server.numbers[NEXT_JOB])

    def begin_with(self, kinds: Int, sizes: Array, estimates: Array) -> None:
        """Jobs that are here at time 0, before any other has come. They do not count."""
        self.server.numbers[NEXT_JOB] = -len(kinds)
        self.feed(Chunk(np.zeros(len(kinds)), kinds, sizes, estimates))

    def begin_in(self, kinds: Int, sizes: Array, running: Int) -> None:
        """Jobs that are here at time 0, oldest first, of which the first `running` (K,) of each type run. They do not count."""
        self._make_room(len(kinds))
        state, served = self.state, running.copy()
        jobs = self._take_places(len(kinds))
        self._jobs["kind"][jobs], self._jobs["position"][jobs], self._jobs["sequence"][jobs] = kinds, -1, np.arange(-len(kinds), 0)
        for name in ("size", "remaining", "estimate", "finish"):
            self._jobs[name][jobs] = sizes
        in_service = []
        for job, i in zip(jobs.tolist(), kinds.tolist(), strict=True):
            link(state, job, i)
            if served[i] > 0:
                served[i] -= 1
                in_service.append(job)
                state.first_waiting[i] = -1  # the next one that is linked waits, or runs as well
        state.system[:] = np.bincount(kinds, minlength=len(running))
        state.running[:], self.target[:] = running, running
        state.free[:] -= running @ state.demand
        self._log_from, self.server.numbers[BEGUN] = -len(kinds), WITH_JOBS
        self._put_in_service(np.array(in_service, dtype=np.int64), self._jobs["remaining"][in_service])

    def _take_places(self, count: int) -> Int:
        """So many free places for jobs."""
        numbers = self.server.numbers
        places = self.server.unused[numbers[UNUSED] - count : numbers[UNUSED]][::-1].copy()
        numbers[UNUSED] -= count
        return places

    def _put_in_service(self, jobs: Int, ends: Array) -> None:
        """These jobs run, and no others, until their ends."""
        server, order = self.server, np.argsort(ends, kind="stable")  # a sorted array is a heap
        server.heap[: len(jobs)], server.ends[: len(jobs)] = jobs[order], ends[order]
        self._jobs["position"][jobs[order]] = np.arange(len(jobs))
        server.numbers[RUNNING], server.numbers[BACK], server.numbers[PAUSED_JOBS], server.times[HORIZON] = len(jobs), 0, 0, np.inf
        server.groups[:, [VACANT, FIRST_CHUNK]], server.groups[:, PAUSED] = -1, 0

    def stop_counting(self) -> None:
        """Jobs that come from now on do not count; those that came do, whenever they end."""
        self.tally.numbers[LIMIT] = self.arrived

    def feed(self, chunk: Chunk, *, drain: bool = False) -> None:
        """Lets the jobs of a chunk arrive; with `drain`, goes on until no job is left."""
        self._make_room(len(chunk.times))
        self._make_rows(min(int(self.server.numbers[NEXT_JOB]) + len(chunk.times), int(self.tally.numbers[LIMIT])))
        self.server.numbers[NEXT_ARRIVAL] = 0
        times, sizes, estimates = (np.ascontiguousarray(one, dtype=np.float64) for one in (chunk.times, chunk.sizes, chunk.estimates))
        jobs = times, np.ascontiguousarray(chunk.kinds, dtype=np.int64), sizes, estimates
        while True:
            logging = self._log_jobs > 0
            if logging:
                self._make_log()
            stopped: Any = self.engine(self.state, self.target, self.server, self.tally, *jobs, drain, logging, bool(self.check))
            if logging:
                self._take_log()
            if stopped != FULL_LOG:
                return

    def _make_room(self, arriving: int) -> None:
        """Doubles the places for jobs until a whole chunk fits beside those present."""
        have, server = len(self._jobs), self.server
        free = int(server.numbers[UNUSED])
        if free >= arriving:
            return
        need = max(2 * have, have + arriving - free, 1024)

        jobs = new_places(need)
        moved_to(jobs, self._jobs)
        self._jobs = jobs
        self._show_jobs(jobs)
        unused = np.zeros(need, dtype=np.int64)
        unused[:free] = server.unused[:free]
        unused[free : free + need - have] = np.arange(need - 1, have - 1, -1)  # low places are used first
        server.numbers[UNUSED] = free + need - have
        # Memory that is never used is never touched: what is new is not written, and scratch is not copied.
        places, near = need + self._places_behind(need), int(server.numbers[RUNNING])
        self.server = server._replace(
            jobs=jobs,
            heap=np.zeros(places, dtype=np.int64),
            ends=np.zeros(places),
            left=np.zeros(places),
            chunks=np.zeros(places // CHUNK, dtype=np.int64),
            unused=unused,
        )
        self.server.heap[:near], self.server.ends[:near] = server.heap[:near], server.ends[:near]
        if server.numbers[BACK] > 0:
            back = have + np.arange(int(server.numbers[BACK]))
            paused = back[server.left[back] < np.inf]
            jobs["remaining"][server.heap[paused]], jobs["position"][server.heap[paused]] = server.left[paused], -1
            running = np.r_[:near, back[server.ends[back] < np.inf]]
            self._put_in_service(server.heap[running], server.ends[running])

    def _places_behind(self, jobs: int) -> int:
        """How many places there are behind the heap (`rota.simulation.back`), for so many jobs."""
        return jobs + CHUNK * len(self.server.groups)

    def _show_jobs(self, jobs: Any) -> None:
        """Decisions see these jobs from now on."""
        self.state = with_places(self.state, jobs)

    def _make_rows(self, jobs: int) -> None:
        """Makes the arrays large enough for the batches of this many jobs."""
        tally, need = self.tally, max(jobs, 0) // self.batch_jobs + 1
        if len(tally.rows) >= need:
            return
        more = max(need, 2 * len(tally.rows), _ROWS)
        self.tally = tally._replace(rows=_longer(tally.rows, more), areas=_longer(tally.areas, more), span=_longer(tally.span, more))

    def _make_log(self) -> None:
        need = 4 * self.present + 64
        if len(self.server.log) < max(need, _LOG):
            self.server = self.server._replace(log=np.empty((2 * max(need, _LOG), 4)))

    def _take_log(self) -> None:
        """Keeps the entries of the jobs that are to be logged, and ends the log when all of them have left."""
        entries = self.server.log[: int(self.server.numbers[LOGGED])]
        self.server.numbers[LOGGED] = 0
        self.log.append(entries[(entries[:, 3] >= self._log_from) & (entries[:, 3] < self._log_jobs)])
        if self.oldest >= self._log_jobs:
            self._log_jobs = 0

    def batches(self) -> tuple[Array, Array, Array]:
        """Sums (n, K, 7) of all batches that have begun, integrals (m, 2, K) and spans (m, 2) of those that are closed."""
        begun, closed = -(-self.arrived // self.batch_jobs), int(self.tally.numbers[CLOSED])
        return self.tally.rows[:begun], self.tally.areas[:closed], self.tally.span[:closed]

    def close_batch(self) -> None:
        """Ends the time of the last batch, which may have fewer jobs than the others; if it is closed already, prolongs it until now."""
        tally, state, row = self.tally, self.state, int(self.tally.numbers[CLOSED])
        tally.area[:] += (self.now - tally.since) * np.stack([state.system, state.running])
        tally.since[:] = self.now
        if self.server.numbers[IN_BATCH] > 0:
            tally.span[row, 0] = tally.times[BATCH_BEGAN]
            tally.numbers[CLOSED], self.server.numbers[IN_BATCH] = row + 1, 0
        elif row > 0:
            row -= 1
        tally.areas[row] += tally.area
        tally.span[row, 1] = tally.times[BATCH_BEGAN] = self.now
        tally.area[:] = 0.0

    def join_batches(self) -> None:
        """Joins neighbouring batches, an even number of them, all closed; from now on batches have twice as many jobs."""
        tally, n = self.tally, int(self.tally.numbers[CLOSED])
        for values in (tally.rows, tally.areas):
            values[: n // 2] = values[:n].reshape(n // 2, 2, *values.shape[1:]).sum(axis=1)
            values[n // 2 :] = 0.0
        tally.span[: n // 2] = np.column_stack([tally.span[:n:2, 0], tally.span[1:n:2, 1]])
        tally.numbers[CLOSED], tally.numbers[SHIFT] = n // 2, tally.numbers[SHIFT] + 1

    def count_unfinished(self) -> Int:
        """Counts the jobs that are still here with the time they have been here so far; returns how many of each type (K,)."""
        present = np.ones(len(self._jobs), dtype=bool)
        present[self.server.unused[: self.server.numbers[UNUSED]]] = False
        present &= (self.state.sequence >= 0) & (self.state.sequence < self.tally.numbers[LIMIT])
        jobs = np.flatnonzero(present)
        jobs = jobs[np.argsort(self.state.sequence[jobs])]  # added in this order, whatever their places
        here = self._jobs[jobs]
        kinds, ages, position = here["kind"], self.now - here["arrival"], here["position"]
        left = np.where(position >= 0, self._left_at(position), here["remaining"])
        waits, slowdown = np.maximum(ages - (here["size"] - left), 0.0), ages / np.maximum(here["size"], 1e-300)
        measured = np.column_stack([np.ones_like(ages), ages, ages**2, waits, waits**2, slowdown, slowdown**2])
        np.add.at(self.tally.rows, (self.state.sequence[jobs] >> int(self.tally.numbers[SHIFT]), kinds), measured)
        return np.bincount(kinds, minlength=len(self.system.names))

    def _left_at(self, places: Int) -> Array:
        """How much is left of the jobs at these places, which run or are paused."""
        ends = self.server.ends[places]
        left: Array = np.where(ends < np.inf, ends - self.now, self.server.left[places])
        return left

    def take_histogram(self) -> Counts:
        """What the histograms counted since the last call."""
        flat = self.tally.buckets.reshape(-1)
        places = np.flatnonzero(flat != 0)  # of truth values six times faster than of numbers
        counts = flat[places]
        flat[places] = 0
        return Counts(places, counts)
