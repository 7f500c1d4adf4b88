"""`replicate`: independent runs of one policy, on one core or many, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from scipy.stats import t as student

from rota.arrays import Array
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Problem
from rota.model import System
from rota.policy import Policy
from rota.simulation.result import Result
from rota.simulation.simulate import simulate
from rota.simulation.statistics import CONFIDENCE

__all__ = ["Replications", "replicate"]


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
    jobs: int = 100_000,
    seed: int = 0,
    warmup: float | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Replications:
    """Runs `replications` simulations with seeds of their own, in `workers` processes. Their number does not change the result by a bit."""
    if replications < 2:
        raise BadSpec([Problem("replications", "must be at least 2", replications)])
    if workers < 1:
        raise BadSpec([Problem("workers", "must be at least 1", workers)])
    seeds = [int(child) for child in np.random.SeedSequence(seed).generate_state(replications)]
    work = [(system, policy, jobs, each, warmup) for each in seeds]
    results: list[Result] = []
    if workers == 1:
        for task in work:
            results.append(_one(task))
            if progress is not None:
                progress(len(results))
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for result in pool.map(_one, work):
                results.append(result)
                if progress is not None:
                    progress(len(results))
    return Replications(tuple(results))


def _one(task: tuple[System, Policy | str, int, int, float | None]) -> Result:
    system, policy, jobs, seed, warmup = task
    return simulate(system, policy, jobs=jobs, seed=seed, warmup=warmup)


def _half_width(values: Array) -> Array:
    n = len(values)
    factor = student.ppf(0.5 + CONFIDENCE / 2, n - 1) / np.sqrt(n)
    return np.asarray(factor * values.std(axis=0, ddof=1))
