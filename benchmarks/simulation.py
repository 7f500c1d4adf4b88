"""The simulator: events per second of each policy, against SimPy and Ciw, plain Python, and HiGHS for MaxWeight. One core."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rota
from rota.decide import Decider, decider_of
from rota.design import balanced_policy
from rota.simulation.run import Run
from rota.simulation.workload import PoissonArrivals

EXAMPLES = Path(__file__).parent.parent / "examples"


def run() -> None:
    """Prints all tables."""
    against_simpy_and_ciw()
    borg()
    against_highs()


def speed(system: rota.System, policy: object, jobs: int, compiled: bool | None = None) -> tuple[float, float, float]:
    """Events and jobs per second, and the mean number of jobs present, after a first quarter that compiles and fills the queues."""
    decider: Decider = decider_of(system, policy)  # type: ignore[arg-type]
    if compiled is False:
        decider = decider._replace(decide=decider.decide.py_func)  # type: ignore[attr-defined]
    arrivals, draws = np.random.SeedSequence(0).spawn(2)
    simulation = Run(system, decider, draws, batch_jobs=min(1000, jobs // 4), compiled=compiled)
    chunk = min(jobs, 1 << 16)
    chunks = PoissonArrivals(chunk).chunks(system, arrivals)
    for _ in range(max(jobs // 3 // chunk, 1)):
        simulation.feed(next(chunks))
    before, begin, done, first = simulation.events, time.perf_counter(), 0, len(simulation.batches()[1])
    while done < jobs:
        simulation.feed(next(chunks))
        done += chunk
    elapsed = time.perf_counter() - begin
    _, areas, spans = simulation.batches()
    present = areas[first:, 0].sum() / (spans[-1, 1] - spans[first, 0])
    return (simulation.events - before) / elapsed, done / elapsed, float(present)


def against_simpy_and_ciw() -> None:
    """M/M/10, load 0.9, FCFS: exact mean number of jobs 15.02."""
    system = rota.System([10], [[1]], [9.0], [1.0])
    exact = rota.analyze(system, rota.MSR([[10]])).exact[0]
    ours, _, present = speed(system, rota.FCFS(), 5_000_000)
    print(f"M/M/10, load 0.9, FCFS: exact E[Q] {exact:.3f}")
    print(f"{'simulator':<28} {'events/s':>12} {'ratio':>8} {'E[Q]':>8}")
    print(f"{'rota':<28} {ours:12,.0f} {1:8.1f} {present:8.3f}")
    plain, _, present = speed(system, rota.FCFS(), 20_000, compiled=False)
    print(f"{'rota, engine uncompiled':<28} {plain:12,.0f} {ours / plain:8.1f} {present:8.3f}")
    for name, simulate in (("SimPy", simpy_events), ("Ciw", ciw_events)):
        events, seconds, present = simulate()
        print(f"{name:<28} {events / seconds:12,.0f} {ours * seconds / events:8.1f} {present:8.3f}", flush=True)


def simpy_events(jobs: int = 100_000) -> tuple[int, float, float]:
    """Two events per job, arrival and departure, as for the others."""
    import simpy

    draw = random.Random(0)
    environment = simpy.Environment()
    servers = simpy.Resource(environment, capacity=10)
    spent = [0.0]

    def job() -> object:
        arrived = environment.now
        with servers.request() as request:
            yield request
            yield environment.timeout(draw.expovariate(1.0))
        spent[0] += environment.now - arrived

    def source() -> object:
        for _ in range(jobs):
            yield environment.timeout(draw.expovariate(9.0))
            environment.process(job())

    environment.process(source())
    begin = time.perf_counter()
    environment.run()
    return 2 * jobs, time.perf_counter() - begin, 9.0 * spent[0] / jobs


def ciw_events(jobs: int = 30_000) -> tuple[int, float, float]:
    """The same in Ciw."""
    import ciw

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(9.0)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[10],
    )
    ciw.seed(0)
    simulation = ciw.Simulation(network)
    begin = time.perf_counter()
    simulation.simulate_until_max_customers(jobs, method="Finish")
    seconds = time.perf_counter() - begin
    spent = [record.exit_date - record.arrival_date for record in simulation.get_all_records()]
    return 2 * len(spent), seconds, 9.0 * float(np.mean(spent))


def borg() -> None:
    """The ten Borg types at load 0.9, Poisson and exponential."""
    system = rota.read_system(EXAMPLES / "borg.toml").scaled(load=0.9)
    best = rota.system_load(system)
    preemptive = balanced_policy(system, best, "full").replace(switching_rate=0.1)
    patient = balanced_policy(system, best, "none").replace(switching_rate=3.6e-6)
    print(f"\n{'ten Borg types, load 0.9':<28} {'events/s':>12} {'jobs/s':>12} {'E[Q]':>12} {'uncompiled':>11}")
    for name, policy, jobs in [
        ("FCFS", rota.FCFS(), 2_000_000),
        ("First-Fit", rota.FirstFit(), 2_000_000),
        ("EASY", rota.EASY(), 200_000),
        ("nMSR, rate 3.6e-6", patient, 4_000_000),
        ("nMSR+backfill", patient.replace(backfill=True, empty_slots="skip"), 500_000),
        ("pMSR, rate 0.1", preemptive, 200_000),
        ("pMSR, rate 0.01", preemptive.replace(switching_rate=0.01), 1_000_000),
        ("pMSR+backfill", preemptive.replace(backfill=True), 100_000),
        ("MaxWeight", rota.MaxWeight(), 200_000),
        ("Randomized-Timers", rota.RandomizedTimers(), 500_000),
    ]:
        events, per_s, present = speed(system, policy, jobs)
        plain, _, _ = speed(system, policy, 300, compiled=False)
        print(f"{name:<28} {events:12,.0f} {per_s:12,.0f} {present:12.1f} {events / plain:10.0f}×", flush=True)


def against_highs() -> None:
    """MaxWeight on the Borg types: our branch and bound against a HiGHS integer program per event."""
    from rota.capacity import integer_units
    from rota.capacity.packing import search_best
    from rota.capacity.solver import Knapsack

    system = rota.read_system(EXAMPLES / "borg.toml").scaled(load=0.9)
    units = integer_units(system)
    rng = np.random.default_rng(0)
    queues = rng.poisson(system.offered_work * 1.3, (50, len(system.names)))

    data = decider_of(system, rota.MaxWeight()).data

    def by_rota(queue: np.ndarray) -> None:
        search_best(units.demand, units.capacity, queue + data.tie, queue, data.prices, 0.0, 1 << 62, 0.9, data.space)

    def by_highs(queue: np.ndarray) -> None:
        Knapsack(units.demand, units.capacity, queue).solve(queue.astype(np.float64), 0.0, None)

    by_rota(queues[0])
    ours, theirs = seconds_each(by_rota, queues), seconds_each(by_highs, queues)
    print(
        f"\nMaxWeight on the same {len(queues)} queues: {1e6 * ours:.1f} µs each; HiGHS {1e3 * theirs:.2f} ms: {theirs / ours:,.0f} times"
    )


def seconds_each(work: Callable[[np.ndarray], None], queues: np.ndarray) -> float:
    """The mean time that a decision takes."""
    begin = time.perf_counter()
    for queue in queues:
        work(queue)
    return (time.perf_counter() - begin) / len(queues)
