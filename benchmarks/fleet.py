"""Fleets: the load against a linear program over all schedules, growth; pinned, partly pinned and split servers; simulations."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

import rota
from rota.capacity.load import Progress
from rota.design import find_pinned

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(options: Sequence[str] = ()) -> None:
    """Prints the tables, all of them or those of some parts."""
    parts = {
        "schedules": against_all_schedules,
        "growth": growth,
        "pinned": pinned,
        "partly-pinned": partly_pinned,
        "split": joint_split,
        "simulation": simulation,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet")
    parser.add_argument("--parts", nargs="+", choices=list(parts), default=list(parts))
    for name in parser.parse_args(options).parts:
        parts[name]()


def against_all_schedules() -> None:
    """The bundled fleet, whose schedules can be listed."""
    fleet = rota.read_system(EXAMPLES / "fleet.toml")
    rota.system_load(fleet)  # compile
    times = []
    for _ in range(5):
        start = time.perf_counter()
        best = rota.system_load(fleet)
        times.append(time.perf_counter() - start)
    ours = float(np.median(times))
    print(f"{'method':<52} {'load':>12} {'schedules':>10} {'seconds':>9} {'ratio':>8}")
    print(f"{'rota (column generation)':<52} {best.load:12.9f} {best.columns:10d} {ours:9.4f} {1:8.1f}")
    start = time.perf_counter()
    load, schedules = over_all_schedules(fleet)
    seconds = time.perf_counter() - start
    print(f"{'SciPy (HiGHS) over all maximal schedules':<52} {load:12.9f} {schedules:10d} {seconds:9.4f} {seconds / ours:8.1f}", flush=True)


def over_all_schedules(fleet: rota.Fleet) -> tuple[float, int]:
    """min t s.t. Σ w (v ⊙ s) ≥ λ⊘μ and Σ_s w_cs ≤ n_c t, with a column per maximal schedule of every kind."""
    columns, kinds = [], []
    for c in range(len(fleet.kinds)):
        schedules = rota.list_schedules(fleet.server(c), maximal=True)
        served = np.zeros((len(schedules), len(fleet.names)))
        served[:, fleet.runs[c]] = schedules * fleet.speed[c, fleet.runs[c]]
        columns.append(served)
        kinds += [c] * len(schedules)
    work, kind = np.vstack(columns), np.array(kinds)
    C, K, n = len(fleet.kinds), len(fleet.names), len(kind)
    rows = np.zeros((K + C, n + 1))
    rows[:K, :n] = -work.T
    rows[K + kind, np.arange(n)] = 1.0
    rows[K:, n] = -fleet.count
    answer = linprog(np.append(np.zeros(n), 1.0), A_ub=csr_array(rows), b_ub=np.append(-fleet.offered_work, np.zeros(C)), method="highs")
    return float(answer.fun), n


def growth() -> None:
    """Random fleets with 4 resources: many small jobs, and large jobs where packing matters. A third of the pairs is faster or slower."""
    print(f"\n{'fleet':<34} {'kinds':>5} {'types':>5} {'servers':>8} ", end="")
    print(f"{'load':>10} {'proved gap':>11} {'schedules':>10} {'exact':>6} {'to 1e-4':>9} {'seconds':>9}")
    for label, capacity, largest in [("capacity about 1000, demands 1…40", 1000, 40), ("capacity about 100, demands 1…60", 100, 60)]:
        for C, K in ((2, 10), (5, 20), (10, 30), (20, 50)):
            fleet = random_fleet(C, K, capacity, largest)
            near: list[float] = []  # seconds of processor time when the load was known to 1e-4

            def tell(at: Progress, near: list[float] = near) -> None:
                if at.load <= at.lower_bound * 1.0001:
                    near.append(time.process_time())

            start, began = time.perf_counter(), time.process_time()
            best = rota.system_load(fleet, time_limit_s=60, progress=tell)
            elapsed = time.perf_counter() - start
            print(
                f"{label:<34} {C:5d} {K:5d} {fleet.servers:8,d} {best.load:10.6f} {best.gap:11.1e} {best.columns:10d} "
                f"{best.exact_solves:6d} {near[0] - began if near else np.nan:9.3f} {elapsed:9.3f}",
                flush=True,
            )


def pinned() -> None:
    """Pinned servers: the paper's example on many servers, and random fleets at load 0.85, with the time limit of 10 seconds."""
    paper = rota.read_system(EXAMPLES / "paper.toml")
    print(f"\n{'pinned servers':<34} {'servers':>8} {'E[T]':>10} {'pooled bound':>13} {'proved gap':>11} {'seconds':>9}")
    fleets = [(f"paper.toml, {n} times", rota.Fleet.equal(paper, n).scaled(factor=n)) for n in (2, 10, 100, 1000)]
    for C, K in ((2, 10), (5, 20), (20, 50)):
        fleet = random_fleet(C, K, 100, 60)
        fleets.append((f"{C} kinds, {K} types, demands 1…60", fleet.scaled(load=0.85)))
    for label, fleet in fleets:
        load = rota.system_load(fleet)
        start = time.perf_counter()
        design = find_pinned(fleet, load=load)
        elapsed = time.perf_counter() - start
        answer = rota.analyze(fleet, design.policy)
        print(
            f"{label:<34} {fleet.servers:8,d} {answer.mean_response_time:10.6f} {answer.lower_bound:13.6f} "
            f"{design.gap:11.1e} {elapsed:9.3f}",
            flush=True,
        )


def partly_pinned() -> None:
    """The paper's example on few and many servers at load 0.9, and the bundled fleet: what is gained if some servers turn."""
    paper, bundled = rota.read_system(EXAMPLES / "paper.toml"), rota.read_system(EXAMPLES / "fleet.toml")
    print(f"\n{'E[T]':<26} {'servers':>8} {'pinned':>9} {'partly pinned':>14} {'turn':>5} {'split':>9} {'lower bound':>12} {'seconds':>9}")
    fleets = [(f"paper.toml, {n} times", rota.Fleet.equal(paper, n).scaled(factor=n)) for n in (1, 2, 3, 5, 10, 100)]
    fleets += [(f"fleet.toml at load {load:g}", bundled.scaled(load=load)) for load in (0.66, 0.9, 0.99)]
    rota.design_policy(paper)  # compile
    one = rota.analyze(paper, rota.design_policy(paper)).mean_response_time
    for label, fleet in fleets:
        load = rota.system_load(fleet)
        try:
            still = f"{rota.analyze(fleet, rota.design_pinned(fleet, load=load)).mean_response_time:9.4f}"
        except rota.Infeasible:
            still = f"{'none':>9}"
        start = time.perf_counter()
        design = rota.design_partly_pinned(fleet, load=load)
        elapsed = time.perf_counter() - start
        answer = rota.analyze(fleet, design)
        # Equal servers that are split at random are one server each at its part of the arrivals.
        split = one if len(fleet.kinds) == 1 else rota.analyze(fleet, rota.design_split(fleet, load=load)).mean_response_time
        print(
            f"{label:<26} {fleet.servers:8,d} {still} {answer.mean_response_time:14.4f} {int(design.turning.sum()):5d} {split:9.4f} "
            f"{answer.lower_bound:12.4f} {elapsed:9.1f}",
            flush=True,
        )


def joint_split() -> None:
    """Split and rotas chosen together, against rotas for the split of the load: the bundled fleet and random small ones."""
    rota.design_split(small_fleet(0).scaled(load=0.5))  # compile
    print(f"\n{'E[T] split at random':<26} {'load':>6} {'split of the load':>18} {'chosen together':>16} {'ratio':>7} {'seconds':>9}")
    bundled = rota.read_system(EXAMPLES / "fleet.toml")
    fleets = [("fleet.toml", bundled.scaled(load=load), load) for load in (0.66, 0.86)]
    fleets += [(f"random, seed {seed}", small_fleet(seed).scaled(load=0.8), 0.8) for seed in range(8)]
    ratios = []
    for label, fleet, load in fleets:
        best = rota.system_load(fleet)
        kept = rota.analyze(fleet, rota.design_split(fleet, load=best, joint=False)).mean_response_time
        start = time.perf_counter()
        chosen = rota.analyze(fleet, rota.design_split(fleet, load=best)).mean_response_time
        elapsed = time.perf_counter() - start
        ratios.append(chosen / kept)
        print(f"{label:<26} {load:6.2f} {kept:18.4f} {chosen:16.4f} {ratios[-1]:7.3f} {elapsed:9.1f}", flush=True)
    print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}")


def small_fleet(seed: int) -> rota.Fleet:
    """Two kinds of up to 10 servers and three types that can run on both, each two or three times as fast on one of them."""
    rng = np.random.default_rng(seed)
    speed = np.ones((2, 3))
    speed[rng.integers(0, 2, 3), np.arange(3)] = rng.choice([2.0, 3.0], 3)
    demand = rng.integers(1, 4, (3, 2))
    return rota.Fleet(rng.integers(1, 11, 2), rng.integers(4, 9, (2, 2)), demand, 0.2 + rng.random(3), 0.5 + rng.random(3), speed=speed)


def simulation() -> None:
    """paper.toml on M servers at load 0.9 with First-Fit: events per second of processor time, and the largest memory of the process."""
    rules = ("random", "jsq", "least-wait", "pull")
    print(f"\n{'servers':>8} {'one server':>12} " + " ".join(f"{rule:>12}" for rule in rules) + f" {'inside':>10} {'MB':>8}")
    print(f"{'':>8} {'events/s':>12} " + " ".join(f"{'events/s':>12}" for _ in rules) + f" {'jobs':>10} {'peak':>8}")
    for servers in (1, 10, 100, 1000, 10_000):
        jobs = 1_000_000 if servers < 1000 else 10_000_000  # long enough that the beginning does not count
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            one, speeds, inside, megabytes = pool.submit(_speeds, servers, jobs, rules).result()
        cells = " ".join(f"{speed:12,.0f}" for speed in speeds)
        print(f"{servers:8,d} {one:12,.0f} {cells} {inside:10,.0f} {megabytes:8.0f}", flush=True)


def _speeds(servers: int, jobs: int, rules: Sequence[str]) -> tuple[float, list[float], float, float]:
    """Events/s of one server and of a fleet under each rule, the mean number of jobs inside, and the largest memory in MB."""
    paper = rota.read_system(EXAMPLES / "paper.toml")
    fleet = rota.Fleet.equal(paper, servers).scaled(factor=servers)
    rota.simulate(paper, "first-fit", jobs=1000)
    for rule in rules:
        rota.simulate(fleet, "first-fit", dispatch=rule, jobs=1000)  # compile
    one, _ = _per_cpu_second(paper, jobs)
    runs = [_per_cpu_second(fleet, jobs, dispatch=rule) for rule in rules]
    results = [result for _, result in runs]
    inside = float(np.nanmax([result.totals[2].sum() / result.totals[3, 0] for result in results]))
    return one, [speed for speed, _ in runs], inside, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _per_cpu_second(system: rota.System | rota.Fleet, jobs: int, **more: str) -> tuple[float, rota.Result]:
    """Events per second of processor time, which depends less on what else the machine does."""
    start = time.process_time()
    result = rota.simulate(system, "first-fit", jobs=jobs, **more)
    return result.events / (time.process_time() - start), result


def random_fleet(C: int, K: int, capacity: int, largest: int) -> rota.Fleet:
    """C kinds of up to 200 servers that differ in capacity by up to 40 %, and K types."""
    rng = np.random.default_rng(0)
    count = rng.integers(1, 201, C)
    servers = np.round(capacity * rng.uniform(0.6, 1.4, (C, 4)))
    demand = rng.integers(1, largest + 1, (K, 4))
    fits = (demand[None] <= servers[:, None]).all(axis=2)
    speed = np.where(fits & (rng.random((C, K)) < 1 / 3), rng.choice([0.5, 1.5, 2.0, 3.0], (C, K)), 1.0)
    return rota.Fleet(count, servers, demand, 100 * rng.random(K), np.ones(K), speed=speed)
