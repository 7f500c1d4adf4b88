"""When will this job start? The present state is played forward, many times, with the policy's own decisions.

What is not known is drawn: how long the running jobs still take (their law, given how long they have run), how long the waiting ones will
take, who else arrives. The policy's own randomness is drawn anew as well. The median and the 90 % point of the start over the futures are
the answer.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import numpy as np

from rota.decide import seeded
from rota.live.floor import OWN, Floor, Orders
from rota.model import System

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["forecast"]

_LONGER = 64  # draws for a size longer than what was served already; then the mean is added


def forecast(
    floor: Floor, served: Mapping[int, float], job: int, now: float, *, runs: int = 50, budget_s: float = 0.5, seed: int = 0
) -> list[float]:
    """Times from `now` until the job starts, in order, in as many futures as the budget allows. `served`: time in service, by job."""
    until, starts = time.monotonic() + budget_s, []
    for number in range(runs):
        start = _one(floor.copy(), served, job, now, np.random.SeedSequence([seed, number]), until)
        if start is None:
            break
        starts.append(start)
    return sorted(starts)


def _one(floor: Floor, served: Mapping[int, float], job: int, begin: float, seed: np.random.SeedSequence, until: float) -> float | None:
    """One future: when the job starts in it; None if the time for computing is over."""
    draw, system, now = np.random.default_rng(seed), floor.system, begin
    floor.state.random[:] = seeded(seed)
    kinds = {id: here.kind for id, here in floor.jobs.items()}
    left: dict[int, float] = {}  # what a job that was served before still needs
    running = {id: now + _left(system, here.kind, served.get(id, 0.0), draw) for id, here in floor.jobs.items() if here.state == "running"}
    ends = [(end, id) for id, end in running.items()]
    heapq.heapify(ends)
    stopping = [id for id, here in floor.jobs.items() if here.state == "stopping"]
    rate, newest = float(system.arrival_rate.sum()), max(kinds) + 1
    share = np.cumsum(system.arrival_rate / rate) if rate > 0 else system.arrival_rate
    arrival = now + draw.exponential(1 / rate) if rate > 0 else np.inf

    def obey(orders: Orders) -> bool:
        for id in orders.stop:
            left[id] = max(running.pop(id) - now, 0.0)
            if floor.jobs[id].state == "stopping":
                stopping.append(id)
        for id in (*orders.start, *orders.resume):
            running[id] = now + (left.pop(id) if id in left else _left(system, kinds[id], served.get(id, 0.0), draw))
            heapq.heappush(ends, (running[id], id))
        return job in running

    while True:
        if time.monotonic() > until:
            return None
        if stopping:  # as if it took no time
            if obey(floor.stopped(stopping.pop(), now)):
                return now - begin
            continue
        while ends and running.get(ends[0][1]) != ends[0][0]:
            heapq.heappop(ends)
        end = ends[0][0] if ends else np.inf
        if min(end, arrival, floor.wake) == np.inf:
            return None  # nothing will ever happen
        if end <= min(arrival, floor.wake):
            now, id = heapq.heappop(ends)
            del running[id]
            orders = floor.leave(id, now)
        elif floor.wake <= arrival:
            now = max(now, floor.wake)
            orders = floor.tick(now)
        else:
            now = arrival
            kind = min(int(np.searchsorted(share, draw.random(), side="right")), len(share) - 1)
            kinds[newest] = kind
            orders = floor.arrive(newest, kind, now)
            newest, arrival = newest + 1, now + draw.exponential(1 / rate)
        if obey(orders):
            return now - begin


def _left(system: System, kind: int, served: float, draw: np.random.Generator) -> float:
    """What a job that was served for so long still needs."""
    if kind == OWN:
        return float(draw.exponential(float((1 / system.service_rate).mean())))
    size = system.sizes[kind]
    if served == 0.0:
        return float(size.sample(draw, 1)[0])
    longer = [x for x in size.sample(draw, _LONGER) if x > served]
    return float(longer[0] - served) if longer else size.moment(1)
