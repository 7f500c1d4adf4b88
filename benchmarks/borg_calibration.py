"""The synthetic Borg month: sizes solved, facts beside the published ones, modulation fitted to First-Fit, other policies validated.

One core; some fifteen minutes for everything. The paper's numbers are those of its Borg figure, read off in seconds.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import least_squares

import rota
from rota.arrays import Array
from rota.policy import Policy
from rota.study.reproduce.borg import PAPER
from rota.traces import Trace
from rota.traces.borg import BorgModel, borg_month, write_borg_month
from rota.traces.resample import resample

FULL = 0.01983  # the paper's sampling factor at ρ = 1
PERIOD = 2_679_600.0  # s
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FITTED = LOADS[:6]
SEEDS = range(8)
STAR = [(8.5, 6.0, 3.0), (7.5, 6.0, 3.0), (9.5, 6.0, 3.0), (8.5, 4.0, 3.0), (8.5, 8.0, 3.0), (8.5, 6.0, 2.0), (8.5, 6.0, 4.0)]
QUARTILES = (49.554, 80.280, 169.257)


def run() -> None:
    """Prints all tables."""
    solve_sizes()
    published_facts()
    all_types_alike()
    campaigns()
    fit_modulation()
    first_fit_by_seed()
    validate()
    resampled()


def solve_sizes() -> None:
    """core_median, core_power and tail_start from the three quartiles; where the failure rate then peaks."""
    model = BorgModel()

    def law(x: Array) -> BorgModel:
        return replace(model, core_median=float(x[0]), core_power=float(x[1]), tail_start=float(x[2]))

    def misses(x: Array) -> Array:
        return np.asarray((law(x).sizes.survival(np.array(QUARTILES)) - [0.75, 0.5, 0.25]) * 1e3)

    found = least_squares(misses, [79.0, 0.6, 1.7], xtol=1e-12, ftol=1e-12, gtol=1e-12)
    at = np.arange(5.0, 400.0, 0.5)
    rate = -np.diff(np.log(law(found.x).sizes.survival(at))) / 0.5
    print("sizes: core_median {:.4f}, core_power {:.5f}, tail_start {:.5f}".format(*found.x), f"(residual {np.abs(found.fun).max():.1e})")
    print(f"failure rate: peak at {at[rate.argmax()] + 0.25:.1f} s;", end=" ")
    print(", ".join(f"{rate[np.searchsorted(at, x)]:.4f}/s at {x} s" for x in (10, 20, 30, 40, 50, 60, 80, 120, 200, 300)))
    a, b = model.sizes.long_shape
    print(f"long jobs: Beta({a:.3f}, {b:.3f})\n", flush=True)


def published_facts() -> None:
    """Writes a full month and compares it with what is published."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        trace = write_borg_month(Path(folder) / "month.parquet")
        time_s, gb = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        file_gb = os.path.getsize(Path(folder) / "month.parquet") / 2**30
        print(f"{len(trace):,} jobs written in {time_s:.0f} s, {file_gb:.2f} GB, peak memory of the process {gb:.2f} GB")
        size, arrival = trace.jobs.select("size").collect()["size"], trace.jobs.select("arrival").collect()["arrival"]
        long = size.filter(size > 2e5)
        rows = [
            ("jobs", 68_909_417, len(trace)),
            ("mean size", 310.5614, size.mean()),
            ("deviation of sizes", 8105.39, size.std()),
            *((f"size, quartile {k + 1}", target, size.quantile((k + 1) / 4)) for k, target in enumerate(QUARTILES)),
            ("smallest size", 1e-6, size.min()),
            ("largest size", 2_678_140, size.max()),
            ("jobs above 2e5 s", 2542, len(long)),
            ("their part of the work", 0.136, long.sum() / size.sum()),
            ("first arrival", 600.17, arrival.min()),
            *(
                (f"arrivals, quartile {k + 1}", target, arrival.quantile((k + 1) / 4))
                for k, target in enumerate((577_906, 1_255_278, 1_937_091))
            ),
            ("last arrival", 2_678_906.02, arrival.max()),
        ]
        model, found = BorgModel(), trace.per_type
        for i, name in enumerate(model.names):
            rows += [(f"{name}: jobs", model.jobs[i], found["jobs"][i]), (f"{name}: mean size", model.mean_size[i], found["mean_size"][i])]
        print(f"{'fact':24} {'published':>16} {'generated':>16} {'off by':>8}")
        for name, target, value in rows:
            print(f"{name:24} {target:16,.10g} {value:16,.10g} {float(value) / target - 1:8.2%}")
    print(flush=True)


def all_types_alike() -> None:
    """Why only the heavy type is strongly modulated: were all, pMSR would be far worse beside First-Fit than the paper's."""
    model = replace(BorgModel(), modulation=1.0, heavy_modulation=1.0, memory=86_400.0, ceiling=1e6)
    preemptive = borg_policies(model)["pMSR"]
    for seed in range(4):
        first_fit, isolated = (curve(model, seed, policy, (0.4,))[0] for policy in ("first-fit", preemptive))
        paper = PAPER["pMSR"][3] / PAPER["first-fit"][3]
        print(f"all types alike, load 0.4, seed {seed}: First-Fit {first_fit:,.0f}, pMSR {isolated:,.0f}", end="; ")
        print(f"ratio {isolated / first_fit:.1f}, the paper's {paper:.1f}")
    print(flush=True)


def campaigns() -> None:
    """How long the heavy type stays at half its ceiling or above, in hours with jobs of it."""
    model = BorgModel()
    for seed in SEEDS:
        trace = borg_month(share=0.02, seed=seed, model=model)
        times = trace.jobs.filter(pl.col("type") == model.heavy).select("arrival").collect()["arrival"].to_numpy()
        counts = np.histogram(times, np.arange(0.0, PERIOD + 1, 3600.0))[0]
        high = np.concatenate([[False], counts > model.ceiling / 2 * counts.mean(), [False]])
        lengths = np.flatnonzero(high[:-1] & ~high[1:]) - np.flatnonzero(~high[:-1] & high[1:])
        print(f"seed {seed}: the heavy type at half its ceiling or above {high.mean():.1%} of the time, {len(lengths)} times,", end=" ")
        print(f"the longest {lengths.max()} h")
    print(flush=True)


def fit_modulation() -> None:
    """Least squares in log E[T] of First-Fit up to ρ = 0.6, averaged over seeds, at the chosen point and its neighbours."""
    print(f"First-Fit up to load 0.6, geometric means of {len(SEEDS)} seeds; 'miss' is the root mean square in log E[T]")
    print(f"{'ceiling':>7} {'heavy_modulation':>16} {'memory (days)':>13} {'miss':>6}  E[T] at {', '.join(map(str, FITTED))}")
    target = np.log(PAPER["first-fit"][: len(FITTED)])
    for ceiling, sigma, days in STAR:
        model = replace(BorgModel(), ceiling=ceiling, heavy_modulation=sigma, memory=days * 86_400)
        logs = np.log([curve(model, seed, "first-fit", FITTED) for seed in SEEDS])
        miss = float(np.sqrt(np.mean((logs.mean(axis=0) - target) ** 2)))
        print(f"{ceiling:7} {sigma:16} {days:13} {miss:6.3f}  {_row(np.exp(logs.mean(axis=0)))}", flush=True)
    print(f"{'paper':>45}  {_row(PAPER['first-fit'][:6])}\n", flush=True)


def first_fit_by_seed() -> None:
    """How much months differ, and which is nearest to the paper's."""
    target = np.log(PAPER["first-fit"])
    print("First-Fit at all loads, one row per seed; 'miss' up to load 0.6")
    for seed in SEEDS:
        found = curve(BorgModel(), seed, "first-fit", LOADS)
        miss = float(np.sqrt(np.mean((np.log(found) - target)[: len(FITTED)] ** 2)))
        print(f"seed {seed}: miss {miss:5.3f}  {_row(found)}", flush=True)
    print(f"{'paper':>18}  {_row(PAPER['first-fit'])}\n", flush=True)


def validate(seeds: tuple[int, ...] = (4, 0), loads: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)) -> None:
    """Every policy of the figure, beside the paper's: for the seed nearest to it up to load 0.6, and for the default one."""
    model = BorgModel()
    for name, policy in borg_policies(model).items():
        once = name == "max-weight"  # as in the paper: it takes minutes at high loads
        for seed in seeds[:1] if once else seeds:
            print(f"{name:18} seed {seed}  {_row(curve(model, seed, policy, loads, loops=1 if once else 3))}", flush=True)
        print(
            f"{name:18} paper   {_row([PAPER[name][LOADS.index(load)] for load in loads])}"
            if name in PAPER
            else f"{name:18} not in the figure"
        )
    print(flush=True)


def resampled() -> None:
    """The index of dispersion of real arrivals and of resampled ones, where the real ones are at hand."""
    files = sorted((Path(__file__).parents[2] / "shared" / "data" / "google2011_jobs").glob("*.parquet"))
    if not files:
        print("resampling: the real arrivals are not here (../shared/data/google2011_jobs)")
        return
    submitted = pl.read_parquet(files[0]).filter(pl.col("submit_us") >= 600_000_000)["submit_us"].sort()
    jobs = pl.DataFrame({"arrival": submitted / 1e6 - 600.0}).with_columns(size=pl.lit(1.0), type=pl.lit(0, dtype=pl.Int32))
    real = Trace(jobs.lazy(), ("job",), ("slots",), np.ones((1, 1)))
    traces = {"real": real, "290 days": resample(real, days=290)} | {f"seed {seed}": resample(real, seed=seed) for seed in range(6)}
    print("index of dispersion of Google's 2011 arrivals in windows of 60 s, 600 s, 1 h, 3 h, 12 h; blocks of 6 h")
    for name, trace in traces.items():
        times = trace.jobs.select("arrival").collect()["arrival"].to_numpy()
        counts = [np.histogram(times, np.arange(0.0, trace.span, window))[0] for window in (60.0, 600.0, 3600.0, 10_800.0, 43_200.0)]
        print(f"{name:9} " + " ".join(f"{count.var() / count.mean():7.1f}" for count in counts))


def borg_policies(model: BorgModel) -> dict[str, Policy | str]:
    """The policies of the figure: candidates from the system at ρ = 0.9 without its long jobs."""
    rates = 0.9 * FULL * np.array(model.jobs) / PERIOD
    means = np.array(model.mean_size) * (1 - model.long_work)
    system = rota.System(capacity=[1, 1], demand=model.demand, arrival_rate=rates, service_rate=1 / means, names=model.names)
    best = rota.system_load(system)
    preemptive = rota.MSR(best.candidates, best.weights, "full", 0.1)
    patient = rota.MSR(best.candidates, best.weights, "none", 3.6e-6)
    return {
        "first-fit": "first-fit",
        "pMSR": preemptive,
        "pMSR+backfill": preemptive.replace(backfill=True),
        "nMSR+backfill": patient.replace(backfill=True),
        "nMSR": patient,
        "max-weight": "max-weight",
        "randomized-timers": "randomized-timers",
    }


def curve(model: BorgModel, seed: int, policy: Policy | str, loads: tuple[float, ...], loops: int = 3) -> Array:
    """Mean response times (s) of a month played three times, the first time left out; or once."""
    months = (borg_month(share=FULL * load, seed=seed, model=model).without_long(2e5) for load in loads)
    return np.array([mean_response_time(month, policy, loops) for month in months])


def mean_response_time(trace: Trace, policy: Policy | str, loops: int = 3) -> float:
    """Of the jobs that were done after the first loop, also where the queue still grew."""
    jobs = trace.jobs.collect()
    counts = np.bincount(jobs["type"], minlength=len(trace.names))
    # Added up in order of arrival: sums of a streaming query differ in their last bits from run to run, and an nMSR's path with them.
    rates, means = counts / trace.span, np.bincount(jobs["type"], jobs["size"], minlength=len(trace.names)) / counts
    system = rota.System(
        capacity=[1, 1], demand=trace.demand, arrival_rate=rates, service_rate=1 / means, names=trace.names, resources=trace.resources
    )
    done = rota.simulate(system, policy, workload=trace.looped(loops), jobs=10**9, warmup=0.0 if loops == 1 else 1 / loops).batches
    return float(done[:, 1].sum() / done[:, 0].sum())


def _row(values: Array | list[float] | tuple[float, ...]) -> str:
    return " ".join(f"{value:9,.0f}" for value in values)
