"""The system load: column generation against the paper's own program solved by SCIP, and growth with the number of types."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rota
from rota.capacity import integer_units, largest_counts

EXAMPLES = Path(__file__).parent.parent / "examples"
SCIP_SECONDS = float(os.environ.get("ROTA_BENCH_SCIP_SECONDS", "60"))


def run(options: Sequence[str] = ()) -> None:
    """Prints both tables, or only the second one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks load", description=__doc__)
    parser.add_argument("--growth", action="store_true", help="only growth with the number of types: needs no SCIP")
    if not parser.parse_args(options).growth:
        against_scip()
    growth()


def against_scip() -> None:
    """The ten Borg types, and the four virtual machines of the paper."""
    print(f"{'system':<8} {'method':<38} {'load':>14} {'proved gap':>11} {'seconds':>9} {'ratio':>8}")
    for name in ("vm", "borg"):
        system = rota.read_system(EXAMPLES / f"{name}.toml")
        rota.system_load(system)  # compile
        times = []
        for _ in range(5):
            start = time.perf_counter()
            best = rota.system_load(system)
            times.append(time.perf_counter() - start)
        ours = float(np.median(times))
        print(f"{name:<8} {'rota (column generation)':<38} {best.load:14.9f} {best.gap:11.1e} {ours:9.4f} {1:8.0f}")
        load, gap, seconds, status = scip_miqcp(system, SCIP_SECONDS)
        method = f"SCIP on the paper's MIQCP ({status})"
        print(f"{name:<8} {method:<38} {load:14.9f} {gap:11.1e} {seconds:9.4f} {seconds / ours:8.0f}", flush=True)


def scip_miqcp(system: rota.System, seconds: float) -> tuple[float, float, float, str]:
    """Eq. (optimization) of the paper as it stands, with μ put right: K schedules W and their fractions π, both unknown.

    max t  s.t.  Σ_s π_s W_si ≥ t λ_i/μ_i,  W D ≤ P,  Σ π ≤ 1,  W integer;  the load is 1/t.
    """
    from pyscipopt import Model, quicksum

    units, most = integer_units(system), largest_counts(system)
    K, R = units.demand.shape
    model = Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    pi = [model.addVar(lb=0.0, ub=1.0) for _ in range(K)]
    W = [[model.addVar(vtype="I", lb=0, ub=int(most[i])) for i in range(K)] for _ in range(K)]
    t = model.addVar(lb=0.0, ub=float((most / system.offered_work).min()))
    model.addCons(quicksum(pi) <= 1)
    for s in range(K):
        for r in range(R):
            model.addCons(quicksum(int(units.demand[i, r]) * W[s][i] for i in range(K)) <= int(units.capacity[r]))
    for i in range(K):
        model.addCons(quicksum(pi[s] * W[s][i] for s in range(K)) >= float(system.offered_work[i]) * t)
    model.setObjective(t, "maximize")
    start = time.perf_counter()
    model.optimize()
    elapsed = time.perf_counter() - start
    if model.getNSols() == 0:
        return np.nan, np.inf, elapsed, model.getStatus()
    found, bound = model.getObjVal(), model.getDualbound()
    return 1 / found, bound / found - 1, elapsed, model.getStatus()


def growth() -> None:
    """Random systems: small jobs, where the bottleneck can be filled, and large ones, where packing matters."""
    rota.system_load(rota.read_system(EXAMPLES / "vm.toml"))  # compile
    print(f"\n{'system':<36} {'K':>5} {'load':>10} {'proved gap':>11} {'schedules':>10} {'exact':>6} {'seconds':>9} {'CPU s':>8}")
    for label, R, capacity, largest, gap, types in [
        ("4 resources of 1000, demands 1…40", 4, 1000, 40, 1e-4, (10, 30, 100, 200, 500, 1000)),
        ("4 resources of 100, demands 1…60", 4, 100, 60, 1e-7, (10, 30, 100, 200)),
        ("2 resources of 100, demands 1…60", 2, 100, 60, 1e-7, (200,)),
        ("1 resource of 100, demands 1…60", 1, 100, 60, 1e-7, (200,)),
        ("4 resources of 100, demands 1…60", 4, 100, 60, 1e-4, (500, 1000)),
    ]:
        for K in types:
            rng = np.random.default_rng(0)
            demand = rng.integers(1, largest + 1, (K, R))
            system = rota.System(np.full(R, capacity), demand, rng.random(K), np.ones(K))
            start, before = time.perf_counter(), time.process_time()
            best = rota.system_load(system, gap=gap, time_limit_s=60)
            elapsed, busy = time.perf_counter() - start, time.process_time() - before
            numbers = f"{best.load:10.6f} {best.gap:11.1e} {best.columns:10d} {best.exact_solves:6d} {elapsed:9.3f} {busy:8.3f}"
            print(f"{label:<36} {K:5d} {numbers}", flush=True)
