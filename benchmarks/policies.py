"""Improved and queue-driven rotas beside the policies without preemption that were there before: ratios to the best of those.

    python -m benchmarks policies                          # examples and 20 random systems at five loads: about an hour on two cores
    python -m benchmarks policies --random 0 --loads 0.9   # the examples at one load
    python -m benchmarks policies --examples --first-seed 100   # other random systems only
    python -m benchmarks policies --traces borg google alibaba
    python -m benchmarks policies --optimum 60             # only systems of few types: what any policy could reach, proved
    python -m benchmarks policies --decisions              # microseconds per event with ten types, decisions included

Queue-driven rotas are tuned with one seed; all policies are then simulated on jobs of another one, the same for all.
With --optimum a bound that no policy without preemption can be below is searched for, for so many seconds a row; only rows with at most
three types and exponential sizes are printed then.
A trace is tuned on its first half, and all are judged on its second, from an empty server; its jobs have an end, so all have a mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

import rota
from benchmarks.close import EXAMPLES
from benchmarks.filled import borg, scaled
from benchmarks.real_traces import LONGEST, alibaba, google
from rota.errors import RotaError
from rota.policy import Policy
from rota.traces import Trace, group_types
from rota.tuning.parts import two_parts

NAMES = ("paper", "gpu", "web", "vm", "borg")
LOADS = (0.5, 0.7, 0.8, 0.9, 0.95)
TRACE_LOADS = (0.5, 0.7, 0.9)
BEFORE = ("first-fit", "easy", "max-weight-np")
MOST_TYPES = 3  # for the optimum
JUDGED = 90_001  # the seed of the jobs on which all are compared


def run(options: Sequence[str] = ()) -> None:
    """Prints a row per system and load, and the geometric mean of the ratios at each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", nargs="*", default=NAMES)
    parser.add_argument("--random", type=int, default=20, help="random systems, with seeds from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0, help="of the random systems; their numbers in the table are their seeds")
    parser.add_argument("--loads", nargs="*", type=float, default=None)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="simulated under each policy")
    parser.add_argument("--tuning", type=int, default=400_000, help="jobs of the longest race")
    parser.add_argument("--traces", nargs="*", choices=("borg", "google", "alibaba"))
    parser.add_argument("--optimum", type=float, default=0.0, metavar="SECONDS", help="for a proved bound on all policies, few types only")
    parser.add_argument("--decisions", action="store_true", help="how long decisions take, and nothing else")
    given = parser.parse_args(options)
    if given.decisions:
        decisions()
        return
    head = f"{'system':<10} {'load':>4} {'best before':>24} {'nMSR+backfill':>14} {'improved':>10} {'adaptive':>10} {'ratio':>6}"
    print(head + (f" {'bound':>8} {'reachable':>9} {'above':>6}" if given.optimum else "") + "  setting")
    ratios: dict[float, list[float]] = {}
    reachable: dict[float, list[float]] = {}
    if given.traces:
        for name, load, trace, system in traces(given.traces, given.loads or TRACE_LOADS):
            tuned = rota.tune_adaptive(system, jobs=given.tuning, seed=1, workload=trace)
            _, judged = two_parts(trace, system, len(trace))
            ratios.setdefault(load, []).append(row(name, load, system, tuned, judged, None))
    else:
        for name, load, system in systems(given.examples, range(given.first_seed, given.first_seed + given.random), given.loads or LOADS):
            bound = lower_bound(system, given.optimum) if given.optimum else None
            if given.optimum and bound is None:
                continue
            tuned = rota.tune_adaptive(system, jobs=given.tuning, seed=1)
            ratios.setdefault(load, []).append(row(name, load, system, tuned, None, given.jobs, bound, reachable.setdefault(load, [])))
    for load, found in sorted(ratios.items()):
        known = np.array([ratio for ratio in found if np.isfinite(ratio)])
        mean = float(np.exp(np.log(known).mean()))
        could = reachable.get(load)
        proved = f"; no policy has a geometric mean below {float(np.exp(np.log(could).mean())):.3f} (proved)" if could else ""
        print(f"load {load}: geometric mean {mean:.3f}, largest {known.max():.3f}, of {len(known)} systems{proved}", flush=True)


def lower_bound(system: rota.System, time_limit_s: float) -> float | None:
    """No policy without preemption has a smaller mean response time; None where there are more types, other sizes, or not enough time."""
    if len(system.names) > MOST_TYPES:
        return None
    try:
        return rota.optimal_policy(system, "none", accuracy=1e-2, time_limit_s=time_limit_s).lower_bound
    except RotaError:
        return None


def systems(names: Sequence[str], seeds: Sequence[int], loads: Sequence[float]) -> Iterator[tuple[str, float, rota.System]]:
    """The examples and random systems, without preemption, at each load."""
    for name in names:
        system = rota.read_system(EXAMPLES / f"{name}.toml").replace(preemption="none", setup_time=None)
        for load in loads:
            yield name, load, system.scaled(load=load)
    for seed in seeds:
        for load in loads:
            yield f"random {seed}", load, random_system(seed).scaled(load=load)


def traces(names: Sequence[str], loads: Sequence[float]) -> Iterator[tuple[str, float, Trace, rota.System]]:
    """A made month of Borg, and the real traces that are here, brought to each load, without preemption."""
    for name in names:
        if name == "borg":
            made = (borg(load, 4) for load in loads)
        else:
            trace, by = (google(), "thinning") if name == "google" else (alibaba(), "time")
            grouped = group_types(trace.without_long(LONGEST), clusters=10, capacity=trace.capacity).trace
            made = (scaled(grouped, load, by) for load in loads)
        for load, (part, system) in zip(loads, made, strict=True):
            yield name, load, part.in_memory(), system.with_preemption("none")


def random_system(seed: int) -> rota.System:
    """K = 2 … 6 types on R = 1 … 4 resources; a job needs up to all of the server; mean sizes from 0.3 to 3."""
    rng = np.random.default_rng(seed)
    K, R = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    demand = rng.integers(1, 17, (K, R)).astype(float)
    capacity = np.maximum(demand.max(axis=0), rng.integers(16, 33, R))
    return rota.System(capacity, demand, rng.uniform(0.1, 1, K), mean_size=rng.uniform(0.3, 3, K), preemption="none")


def row(
    name: str,
    load: float,
    system: rota.System,
    tuned: rota.Tuned,
    workload: object,
    jobs: int | None,
    bound: float | None = None,
    reachable: list[float] | None = None,
) -> float:
    """Prints the row of a system, and returns the better of the new policies relative to the best one of before.

    With a bound on all policies, it is printed too, with its ratio to the best one of before, which goes to `reachable`, and by how much
    the better of the new policies is above it.
    """
    base = rota.design_policy(system, "none", time_limit_s=4.0)
    before: dict[str, Policy | str] = {policy: policy for policy in BEFORE} | {"nMSR+backfill": base.replace(backfill=True)}
    means = {policy: mean(system, given, workload, jobs) for policy, given in before.items()}
    best = min(means, key=lambda policy: means[policy])
    improved, adaptive = mean(system, rota.Improved(base, True), workload, jobs), mean(system, tuned.policy, workload, jobs)
    ratio = min(improved, adaptive) / means[best]
    cells = f"{f'{best} {means[best]:.4g}':>24} {means['nMSR+backfill']:14.4g} {improved:10.4g} {adaptive:10.4g} {ratio:6.3f}"
    if bound is not None and reachable is not None and np.isfinite(means[best]):
        reachable.append(bound / means[best])
        cells += f" {bound:8.4g} {reachable[-1]:9.3f} {min(improved, adaptive) / bound - 1:6.1%}"
    print(f"{name:<10} {load:4.2f} {cells}  {tuned.policy!r}", flush=True)
    return ratio


def decisions() -> None:
    """Events per second on the ten types of Borg; an event takes its decision and the simulator's own work."""
    system = rota.read_system(EXAMPLES / "borg.toml").replace(preemption="none", setup_time=None).scaled(load=0.9)
    tuned = rota.tune_adaptive(system, jobs=20_000, seed=1)
    goals = rota.system_load(system).candidates
    policies: dict[str, Policy | str] = {
        "first-fit": "first-fit",
        "max-weight-np": "max-weight-np",
        "improved": rota.design_improved(system, "none", time_limit_s=10.0),
        "adaptive, tuned": tuned.policy,
        "adaptive, held": rota.Adaptive(goals, full=0.9, waive=10.0),
        "adaptive, free": rota.Adaptive(goals, slack=1.0),
    }
    for name, policy in policies.items():
        rota.simulate(system, policy, jobs=2_000, seed=1)  # compiles
        result = rota.simulate(system, policy, jobs=300_000, seed=1)
        print(f"{name:<18} {1e6 / result.events_per_s:6.2f} µs per event", flush=True)


def mean(system: rota.System, policy: Policy | str, workload: object, jobs: int | None) -> float:
    """The mean response time; infinite where the policy cannot be had, or the queue grew under jobs without end."""
    try:
        result = rota.simulate(system, policy, jobs=jobs, seed=JUDGED, workload=workload)  # type: ignore[arg-type]
    except RotaError:
        return np.inf
    if workload is not None:
        return float(result.totals[1].sum() / result.totals[0].sum())
    return result.mean_response_time if result.stable and not np.isnan(result.mean_response_time) else np.inf
