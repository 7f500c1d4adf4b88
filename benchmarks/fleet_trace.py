"""Alibaba openb on its own 1,523 nodes: dispatch rules and pinned servers on the same jobs.

The log has a month of jobs for a small part of the nodes' time, so months are drawn from it in blocks (`rota.traces.resample`) and their
arrivals moved together until the nodes have the load asked for. Jobs longer than the limit are left out, and demands are rounded up to a few
types, for all rules alike. The devices of a node are one amount here, so a job may hold parts of two devices.

The rules that the trace's authors compare (Weng et al., USENIX ATC 2023): random, best fit, dot product (the node whose free resources point
least along the demand) and fragmentation gradient descent (FGD: the node on which the job leaves the fewest devices in pieces that no
typical job can use); jobs that fit nowhere wait at a node as under jsq. Servers run the jobs that fit, oldest first (First-Fit).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import rota
from rota.decide.state import uniform
from rota.simulation.fleet.state import FREE, TYPE, FleetState, has_room, runs_on
from rota.traces import fleet_scaled_to, import_trace, read_machines, resample

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "alibaba_openb_2023"
_BUSY = 10_192_228.0  # when the arrivals of the log begin in earnest, in seconds
_BLOCKS = 12  # of a month, for drawing


def run(
    loads: tuple[float, ...] = (0.7, 0.9), jobs: int = 200_000, types: int = 20, longest: float = 20_000.0, seed: int = 1, fgd: bool = True
) -> None:
    """Prints a table for each load."""
    if not DATA.exists():
        print(f"skipped: the log of Alibaba openb is not at {DATA}")
        return
    machines = read_machines(DATA / "openb_node_list_all_node.csv.gz")
    with tempfile.TemporaryDirectory() as folder:
        trace, _ = import_trace(DATA / "openb_pod_list_default.csv.gz", Path(folder) / "jobs.parquet")
        month = trace.window(_BUSY, trace.end + 1).without_long(longest).grouped(clusters=types).in_memory()
    print(f"{machines!r}; {len(month):,} jobs of at most {longest:,.0f} s in {types} types")
    for load in loads:
        played, fleet = fleet_scaled_to(month, machines, load)
        played = resample(played, span=played.span * jobs / len(month), block=played.span / _BLOCKS, seed=seed)
        print(f"\nload {load:g}: {len(played):,} jobs in {played.span:,.0f} s")
        print(f"{'policy':<40} {'mean wait':>10} {'p95 response':>13} {'gpu in use':>11} {'seconds':>8}")
        for label, policy, dispatch in rules(fleet, fgd):
            began = time.perf_counter()
            try:
                result = rota.simulate(fleet, policy() if callable(policy) else policy, dispatch=dispatch, workload=played, seed=seed)
            except rota.RotaError as error:
                print(f"{label:<40} {str(error).splitlines()[0][:80]}", flush=True)
                continue
            wait = result.mean_response_time - played.jobs.collect()["size"].mean()
            used = result.utilization[fleet.resources.index("gpu")]
            p95 = result.response_time_quantiles[0.95]
            print(f"{label:<40} {wait:10.1f} {p95:13.1f} {used:11.1%} {time.perf_counter() - began:8.1f}", flush=True)


def rules(fleet: rota.Fleet, fgd: bool):
    """Label, policy of the servers (or a function that makes it) and dispatch rule."""
    share = fleet.arrival_rate / fleet.arrival_rate.sum()
    return [
        ("First-Fit, random", "first-fit", "random"),
        ("FCFS, best-fit", "fcfs", "best-fit"),
        ("First-Fit, best-fit", "first-fit", "best-fit"),
        ("First-Fit, dot product", "first-fit", rota.CustomDispatch(dot_product)),
        *([("First-Fit, FGD", "first-fit", rota.CustomDispatch(make_fgd(fleet, share), "fgd"))] if fgd else []),
        ("First-Fit, jsq", "first-fit", "jsq"),
        ("First-Fit, least-wait", "first-fit", "least-wait"),
        ("First-Fit, pull", "first-fit", "pull"),
        ("pinned", lambda: rota.design_pinned(fleet, time_limit_s=60), None),
    ]


def dot_product(fleet: FleetState) -> float:
    """Where the job fits at once, the server whose free resources point least along its demand; else any server drawn at random."""
    i, M, R = fleet.asked[TYPE], fleet.kind.shape[0], fleet.need.shape[2]
    chosen, least = -1, np.inf
    for m in range(M):
        if runs_on(fleet, m, i) and has_room(fleet, m, i):
            c, value = fleet.kind[m], 0.0
            for r in range(R):
                if fleet.capacity[c, r] > 0:
                    value += fleet.rows[m, fleet.at[FREE] + r] / fleet.capacity[c, r] * fleet.need[c, i, r] / fleet.capacity[c, r]
            if value < least:
                chosen, least = m, value
    while chosen < 0:
        m = min(int(uniform(fleet.random) * M), M - 1)
        chosen = m if runs_on(fleet, m, i) else -1
    return float(chosen)


def make_fgd(fleet: rota.Fleet, share: np.ndarray):
    """Fragmentation gradient descent for the types of a fleet, of which the typical job is one of type i with probability `share[i]`."""
    typical = share.copy()
    device = fleet.resources.index("gpu")
    K = len(typical)

    def fgd(fleet: FleetState) -> float:
        i, M, R = fleet.asked[TYPE], fleet.kind.shape[0], fleet.need.shape[2]
        chosen, least = -1, np.inf
        for m in range(M):
            if not (runs_on(fleet, m, i) and has_room(fleet, m, i)):
                continue
            c = fleet.kind[m]
            grown = 0.0  # devices in pieces that a typical job cannot use: after − before
            for j in range(K):
                before, after = fleet.local[c, j] >= 0, fleet.local[c, j] >= 0
                for r in range(R):
                    free = fleet.rows[m, fleet.at[FREE] + r]
                    before = before and fleet.need[c, j, r] <= free
                    after = after and fleet.need[c, j, r] <= free - fleet.need[c, i, r]
                free, taken = fleet.rows[m, fleet.at[FREE] + device], fleet.need[c, i, device]
                if fleet.capacity[c, device] > 0:
                    pieces = (0 if after else free - taken) - (0 if before else free)
                    grown += typical[j] * pieces / fleet.capacity[c, device] * 8
            if grown < least:
                chosen, least = m, grown
        while chosen < 0:
            m = min(int(uniform(fleet.random) * M), M - 1)
            chosen = m if runs_on(fleet, m, i) else -1
        return float(chosen)

    return fgd
