"""How far simulated means can be believed: their bias, and how often the 95 % intervals hold the exact value.

Every system here has an exact answer, so each run is right or wrong. Types of a system may differ in rate by a factor of a thousand.
`refused` is the part of the means, of a type or over all, for which a run gave no number or no interval, because it saw too few jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import rota

ROTA = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "full", 2.0)


@dataclass(frozen=True)
class Case:
    """A system under a rota, whose means are known exactly."""

    name: str
    system: rota.System
    policy: rota.MSR


def cases() -> list[Case]:
    """One server at three loads, many servers, variable sizes, rotas with and without preemption, and rates far apart."""
    paper = rota.read_system("examples/paper.toml")
    slow = rota.System([2], [[1], [1]], [70.0, 0.07], [100.0, 0.1])
    wide = rota.System([12], [[1], [2], [4]], [4.0, 0.2, 0.004], [1.0, 0.4, 0.01])
    sizes = [rota.Hyperexponential(probabilities=(0.9, 0.1), means=(0.5, 5.5))]
    return [
        *(Case(f"M/M/1, load {rho:g}", rota.System([1], [[1]], [rho], [1.0]), rota.MSR([[1]])) for rho in (0.5, 0.8, 0.9)),
        Case("M/M/50, load 0.9", rota.System([50], [[1]], [45.0], [1.0]), rota.MSR([[50]])),
        Case("M/H2/1, load 0.7", rota.System([1], [[1]], [0.7], sizes=sizes), rota.MSR([[1]])),
        Case("paper, pMSR, load 0.8", paper.scaled(load=0.8), ROTA),
        Case("paper, nMSR, load 0.7", paper.scaled(load=0.7), ROTA.replace(preemption="none", switching_rate=0.3)),
        Case("rates 1 : 1,000", slow, rota.MSR([[1, 1]])),
        Case("rates 1 : 20 : 1,000", wide, rota.MSR([[6, 1, 1]])),
    ]


@dataclass(frozen=True)
class Calibration:
    """What the runs of a case gave. Coverage is of the means that came with an interval."""

    bias: float
    bias_error: float
    coverage: float
    type_coverage: float
    refused: float
    width: float


def calibrate(case: Case, jobs: int, runs: int) -> Calibration:
    """Runs a case with seeds 0, 1, …"""
    answer = rota.analyze(case.system, case.policy)
    exact, exact_types = answer.mean_response_time, answer.response_time
    means, hits, type_hits, widths, refused, asked = [], [], [], [], 0, 0
    for seed in range(runs):
        result = rota.simulate(case.system, case.policy, jobs=jobs, seed=seed)
        totals = result.totals.sum(axis=1)
        means.append(totals[1] / totals[0])  # also where the result gives none
        pairs = [(result.mean_response_time, result.interval, exact, hits)]
        pairs += [
            (mean, width, value, type_hits)
            for mean, width, value in zip(result.response_time, result.response_time_interval, exact_types, strict=True)
        ]
        for mean, width, value, found in pairs:
            asked += 1
            if not np.isfinite(mean + width):
                refused += 1
                continue
            found.append(abs(mean - value) <= width)
        if np.isfinite(result.interval):
            widths.append(result.interval / exact)
    bias = np.array(means) / exact - 1
    return Calibration(
        float(bias.mean()),
        float(1.96 * bias.std(ddof=1) / np.sqrt(runs)),
        float(np.mean(hits)) if hits else np.nan,
        float(np.mean(type_hits)) if type_hits else np.nan,
        refused / asked,
        float(np.mean(widths)) if widths else np.nan,
    )


def run(runs: int = 200) -> None:
    """Prints the table: so many runs of 10,000 and of 100,000 jobs, a fifth as many of a million."""
    print(f"Coverage of 95 % intervals and bias of the mean response time; {runs} runs of 10⁴ and 10⁵ jobs, {runs // 5} of 10⁶")
    print(f"{'':24}{'jobs':>10}{'bias':>9}{'±':>7}{'covers':>9}{'types':>8}{'refused':>9}{'half-width':>12}")
    pooled: dict[int, list[float]] = {}
    for case in cases():
        for jobs in (10_000, 100_000, 1_000_000):
            found = calibrate(case, jobs, runs if jobs < 1_000_000 else max(runs // 5, 2))
            pooled.setdefault(jobs, []).append(found.type_coverage)
            print(
                f"{case.name:24}{jobs:>10,}{found.bias:>+9.2%}{found.bias_error:>7.2%}{found.coverage:>9.1%}{found.type_coverage:>8.1%}"
                f"{found.refused:>9.1%}{found.width:>12.1%}",
                flush=True,
            )
    for jobs, coverages in pooled.items():
        print(f"mean coverage of the types' means, {jobs:,} jobs: {np.nanmean(coverages):.1%}")
