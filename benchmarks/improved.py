"""Improved rotas without preemption, also with backfilling, beside their bases, First-Fit and MaxWeight, on the examples.

python -m benchmarks improved
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import rota
from benchmarks.close import EXAMPLES

LOADS = (0.8, 0.9, 0.95)


def run(options: Sequence[str] = ()) -> None:
    """Prints a table in Markdown. Sizes of jobs are exponential; with setups, two of them take as long as a job on average."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", nargs="*", default=("paper", "gpu", "web", "vm"))
    parser.add_argument("--loads", nargs="*", type=float, default=LOADS)
    parser.add_argument("--jobs", type=int, default=300_000)
    parser.add_argument("--preemption", choices=("full", "none", "setup"), default="none")
    given = parser.parse_args(options)
    for name in given.examples:
        for load in given.loads:
            system = rota.read_system(EXAMPLES / f"{name}.toml")
            setup_time = float(0.5 / system.service_rate.mean()) if given.preemption == "setup" else None
            system = system.replace(mean_size=1 / system.service_rate, preemption=given.preemption, setup_time=setup_time).scaled(load=load)
            cells = []
            balanced, best = rota.design_policy(system, objective="load", opening="early"), rota.design_policy(system)
            filled = (False,) if given.preemption == "full" else (False, True)
            for base, fills in ((balanced, (False,)), (best, filled)):
                cells.append(f"{rota.analyze(system, base).mean_response_time:.4g}")
                cells += [simulated(system, rota.Improved(base, backfill), given.jobs) for backfill in fills]
            first = "first-fit" if given.preemption == "none" else best.replace(backfill=True)
            peers = (first, "max-weight" if given.preemption == "full" else "max-weight-np")
            cells += [simulated(system, policy, given.jobs) for policy in peers]
            print(f"| {name} | {load} | {' | '.join(cells)} |", flush=True)


def simulated(system: rota.System, policy: rota.policy.Policy | str, jobs: int) -> str:
    """E[T] with the half-width of its interval."""
    try:
        result = rota.simulate(system, policy, jobs=jobs, seed=1)
    except rota.NotConverged:
        return "not solved"
    if result.stable:
        return f"{result.mean_response_time:.3g} ± {result.interval:.2g}"
    return "too few jobs" if isinstance(policy, rota.Improved) else "unstable"  # an improved rota is as stable as its base
