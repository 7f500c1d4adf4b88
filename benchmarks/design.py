"""What tuning on the exact response time brings over balanced loads: the paper's example, all preemption models, over the load."""

from __future__ import annotations

import time
from pathlib import Path

import rota

EXAMPLES = Path(__file__).parent.parent / "examples"
SETUP_RATE = 10.0


def run() -> None:
    """Prints the table."""
    system = rota.read_system(EXAMPLES / "paper.toml")
    head = f"{'preemption':<11} {'load':>5} {'balanced E[T]':>14} {'early opening':>14}"
    print(f"{head} {'tuned E[T]':>12} {'gain':>7} {'seconds':>8}  tuned rota")
    for preemption in ("full", "none", "setup"):
        for load in (0.3, 0.5, 0.7, 0.9, 0.95):
            at = system.scaled(load=load)
            setup_rate = SETUP_RATE if preemption == "setup" else None
            balanced = mean_response_time(at, rota.design_policy(at, preemption, setup_rate=setup_rate, objective="load"))
            early = "–"
            if preemption == "none":
                early = f"{mean_response_time(at, rota.design_policy(at, preemption, opening='early', objective='load')):.4f}"
            start = time.perf_counter()
            policy = rota.design_policy(at, preemption, setup_rate=setup_rate, objective="response-time", time_limit_s=20)
            elapsed = time.perf_counter() - start
            tuned = mean_response_time(at, policy)
            sets = " ".join(f"{weight:.0%}{tuple(row.tolist())}" for row, weight in zip(policy.candidates, policy.weights, strict=True))
            gain = 1 - tuned / balanced
            print(f"{preemption:<11} {load:5.2f} {balanced:14.4f} {early:>14} {tuned:12.4f} {gain:7.1%} {elapsed:8.1f}  {sets}", flush=True)


def mean_response_time(system: rota.System, policy: rota.MSR) -> float:
    """E[T], exactly."""
    return rota.analyze(system, policy).mean_response_time
