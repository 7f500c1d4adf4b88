"""Exact analysis: against LINE's level-dependent QBD solver, growth with the number of states and of parallel jobs, and high loads."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rota
from rota.analysis import TypeQueue, analyze_process
from rota.design import balanced_policy, choose_switching_rate
from rota.process import TIMER

EXAMPLES = Path(__file__).parent.parent / "examples"


def run() -> None:
    """Prints all tables."""
    against_line()
    growth()
    high_load()
    borg_without_preemption()


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """The best of three."""
    best = np.inf
    for _ in range(3):
        start = clock()
        answer = work()
        best = min(best, clock() - start)
    return answer, best


def against_line() -> None:
    """E[Q_i] of the paper's example and of the Borg design under preemption, where LINE's truncated levels can follow."""
    from line_solver.api.mam.ldqbd import ldqbd

    paper, borg = rota.read_system(EXAMPLES / "paper.toml"), rota.read_system(EXAMPLES / "borg.toml")
    W, pi = [(0, 0, 2), (1, 4, 0)], (0.5, 0.5)
    borg_policy = choose_switching_rate(borg, balanced_policy(borg, rota.system_load(borg), "full")).policy
    print(f"{'queue':<38} {'method':<26} {'E[Q]':>14} {'error':>9} {'seconds':>9} {'ratio':>8}")
    for label, system, policy, i, levels in [
        ("example, pMSR, type2", paper, rota.MSR(W, pi, "full", 2.0), 1, (500, 1000)),
        ("example, nMSR, type2", paper, rota.MSR(W, pi, "none", 0.06), 1, (1000, 5000)),
        ("Borg, pMSR, cpu2_mem2 (500 at once)", borg, borg_policy, 1, (2000, 5000)),
        ("Borg, pMSR, cpu16_mem12", borg, borg_policy, 9, (1000, 5000)),
    ]:
        process = rota.build_process(system, policy)
        queue = TypeQueue(process, i, float(system.arrival_rate[i]), float(system.service_rate[i]))
        answer, ours = timed(lambda s=system, p=policy, k=i: rota.analyze(s, p).queue_length(k))
        print(f"{label:<38} {'rota':<26} {answer.mean:14.8f} {answer.accuracy:9.0e} {ours:9.4f} {1:8.0f}")
        for L in levels:
            start = time.perf_counter()
            law = ldqbd(*level_blocks(queue, L)).pi
            mean = float(np.dot(np.asarray(law).ravel()[: L + 1], np.arange(L + 1)))
            elapsed = time.perf_counter() - start
            error = abs(mean / answer.mean - 1)
            print(f"{label:<38} {f'LINE ldqbd, {L} levels':<26} {mean:14.8f} {error:9.0e} {elapsed:9.4f} {elapsed / ours:8.0f}", flush=True)


def level_blocks(queue: TypeQueue, L: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Up, local and down matrices of the levels 0…L, arrivals lost at level L: the form that ldqbd wants."""
    plain, after = queue.plain.toarray(), queue.after.toarray()
    c, u, mu, lam = queue.ring_rate, queue.slots, queue.service_rate, queue.arrival_rate
    up = lam * np.eye(len(c))
    local, down = [], []
    for q in range(L + 1):
        busy = mu * np.minimum(q, u)
        block = plain + (c - busy)[:, None] * after
        np.fill_diagonal(block, np.where(np.diag(after) > 0, 0.0, np.diag(block)))
        block -= np.diag(block.sum(axis=1) + busy + (lam if q < L else 0.0))
        local.append(block)
        if q:
            down.append(busy[:, None] * after)
    return [up] * L, local, down


def growth() -> None:
    """A loop of N schedules, up to β jobs at once, load 0.9; then longer and longer loops. Seconds are those of the processor."""
    print(f"\n{'loop':<28} {'N':>6} {'β':>5} {'E[Q]':>12} {'accuracy':>9} {'seconds':>9}")
    sizes = [(10, 10), (10, 100), (10, 500), (10, 2000), (50, 100), (100, 100), (200, 100), (400, 100), (800, 100)]
    for N, beta in [*sizes, (1600, 100), (3200, 100), (6400, 100), (25_600, 100)]:
        rng = np.random.default_rng(0)
        slots = rng.permutation(np.linspace(0, beta, N).round().astype(int))
        candidates = np.column_stack([slots, np.arange(N)])  # a second type keeps the schedules apart
        system = rota.System([beta, N], [[1, 0], [0, 1]], [0.9 * slots.mean(), 0.0], [1.0, 1.0])
        states, rates, timers = np.arange(N), np.full(N, 2.0), np.full(N, TIMER)
        process = rota.ModulatingProcess(candidates, candidates, states, states, (states + 1) % N, rates, timers, system.names)
        answer, elapsed = timed(lambda s=system, p=process: analyze_process(s, p).queue_length(0), time.process_time)
        print(f"{'pMSR, switching rate 2':<28} {N:6d} {beta:5d} {answer.mean:12.4f} {answer.accuracy:9.0e} {elapsed:9.3f}", flush=True)


def high_load() -> None:
    """The example without preemption, closer and closer to the edge."""
    print(f"\n{'load of type2':<16} {'E[Q]':>14} {'(1−ρ)E[Q]':>12} {'limit':>10} {'accuracy':>9} {'seconds':>9}")
    system = rota.read_system(EXAMPLES / "paper.toml")
    policy = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "none", 0.06)
    process = rota.build_process(system, policy)
    for rho in (0.9, 0.99, 0.999, 0.9999, 0.99999):
        rates = rho * process.mean_schedule * system.service_rate
        start = time.perf_counter()
        analysis = rota.analyze(system.replace(arrival_rate=rates), policy)
        answer = analysis.queue_length(1)
        elapsed = time.perf_counter() - start
        limit = analysis.queues[1].heavy_traffic_constant
        print(
            f"{rho:<16} {answer.mean:14.4f} {(1 - rho) * answer.mean:12.6f} {limit:10.6f} {answer.accuracy:9.0e} {elapsed:9.4f}", flush=True
        )


def borg_without_preemption() -> None:
    """The ten Borg types without preemption: a loop of well over a thousand states and queues of up to a million jobs."""
    system = rota.read_system(EXAMPLES / "borg.toml")
    policy = choose_switching_rate(system, balanced_policy(system, rota.system_load(system), "none")).policy
    analysis = rota.analyze(system, policy)
    print(f"\nBorg, nMSR, switching rate {policy.switching_rate:.4g}: {len(analysis.process)} states")
    print(f"{'type':<14} {'β':>5} {'at least':>12} {'exact':>14} {'at most':>12} {'points':>7} {'accuracy':>9} {'seconds':>9}")
    total = 0.0
    for i, queue in enumerate(analysis.queues):
        lower, upper = queue.bounds()
        start = time.process_time()
        answer = analysis.queue_length(i)
        elapsed = time.process_time() - start
        total += elapsed
        points = answer.method.split()[-2]
        print(
            f"{system.names[i]:<14} {queue.max_parallel:5d} {lower:12.1f} {answer.mean:14.4f} {upper:12.1f} {points:>7} "
            f"{answer.accuracy:9.0e} {elapsed:9.2f}",
            flush=True,
        )
    print(f"all ten types: {total:.2f} s of processor time")
