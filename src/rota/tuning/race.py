"""A race: many policies on few jobs, then few policies on many; all of a round on the same jobs.

After a round those go on that come first, and of those only what the paired differences do not prove to be worse than the best. By another
measure than the mean response time, whose differences have no intervals, the better half of those goes on.

A short list of jobs is played at several paces, and a policy judged by the worst of them, relative to the best of a few plain policies at
that pace. What is good by luck of one order of events is seldom good at all paces.

The jobs come from the seed, and nothing depends on the clock, so the same race has the same winner on every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rota.model import System, Workload
from rota.policy import Policy
from rota.simulation import Result, SimulationProgress, compare_pair, in_threads, simulate

__all__ = ["Entry", "Judge", "Round", "race", "run_all"]

Judge = Callable[[Result], float]


@dataclass(frozen=True, eq=False)
class Entry:
    """A policy in a round, and what it reached there; at other paces, `faster`, too, if the jobs are played at several.

    `plain` is the least value of a plain policy at each pace.
    """

    policy: Policy
    result: Result
    judge: Judge | None = None  # what is kept low; None: the mean response time
    faster: tuple[Result, ...] = ()
    plain: tuple[float, ...] = (1.0,)

    @property
    def value(self) -> float:
        """What it is judged by; infinite if that is not known. Of several paces the worst, relative to the best plain policy."""
        return max(value / plain for value, plain in zip(self.values, self.plain, strict=True))

    @property
    def values(self) -> tuple[float, ...]:
        """What is kept low, at each pace."""
        found = (_mean(result) if self.judge is None else self.judge(result) for result in (self.result, *self.faster))
        return tuple(value if np.isfinite(value) else np.inf for value in found)

    @property
    def mean(self) -> float:
        """The mean response time, also of a run in which a queue grew or a type had few jobs; infinite if no job counted."""
        return _mean(self.result)

    def worse_than(self, best: Entry) -> bool:
        """Whether the paired difference proves that this one is worse, or a queue grew under it only; of several paces, by the value."""
        if self.faster:
            return self.value > best.value
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
    faster: Sequence[Workload] = (),
    plain: Sequence[Policy] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Round:
    """One round on `jobs` jobs: the first `least` go on, and of the next, up to `most` in all, those not proved worse than the best.

    `faster` are the jobs of the workload at other paces, and `plain` the policies to which values are relative then, which take part.
    """
    count = (1 + len(faster)) * len(policies)
    paces = []
    for k, jobs_at_pace in enumerate((workload, *faster)):
        tell = None if progress is None else partial(_tell, progress, k * len(policies), count)
        paces.append(run_all(system, policies, jobs=jobs, seed=seed, workload=jobs_at_pace, progress=tell))
    entries = [Entry(policy, own[0], judge, tuple(own[1:])) for policy, *own in zip(policies, *paces, strict=True)]
    if faster:
        lowest = tuple(np.min([entry.values for entry in entries if entry.policy in plain], axis=0).tolist())
        entries = [replace(entry, plain=lowest) for entry in entries]
    entries.sort(key=lambda entry: (not faster and not entry.result.stable, entry.value))
    least = least if judge is None and not faster else max(least, (most + 1) // 2)
    ahead = [entry for k, entry in enumerate(entries[:most]) if k < least or not entry.worse_than(entries[0])]
    behind = [entry for entry in entries if not any(entry is one for one in ahead)]
    return Round(jobs, (*ahead, *behind), len(ahead))


def _tell(progress: Callable[[int, int], None], before: int, count: int, done: int, _: int) -> None:
    progress(before + done, count)


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

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, len(policies))

    results = in_threads(one, [(policy,) for policy in policies], stopped, progress=tell)
    if stopped.is_set() or any(result.interrupted for result in results):
        raise KeyboardInterrupt
    return results


def _mean(result: Result) -> float:
    jobs, sums = result.totals[0].sum(), result.totals[1].sum()
    return float(sums / jobs) if jobs > 0 else np.inf
