"""The made month of Borg jobs on ten thousand machines: events per second, memory and waits by dispatch rule.

The ten most frequent types of a cell, 68.9 million jobs in 31 days, keep about fifty machines of the largest size busy. So their arrivals
are moved together until the machines have the load asked for. Jobs above the limit are left out: the month is then shorter than they are.
`--share` keeps each job with this probability; the rest is moved together so much more, and the load is the same. The trace is written to a
file first (as `rota trace borg` does), and played from there in chunks.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import rota
from rota.traces import fleet_scaled_to, open_trace, write_borg_month
from rota.traces.machines import Machines


def run(options: Sequence[str] = ()) -> None:
    """A row for each rule."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet_borg", description=__doc__)
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--longest", type=float, default=1_000.0, help="seconds")
    parser.add_argument("--rules", nargs="+", default=["random", "power-of-d", "least-wait", "pull"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(list(options))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "month.parquet"
        began = time.perf_counter()
        write_borg_month(path, share=asked.share, seed=asked.seed)
        print(f"written: {path.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s", flush=True)
        for at, rule in enumerate(asked.rules):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # a process of its own: its memory is measured
                head, row = pool.submit(_played, path, asked.machines, asked.load, asked.longest, rule, asked.seed).result()
            print(head + row if at == 0 else row, flush=True)


def _played(path: Path, machines: int, load: float, longest: float, rule: str, seed: int) -> tuple[str, str]:
    """One rule: what is played, with the head of the table, and its row."""
    alike = Machines(("machine",), ("cpu", "memory"), np.array([machines]), np.ones((1, 2)))
    trace, fleet = fleet_scaled_to(open_trace(path).without_long(longest), alike, load)
    began, used = time.perf_counter(), time.process_time()
    result = rota.simulate(fleet, "first-fit", dispatch=rule, workload=trace, seed=seed)
    seconds, busy = time.perf_counter() - began, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    head = f"{result.jobs:,} jobs of at most {longest:,.0f} s, arrivals within {trace.span:,.0f} s: "
    head += f"load {load:g} of {machines:,} machines\n{'rule':<12} {'events':>12} {'seconds':>8} {'events/s':>10} {'GB':>6} "
    head += f"{'mean wait, s':>13} {'p99 response, s':>16} {'cpu':>6} {'memory':>7}\n"
    wait, p99 = result.mean_waiting_time, result.response_time_quantiles[0.99]
    row = f"{rule:<12} {result.events:12,} {seconds:8.0f} {result.events / busy:10,.0f} {memory:6.2f} {wait:13.3f} {p99:16.1f} "
    return head, row + " ".join(f"{x:{w}.1%}" for x, w in zip(result.utilization, (6, 7), strict=True))
