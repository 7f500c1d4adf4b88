"""The full month of 68.9 million jobs written, read and played in one pass; and a trace with more than a thousand distinct demands.

python -m benchmarks replay
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import rota
from benchmarks.real_traces import google
from rota.policy import Policy
from rota.traces import Looped, Trace, open_trace, scaled_to, write_borg_month


def run() -> None:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "month.parquet"
        began = time.perf_counter()
        write_borg_month(path)
        print(f"written: {path.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        trace, system = scaled_to(open_trace(path).without_long(2e5), 0.9, capacity=[1, 1], by="capacity")
        print(f"scaled to load 0.9 on {system.capacity[0]:.1f} servers as one: {time.perf_counter() - began:.0f} s")
        best = rota.system_load(system)
        fast = rota.MSR(best.candidates, best.weights, "full", 0.001)
        for name, policy in (
            ("first-fit", "first-fit"),
            ("pMSR, rate 0.001", fast),
            ("pMSR, rate 0.01", fast.replace(switching_rate=0.01)),
        ):
            played(name, system, policy, trace)
    try:
        many = google()
    except FileNotFoundError as missing:
        print(f"many types: {missing.filename} is not here")
        return
    part, server = many.stretched(40.0), many.stretched(40.0).system()  # to one machine
    print(f"{len(many.names):,} types as they are:")
    for name in ("fcfs", "first-fit", "easy"):
        played(name, server, name, part)


def played(name: str, system: rota.System, policy: Policy | str, workload: Trace | Looped) -> None:
    """One pass of a policy, with its time and the most memory that the process has had so far."""
    began = time.perf_counter()
    result = rota.simulate(system, policy, workload=workload)
    seconds, memory = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{name:18} {result.events:>12,} events in {seconds:6.1f} s, {result.events / seconds / 1e6:5.1f} million/s, {memory:.1f} GB",
        flush=True,
    )
