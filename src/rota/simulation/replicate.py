"""`replicate`: independent runs of one policy, on one core or many, with the same result."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Sized
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from rota.arguments import whole
from rota.arrays import Array
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Problem
from rota.model import System, Workload
from rota.policy import FCFS, Policy
from rota.simulation.arguments import checked_run
from rota.simulation.named import as_policy, as_workload, draws
from rota.simulation.result import Result
from rota.simulation.simulate import simulate
from rota.simulation.statistics import CONFIDENCE

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
    def mean_response_time(self) -> float:
        """The mean over the runs; not a number if one is unstable."""
        return float(self._values("mean_response_time").mean())

    @property
    def interval(self) -> float:
        """The half-width for the mean response time."""
        return float(_half_width(self._values("mean_response_time")))

    @property
    def mean_queue_length(self) -> Array:
        """Means over the runs (K,)."""
        return np.asarray(self._values("mean_queue_length").mean(axis=0))

    @property
    def mean_queue_length_interval(self) -> Array:
        """Half-widths (K,)."""
        return _half_width(self._values("mean_queue_length"))

    def __repr__(self) -> str:
        about = f"{len(self.results)} runs of {self.results[0].name}, {self.results[0].jobs:,} jobs each"
        answer = f"mean response time {self.mean_response_time:.5g} ± {self.interval:.2g}" if self.stable else "the queue kept growing"
        return f"<Replications, {about}: {answer}>"

    def _repr_html_(self) -> str:
        columns = zip(self.results[0].system.names, self.mean_queue_length, self.mean_queue_length_interval, strict=True)
        rows = [(name, number(mean), number(width, 2)) for name, mean, width in columns]
        return html_title(repr(self)[1:-1]) + (html_table(["", "E[Q]", "±"], rows) if self.stable else "")

    def _values(self, name: str) -> Array:
        return np.array([getattr(result, name) for result in self.results])


def replicate(
    system: System,
    policy: Policy | str,
    *,
    replications: int = 10,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    warmup: float | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Replications:
    """Runs `replications` simulations with seeds of their own, in `workers` processes. Their number does not change the result by a bit.

    `jobs` arrive in each (100,000; all of a workload that has an end). A `workload` draws its jobs from the seed. A fixed one, a trace or
    a list, gives every run the same jobs: then the interval speaks of the policy's own chance alone, and a policy without any is refused.
    """
    replications, workers = whole("replications", replications, 2), whole("workers", workers, 1)
    jobs, seed, _ = checked_run(system, jobs, seed, warmup=warmup)
    policy = as_policy(policy)
    workload = None if workload is None else as_workload(workload, system)
    if getattr(workload, "fixed", False) and not draws(policy):
        rule = (
            "gives every run the same jobs, and the policy draws nothing: all runs would be one. Use rota.simulate, or rota.traces.resample"
        )
        raise BadSpec([Problem("workload", rule, workload)])
    jobs = jobs or (None if isinstance(workload, Sized) else JOBS)
    seeds = [int(child) for child in np.random.SeedSequence(seed).generate_state(replications)]
    work = [(system, policy, jobs, each, warmup, workload) for each in seeds]
    results: list[Result] = []
    if workers == 1:
        for task in work:
            results.append(_one(task))
            if progress is not None:
                progress(len(results))
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for result in pool.map(_unpacked, [_packed(task) for task in work]):
                results.append(replace(result, policy=policy))
                if progress is not None:
                    progress(len(results))
    return Replications(tuple(results))


_Task = tuple[System, Policy, int | None, int, float | None, Workload | None]


def _one(task: _Task) -> Result:
    system, policy, jobs, seed, warmup, workload = task
    return simulate(system, policy, jobs=jobs, seed=seed, warmup=warmup, workload=workload)


def _packed(task: _Task) -> bytes:
    """A task on its way to another process; cloudpickle takes functions and classes of a notebook or a script along."""
    try:
        packer = importlib.import_module("cloudpickle")
    except ImportError:
        packer = pickle
    try:
        return packer.dumps(task)  # type: ignore[no-any-return]
    except Exception as error:  # whatever an object of the user's raises
        hint = "pip install cloudpickle, " if packer is pickle else ""
        rule = f"the policy or the workload cannot go to another process ({error}): {hint}put it into a module of its own, or use workers=1"
        raise BadSpec([Problem("workers", rule)]) from error


def _unpacked(packed: bytes) -> Result:
    return replace(_one(pickle.loads(packed)), policy=FCFS())  # its own policy may be too much for pickle, and is known at home


def _half_width(values: Array) -> Array:
    n = len(values)
    factor = student.ppf(0.5 + CONFIDENCE / 2, n - 1) / np.sqrt(n)
    return np.asarray(factor * values.std(axis=0, ddof=1))
