"""Are forecasts of starts right as often as they say? Of the jobs said to start within t with 80 %, the part that did.

The paper's example. For jobs that have to wait the function behind `rota explain` is asked as they arrive, and again later. `--live`: the
same with a real daemon and real jobs that sleep.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

import rota
from benchmarks.live import ENV, Daemon, daemon
from benchmarks.live import Policy as Named
from rota.decide import seeded
from rota.live.http.client import Client
from rota.live.paths import socket_path
from rota.live.scheduling.forecast import forecast
from rota.live.scheduling.scheduler import Scheduler
from rota.live.scheduling.starts import Starts

EXAMPLES = Path(__file__).parent.parent / "examples"
LEVELS = (0.5, 0.8, 0.95)
ROTA = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "none", 0.2)
POLICIES = {"nMSR": ROTA, "first-fit": rota.FirstFit(), "nMSR+backfill": ROTA.replace(backfill=True)}
_ASKERS = 4  # answers of the daemon that are waited for at once
SLACK = 1e-9  # a start at the very moment that was said is in time


def run(options: Sequence[str] = ()) -> None:
    """Prints, for each policy and moment, the part of the jobs that started within the times that were said with 50, 80 and 95 %."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks forecasts", description=run.__doc__)
    parser.add_argument("--jobs", type=int, default=2000, help="jobs that are asked for, of each policy; with --live, all jobs")
    parser.add_argument("--futures", type=int, default=99, help="simulated futures of a forecast")
    parser.add_argument("--apart", type=int, default=50, help="arrivals between two jobs that are asked for, at least")
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--live", action="store_true", help="a real daemon and real jobs, instead of a simulated clock")
    parser.add_argument("--mean-s", type=float, default=0.3, help="mean size of the jobs of --live, in seconds")
    parser.add_argument("--begin-s", type=float, default=0.03, help="what starting a process adds to these sizes, in the plan of --live")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(list(options))
    system = rota.read_system(EXAMPLES / "paper.toml").scaled(load=chosen.load)
    print(f"{'policy':<14} {'asked':<10} {'by':<11} {'jobs':>6} {'mean wait':>10} {'50 %':>7} {'80 %':>7} {'95 %':>7} {'s':>7}")
    for name in chosen.policies:
        began = time.perf_counter()
        if chosen.live:
            asked = measured_live(system, POLICIES[name], chosen.jobs, chosen.mean_s, chosen.begin_s, chosen.seed)
        else:
            asked = measured(system, POLICIES[name], chosen.jobs, chosen.apart, chosen.futures, chosen.seed)
        for moment in dict.fromkeys(one.moment for one in asked):
            show(name, [one for one in asked if one.moment == moment], time.perf_counter() - began)


def show(name: str, asked: Sequence[Asked], seconds: float) -> None:
    """One line of the table."""
    waits = np.mean([one.start - one.time for one in asked])
    parts = [np.mean([one.start - one.time <= one.said[p] * (1 + SLACK) for one in asked]) for p in LEVELS]
    by = "/".join(sorted({one.by for one in asked}))
    cells = " ".join(f"{100 * part:>7.1f}" for part in parts)
    print(f"{name:<14} {asked[0].moment:<10} {by:<11} {len(asked):>6,} {waits:>10.3f} {cells} {seconds:>7.0f}", flush=True)


@dataclass
class Asked:
    """A forecast: when it was made and at which moment of the job, what it said, by which method; and when the job did start."""

    job: int
    moment: str
    time: float
    said: dict[float, float]
    by: str
    start: float = math.nan


def _asked(job: int, moment: str, now: float, starts: Starts) -> Asked:
    said = {p: starts.quantile(p)[0] for p in LEVELS}
    return Asked(job, moment, now, said, "simulation" if starts.law is None else "theory")


# ------------------------------------------------------------------------------------------------------------- a simulated clock


@dataclass
class Server:
    """The scheduler that `rota serve` runs, on a simulated clock, with jobs of exponential sizes."""

    system: rota.System
    scheduler: Scheduler
    draw: np.random.Generator
    now: float = 0.0
    started: dict[int, float] = field(default_factory=dict)
    running: dict[int, float] = field(default_factory=dict)  # when they started
    ends: list[tuple[float, int]] = field(default_factory=list)

    def go_on(self, until: float) -> None:
        """Lets jobs end and the policy's timer ring until then."""
        while True:
            end = self.ends[0][0] if self.ends else math.inf
            if min(end, self.scheduler.wake) > until:
                self.now = until
                return
            if end <= self.scheduler.wake:
                self.now, job = heapq.heappop(self.ends)
                del self.running[job]
                self._obey(self.scheduler.leave(job, self.now).start)
            else:
                self.now = self.scheduler.wake
                self._obey(self.scheduler.tick(self.now).start)

    def arrive(self, job: int, kind: int) -> None:
        """A job arrives now."""
        self._obey(self.scheduler.arrive(job, kind, self.now).start)

    def _obey(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.started[job] = self.running[job] = self.now
            size = self.draw.exponential(1 / self.system.service_rate[self.scheduler.jobs[job].kind])
            heapq.heappush(self.ends, (self.now + size, job))

    def forecast(self, job: int, futures: int) -> Starts:
        """What `rota explain` would say now."""
        served = {id: self.now - began for id, began in self.running.items()}
        return forecast(self.scheduler, served, job, self.now, runs=futures, budget_s=60.0, seed=job)


def measured(system: rota.System, policy: rota.policy.Policy, jobs: int, apart: int, futures: int, seed: int) -> list[Asked]:
    """Forecasts for so many jobs that had to wait, at their arrival and, for those that still waited, an exponential time later."""
    arrivals, sizes, policy_seed = np.random.SeedSequence(seed).spawn(3)
    draw = np.random.default_rng(arrivals)
    server = Server(system, Scheduler(system, policy, seeded(policy_seed)), np.random.default_rng(sizes))
    server.scheduler.begin(0.0)
    asked: list[Asked] = []
    later: list[tuple[float, int]] = []
    left, last = jobs, 1000  # the first jobs find an empty server
    for job, (at, kind) in enumerate(_arrivals(system, draw)):
        while later and later[0][0] <= at:
            server.go_on(later[0][0])
            _, waiting = heapq.heappop(later)
            if waiting not in server.started:
                asked.append(_asked(waiting, "later", server.now, server.forecast(waiting, futures)))
        server.go_on(at)
        server.arrive(job, kind)
        if left > 0 and job >= last + apart and job not in server.started:
            asked.append(_asked(job, "at arrival", at, server.forecast(job, futures)))
            heapq.heappush(later, (at + draw.exponential(asked[-1].said[0.5]), job))
            left, last = left - 1, job
        elif left == 0 and not later and all(one.job in server.started for one in asked):
            break
    for one in asked:
        one.start = server.started[one.job]
    return asked


def _arrivals(system: rota.System, draw: np.random.Generator) -> Iterator[tuple[float, int]]:
    now, rate = 0.0, system.arrival_rate.sum()
    while True:
        now += draw.exponential(1 / rate)
        yield now, int(draw.choice(len(system.names), p=system.arrival_rate / rate))


# ------------------------------------------------------------------------------------------------------------- a real daemon


def measured_live(
    system: rota.System, policy: rota.MSR | rota.FirstFit, jobs: int, mean_s: float, begin_s: float, seed: int
) -> list[Asked]:
    """Forecasts of a real daemon for some of so many real jobs, each of which sleeps for an exponential time. Times are in seconds.

    Sizes and arrivals are those that the daemon learns: a process takes longer than it sleeps. At most four jobs are asked for at once, and
    none of the last tenth, since forecasts expect that jobs go on coming.
    """
    draw = np.random.default_rng(seed)
    real = system.replace(
        resources=tuple(f"counted_{name}" for name in system.resources),  # nothing on this machine has these names
        arrival_rate=system.arrival_rate / mean_s,
        service_rate=system.service_rate / (mean_s + begin_s),
    )
    if isinstance(policy, rota.MSR):
        policy = policy.replace(switching_rate=policy.switching_rate / mean_s)
    with daemon(Named("", policy), real) as served, ThreadPoolExecutor(_ASKERS) as pool:
        began, open_questions, ids = time.time(), [], []
        for at, kind in islice(_arrivals(real, draw), jobs):
            time.sleep(max(began + at - time.time(), 0.0))
            sleep = ["sleep", f"{draw.exponential(mean_s):.4f}"]
            (id,) = served.client.submit(sleep, type=real.names[kind], cwd="/", env=ENV).ids
            ids.append(id)
            if jobs // 20 < len(ids) < jobs - jobs // 10 and sum(not question.done() for question in open_questions) < _ASKERS:
                open_questions.append(pool.submit(_ask, served, id, float(draw.exponential(mean_s))))
        sizes = ", ".join(f"{kind.mean_size_s or 0.0:.3f} s" for kind in served.client.status().types)
        print(f"load of the machine {os.getloadavg()[0]:.1f}; mean sizes that the daemon measured: {sizes}")
        asked = [one for question in open_questions for one in question.result()]
        for one in asked:
            done = served.client.wait(one.job)
            assert done.started is not None
            one.start = done.started
    return [one for one in asked if one.start >= one.time]  # the others started while the answer was on its way


def _ask(served: Daemon, id: int, pause_s: float) -> list[Asked]:
    """Asks for a job that has just arrived, and again a while later."""
    found = []
    with Client(f"unix:{socket_path(served.directory)}") as client:
        for moment in ("at arrival", "later"):
            answer = client.explain(id)
            values = (answer.start_median_s, answer.start_p80_s, answer.start_p95_s)
            if answer.state != "waiting" or answer.as_of is None or None in values:
                break
            found.append(Asked(id, moment, answer.as_of, dict(zip(LEVELS, values, strict=True)), answer.method))
            time.sleep(pause_s)
    return found
