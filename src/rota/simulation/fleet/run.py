"""One run of a fleet: the arrays of the engine, fed with chunks of jobs. It measures as a run of one server does, and by kind of server."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.decide import describe
from rota.decide.state import SWITCHES, SWITCHING
from rota.errors import Infeasible
from rota.model.workload import Chunk
from rota.policy import Custom, Policy
from rota.simulation.compiled import put_decision
from rota.simulation.engine import FULL_LOG
from rota.simulation.fleet.build import build
from rota.simulation.fleet.compiled import choosing, fleet_engine, looking_of
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.state import CAME, GONE, INSIDE, LINES, LINES_PER_JOB, RUNS, SINCE, SYSTEM, in_lines
from rota.simulation.fleet.state import MODE as MODES
from rota.simulation.fleet.state import SWITCHED as SWITCHED_FLEET
from rota.simulation.run import Rates, Run, new_server
from rota.simulation.server import BACK, IN_BATCH, LOGGED, NEXT_ARRIVAL, NEXT_JOB, RUNNING, UNUSED, new_places, with_places
from rota.simulation.tally import (
    BATCH_BEGAN,
    CLOSED,
    COLUMNS,
    COUNT,
    LIMIT,
    PRESENT,
    RESPONSE,
    SERVED,
    SHIFT,
    Counts,
    Tally,
    histograms,
    new_tally,
)
from rota.views import View

__all__ = ["FleetRun", "KindSums"]

_NO_PLACES = 1 << 60  # at the back of a heap, more than there are: so no job is put there


class KindSums(NamedTuple):
    """By kind and type (C, K): jobs that counted, the sum of their response times, and the time integral of those in service."""

    jobs: Array
    responses: Array
    served: Array


class FleetRun(Run):
    """The state of a simulation of a fleet between chunks."""

    def __init__(
        self, policy: FleetPolicy, seed: np.random.SeedSequence, *, batch_jobs: int, log_jobs: int = 0, check: bool = False
    ) -> None:
        self.policy, self.check = policy, check
        self.system, self.log = policy.fleet, []  # type: ignore[assignment]  # what is used of it, both have
        self._log_jobs, self._log_from = log_jobs, 0
        self.fleet, self.states, self._targets, self._since = build(policy, seed)
        places = int(self.fleet.heap_size @ policy.fleet.count)  # memory that is never used is never touched
        self.server = new_server(len(policy.fleet.names), logging=bool(log_jobs))._replace(
            base=np.zeros(1, dtype=np.int64), heap=in_lines((places,), np.dtype(np.int32)), ends=in_lines((places,), np.dtype(np.float64))
        )
        self._jobs = self.server.jobs
        self._oldest = 0, -1 - GONE  # the place of the oldest job and its number, when it was last looked for
        self.engine = fleet_engine
        shift = (batch_jobs - 1).bit_length()
        self._shared = new_tally(0, 0, shift)
        self.tallies: list[Tally] = []
        self._use_tallies([new_tally(len(target), 0, shift) for target in self._targets])
        self._views: list[View] = []

    def _use_tallies(self, tallies: list[Tally]) -> None:
        """The tallies of the kinds; what is counted for all servers together is shared."""
        shared = {name: getattr(self._shared, name) for name in ("numbers", "times", "span")}
        self.tallies = [tally._replace(since=since, **shared) for tally, since in zip(tallies, self._since, strict=True)]
        self.tally = self.tallies[0]
        self._views = []

    # ------------------------------------------------------------------------------------------------------------ what is there

    @property
    def now(self) -> float:
        """The simulated time."""
        return float(self.fleet.clock[0])

    @property
    def present(self) -> int:
        """Jobs in the fleet."""
        return int(self.fleet.numbers[INSIDE])

    @property
    def present_by_type(self) -> Int:
        """Jobs in the fleet (K,)."""
        return np.asarray(self.fleet.present.sum(axis=0) + self.fleet.held)

    @property
    def arrived_by_type(self) -> Int:
        """Jobs that came (K,)."""
        return self.fleet.arrived

    @property
    def oldest(self) -> int:
        """The number of the job that has been here longest; that of the next to come if there is none."""
        place, number = self._oldest
        if place >= len(self._jobs) or self._jobs["sequence"][place] != number:  # it has left, or its data moved
            jobs = self._inside()
            if not len(jobs):
                return int(self.server.numbers[NEXT_JOB])
            place = int(jobs[self._jobs["sequence"][jobs].argmin()])
            self._oldest = place, int(self._jobs["sequence"][place])
        return self._oldest[1]

    def _inside(self) -> Int:
        """The places of the jobs that are here."""
        inside = np.ones(len(self._jobs), dtype=bool)
        inside[self.server.unused[: self.server.numbers[UNUSED]]] = False
        return np.flatnonzero(inside)

    def rates(self, policy: Policy) -> Rates:
        """What was counted over the whole run; the part of the time that a server switches is a mean over the servers."""
        fleet, modes = self.fleet, int(self.fleet.at[MODES])
        switching = fleet.times[SWITCHED_FLEET] + ((self.now - fleet.last_event) * fleet.rows[:, modes + SWITCHING]).sum()
        preemptions = sum(float(tally.preemptions.sum()) for tally in self.tallies)
        switches = float(fleet.rows[:, modes + SWITCHES].sum())
        return Rates(self.now, preemptions, switches, float(switching) / len(fleet.kind), self._unproved(), self.events)

    def _unproved(self) -> int:
        """Decisions that may not be the best, on all servers."""
        total, fleet = 0, self.fleet
        for c, (policy, state) in enumerate(zip(self.policy.policies, self.states, strict=True)):
            if policy is None or isinstance(policy, Custom):
                continue
            for m in range(fleet.first[c], fleet.first[c + 1]):
                fleet.current[c] = fleet.rows[m]
                total += describe(policy, state).unproved
        return total

    # ------------------------------------------------------------------------------------------------------------ running

    def feed(self, chunk: Chunk, *, drain: bool = False) -> None:
        """Lets the jobs of a chunk arrive; with `drain`, goes on until no job is left."""
        self._make_room(len(chunk.times))
        self._make_rows(min(int(self.server.numbers[NEXT_JOB]) + len(chunk.times), int(self.tally.numbers[LIMIT])))
        self.server.numbers[NEXT_ARRIVAL] = 0
        columns = [np.ascontiguousarray(column) for column in chunk]
        while True:
            logging = self._log_jobs > 0
            if logging:
                self._make_log()
            if not self._views:
                self._make_views()
            fleet, looks, *states = self._views
            kinds = len(self.states)
            server, tally = View(self.server), states[kinds]
            try:
                stopped = self.engine(fleet, looks, states[0].without("data"), server, tally, *columns, drain, logging, self.check)
            except (ValueError, IndexError) as error:  # of a function of the user; the others raise nothing
                raise Infeasible(f"{error}: under {self.policy.label}") from error
            if logging:
                self._take_log()
            if stopped != FULL_LOG:
                return

    def _make_views(self) -> None:
        """The words of all arrays, for compiled code."""
        kinds = [View(state, target=target) for state, target in zip(self.states, self._targets, strict=True)]
        for view, policy in zip(kinds, self.policy.policies, strict=True):
            put_decision(view, policy, self.check)
        tallies = [View(tally) for tally in self.tallies]
        self.fleet.states[:] = [view.address for view in kinds]
        self.fleet.tallies[:] = [view.address for view in tallies]
        fleet, looks = View(self.fleet), View(self.fleet)
        rule = self.policy.dispatch.load()
        choosing(fleet, rule, self.check)
        looking_of(looks, rule)
        self._views = [fleet, looks, *kinds, *tallies]

    def _make_room(self, arriving: int) -> None:
        """Places for jobs; the heaps of the servers stay as they are."""
        kept, numbers = {name: getattr(self.server, name) for name in ("heap", "ends")}, self.server.numbers
        numbers[RUNNING], numbers[BACK] = 0, 0
        super()._make_room(arriving)
        self.server = self.server._replace(**kept)
        numbers[BACK] = _NO_PLACES

    def _places_behind(self, jobs: int) -> int:
        """None: these places are by type, and the types here are those of many servers."""
        return 0

    def _show_jobs(self, jobs: Any) -> None:
        place = np.full(len(jobs), -1, dtype=np.int64)
        place[: len(self.fleet.place)] = self.fleet.place
        order = jobs["sequence"]
        if self.fleet.numbers[CAME] >= 0:  # elsewhere as far apart as the numbers of the jobs, for which decision functions are compiled
            order = new_places(len(jobs))["sequence"]
            order[: len(self.fleet.order)] = self.fleet.order
        self.states = [with_places(state, jobs)._replace(sequence=order) for state in self.states]
        self.fleet = self.fleet._replace(place=place, order=order)
        self._views = []

    # ------------------------------------------------------------------------------------------------------------ counting

    def _make_rows(self, jobs: int) -> None:
        """Makes the arrays large enough for the batches of this many jobs."""
        need, have = max(jobs, 0) // self.batch_jobs + 1, len(self.tally.rows)
        if have >= need:
            return
        need = max(need, 2 * have)
        grown = [_longer(self._shared.span, need), _longer(self.fleet.held_areas, need)]
        self._shared = self._shared._replace(span=grown[0])
        self.fleet = self.fleet._replace(held_areas=grown[1])
        self._use_tallies([tally._replace(rows=_longer(tally.rows, need), areas=_longer(tally.areas, need)) for tally in self.tallies])

    def batches(self) -> tuple[Array, Array, Array]:
        """Sums (n, K, 7) of all batches that have begun, integrals (m, 2, K) and spans (m, 2) of those that are closed."""
        begun, closed = -(-self.arrived // self.batch_jobs), int(self.tally.numbers[CLOSED])
        rows, areas = np.zeros((begun, len(self.system.names), len(COLUMNS))), np.zeros((closed, 2, len(self.system.names)))
        for tally, types in zip(self.tallies, self._types(), strict=True):
            rows[:, types] += tally.rows[:begun]
            areas[:, :, types] += tally.areas[:closed]
        areas[:, PRESENT] += self.fleet.held_areas[:closed]
        return rows, areas, self.tally.span[:closed]

    def by_kind(self, cut: int) -> KindSums:
        """What was counted on each kind of server, from this batch on."""
        shape, closed = (len(self.tallies), len(self.system.names)), int(self.tally.numbers[CLOSED])
        sums = KindSums(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        for c, (tally, types) in enumerate(zip(self.tallies, self._types(), strict=True)):
            sums.jobs[c, types] = tally.rows[cut:, :, COUNT].sum(axis=0)
            sums.responses[c, types] = tally.rows[cut:, :, RESPONSE].sum(axis=0)
            sums.served[c, types] = tally.areas[cut:closed, SERVED].sum(axis=0)
        return sums

    def _types(self) -> list[Int]:
        """The types of each kind."""
        return [types[: len(target)] for types, target in zip(self.fleet.types, self._targets, strict=True)]

    @property
    def histogram(self) -> Int:
        """What the histograms of all kinds counted since the last `take_histogram`."""
        total = histograms(len(self.system.names))
        for tally, types in zip(self.tallies, self._types(), strict=True):
            if total.shape[1] == tally.buckets.shape[1] == 1 or total.shape[1] > 1:
                total[:, types if total.shape[1] > 1 else [0]] += tally.buckets
            else:
                total[:, 0] += tally.buckets.sum(axis=1)
        return total

    def take_histogram(self) -> Counts:
        """What the histograms counted since the last call."""
        flat = self.histogram.reshape(-1)
        for tally in self.tallies:
            tally.buckets[:] = 0
        places = np.flatnonzero(flat)
        return Counts(places, flat[places])

    def close_batch(self) -> None:
        """Ends the time of the last batch, which may have fewer jobs than the others; if it is closed already, prolongs it until now."""
        fleet, shared, row, now = self.fleet, self.tally, int(self.tally.numbers[CLOSED]), self.now
        system, running, since = (int(fleet.at[part]) for part in (SYSTEM, RUNS, SINCE))
        for c, tally in enumerate(self.tallies):
            mine, k = slice(int(fleet.first[c]), int(fleet.first[c + 1])), len(self._targets[c])
            spans = now - fleet.row_floats[mine, since : since + k]
            tally.area[PRESENT] += (spans * fleet.rows[mine, system : system + k]).sum(axis=0)
            tally.area[SERVED] += (spans * fleet.rows[mine, running : running + k]).sum(axis=0)
            fleet.row_floats[mine, since : since + k] = now
        fleet.held_area[:] += (now - fleet.held_since) * fleet.held
        fleet.held_since[:] = now
        if self.server.numbers[IN_BATCH] > 0:
            shared.span[row, 0] = shared.times[BATCH_BEGAN]
            shared.numbers[CLOSED], self.server.numbers[IN_BATCH] = row + 1, 0
        elif row > 0:
            row -= 1
        for tally in self.tallies:
            tally.areas[row] += tally.area
            tally.area[:] = 0.0
        fleet.held_areas[row] += fleet.held_area
        fleet.held_area[:] = 0.0
        shared.span[row, 1] = shared.times[BATCH_BEGAN] = now

    def join_batches(self) -> None:
        """Joins neighbouring batches, an even number of them, all closed; from now on batches have twice as many jobs."""
        n = int(self.tally.numbers[CLOSED])
        for values in [self.fleet.held_areas, *(part for tally in self.tallies for part in (tally.rows, tally.areas))]:
            values[: n // 2] = values[:n].reshape(n // 2, 2, *values.shape[1:]).sum(axis=1)
            values[n // 2 :] = 0.0
        span, numbers = self.tally.span, self.tally.numbers
        span[: n // 2] = np.column_stack([span[:n:2, 0], span[1:n:2, 1]])
        numbers[CLOSED], numbers[SHIFT] = n // 2, numbers[SHIFT] + 1

    def count_unfinished(self) -> Int:
        """Counts the jobs that are still here with the time they have been here so far; returns how many of each type (K,)."""
        jobs = self._inside()
        sequence = self._jobs["sequence"][jobs]
        jobs = jobs[(sequence >= 0) & (sequence < self.tally.numbers[LIMIT])]
        here, place, count = self._jobs[jobs], self.fleet.place[jobs], np.zeros(len(self.system.names), dtype=np.int64)
        at_server = (place >= 0) & (here["position"] != -1) | (place >= 0) & ~np.isin(jobs, self._in_transit())
        for c, (tally, types) in enumerate(zip(self.tallies, self._types(), strict=True)):
            if not len(types):
                continue
            of_kind = at_server & (self.fleet.kind[np.maximum(place, 0)] == c)
            # A job at no server has the number of a type of the fleet; it counts on a kind where it could run.
            free = ~at_server & (self._home(here["kind"]) == c)
            for chosen, local in ((of_kind, here["kind"]), (free, self.fleet.local[c, np.minimum(here["kind"], len(count) - 1)])):
                self._count_age(tally, here[chosen], local[chosen], place[chosen])
                np.add.at(count, types[local[chosen]], 1)
        return count

    def _home(self, types: Int) -> Int:
        """The first kind on which each of these types can run."""
        return np.asarray(np.argmax(self.fleet.local >= 0, axis=0)[np.minimum(types, len(self.system.names) - 1)])

    def _in_transit(self) -> Int:
        """Jobs that are on their way to a server."""
        from rota.simulation.fleet.state import TRANSIT_FIRST

        found, job = [], int(self.fleet.numbers[TRANSIT_FIRST])
        while job >= 0:
            found.append(job)
            job = int(self._jobs["newer"][job])
        return np.array(found, dtype=np.int64)

    def _count_age(self, tally: Tally, here: Any, local: Int, place: Int) -> None:
        kind = self.fleet.kind[np.maximum(place, 0)]
        ages, position = self.now - here["arrival"], here["position"]
        base = self.fleet.heap_first[kind] + (place - self.fleet.first[kind]) * self.fleet.heap_size[kind]
        left = np.where(position >= 0, self.server.ends[np.where(position >= 0, base + position, 0)] - self.now, here["remaining"])
        waits, slowdown = np.maximum(ages - (here["size"] - left), 0.0), ages / np.maximum(here["size"], 1e-300)
        measured = np.column_stack([np.ones_like(ages), ages, ages**2, waits, waits**2, slowdown, slowdown**2])
        np.add.at(tally.rows, (here["sequence"] >> int(tally.numbers[SHIFT]), local), measured)

    # ------------------------------------------------------------------------------------------------------------ log

    def _make_log(self) -> None:
        numbers = self.fleet.numbers
        need = int(numbers[LINES] + numbers[LINES_PER_JOB] * (self.present + 1))
        if len(self.server.log) < need or len(self.fleet.log_place) < len(self.server.log):
            size = max(2 * need, 1 << 16)
            self.server = self.server._replace(log=np.empty((size, 4)))
            self.fleet = self.fleet._replace(log_place=np.zeros(size, dtype=np.int64))
            self._views = []

    def _take_log(self) -> None:
        """Keeps the entries of the jobs that are to be logged, with the server and the type of the fleet."""
        n = int(self.server.numbers[LOGGED])
        entries = np.column_stack([self.server.log[:n], self.fleet.log_place[:n]])
        self.server.numbers[LOGGED] = 0
        place, local = entries[:, 4].astype(np.int64), entries[:, 2].astype(np.int64)
        at_server = place >= 0
        entries[at_server, 2] = self.fleet.types[self.fleet.kind[place[at_server]], local[at_server]]
        self.log.append(entries[(entries[:, 3] >= self._log_from) & (entries[:, 3] < self._log_jobs)])
        if self.oldest >= self._log_jobs:
            self._log_jobs = 0


def _longer(values: Array, rows: int) -> Array:
    """The same rows, and zeros behind them."""
    longer = np.zeros((rows, *values.shape[1:]))
    longer[: len(values)] = values
    return longer
