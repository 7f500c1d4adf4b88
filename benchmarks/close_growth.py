"""Close rotas without preemption on random servers that grow in cores, in types and in resources: what they take, and how far E[T] is from
the least that any policy can have, the mean time in service.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

import rota
from rota.analysis.cost import cost_by_level
from rota.analysis.qbd import solve_qbd
from rota.analysis.window import solve_window
from rota.threads import one_thread

CORES = (10, 100, 1_000, 10_000, 100_000)
TYPES = (5, 10, 20, 50, 100)
JOBS = (100, 1_000)
RESOURCES = (1, 3)
LOADS = (0.9, 0.95)
LARGEST_DEMAND = 8  # of a resource; the least is 1
MEAN_DEMAND = (1 + LARGEST_DEMAND) / 2
LEVELS = (200, 2_000, 20_000)
TRADES = (3, 14, 60)  # jobs that a switch waits for
PATIENCE_S = 10.0  # for the exact value of one policy
HEADER = (
    f"{'cores':>7} {'jobs':>6} {'types':>6} {'resources':>9} {'load':>5} {'load (s)':>9} {'design (s)':>10} {'states':>7} {'levels':>7} "
    f"{'exact':>6} {'exact (s)':>9} {'E[T]':>9} {'at least':>9} {'ratio':>7}  a switch"
)


def run(options: Sequence[str] = ()) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", nargs="*", type=int, default=CORES, help="sizes of servers with 8 types and one resource")
    parser.add_argument("--types", nargs="*", type=int, default=TYPES)
    parser.add_argument("--jobs", nargs="*", type=int, default=JOBS, help="that fit at once, about, while the number of types grows")
    parser.add_argument("--resources", nargs="*", type=int, default=RESOURCES)
    parser.add_argument("--loads", nargs="*", type=float, default=LOADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--levels", nargs="*", type=int, default=LEVELS, help="jobs of a type at once, for the exact analysis alone")
    given = parser.parse_args(options)
    row(random_server(10, 2, 1, 0.5, 0), quiet=True)  # compiles, before anything is measured
    print(HEADER)
    for cores in given.cores:
        for load in given.loads:
            row(random_server(cores, 8, 1, load, given.seed))
    for resources in given.resources:
        for jobs in given.jobs:
            for types in given.types:
                for load in given.loads:
                    row(random_server(int(MEAN_DEMAND * jobs), types, resources, load, given.seed))

    if given.levels:
        print(f"\n{'levels':>7} {'states':>7} {'from 0 on (s)':>14} {'those seen (s)':>15} {'ratio':>7} {'difference':>11}")
    for levels in given.levels:
        for trades in TRADES:
            analysis_row(levels, trades)


def random_server(cores: int, types: int, resources: int, load: float, seed: int) -> rota.System:
    """A server with so many units of each resource. Each type needs 1 to 8 of each; mean sizes are from 0.2 to 5."""
    rng = np.random.default_rng([seed, cores, types, resources])
    demand = rng.integers(1, LARGEST_DEMAND + 1, (types, resources)).astype(float)
    shares = rng.uniform(0.1, 1, types)
    size = rng.uniform(0.2, 5, types)
    return rota.System(np.full(resources, float(cores)), demand, shares, mean_size=size, preemption="none").scaled(load=load)


def row(system: rota.System, *, quiet: bool = False) -> None:
    """Designs for a server and prints what it took."""
    began = time.perf_counter()
    best = rota.system_load(system)
    loaded = time.perf_counter()
    policy = rota.design_policy(system, objective="close", load=best)
    designed = time.perf_counter()
    answer = rota.analyze(system, policy)
    exact = answer.exact_time_s <= PATIENCE_S and answer.accurate
    mean = answer.mean_response_time if exact else answer.little(answer.prediction)
    analysed = time.perf_counter()
    least = float(system.offered_work.sum() / system.arrival_rate.sum())
    if quiet:
        return
    K, R = system.demand.shape
    print(
        f"{system.capacity[0]:7.0f} {system.capacity[0] / MEAN_DEMAND:6.0f} {K:6} {R:9} {best.load:5.2f} {loaded - began:9.2f} "
        f"{designed - loaded:10.2f} {len(answer.process):7,} {int(answer.process.schedules.max()):7,} {'yes' if exact else 'no':>6} "
        f"{analysed - designed:9.2f} {mean:9.4g} {least:9.4g} {mean / least:7.3f}  {switching(policy)}",
        flush=True,
    )


def analysis_row(levels: int, trades: int) -> None:
    """The first of two types that trade slots, at load 0.95: a matrix per level from 0 on, and on those levels that are ever seen."""
    candidates = np.array([[levels, levels // 4], [levels - trades, levels // 4 + trades]])
    system = rota.System([float(candidates.sum(axis=1).max())], [[1.0], [1.0]], [1.0, 1.0], [1.0, 1.0], preemption="none")
    policy = rota.MSR(candidates, [0.5, 0.5], "none", switching_rate=0.5, opening="early")
    served = rota.analyze(system, policy).process.mean_schedule
    queue = rota.analyze(system.replace(arrival_rate=0.95 * served), policy).queues[0]
    cost = cost_by_level(len(queue.process), queue.max_parallel)
    if not cost.affordable or cost.time_s > PATIENCE_S:
        return
    seconds, means = [], []
    with one_thread():
        for solve in (solve_qbd, solve_window):
            solve(queue)
            began = time.perf_counter()
            means.append(solve(queue).mean)
            seconds.append(time.perf_counter() - began)
    difference = abs(means[1] / means[0] - 1)
    ratio = seconds[0] / seconds[1]
    print(f"{levels:7,} {len(queue.process):7} {seconds[0]:14.3f} {seconds[1]:15.3f} {ratio:7.1f} {difference:11.0e}", flush=True)


def switching(policy: rota.MSR) -> str:
    """How many schedules there are, and how many jobs the largest switch between them waits for."""
    W = policy.candidates
    if len(W) == 1:
        return "never: 1 schedule"
    return f"{len(W)} schedules, up to {np.maximum(W - np.roll(W, -1, axis=0), 0).sum(axis=1).max()} jobs"
