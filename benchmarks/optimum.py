"""The best policy there is, with and without preemption, beside MaxWeight and First-Fit, on the paper's example."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import rota

EXAMPLES = Path(__file__).parent.parent / "examples"
LOADS = (0.8, 0.9, 0.95)


def run(options: Sequence[str] = ()) -> None:
    """Prints a line per preemption model and load. Sizes of jobs are exponential."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--example", default="paper")
    parser.add_argument("--loads", nargs="*", type=float, default=LOADS)
    parser.add_argument("--accuracy", type=float, default=1e-3)
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="simulated under each policy")
    given = parser.parse_args(options)
    print(
        f"{'load':>5} {'preemption':<10} {'no policy below':>15} {'the table has':>13} {'settled':>8} {'at most jobs':>16} {'values':>12} "
        f"{'seconds':>8} {'simulated':>16} {'MaxWeight':>16} {'First-Fit':>16}"
    )
    for load in given.loads:
        for preemption in ("full", "none"):
            system = rota.read_system(EXAMPLES / f"{given.example}.toml").scaled(load=load)
            best = rota.optimal_policy(system, preemption, accuracy=given.accuracy, sizes="exponential", time_limit_s=given.time_limit)
            simulated = simulate(system, best.policy, given.jobs)
            max_weight = simulate(system, rota.MaxWeight(preemption), given.jobs)
            first_fit = simulate(system, rota.FirstFit(), given.jobs) if preemption == "none" else ""
            settled, edge = "yes" if best.settled else "no", " × ".join(map(str, best.truncation))
            line = f"{load:5.2f} {preemption:<10} {best.lower_bound:15.4f} {best.mean_response_time:13.4f} {settled:>8} {edge:>16}"
            print(f"{line} {best.states:12,} {best.time_s:8.1f} {simulated:>16} {max_weight:>16} {first_fit:>16}", flush=True)


def simulate(system: rota.System, policy: rota.policy.Policy, jobs: int) -> str:
    """The simulated mean response time with its interval."""
    result = rota.simulate(system, policy, jobs=jobs, seed=1)
    return f"{result.mean_response_time:.3f} ± {result.interval:.2g}" if result.stable else "unstable"
