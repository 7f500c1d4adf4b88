"""When will this job start?

Under a rota without backfilling the exact law is known (`rota.analysis.job_times`), as long as what runs is what the rota asks for and
sizes are exponential. For all other cases the present state is simulated forward many times, with the policy's own decisions.

Unknown values are drawn at random: the remaining time of running jobs (their distribution, given how long they have run), the time that
waiting jobs will take, and arrivals, at the rates and sizes that were learnt. The policy's own random numbers are drawn anew as well.

The compiled simulator does this (`rota.simulation.ahead`). It knows jobs of types only; own jobs are added beside it: a running one gives
its resources back at its end, a waiting one starts when the others leave enough free. Simplified: what suspended jobs keep is left out, and
own jobs do not delay a rota. Where there are few jobs, the scheduler itself is simulated instead (`play_forward`), which is exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rota.analysis import TimeLaw
from rota.arrays import Array, Int
from rota.errors import Infeasible
from rota.live.scheduling.law_of_start import law_of_start
from rota.live.scheduling.play_forward import play_forward, still_needed
from rota.live.scheduling.scheduler import OWN, Scheduler
from rota.live.scheduling.starts import Starts
from rota.model import System
from rota.model.workload import Chunk
from rota.simulation.ahead import Ahead, Present
from rota.simulation.engine import FINISH, PREEMPT, STARTED
from rota.simulation.streams import SystemArrivals

__all__ = ["Outlook", "forecast"]

RUNS = 99  # futures
_FEW = 200  # jobs whose future the scheduler simulates in milliseconds
_CALL_S = 0.01  # computing time per call: other threads wait meanwhile


def forecast(
    scheduler: Scheduler,
    served: Mapping[int, float],
    job: int,
    now: float,
    *,
    system: System | None = None,
    runs: int = RUNS,
    budget_s: float | None = None,
    seed: int = 0,
    by_theory: bool = True,
) -> Starts:
    """When the job starts, from `now` on: exactly, or in as many futures as the budget allows. `served`: time in service, by job.

    Arrivals and sizes are those of `system`, which may be learnt and differ from the plan's. `by_theory=False`: always by futures.
    """
    return Outlook(scheduler, served, job, now, system, by_theory=by_theory).starts(runs, budget_s, seed)


class Outlook:
    """A copy of the present state, to be simulated forward; the scheduler may change meanwhile."""

    def __init__(
        self,
        scheduler: Scheduler,
        served: Mapping[int, float],
        job: int,
        now: float,
        system: System | None = None,
        *,
        by_theory: bool = True,
    ) -> None:
        known = scheduler.system if system is None else system
        self._law = law_of_start(scheduler, job, now, known) if by_theory else None
        keeps = scheduler.kept_when_suspended.any() and any(here.state == "suspended" for here in scheduler.started())
        exact = len(scheduler.jobs) <= _FEW and (keeps or bool(scheduler.own()))
        self._play: Callable[[np.random.SeedSequence, float], tuple[float, bool]]
        if exact:
            twin = scheduler.copy()
            self._play = lambda seed, until: play_forward(twin.copy(), served, job, now, known, seed, until)
        else:
            self._play = _Simulated(scheduler, served, job, now, known)

    def prepare(self) -> None:
        """Compiles what is needed, which takes a while if no simulation of this policy was run before."""
        if self._exact is None and isinstance(self._play, _Simulated):
            self._play.prepare()

    @cached_property
    def _exact(self) -> TimeLaw | None:
        """The law of the start, if theory holds and it does not take too long."""
        with suppress(Infeasible):
            return None if self._law is None else self._law().start
        return None

    def starts(self, runs: int = RUNS, budget_s: float | None = None, seed: int = 0) -> Starts:
        """When the job starts: exactly, or in as many futures as the budget allows, fewer if they run in Python."""
        self.prepare()
        if self._exact is not None:
            return Starts(law=self._exact)
        budget_s = (2.0 if isinstance(self._play, _Simulated) else 0.5) if budget_s is None else budget_s
        started: list[float] = []
        cut: list[float] = []
        until = time.monotonic() + budget_s
        for number in range(runs):
            if time.monotonic() >= until:
                break
            reached, starts = self._play(np.random.SeedSequence([seed, number]), until)
            (started if starts else cut).append(reached)
        return Starts(tuple(sorted(started)), tuple(sorted(cut)))


@dataclass
class _Own:
    """A job that no type encloses: what it needs, when it ends (if it runs), how long it will take (if it waits)."""

    id: int
    demand: Int
    mean: float
    served: float
    end: float = np.inf


class _Simulated:
    """Futures by the compiled simulator."""

    def __init__(self, scheduler: Scheduler, served: Mapping[int, float], job: int, now: float, system: System) -> None:
        self._system, self._decider, self._job, self._now = system, scheduler.decider, job, now
        s, (places, kinds, serving, before) = scheduler.state, _listed(scheduler, served)
        self._sequence = scheduler.jobs[job].sequence if scheduler.jobs[job].kind != OWN else -1
        mean = float((1 / system.service_rate).mean())
        own = {here.id: _Own(here.id, here.demand, here.estimate or mean, served.get(here.id, 0.0)) for here in scheduler.own()}
        self._own_running = [own[here.id] for here in scheduler.own() if here.state in ("running", "stopping")]
        self._own_waiting = [own[here.id] for here in scheduler.own() if here.state in ("waiting", "suspended")]
        self._served, self._serving = before, places[serving]
        self._waiting = [places[(kinds == i) & ~serving] for i in range(len(system.names))]
        free = s.capacity - s.running @ s.demand - sum((x.demand for x in self._own_running), 0 * s.capacity)
        all_kinds, all_serving = np.full(len(s.newer), -1, dtype=np.int64), np.zeros(len(s.newer), dtype=bool)
        all_kinds[places], all_serving[places] = kinds, serving
        copied = s._replace(**{name: getattr(s, name).copy() for name in s._fields if name != "data"})
        copied = copied._replace(free=free, clock=np.array([now]))
        ask = scheduler.is_behind() or any(here.state == "stopping" for here in scheduler.started())
        self._present = Present(copied, all_kinds, all_serving, scheduler.next_sequence(), max(scheduler.wake, now), ask)
        self._estimates = 1 / s.service_rate

    def prepare(self) -> None:
        """Loads or compiles the simulator."""
        no_arrivals = Chunk(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
        ahead = Ahead(self._system, self._decider, self._present, np.ones(len(self._present.kinds)), np.random.SeedSequence(0))
        ahead.go_on(no_arrivals, -np.inf)

    def __call__(self, seed: np.random.SeedSequence, until: float) -> tuple[float, bool]:
        """One future: when the job starts in it, and True; how far it was followed, and False. That is for ever if the job never starts."""
        sizes, arrivals, policy = seed.spawn(3)
        draw, system = np.random.default_rng(sizes), self._system
        remaining = np.ones(len(self._present.kinds))
        for i, places in enumerate(self._waiting):
            remaining[places] = system.sizes[i].sample(draw, len(places))
        for place in (*self._serving, *self._served):
            remaining[place] = still_needed(system, int(self._present.kinds[place]), self._served.get(int(place), 0.0), draw)
        own_running = [replace(own, end=self._now + draw.exponential(own.mean)) for own in self._own_running]
        own_waiting = list(self._own_waiting)
        ahead = Ahead(system, self._decider, self._present, remaining, policy)
        coming = _Coming(system, arrivals, self._now, self._estimates)
        now, step = self._now, float((1 / system.service_rate).min()) / 4
        while True:
            if time.monotonic() > until:
                return now - self._now, False
            ending = min(own_running, key=lambda own: own.end, default=None)
            stop = now + step if ending is None else min(now + step, ending.end)
            if not np.isfinite(stop) or (coming.over and ending is None and ahead.is_dead()):
                return np.inf, False  # nothing will ever happen
            began, free = time.monotonic(), ahead.state.free.copy()
            entries = ahead.go_on(coming.by(stop), stop)
            took = time.monotonic() - began
            if (start := ahead.start_of(entries, self._sequence)) is not None:
                return max(start - self._now, 0.0), True
            for own in list(own_waiting):
                if (t := _first_fit(free, entries, ahead.state.demand, own.demand, now)) is None:
                    continue
                if own.id == self._job:
                    return max(t - self._now, 0.0), True
                own_waiting.remove(own)
                own_running.append(replace(own, end=stop + draw.exponential(own.mean)))
                ahead.state.free[:] -= own.demand
                free = free - own.demand
            now, step = stop, step * (2.0 if took < _CALL_S / 2 else 0.5 if took > 2 * _CALL_S else 1.0)
            if ending is not None and ending.end <= stop:
                own_running.remove(ending)
                ahead.state.free[:] += ending.demand
                ahead.ask_again(stop)


class _Coming:
    """Arrivals from now on, in order of time. They do not depend on how the time is divided into steps."""

    def __init__(self, system: System, seed: np.random.SeedSequence, now: float, estimates: Array) -> None:
        self._chunks: Iterator[Chunk] = SystemArrivals(1024).chunks(system, seed)
        self._now, self._estimates = now, estimates
        self._times, self._kinds, self._sizes = np.empty(0), np.empty(0, dtype=np.int64), np.empty(0)
        self.over = float(system.arrival_rate.sum()) == 0

    def by(self, until: float) -> Chunk:
        """The arrivals up to a time that were not returned before."""
        while not self.over and (not len(self._times) or self._times[-1] <= until):
            chunk = next(self._chunks)
            self._times = np.concatenate([self._times, self._now + chunk.times])
            self._kinds, self._sizes = np.concatenate([self._kinds, chunk.kinds]), np.concatenate([self._sizes, chunk.sizes])
        n = int(np.searchsorted(self._times, until, side="right"))
        found = Chunk(self._times[:n], self._kinds[:n], self._sizes[:n], self._estimates[self._kinds[:n]])
        self._times, self._kinds, self._sizes = self._times[n:], self._kinds[n:], self._sizes[n:]
        return found


def _listed(scheduler: Scheduler, served: Mapping[int, float]) -> tuple[Int, Int, np.ndarray, dict[int, float]]:
    """Of the jobs of types: places, types, and whether they are in service; and by place, the time in service so far where positive."""
    here = list(scheduler.typed())
    places = np.fromiter((job.place for job in here), np.int64, len(here))
    kinds = np.fromiter((job.kind for job in here), np.int64, len(here))
    serving = np.fromiter((job.state == "running" for job in here), bool, len(here))
    return places, kinds, serving, {job.place: served[job.id] for job in here if served.get(job.id, 0.0) > 0}


def _first_fit(free: Int, entries: Array, demand: Int, need: Int, now: float) -> float | None:
    """When the free capacity first covered `need`, after all entries of the same time; it begins at `free` and changes with the entries."""
    if (need <= free).all():
        return now
    if not len(entries):
        return None
    gives = np.select([entries[:, 1] == STARTED, (entries[:, 1] == FINISH) | (entries[:, 1] == PREEMPT)], [-1, 1], 0)
    free_then = free + np.cumsum(gives[:, None] * demand[entries[:, 2].astype(np.int64)], axis=0)
    last = np.append(np.diff(entries[:, 0]) > 0, True)  # the last entry of each time
    fits = np.flatnonzero(last & (free_then >= need).all(axis=1))
    return float(entries[fits[0], 0]) if len(fits) else None
