"""Runs that stop when their interval is narrow: how often the interval still holds the exact value, and how many jobs that takes.

Then the same jobs in one run and split over independent runs (`replications="auto"`): bias, coverage and width.
"""

from __future__ import annotations

import numpy as np

import rota
from benchmarks.calibration import Case, cases

MOST = 4_000_000
JOBS = 400_000


def chosen() -> list[Case]:
    """The cases whose types are all common."""
    return [case for case in cases() if not case.name.startswith("rates")]


def stopped(case: Case, until: float, runs: int) -> tuple[float, float, float, float]:
    """Coverage after stopping, the part of the runs that stopped, their mean number of jobs, the mean width by what was asked for."""
    exact = rota.analyze(case.system, case.policy).mean_response_time
    results = [rota.simulate(case.system, case.policy, jobs=MOST, until=until, seed=seed) for seed in range(runs)]
    narrow = [result for result in results if result.reached]
    hits = [abs(result.mean_response_time - exact) <= result.interval for result in narrow]
    widths = [result.interval / result.mean_response_time / until for result in narrow]
    return float(np.mean(hits)), len(narrow) / runs, float(np.mean([result.jobs for result in results])), float(np.mean(widths))


def split(case: Case, jobs: int, runs: int, replications: int) -> tuple[float, float, float, float]:
    """Bias and its 95 % error, coverage and relative half-width."""
    exact = rota.analyze(case.system, case.policy).mean_response_time
    results = [rota.simulate(case.system, case.policy, jobs=jobs, seed=seed, replications=replications) for seed in range(runs)]
    apart = np.array([result.mean_response_time / exact - 1 for result in results])
    hits = [abs(result.mean_response_time - exact) <= result.interval for result in results]
    width = np.mean([result.interval / exact for result in results])
    return float(apart.mean()), float(1.96 * apart.std(ddof=1) / np.sqrt(runs)), float(np.mean(hits)), float(width)


def run(runs: int = 100) -> None:
    """Both tables."""
    print(f"Intervals at the end of runs that stop by themselves; {runs} runs each of at most {MOST / 1e6:g} million jobs")
    print(f"{'':24}{'until':>8}{'covers':>9}{'stopped':>9}{'mean jobs':>12}{'width/until':>13}")
    for case in chosen():
        for until in (0.2, 0.1):
            covers, part, jobs, width = stopped(case, until, runs)
            print(f"{case.name:24}{until:>8.0%}{covers:>9.1%}{part:>9.0%}{jobs:>12,.0f}{width:>13.2f}", flush=True)
    print()
    print_split(runs)


def print_split(runs: int) -> None:
    """The second table."""
    print(f"{JOBS:,} jobs in one run and in independent runs; {runs} times each")
    print(f"{'':24}{'runs':>6}{'bias':>9}{'±':>7}{'covers':>9}{'half-width':>12}")
    for case in chosen():
        n = rota.simulate(case.system, case.policy, jobs=JOBS, replications="auto").runs
        for replications in dict.fromkeys((1, n)):
            bias, error, covers, width = split(case, JOBS, runs, replications)
            print(f"{case.name:24}{replications:>6}{bias:>+9.2%}{error:>7.2%}{covers:>9.1%}{width:>12.1%}", flush=True)
