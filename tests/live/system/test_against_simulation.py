"""The scheduler against the simulator: sleeping jobs on the paper's server at load 0.8, run for real and simulated with the same seed.

Timing is what a simulation does not have: a real job arrives and ends a little late, and so does the ring of a timer. So the decisions are
compared at the times as they were lived. The means are compared at the times that were planned.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.cli import main
from rota.decide import seeded
from rota.live.clock import boot_now
from rota.live.messages import JobRequest
from rota.live.scheduling.scheduler import Decision, Scheduler
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.model.spec import write_toml
from rota.policy import PlanFile
from rota.simulation.workload import Jobs, PoissonArrivals

N, SEED = 220, 4  # of twelve seeds, one whose simulated means depend little on milliseconds: see test_mean_response_time
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
    "nMSR": rota.MSR(BEST.candidates, BEST.weights, "none", 0.3),
    "nMSR+backfill": rota.MSR(BEST.candidates, BEST.weights, "none", 0.3, backfill=True),
}


def planned_jobs():
    """The jobs that the simulator makes under the seed."""
    workload_seed, _ = np.random.SeedSequence(SEED).spawn(2)
    chunk = next(iter(PoissonArrivals().chunks(SYSTEM, workload_seed)))
    return Jobs(chunk.times[:N], chunk.kinds[:N], chunk.sizes[:N])


@dataclass
class Lived:
    """A run: what the scheduler was told, (method, arguments, more arguments), and what it ordered."""

    directory: Path
    told: list[tuple[str, tuple, dict]] = field(default_factory=list)
    ordered: list[Decision] = field(default_factory=list)
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
    service = Service(directory, plan, seed=SEED, log_line=lambda text: None)
    scheduler = service.executor.lifecycle.scheduler
    for name in ("begin", "arrive", "leave", "stopped", "tick", "look_again", "swap"):
        setattr(scheduler, name, partial(noted, lived, scheduler, name, getattr(scheduler, name)))
    loop = asyncio.get_running_loop()
    await service.open()
    try:
        begin = loop.time() - (boot_now() - lived.told[0][1][0])  # when the scheduler began
        for time, kind, size in zip(jobs.times, jobs.kinds, jobs.sizes, strict=True):
            await asyncio.sleep(begin + time - loop.time())
            service.submit(JobRequest(argv=["sleep", f"{size:.9f}"], type=NAMES[kind], cwd="/", env={"PATH": "/bin:/usr/bin"}))
        for id in list(service.executor.lifecycle.jobs):
            assert (await service.wait(id, 60.0)).state == "done"
    finally:
        await service.close()
    return lived


def noted(lived, scheduler, name, method, *given, **more):
    """Calls a method of the scheduler and notes what it was told and what it ordered."""
    orders = method(*given, **more)
    if name == "begin":
        given = (float(scheduler.state.clock[0]),)  # the floor's clock runs while it looks for jobs of earlier days
    lived.told.append((name, given, more))
    lived.ordered.append(orders)
    for job in (scheduler.jobs[id] for id in orders.start):
        lived.started[job.id] = scheduler.state.finish[job.place] - job.estimate
    return orders


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All policies at the same time, each with a scheduler of its own: sleeping jobs are not in each other's way."""

    for policy in POLICIES.values():  # compiled, or read from disk, before the clocks run
        simulated(policy, planned_jobs())
        scheduler = Scheduler(SYSTEM, policy, seeded(np.random.SeedSequence(0)))
        scheduler.begin(0.0)
        scheduler.arrive(1, 0, 1.0)
        scheduler.leave(1, 2.0)

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


def events(lived):
    """What the scheduler logged."""
    return [json.loads(line) for line in (lived.directory / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", POLICIES)
def test_the_simulator_takes_the_same_decisions(name, runs):
    """Given the arrivals and times in service as they were lived, the simulator starts and ends the same jobs in the same order."""
    lived = runs[name]
    come, start, leave = lived.times()
    theirs = simulated(POLICIES[name], Jobs(come, planned_jobs().kinds, leave - start))
    assert [job for _, what, job in theirs if what == "start"] == lived.starts()
    assert [job for _, what, job in theirs if what == "finish"] == np.argsort(leave).tolist()
    at = {(what, job): time for time, what, job in theirs}
    for what, times in (("arrive", come), ("start", start), ("finish", leave)):
        np.testing.assert_allclose([at[what, job] for job in range(N)], times, atol=1e-6)


@pytest.mark.parametrize("name", POLICIES)
def test_the_decisions_depend_on_the_events_only(name, runs):
    """A fresh scheduler with the same seed, given the same events, decides the same; the log says that this was started."""
    lived = runs[name]
    scheduler = Scheduler(SYSTEM, POLICIES[name], seeded(np.random.SeedSequence(SEED).spawn(2)[1]))
    again = [getattr(scheduler, what)(*given, **more) for what, given, more in lived.told]
    assert again == lived.ordered
    assert [event["job"] - 1 for event in events(lived) if event["event"] == "start"] == lived.starts()


@pytest.mark.parametrize("name", POLICIES)
def test_order_within_a_type(name, runs):
    """The jobs of a type start in the order in which they came."""
    kinds = planned_jobs().kinds
    for kind in range(len(NAMES)):
        starts = [job for job in runs[name].starts() if kinds[job] == kind]
        assert starts == sorted(starts)


@pytest.mark.parametrize("name", POLICIES)
def test_mean_response_time(name, runs):
    """The mean that the scheduler measured is the simulator's for the jobs as planned, give or take a few per cent.

    A job arrives a little late, since it is written down first, and a sleep of x seconds takes a little more: a process is forked, a
    program loaded, its end noticed. The simulator gets such delays too, drawn from those that were seen. Under a rota, who comes first in
    a close race decides which random numbers are used for what, and so its means spread: by 20 % with some seeds, whoever runs it.
    """
    lived, jobs = runs[name], planned_jobs()
    come, start, leave = lived.times()
    late, more, draw = come - jobs.times, leave - start - jobs.sizes, np.random.default_rng(SEED)
    assert more.min() > 0

    def delayed():
        return Jobs(np.maximum.accumulate(jobs.times + draw.choice(late, N)), jobs.kinds, jobs.sizes + draw.choice(more, N))

    means = [responses(simulated(POLICIES[name], delayed())).mean() for _ in range(40)]
    ours = np.mean([event["response_s"] for event in events(lived) if event["event"] == "end"])
    print(f"{name}: {1e3 * more.mean():.1f} ms per start; live {ours:.4f} s, simulated {np.mean(means):.4f} ± {np.std(means):.4f} s")
    assert ours == pytest.approx(np.mean(means), rel=max(0.05, 3 * np.std(means) / np.mean(means)))


def test_the_log_is_a_workload(runs, tmp_path, capsys):
    """`rota simulate … --workload events.jsonl` plays the run again: the same jobs at the same times."""
    lived, system = runs["first-fit"], tmp_path / "system.toml"
    system.write_text(write_toml(SYSTEM))
    log = str(lived.directory / "events.jsonl")
    assert main(["simulate", str(system), "first-fit", "--workload", log, "--warmup", "0", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["jobs"] == N
    ends = {event["job"]: event for event in events(lived) if event["event"] == "end"}
    run_s = np.array([ends[id]["run_s"] for id in range(1, N + 1)])  # without what it took to start a process and to notice its end
    come, _, _ = lived.times()  # as the scheduler was told, not as it logged
    same = Jobs(come, planned_jobs().kinds, run_s)
    assert again["mean_response_time"] == pytest.approx(
        rota.simulate(SYSTEM, "first-fit", workload=same, warmup=0).mean_response_time, rel=0.03
    )
