"""The policies of the Borg figure on two real traces: a month of Google's jobs (2011) and a month of Alibaba's GPU pods (2023).

    python -m benchmarks real_traces

Google's month has arrivals and sizes but no demands. Each job gets the demand of a job of the same scheduling class in the 83 minutes for
which demands are at hand, drawn by chance. Both traces are grouped into ten types (`clusters`), without jobs longer than two days, brought
to one machine and to each load, by thinning (Google) or by stretching time (Alibaba, which is small), and played three times, the first
left out. The candidates of the rotas come from load 0.9.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl

import rota
from rota.errors import RotaError
from rota.policy import Policy
from rota.traces import Trace, group_types, read_trace, scaled_to

DATA = Path(__file__).parents[2] / "shared" / "data"
LOADS = (0.3, 0.5, 0.7, 0.9)
LONGEST = 2 * 86_400.0
LOOPS = 3


def run() -> None:
    """Both tables, or what is missing."""
    for name, make, by in (("Google 2011", google, "thinning"), ("Alibaba 2023", alibaba, "time")):
        try:
            trace = make()
        except FileNotFoundError as missing:
            print(f"{name}: {missing.filename} is not here")
            continue
        grouped = group_types(trace.without_long(LONGEST), clusters=10, capacity=trace.capacity)
        print(f"{name}: {len(grouped.trace):,} jobs in {grouped.trace.span / 86_400:.1f} days. {grouped.explain()}")
        compare(grouped.trace, by)


def google() -> Trace:
    """Arrivals and sizes of finished jobs, with demands of jobs of the same scheduling class."""
    jobs = pl.read_parquet(_file("google2011_jobs/google2011_jobs.parquet")).filter(
        (pl.col("submit_us") >= 600_000_000) & (pl.col("end_type") == 4) & (pl.col("end_us") > pl.col("schedule_us"))
    )
    tasks = pl.read_parquet(_file("google2011_tasks_part0/google2011_tasks_part0.parquet")).drop_nulls(["cpu", "mem", "disk"])
    demands = (
        tasks.filter(pl.col("cpu") + pl.col("mem") > 0)
        .group_by("job_id", "sched_class")
        .agg(pl.col("cpu", "mem", "disk").median())
        .sort("job_id")
    )
    types = demands.select("cpu", "mem", "disk").unique(maintain_order=True).with_row_index("type")
    demands = demands.join(types, on=["cpu", "mem", "disk"]).sort("job_id", "sched_class")
    rng = np.random.default_rng(1)
    kinds = np.zeros(len(jobs), dtype=np.int32)
    for (chosen,), some in demands.group_by("sched_class", maintain_order=True):
        places = np.flatnonzero(jobs["sched_class"].to_numpy() == chosen)
        kinds[places] = rng.choice(some["type"].to_numpy(), len(places))
    table = pl.DataFrame(
        {
            "arrival": jobs["submit_us"] / 1e6,
            "size": (jobs["end_us"] - jobs["schedule_us"]) / 1e6,
            "type": kinds,
        }
    ).sort("arrival")
    names = tuple(f"demand{k + 1}" for k in range(len(types)))
    return Trace(table.lazy(), names, ("cpu", "memory", "disk"), types.select("cpu", "mem", "disk").to_numpy(), np.ones(3))


def alibaba() -> Trace:
    """The last month of pods, when 95 % of them were made."""
    pods, nodes = (_file(f"alibaba_openb_2023/{name}.csv.gz") for name in ("openb_pod_list_default", "openb_node_list_all_node"))
    trace = read_trace(pods, nodes=nodes)
    return trace.window(10_192_228.0, trace.end + 1.0)


def compare(trace: Trace, by: str) -> None:
    """Mean response times at every load."""
    _, system = scaled_to(trace, 0.9, by=by, preemption="full")  # type: ignore[arg-type]
    best = rota.system_load(system)
    rate = 1.0 / float(system.offered_work.sum() / system.arrival_rate.sum())  # of a typical job's end
    fast, slow = rota.MSR(best.candidates, best.weights, "full", 10 * rate), rota.MSR(best.candidates, best.weights, "none", rate / 100)
    policies: dict[str, Policy | str] = {
        "first-fit": "first-fit",
        "easy": "easy",
        "max-weight": "max-weight",
        "randomized-timers": rota.RandomizedTimers(rate=rate),
        "pMSR": fast,
        "pMSR+BF": fast.replace(backfill=True),
        "nMSR": slow,
        "nMSR+BF": slow.replace(backfill=True),
    }
    print(f"  pMSR switches every {1 / fast.switching_rate:.3g} s, nMSR every {1 / slow.switching_rate:.3g} s")
    print(f"  {'load':18}" + "".join(f"{load:>10}" for load in LOADS))
    at_load = []
    for load in LOADS:
        part, server = scaled_to(trace, load, by=by, preemption="full")  # type: ignore[arg-type]
        at_load.append((part.in_memory(), server))
    for name, policy in policies.items():
        began, cells = time.perf_counter(), []
        for part, server in at_load:
            try:
                done = rota.simulate(server, policy, workload=part.looped(LOOPS), warmup=1 / LOOPS).batches
                cells.append(f"{done[:, 1].sum() / done[:, 0].sum():10,.0f}")
            except RotaError as error:
                cells.append(f"{type(error).__name__:>10}")
        print(f"  {name:18}" + "".join(cells) + f"   ({time.perf_counter() - began:.0f} s)", flush=True)


def _file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        raise FileNotFoundError(2, "not found", str(Path("../shared/data") / name))
    return path
