"""`replicate`: independent runs of one policy, on one core or many, with the same result."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sized
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rota.arguments import whole
from rota.arrays import Array, Int
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Problem
from rota.model import Dispatch, Fleet, System, Workload
from rota.policy import FCFS, Policy, as_policy, draws
from rota.simulation.arguments import checked_run
from rota.simulation.fleet.policy import Failures, FleetPolicy, PolicyOfFleet
from rota.simulation.fleet.result import FleetResult
from rota.simulation.measured import FEWEST, too_little
from rota.simulation.named import as_workload
from rota.simulation.packing import packed
from rota.simulation.result import Result
from rota.simulation.simulate import enough_jobs, seeds_of, simulate, together
from rota.simulation.start import Counts, Start, checked_start
from rota.simulation.statistics import spread_interval

__all__ = ["Replications", "replicate"]

JOBS = 100_000  # of a workload without end


@dataclass(frozen=True)
class Replications:
    """Independent runs and their means, with 95 % half-widths from the spread between the runs."""

    results: tuple[Result, ...]

    @property
    def stable(self) -> bool:
        """Whether no run found a growing queue."""
        return all(result.stable for result in self.results)

    @property
    def counted(self) -> Int:
        """Jobs that counted in all runs together (K,)."""
        return np.asarray(self._totals()[:, 0].sum(axis=0), dtype=np.int64)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Types of which all runs together have too few jobs for a mean."""
        system = self.results[0].system
        few = (self.counted < FEWEST) & ((self.counted > 0) | (system.arrival_rate > 0))
        return tuple(name for name, is_few in zip(system.names, few.tolist(), strict=True) if is_few)

    @property
    def mean_response_time(self) -> float:
        """The mean over the jobs of all runs; not a number if one is unstable, or if too few jobs of a type counted."""
        totals = self._totals()
        return float(self._hidden() * totals[:, 1].sum() / totals[:, 0].sum())

    @property
    def interval(self) -> float:
        """The half-width for the mean response time."""
        totals = self._totals().sum(axis=2)
        return float(self._hidden() * spread_interval(totals[:, 1], totals[:, 0]))

    @property
    def response_time(self) -> Array:
        """Means over the jobs of each type (K,)."""
        totals = self._totals().sum(axis=0)
        return np.asarray(self._type_hidden() * np.divide(totals[1], totals[0], out=np.full_like(totals[0], np.nan), where=totals[0] > 0))

    @property
    def response_time_interval(self) -> Array:
        """Half-widths (K,)."""
        totals = self._totals()
        return self._type_hidden() * spread_interval(totals[:, 1], totals[:, 0])

    @property
    def mean_queue_length(self) -> Array:
        """Means over the time of all runs (K,)."""
        totals = self._totals().sum(axis=0)
        return np.asarray(self._type_hidden() * totals[2] / totals[3])

    @property
    def mean_queue_length_interval(self) -> Array:
        """Half-widths (K,)."""
        totals = self._totals()
        return self._type_hidden() * spread_interval(totals[:, 2], totals[:, 3])

    def __repr__(self) -> str:
        about = f"{len(self.results)} runs of {self.results[0].name}, {self.results[0].jobs:,} jobs each"
        answer = f"mean response time {self.mean_response_time:.5g} ± {self.interval:.2g}" if self.stable else "the queue kept growing"
        if self.stable and np.isnan(self.mean_response_time):
            answer = f"too few jobs of {', '.join(map(repr, self.unknown))} for a mean"
        return f"<Replications, {about}: {answer}>"

    def _repr_html_(self) -> str:
        columns = zip(self.results[0].system.names, self.mean_queue_length, self.mean_queue_length_interval, strict=True)
        rows = [(name, number(mean), number(width, 2)) for name, mean, width in columns]
        return html_title(repr(self)[1:-1]) + (html_table(["", "E[Q]", "±"], rows) if self.stable else "")

    def _totals(self) -> Array:
        """(runs, 4, K), see `Result.totals`."""
        return np.array([result.totals for result in self.results])

    def _hidden(self) -> float:
        few, totals = np.isin(self.results[0].system.names, self.unknown), self._totals().sum(axis=0)
        present = np.maximum(totals[2], totals[3] * self.results[0].system.offered_work * few)
        return np.nan if too_little(few, totals[0], present) or not self.stable else 1.0

    def _type_hidden(self) -> Array:
        few = np.isin(self.results[0].system.names, self.unknown)
        return np.where(few | (not self.stable), np.nan, 1.0)


def replicate(
    system: System | Fleet,
    policy: PolicyOfFleet,
    *,
    dispatch: Dispatch | str | None = None,
    replications: int = 10,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    warmup: float | None = None,
    start: Start | Counts | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> Replications:
    """Runs `replications` simulations with seeds of their own, in `workers` processes. Their number does not change the result by a bit.

    `jobs` count in each (100,000, or more if a type is rare, see `enough_jobs`; all of a workload that has an end). A `workload` draws its
    jobs from the seed. A fixed one, a trace or a list, gives every run the same jobs: then the interval reflects only the policy's own
    randomness, and a policy without any is refused. `start` as in `simulate`: what the system does from a state, over many futures.
    A `rota.Fleet` with `dispatch`, `staleness` and `failures` as in `simulate`.
    """
    replications, workers = whole("replications", replications, 2), whole("workers", workers, 1)
    system, given = together(system, policy, dispatch, staleness, failures, start)
    jobs, seed, _ = checked_run(system, jobs, seed, warmup=warmup)
    policy = as_policy(given, system)  # type: ignore[arg-type]  # it refuses what is not for one server
    workload = None if workload is None else as_workload(workload, system)
    if getattr(workload, "fixed", False) and not draws(policy):
        rule = (
            "gives every run the same jobs, and the policy is not random: all runs would be one. Use rota.simulate, or rota.traces.resample"
        )
        raise BadSpec([Problem("workload", rule, workload)])
    if jobs is None and not isinstance(workload, Sized):
        jobs = enough_jobs(system, JOBS, fleet=isinstance(policy, FleetPolicy)) if workload is None else JOBS
    seeds = seeds_of(seed, replications)
    begin_state = None if start is None else checked_start(system, policy, start)
    work = [(system, policy, jobs, each, warmup, workload, begin_state) for each in seeds]
    results: list[Result] = []
    if workers == 1:
        for task in work:
            results.append(_one(task))
            if progress is not None:
                progress(len(results))
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for result in pool.map(_unpacked, [packed(task) for task in work]):
                results.append(_of(result, policy))
                if progress is not None:
                    progress(len(results))
    return Replications(tuple(results))


_Task = tuple[System, Policy, int | None, int, float | None, Workload | None, Start | None]


def _one(task: _Task) -> Result:
    system, policy, jobs, seed, warmup, workload, start = task
    return simulate(system, policy, jobs=jobs, seed=seed, warmup=warmup, workload=workload, start=start)


def _unpacked(task: bytes) -> Result:
    return _of(_one(pickle.loads(task)), FCFS())  # pickle may fail on a custom policy; the caller has it


def _of(result: Result, policy: Policy) -> Result:
    """The result with another policy in it."""
    if not isinstance(result, FleetResult):
        return replace(result, policy=policy)
    return replace(result, policy=policy, dispatch=policy.dispatch if isinstance(policy, FleetPolicy) else Dispatch("random"))
