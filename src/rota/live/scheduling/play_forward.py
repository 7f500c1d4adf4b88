"""Simulates a scheduler forward in plain Python: slow, but exact, with all that own, suspended and stopping jobs hold."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Mapping

import numpy as np

from rota.decide import seeded
from rota.live.scheduling.scheduler import OWN, Decision, Scheduler
from rota.model import System
from rota.simulation.streams import SystemArrivals

__all__ = ["play_forward", "still_needed"]

_LONGER = 64  # draws of a size; if none exceeds the time served already, the remaining size is the mean


def play_forward(
    scheduler: Scheduler, served: Mapping[int, float], job: int, begin: float, system: System, seed: np.random.SeedSequence, until: float
) -> tuple[float, bool]:
    """One future of a scheduler (which is changed): when the job starts in it, and True; how far it was followed, and False.

    That is for ever if the job never starts.
    """
    draw, now = np.random.default_rng(seed), begin
    scheduler.state.random[:] = seeded(seed)
    kinds = {id: here.kind for id, here in scheduler.jobs.items()}
    left: dict[int, float] = {}  # remaining size of jobs that were served before
    running = {
        id: now + still_needed(system, here.kind, served.get(id, 0.0), draw, here.estimate)
        for id, here in scheduler.jobs.items()
        if here.state == "running"
    }
    ends = [(end, id) for id, end in running.items()]
    heapq.heapify(ends)
    stopping = [id for id, here in scheduler.jobs.items() if here.state == "stopping"]
    rate, newest = float(system.arrival_rate.sum()), max(kinds) + 1
    share = np.cumsum(system.arrival_rate / rate) if rate > 0 else system.arrival_rate
    bursts = _bursts(system, seed, begin) if system.bursty else None
    arrival, coming = next(bursts) if bursts else (now + draw.exponential(1 / rate) if rate > 0 else np.inf, 0)

    def obey(orders: Decision) -> bool:
        for id in orders.stop:
            left[id] = max(running.pop(id) - now, 0.0)
            if scheduler.jobs[id].state == "stopping":
                stopping.append(id)
        for id in (*orders.start, *orders.resume):
            running[id] = now + (
                left.pop(id) if id in left else still_needed(system, kinds[id], served.get(id, 0.0), draw, scheduler.jobs[id].estimate)
            )
            heapq.heappush(ends, (running[id], id))
        return job in running

    while True:
        if time.monotonic() > until:
            return now - begin, False
        if stopping:  # simplified: stopping takes no time
            if obey(scheduler.stopped(stopping.pop(), now)):
                return now - begin, True
            continue
        while ends and running.get(ends[0][1]) != ends[0][0]:
            heapq.heappop(ends)
        end = ends[0][0] if ends else np.inf
        if min(end, arrival, scheduler.wake) == np.inf:
            return np.inf, False  # nothing will ever happen
        if end <= min(arrival, scheduler.wake):
            now, id = heapq.heappop(ends)
            del running[id]
            orders = scheduler.leave(id, now)
        elif scheduler.wake <= arrival:
            now = max(now, scheduler.wake)
            orders = scheduler.tick(now)
        else:
            now = arrival
            kind = coming if bursts else min(int(np.searchsorted(share, draw.random(), side="right")), len(share) - 1)
            kinds[newest] = kind
            orders = scheduler.arrive(newest, kind, now)
            newest += 1
            arrival, coming = next(bursts) if bursts else (now + draw.exponential(1 / rate), 0)
        if obey(orders):
            return now - begin, True


def _bursts(system: System, seed: np.random.SeedSequence, begin: float) -> Iterator[tuple[float, int]]:
    """Times and types of arrivals that are not Poisson; in which phase they are now is not known, so it is drawn."""
    for chunk in SystemArrivals(256).chunks(system, seed):
        yield from zip((begin + chunk.times).tolist(), chunk.kinds.tolist(), strict=True)


def still_needed(system: System, kind: int, served: float, draw: np.random.Generator, estimate: float = 0.0) -> float:
    """The remaining size of a job that was served this long. For an own job it is drawn by its estimate, or else by the mean size."""
    if kind == OWN:
        return float(draw.exponential(estimate or float((1 / system.service_rate).mean())))
    size = system.sizes[kind]
    if served == 0.0:
        return float(size.sample(draw, 1)[0])
    longer = [x for x in size.sample(draw, _LONGER) if x > served]
    return float(longer[0] - served) if longer else size.moment(1)
