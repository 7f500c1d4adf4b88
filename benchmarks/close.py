"""Close rotas without preemption beside balanced and tuned ones and First-Fit, on the examples and on random servers of growing size."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rota

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("borg", "vm", "paper", "gpu", "web")
LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
SIZES = (10, 100, 1000)
PATIENCE_S = 60.0  # for the exact value of one policy


def run(options: Sequence[str] = ()) -> None:
    """Prints the tables. Sizes of jobs are exponential."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", nargs="*", default=NAMES)
    parser.add_argument("--loads", nargs="*", type=float, default=LOADS)
    parser.add_argument("--servers", type=int, default=5, help="random servers of each size")
    parser.add_argument("--check", action="store_true", help="only close rotas on random servers: the exact value beside a simulation")
    parser.add_argument("--jobs", type=int, default=300_000, help="simulated under First-Fit")
    given = parser.parse_args(options)
    if given.check:
        check(given.servers, given.jobs)
        return
    print(
        f"{'system':<8} {'load':>5} {'balanced':>12} {'tuned':>12} {'seconds':>8} {'close':>12} {'seconds':>8}  {'a switch':<24} First-Fit"
    )
    for name in given.examples:
        for load in given.loads:
            system = rota.read_system(EXAMPLES / f"{name}.toml")
            system = system.replace(mean_size=1 / system.service_rate, preemption="none", setup_time=None).scaled(load=load)
            balanced, _, _ = designed(system, "load")
            tuned, tuned_s, _ = designed(system, "response-time")
            close, close_s, policy = designed(system, "close")
            first_fit = simulated(system, given.jobs)
            line = f"{name:<8} {load:5.2f} {balanced:>12} {tuned:>12} {tuned_s:8.1f}"
            print(f"{line} {close:>12} {close_s:8.1f}  {switching(policy):<24} {first_fit}", flush=True)
    if given.servers:
        print(f"\n{'jobs':>6} {'types':>6} {'seed':>5} {'tuned':>12} {'close':>12} {'seconds':>8}  {'a switch':<24} First-Fit")
    for size in SIZES:
        for seed in range(given.servers):
            system = random_server(size, seed)
            tuned, _, _ = designed(system, "response-time")
            close, close_s, policy = designed(system, "close")
            first_fit = simulated(system, given.jobs)
            line = f"{size:6} {len(system.names):6} {seed:5} {tuned:>12}"
            print(f"{line} {close:>12} {close_s:8.1f}  {switching(policy):<24} {first_fit}", flush=True)


def check(servers: int, jobs: int) -> None:
    """The close rota of every random server: bounds, exact value and simulation."""
    print(f"{'jobs':>6} {'seed':>5} {'at least':>10} {'exact':>10} {'at most':>10}  simulated")
    for size in SIZES:
        for seed in range(servers):
            system = random_server(size, seed)
            policy = rota.design_policy(system)
            answer = rota.analyze(system, policy)
            bounds = [answer.little(queues) for queues in (answer.lower, answer.upper)]
            result = rota.simulate(system, policy, jobs=jobs, seed=1)
            line = f"{size:6} {seed:5} {bounds[0]:10.5g} {answer.mean_response_time:10.5g} {bounds[1]:10.5g}"
            print(f"{line}  {result.mean_response_time:.4g} ± {result.interval:.2g}", flush=True)


def random_server(jobs: int, seed: int) -> rota.System:
    """A server of two resources at load 0.9 that has room for about so many jobs of 4 to 12 types, with mean sizes from 0.2 to 5."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(4, 13))
    demand = rng.integers(1, 17, (K, 2)).astype(float)
    capacity = np.full(2, max(8.5 * jobs, 24.0))
    shares = rng.uniform(0.1, 1, K)
    return rota.System(capacity, demand, shares, mean_size=rng.uniform(0.2, 5, K), preemption="none").scaled(load=0.9)


def designed(system: rota.System, objective: str) -> tuple[str, float, rota.MSR]:
    """E[T] of a design, the seconds that it took, and the policy. "≥": the lower bound, where the exact value takes too long."""
    began = time.perf_counter()
    policy = rota.design_policy(system, objective=objective)
    elapsed = time.perf_counter() - began
    answer = rota.analyze(system, policy)
    if answer.exact_time_s <= PATIENCE_S and answer.accurate:
        return f"{answer.mean_response_time:.5g}", elapsed, policy
    return f"≥ {answer.little(answer.lower):.5g}", elapsed, policy


def simulated(system: rota.System, jobs: int) -> str:
    """E[T] under First-Fit, with the half-width of its interval."""
    result = rota.simulate(system, "first-fit", jobs=jobs, seed=1)
    return f"{result.mean_response_time:.4g} ± {result.interval:.2g}" if result.stable else "unstable"


def switching(policy: rota.MSR) -> str:
    """How many schedules there are, and how many jobs a switch between them waits for."""
    W = policy.candidates
    if len(W) == 1:
        return "never: 1 schedule"
    ends = np.maximum(W - np.roll(W, -1, axis=0), 0).sum(axis=1)
    return f"{len(W)} schedules, {ends.min()} to {ends.max()} jobs"
