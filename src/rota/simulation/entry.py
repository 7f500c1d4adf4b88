"""A policy in a run that is looked at while it goes on, beside others on the same jobs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from rota.policy import Policy
from rota.simulation.compare import Difference
from rota.simulation.measured import result_of
from rota.simulation.playing import Playing
from rota.simulation.result import JOBS, RESPONSES, Result
from rota.simulation.statistics import difference_interval

__all__ = ["Entry", "mean_of"]


class Entry:
    """A policy, its run, and the result so far."""

    def __init__(self, label: str, policy: Policy, run: Playing) -> None:
        self.label, self.policy, self.run = label, policy, run
        self.grew = self.lost = 0  # looks one after the other at which the queue had grown, or it was proved worse
        self._began = time.perf_counter()

    def look(self, warmup: float | None) -> None:
        """What was measured so far; of the batches, those whose jobs have all left."""
        measuring = self.run.measuring
        found = result_of([self.run.measured(warmup)], measuring.about(), time.perf_counter() - self._began)
        whole_batches = self.run.complete // measuring.run.batch_jobs - round(found.warmup * found.jobs) // measuring.run.batch_jobs
        self.result = replace(found, batches=found.batches[: max(whole_batches, 0)])
        self.grew = 0 if found.stable else self.grew + 1

    def end(self, warmup: float | None) -> Result:
        """The result, when the jobs that count have left."""
        self.run.finish()
        self.run.measuring.give_up()
        self.result = result_of([self.run.measured(warmup)], self.run.measuring.about(), time.perf_counter() - self._began)
        return self.result

    def difference(self, other: Entry, comparisons: int) -> Difference:
        """How much worse than another one, over the batches of which all jobs have left under both; one of so many that hold at once."""
        a, b = self.result.batches, other.result.batches
        n = min(len(a), len(b))
        if n == 0 or not self.result.stable:
            return Difference(np.nan, np.nan)
        jobs, apart = a[:n, JOBS], a[:n, RESPONSES] - b[:n, RESPONSES]
        return Difference(float(apart.sum() / jobs.sum()), difference_interval(apart, jobs, comparisons))


def mean_of(result: Result) -> float:
    """The mean response time; infinite if the queue grew, or there is none."""
    mean = result.mean_response_time
    return mean if result.stable and np.isfinite(mean) else np.inf
