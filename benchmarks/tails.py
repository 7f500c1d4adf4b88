"""P(T > t) of each type, exact and simulated: the paper's example with each kind of preemption.

python -m benchmarks tails
python -m benchmarks tails --tuned     # what rotas gain whose switching rate has the least 95 % quantile
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

import rota
from rota.design import Design
from rota.design.quantile import tuned_on_p95

EXAMPLES = Path(__file__).parent.parent / "examples"
LEVELS = (0.5, 0.9, 0.99, 0.999)
POLICIES = {
    "pMSR": rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "full", 2.0),
    "nMSR": rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "none", 0.06),
    "sMSR": rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "setup", 0.3, setup_rate=10.0),
}


def run(options: Sequence[str] = ()) -> None:
    """Prints, at the exact quantiles of each type, P(T > t) and what part of the simulated jobs took longer, with a 95 % interval."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tails", description=run.__doc__)
    parser.add_argument("--jobs", type=int, default=10_000_000, help="simulated jobs of each policy, in all runs together")
    parser.add_argument("--runs", type=int, default=20, help="independent runs, from which the intervals come")
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", action="store_true", help="the examples without preemption, tuned on the quantile, and nothing else")
    chosen = parser.parse_args(list(options))
    if chosen.tuned:
        tuned()
        return
    system = rota.read_system(EXAMPLES / "paper.toml").scaled(load=chosen.load)
    print(f"load {chosen.load}, {chosen.jobs:,} jobs of each policy in {chosen.runs} runs, seeds from {chosen.seed}")
    for name in chosen.policies:
        policy = POLICIES[name]
        exact(name, system, policy)
        against_simulation(system, policy, chosen.jobs // chosen.runs, range(chosen.seed, chosen.seed + chosen.runs))


def tuned() -> None:
    """The close rota of each example without preemption, and the same with the switching rate of the least 95 % quantile."""
    print(f"{'system':<6} {'load':>4} {'p95':>7} {'tuned':>7} {'':>6} {'mean':>7} {'tuned':>7} {'rate ×':>7} {'CPU s':>6}")
    for name in ("paper", "gpu", "web", "vm"):
        given = rota.read_system(EXAMPLES / f"{name}.toml")
        for load in (0.8, 0.9):
            system = given.replace(mean_size=1 / given.service_rate, preemption="none", setup_time=None).scaled(load=load)
            close = rota.design_policy(system, time_limit_s=6.0)
            start = time.process_time()
            other = tuned_on_p95(system, Design(close, None), keep_rate=False, time_limit_s=2.0).policy
            elapsed = time.process_time() - start
            before, after = (rota.analyze(system, policy) for policy in (close, other))
            p, q = (answer.response_time_quantiles((0.95,))[0.95] for answer in (before, after))
            means = f"{before.mean_response_time:7.4g} {after.mean_response_time:7.4g}"
            faster = other.switching_rate / close.switching_rate
            print(f"{name:<6} {load:4.1f} {p:7.4g} {q:7.4g} {q / p - 1:+6.1%} {means} {faster:7.2f} {elapsed:6.1f}", flush=True)


def exact(name: str, system: rota.System, policy: rota.MSR) -> None:
    """How long the exact laws take, and how far their means are from Little's law."""
    answer = rota.analyze(system, policy)
    for i, type_name in enumerate(system.names):
        answer.queue_length(i)
        start = time.perf_counter()
        law = answer.response_time_distribution(i)
        elapsed = time.perf_counter() - start
        print(f"\n{name}, {type_name}: {law.method}, {elapsed:.3f} s; E[T] {law.mean:.6f}, off Little's law by {law.accuracy:.0e}")


def against_simulation(system: rota.System, policy: rota.MSR, jobs: int, seeds: Sequence[int]) -> None:
    """The part of the jobs of each run that took longer than each exact quantile."""
    answer = rota.analyze(system, policy)
    laws = [answer.response_time_distribution(i) for i in range(len(system.names))]
    times = np.array([[law.quantile(p) for p in LEVELS] for law in laws])
    start = time.perf_counter()
    longer = np.array([longer_than(times, system, policy, jobs, seed) for seed in seeds])  # (runs, types, levels)
    elapsed = time.perf_counter() - start
    half = student.ppf(0.975, len(seeds) - 1) * longer.std(axis=0, ddof=1) / np.sqrt(len(seeds))
    print(f"\n{'type':<8} {'t':>10} {'P(T > t)':>10} {'simulated':>11} {'±':>9} {'difference/±':>13}")
    for i, law in enumerate(laws):
        for j, t in enumerate(times[i]):
            found, wide = longer[:, i, j].mean(), half[i, j]
            tail = float(law.tail(t))
            off = f"{(found - tail) / wide:.2f}" if wide > 0 else "none seen"
            print(f"{system.names[i]:<8} {t:10.3f} {tail:10.6f} {found:11.6f} {wide:9.6f} {off:>13}")
    print(f"simulated in {elapsed:.0f} s", flush=True)


def longer_than(times: np.ndarray, system: rota.System, policy: rota.MSR, jobs: int, seed: int) -> np.ndarray:
    """The part of the jobs of each type that took longer than each of its times; the first fifth of the run does not count."""
    log = rota.simulate(system, policy, jobs=jobs, seed=seed, log_jobs=jobs).log
    assert log is not None
    arrive, finish = (log.filter(log["event"] == event).sort("job") for event in ("arrive", "finish"))
    both = arrive.join(finish, on="job").sort("job")[jobs // 5 :]
    taken, types = (both["time_right"] - both["time"]).to_numpy(), both["type"].to_numpy()
    return np.array([[(taken[types == name] > t).mean() for t in row] for name, row in zip(system.names, times, strict=True)])


if __name__ == "__main__":
    run()
