"""A race: many policies on few jobs, then few policies on many; all of a round on the same jobs.

After a round those go on that come first, and of those only what the paired differences do not prove to be worse than the best. By another
measure than the mean response time, whose differences have no intervals, the better half of those goes on.
The jobs come from the seed, and nothing depends on the clock, so the same race has the same winner on every machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rota.model import System, Workload
from rota.policy import Policy
from rota.simulation import Result, SimulationProgress, compare_pair, simulate

__all__ = ["Entry", "Judge", "Round", "race", "run_all"]

Judge = Callable[[Result], float]


@dataclass(frozen=True, eq=False)
class Entry:
    """A policy in a round, and what it reached there."""

    policy: Policy
    result: Result
    judge: Judge | None = None  # what is kept low; None: the mean response time

    @property
    def value(self) -> float:
        """What it is judged by; infinite if that is not known."""
        value = self.mean if self.judge is None else self.judge(self.result)
        return value if np.isfinite(value) else np.inf

    @property
    def mean(self) -> float:
        """The mean response time, also of a run in which a queue grew or a type had few jobs; infinite if no job counted."""
        jobs, sums = self.result.totals[0].sum(), self.result.totals[1].sum()
        return float(sums / jobs) if jobs > 0 else np.inf

    def worse_than(self, best: Entry) -> bool:
        """Whether the paired difference proves that this one is worse, or a queue grew under it only."""
        if self.result.stable != best.result.stable:
            return best.result.stable
        if self.judge is not None:
            return self.value > best.value
        difference = compare_pair(self.result, best.result)
        known = np.isfinite(difference.mean) and np.isfinite(difference.interval)
        return bool(known and difference.mean > difference.interval)


@dataclass(frozen=True, eq=False)
class Round:
    """One round: its policies, the best first, on the same `jobs` jobs, and how many of them went on."""

    jobs: int
    entries: tuple[Entry, ...]
    kept: int

    @property
    def survivors(self) -> tuple[Entry, ...]:
        """Those that went on."""
        return self.entries[: self.kept]


def race(
    system: System,
    policies: Sequence[Policy],
    *,
    jobs: int,
    seed: int,
    most: int,
    least: int = 1,
    judge: Judge | None = None,
    workload: Workload | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Round:
    """One round on `jobs` jobs: the first `least` go on, and of the next, up to `most` in all, those not proved worse than the best."""
    results = run_all(system, policies, jobs=jobs, seed=seed, workload=workload, progress=progress)
    entries = [Entry(policy, result, judge) for policy, result in zip(policies, results, strict=True)]
    entries.sort(key=lambda entry: (not entry.result.stable, entry.value))
    least = least if judge is None else max(least, (most + 1) // 2)
    ahead = [entry for k, entry in enumerate(entries[:most]) if k < least or not entry.worse_than(entries[0])]
    behind = [entry for entry in entries if not any(entry is one for one in ahead)]
    return Round(jobs, (*ahead, *behind), len(ahead))


def run_all(
    system: System,
    policies: Sequence[Policy],
    *,
    jobs: int,
    seed: int,
    workload: Workload | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Simulates every policy on the same jobs, on all cores: the compiled engine does not hold the interpreter."""
    stopped = threading.Event()

    def watch(_: SimulationProgress) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt  # a run ends as by Ctrl-C, which only the main thread hears

    def one(policy: Policy) -> Result:
        return simulate(system, policy, jobs=jobs, seed=seed, workload=workload, progress=watch)

    results = [one(policies[0])]  # compiles, once for all
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            for result in pool.map(one, policies[1:]):
                results.append(result)
                if progress is not None:
                    progress(len(results), len(policies))
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    if any(result.interrupted for result in results):
        raise KeyboardInterrupt
    return results
