"""Alibaba openb on its own 1,523 nodes: dispatch rules and pinned servers on the same jobs.

The log has a month of jobs that take a small part of the nodes' time, so more of it is drawn from it in blocks (`rota.traces.resample`),
and arrivals are moved together until the nodes have the load asked for. Jobs longer than the limit are left out, and demands are rounded
up to a few types, for all rules alike. The devices of a node are one amount here, so a job may hold parts of two devices.

The rules that the trace's authors compare (Weng et al., USENIX ATC 2023): random, best fit, dot product (the node whose free resources
point least along the demand) and fragmentation gradient descent (FGD: the node on which the job leaves the fewest devices in pieces that
no typical job can use). A job that fits nowhere goes where the fewest of its type are. Servers run the jobs that fit, oldest first
(First-Fit). Mean wait: mean response time less mean size, in seconds. In use: until the last job is done, over all nodes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rota
from rota.kernel import kernel
from rota.simulation.fleet.state import FREE, TYPE, FleetState, fits_at_once, runs_on
from rota.traces import fleet_scaled_to, import_trace, read_machines, resample

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "alibaba_openb_2023"
_BUSY = 10_192_228.0  # when the arrivals of the log begin in earnest, in seconds
_BLOCKS = 12  # of a month, for drawing


def run(options: Sequence[str] = ()) -> None:
    """Prints a table for each load."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet_trace")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.7, 0.9])
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--types", type=int, default=20)
    parser.add_argument("--longest", type=float, default=10_000.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="without the rules that look at every node for each job: dot product, FGD")
    asked = parser.parse_args(options)
    if asked.types < 1 or asked.jobs < 1:
        parser.error("--types and --jobs must be at least 1")
    if not DATA.exists():
        print(f"skipped: the log of Alibaba openb is not at {DATA}")
        return
    machines = read_machines(DATA / "openb_node_list_all_node.csv.gz")
    with tempfile.TemporaryDirectory() as folder:
        trace, _ = import_trace(DATA / "openb_pod_list_default.csv.gz", Path(folder) / "jobs.parquet")
        month = trace.window(_BUSY, trace.end + 1).without_long(asked.longest).grouped(clusters=asked.types).in_memory()
    print(f"{machines!r}; {len(month):,} jobs of at most {asked.longest:,.0f} s in {asked.types} types")
    for load in asked.loads:
        played, fleet = fleet_scaled_to(month, machines, load)
        played = resample(played, span=played.span * asked.jobs / len(month), block=played.span / _BLOCKS, seed=asked.seed)
        print(f"\nload {load:g}: {len(played):,} jobs in {played.span:,.0f} s")
        print(f"{'policy':<40} {'mean wait':>10} {'p95 response':>13} {'gpu in use':>11} {'seconds':>8}")
        for label, policy, dispatch in rules(fleet, asked.quick):
            began = time.perf_counter()
            try:
                result = rota.simulate(fleet, policy() if callable(policy) else policy, dispatch=dispatch, workload=played, seed=asked.seed)
            except rota.RotaError as error:
                print(f"{label:<40} {str(error).splitlines()[0][:80]}", flush=True)
                continue
            wait = result.mean_response_time - played.jobs.collect()["size"].mean()
            used = result.utilization[fleet.resources.index("gpu")]
            p95 = result.response_time_quantiles[0.95]
            print(f"{label:<40} {wait:10.1f} {p95:13.1f} {used:11.1%} {time.perf_counter() - began:8.1f}", flush=True)


def rules(fleet: rota.Fleet, quick: bool) -> list[tuple[str, Any, Any]]:
    """Label, policy of the servers (or a function that makes it) and dispatch rule."""
    slow = [
        ("First-Fit, dot product", "first-fit", rota.CustomDispatch(dot_product)),
        ("First-Fit, FGD", "first-fit", rota.CustomDispatch(make_fgd(fleet), "fgd")),
    ]
    return [
        ("First-Fit, random", "first-fit", "random"),
        ("FCFS, best-fit", "fcfs", "best-fit"),
        ("First-Fit, best-fit", "first-fit", "best-fit"),
        *([] if quick else slow),
        ("First-Fit, jsq", "first-fit", "jsq"),
        ("First-Fit, least-wait", "first-fit", "least-wait"),
        ("First-Fit, pull", "first-fit", "pull"),
        ("pinned", lambda: rota.design_pinned(fleet, time_limit_s=60), None),
    ]


@kernel
def fewest(fleet: FleetState, i: int) -> float:
    """As jsq: of the servers on which the type can run, the one with the fewest jobs of it, then the fewest jobs."""
    chosen, least = -1, np.inf
    for m in range(fleet.kind.shape[0]):
        if runs_on(fleet, m, i):
            jobs = fleet.present[m, i] + fleet.total[m] * 2.0**-20
            if jobs < least:
                chosen, least = m, jobs
    return float(chosen)


def dot_product(fleet: FleetState) -> float:
    """Where the job fits at once, the server whose free resources point least along its demand."""
    i = fleet.asked[TYPE]
    chosen, least = -1, np.inf
    for m in range(fleet.kind.shape[0]):
        if runs_on(fleet, m, i) and fits_at_once(fleet, m, i):
            c, value = fleet.kind[m], 0.0
            for r in range(fleet.need.shape[2]):
                if fleet.capacity[c, r] > 0:
                    value += fleet.rows[m, fleet.at[FREE] + r] / fleet.capacity[c, r] * fleet.need[c, i, r] / fleet.capacity[c, r]
            if value < least:
                chosen, least = m, value
    return float(chosen) if chosen >= 0 else fewest(fleet, i)


def make_fgd(fleet: rota.Fleet) -> Callable[[FleetState], float]:
    """Fragmentation gradient descent; the typical job is of type i with the probability that an arriving one is."""
    typical = fleet.arrival_rate / fleet.arrival_rate.sum()
    device = fleet.resources.index("gpu")
    devices = fleet.capacity[:, device].copy()  # of a server of each kind

    def fgd(fleet: FleetState) -> float:
        i, R = fleet.asked[TYPE], fleet.need.shape[2]
        chosen, least = -1, np.inf
        for m in range(fleet.kind.shape[0]):
            if not (runs_on(fleet, m, i) and fits_at_once(fleet, m, i)):
                continue
            c = fleet.kind[m]
            grown = 0.0  # devices in pieces that a typical job cannot use, after the job has come less before
            if devices[c] > 0:
                unit = devices[c] / fleet.capacity[c, device]
                free = fleet.rows[m, fleet.at[FREE] + device] * unit
                left = free - fleet.need[c, i, device] * unit
                for j in range(typical.shape[0]):
                    before = fleet.local[c, j] >= 0
                    after = before
                    for r in range(R):
                        spare = fleet.rows[m, fleet.at[FREE] + r] - fleet.need[c, j, r]
                        before = before and spare >= 0
                        after = after and spare >= fleet.need[c, i, r]
                    grown += typical[j] * ((0.0 if after else left) - (0.0 if before else free))
            if grown < least:
                chosen, least = m, grown
        return float(chosen) if chosen >= 0 else fewest(fleet, i)

    return fgd
