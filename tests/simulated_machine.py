"""A body for the scheduler that needs no machine: jobs of known sizes on a simulated clock, every order carried out at once."""

from __future__ import annotations

import heapq

import numpy as np

from rota.decide import seeded
from rota.live.scheduling.scheduler import Decision, Scheduler

ARRIVE, STARTED, PREEMPT, FINISH = 0, 1, 2, 3


def play(system, policy, jobs, seed, *, stop="suspend", releasable=None):
    """The log of a run: (time, what, type, job), in order."""
    _, policy_seed = np.random.SeedSequence(seed).spawn(2)
    scheduler = Scheduler(system, policy, seeded(policy_seed), stop=stop, releasable=releasable)
    log, ends, running, left = [], [], {}, dict(enumerate(jobs.sizes))

    def obey(orders: Decision, now):
        for job in orders.stop:
            log.append((now, PREEMPT, jobs.kinds[job], job))
            left[job] = max(running.pop(job) - now, 0.0)
        for job in sorted(orders.start + orders.resume, key=lambda job: (jobs.kinds[job], job)):
            log.append((now, STARTED, jobs.kinds[job], job))
            running[job] = now + left[job]
            heapq.heappush(ends, (running[job], job))

    obey(scheduler.begin(0.0), 0.0)
    arrived = 0
    while arrived < len(jobs.times) or scheduler.jobs:
        while ends and running.get(ends[0][1]) != ends[0][0]:
            heapq.heappop(ends)  # it was stopped in between
        ending = ends[0][0] if ends else np.inf
        arrival = jobs.times[arrived] if arrived < len(jobs.times) else np.inf
        if ending <= scheduler.wake and ending <= arrival:
            _, job = heapq.heappop(ends)
            del running[job]
            log.append((ending, FINISH, jobs.kinds[job], job))
            obey(scheduler.leave(job, ending), ending)
        elif scheduler.wake <= arrival:
            now = scheduler.wake
            obey(scheduler.tick(now), now)
        else:
            log.append((arrival, ARRIVE, jobs.kinds[arrived], arrived))
            obey(scheduler.arrive(arrived, int(jobs.kinds[arrived]), arrival, estimate=float(jobs.sizes[arrived])), arrival)
            arrived += 1
    return log
