"""The scheduler against the simulator: sleeping jobs on the paper's server at load 0.8, run for real and simulated with the same seed.

Timing is what a simulation does not have: a real job arrives and ends a little late, and so does the ring of a timer. So the decisions are
compared at the times as they were lived. The means are compared at the times that were planned.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.cli import main
from rota.decide import seeded
from rota.live.floor import Floor, Orders
from rota.live.messages import JobRequest
from rota.live.queue import boot_now
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.policy import PlanFile
from rota.simulation.workload import Jobs, PoissonArrivals

N, SEED = 220, 3
NAMES = ("train", "serve", "gather")


def the_system():
    """The paper's example with sizes of a third of a second on average. Nothing on this machine has the names of its resources."""
    return rota.System(
        capacity=[20, 15, 50],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=[1.0, 1.0, 1.0],
        service_rate=[3.0, 3.0, 3.0],
        names=NAMES,
        resources=("desks", "lamps", "chairs"),
    ).scaled(load=0.8)


SYSTEM = the_system()
BEST = rota.system_load(SYSTEM)
POLICIES = {
    "first-fit": rota.FirstFit(),
    "nMSR": rota.MSR(BEST.candidates, BEST.weights, "none", 1.0),
    "nMSR+backfill": rota.MSR(BEST.candidates, BEST.weights, "none", 1.0, backfill=True),
}


def planned_jobs():
    """The jobs that the simulator makes under the seed."""
    workload_seed, _ = np.random.SeedSequence(SEED).spawn(2)
    chunk = next(iter(PoissonArrivals().chunks(SYSTEM, workload_seed)))
    return Jobs(chunk.times[:N], chunk.kinds[:N], chunk.sizes[:N])


@dataclass
class Lived:
    """A run: what the floor was told, (method, arguments, more arguments), and what it ordered."""

    directory: Path
    told: list[tuple[str, tuple, dict]] = field(default_factory=list)
    ordered: list[Orders] = field(default_factory=list)
    started: dict[int, float] = field(default_factory=dict)  # by the floor's clock

    def times(self):
        """When jobs came, started and left, (N,) each, from the begin on."""
        at = {what: {given[0]: given[-1] for name, given, _ in self.told if name == what} for what in ("arrive", "leave")}
        begin = self.told[0][1][0]
        return [np.array([moments[id] for id in range(1, N + 1)]) - begin for moments in (at["arrive"], self.started, at["leave"])]

    def starts(self):
        """Jobs in the order in which they were told to start, numbered from 0."""
        return [id - 1 for orders in self.ordered for id in orders.start]


async def live_run(policy, directory):
    """Runs the jobs for real, each submitted at its time."""
    lived, jobs = Lived(directory), planned_jobs()
    plan = PlanFile(SYSTEM, policy, LiveSettings(learn=False), 0.8, {name: {"mean": 1.0} for name in NAMES})
    service = Service(directory, plan, seed=SEED, tell=lambda text: None)
    floor = service.queue.floor
    for name in ("begin", "arrive", "leave", "stopped", "tick", "look_again", "swap", "recall"):
        setattr(floor, name, partial(noted, lived, floor, name, getattr(floor, name)))
    loop = asyncio.get_running_loop()
    await service.open()
    try:
        begin = loop.time() - (boot_now() - lived.told[0][1][0])  # when the floor began
        for time, kind, size in zip(jobs.times, jobs.kinds, jobs.sizes, strict=True):
            await asyncio.sleep(begin + time - loop.time())
            service.submit(JobRequest(argv=["sleep", f"{size:.9f}"], type=NAMES[kind], cwd="/", env={"PATH": "/bin:/usr/bin"}))
        for id in list(service.queue.here):
            assert (await service.wait(id, 60.0)).state == "done"
    finally:
        await service.close()
    return lived


def noted(lived, floor, name, method, *given, **more):
    """Calls a method of the floor and notes what it was told and what it ordered."""
    orders = method(*given, **more)
    lived.told.append((name, given, more))
    lived.ordered.append(orders)
    for job in (floor.jobs[id] for id in orders.start):
        lived.started[job.id] = floor.state.finish[job.place] - job.estimate
    return orders


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All policies at the same time, each with a scheduler of its own: sleeping jobs are not in each other's way."""

    for policy in POLICIES.values():  # compiled, or read from disk, before the clocks run
        simulated(policy, planned_jobs())
        floor = Floor(SYSTEM, policy, seeded(np.random.SeedSequence(0)))
        floor.begin(0.0)
        floor.arrive(1, 0, 1.0)
        floor.leave(1, 2.0)

    async def all_of_them():
        base = tmp_path_factory.mktemp("live")
        directories = [base / str(k) for k in range(len(POLICIES))]
        for directory in directories:
            directory.mkdir(mode=0o700)
        return await asyncio.gather(*(live_run(policy, place) for policy, place in zip(POLICIES.values(), directories, strict=True)))

    return dict(zip(POLICIES, asyncio.run(all_of_them()), strict=True))


def simulated(policy, jobs):
    """The simulator's log of these jobs, to the end of the last: it goes on while others come, long after."""
    later = jobs.times[-1] + 1000 + np.arange(100.0)
    padded = Jobs(np.append(jobs.times, later), np.append(jobs.kinds, [0] * 100), np.append(jobs.sizes, [0.01] * 100))
    log = rota.simulate(SYSTEM, policy, workload=padded, seed=SEED, log_jobs=N).log
    return [(row["time"], row["event"], row["job"]) for row in log.to_dicts() if row["job"] < N]


def responses(log):
    """Response times (N,) from a log."""
    times = {(what, job): time for time, what, job in log}
    return np.array([times["finish", job] - times["arrive", job] for job in range(N)])
