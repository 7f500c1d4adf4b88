"""`compare`: several policies on the same jobs, side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rota.arguments import whole
from rota.arrays import Int
from rota.display import html_lines, html_table, html_title, number, verdict_cells
from rota.errors import BadSpec, Problem, RotaError
from rota.model import Fleet, System, Workload
from rota.policy import Custom, Policy, policy_name
from rota.simulation.actual import Actual, checked_actual, measure_actual
from rota.simulation.arguments import checked_run
from rota.simulation.fleet.policy import Failures, PolicyOfFleet
from rota.simulation.named import as_workload
from rota.simulation.of_fleet import Rules, chosen_policies, server_for
from rota.simulation.result import JOBS, RELATIVE, RESPONSES, Result
from rota.simulation.side_by_side import in_threads
from rota.simulation.simulate import SimulationProgress, simulate
from rota.simulation.statistics import difference_interval

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ACTUAL", "Comparison", "Difference", "compare", "compare_pair", "compare_relative", "labels_of"]

ACTUAL = "actual"  # the label of what the log says


@dataclass(frozen=True)
class Difference:
    """Mean response time of one policy minus that of another, on the same jobs, with its 95 % half-width.

    As one of several it is so wide that all of them hold at once, at 95 %.
    """

    mean: float
    interval: float

    @property
    def significant(self) -> bool:
        """Whether zero is outside the interval."""
        return abs(self.mean) > self.interval


@dataclass(frozen=True)
class Comparison:
    """Results by policy, in the order given; `best` is the stable one of lowest mean response time. `actual` is what the log says."""

    results: tuple[Result, ...]
    errors: dict[str, str]
    labels: tuple[str, ...] = ()  # of the results; policies of the same name are numbered
    actual: Actual | None = None

    @property
    def best(self) -> Result | None:
        """The result of lowest mean response time, of those that have one."""
        stable = [result for result in self.results if result.stable and not np.isnan(result.mean_response_time)]
        return min(stable, key=lambda result: result.mean_response_time, default=None)

    @property
    def pairs(self) -> int:
        """How many pairs of rows have a difference; the intervals of all of them hold at once. At least 1."""
        known = sum(result.stable and not np.isnan(result.mean_response_time) for result in self.results)
        known += self.best is not None and self._beside(self.best)
        return max(known * (known - 1) // 2, 1)

    @property
    def at_the_end(self) -> int:
        """Of how many differences that hold at once one on all jobs has the interval."""
        return self.pairs

    def difference(self, first: str, second: str, paired: Callable[..., Difference] | None = None) -> Difference:
        """The difference of two policies by their labels, one of those of all pairs that hold at once; that of the mean if not given."""
        results = dict(zip(self.labels, self.results, strict=True))
        return (paired or compare_pair)(results[first], results[second], comparisons=self.at_the_end)

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """Warnings about the results: policy and sentence."""
        names = self.labels or [result.name for result in self.results]
        found = [(label, text) for label, result in zip(names, self.results, strict=True) for text in result.remarks]
        return (*found, *((ACTUAL, text) for text in (self.actual.notes if self.actual is not None else ())))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        digits = {"mean_response_time": 5, "interval": 2, "worse_than_best_by": 4, "worse_interval": 2, "p50": 4, "p95": 4, "p99": 4}
        rows = []
        for row in self.table().to_dicts():
            cells = [number(row[name], places) for name, places in digits.items()]
            rows.append((row["policy"], *(verdict_cells(row, 7) or cells), number(row["preemption_rate"])))
        head = ["policy", "mean", "±", "worse than the best by", "±", "50%", "95%", "99%", "preemptions"]
        refused = "\n".join(f"{label}: {message}" for label, message in [*self.errors.items(), *self.remarks])
        at_once = f"{self.at_once()}\n" if self.pairs > 1 else ""
        return html_title("Response time, all on the same jobs") + html_table(head, rows) + html_lines(at_once + refused)

    def at_once(self) -> str:
        """What the intervals of the differences mean, in a sentence."""
        rows = "policies" if self.actual is None else "rows"
        return f"The intervals of the differences hold for all {self.pairs} pairs of {rows} at once, at 95 %."

    def table(self) -> pl.DataFrame:
        """One row per policy, and one for what the log says. The intervals of the differences hold at once for all pairs of rows."""
        import polars as pl

        best = self.best
        rows = []
        for label, result in zip(self.labels or [result.name for result in self.results], self.results, strict=True):
            paired = best is not None and result.stable and result is not best and result.jobs == best.jobs
            difference = compare_pair(result, best, comparisons=self.pairs) if best is not None and paired else None
            rows.append(
                {
                    "policy": label,
                    "stable": result.stable,
                    "mean_response_time": result.mean_response_time,
                    "interval": result.interval,
                    **{f"p{100 * p:g}": value for p, value in result.response_time_quantiles.items()},
                    "mean_waiting_time": result.mean_waiting_time,
                    "mean_slowdown": result.mean_slowdown,
                    "worse_than_best_by": difference.mean if difference else (0.0 if result is best else np.nan),
                    "worse_interval": difference.interval if difference else (0.0 if result is best else np.nan),
                    "preemption_rate": result.preemption_rate,
                    "utilization": float(result.utilization.max()),
                    "events_per_s": result.events_per_s,
                }
            )
        if self.actual is not None:
            rows.append(self._actual_row(self.actual))
        return pl.DataFrame(rows)

    def _actual_row(self, actual: Actual) -> dict[str, object]:
        """The row of what the log says. It is never the best: it may be less than 0 worse."""
        best = self.best
        difference = None
        if best is not None and self._beside(best):
            apart = actual.batches[:, 1] - best.batches[:, RESPONSES]
            mean = actual.mean_response_time - best.mean_response_time
            difference = Difference(mean, difference_interval(apart, actual.batches[:, 0], self.pairs))
        return {
            "policy": ACTUAL,
            "stable": True,
            "mean_response_time": actual.mean_response_time,
            "interval": actual.interval,
            **{f"p{100 * p:g}": value for p, value in actual.response_time_quantiles.items()},
            "mean_waiting_time": actual.mean_waiting_time,
            "mean_slowdown": actual.mean_slowdown,
            "worse_than_best_by": difference.mean if difference else np.nan,
            "worse_interval": difference.interval if difference else np.nan,
            "preemption_rate": np.nan,
            "utilization": float(actual.utilization.max()),
            "events_per_s": np.nan,
        }

    def _beside(self, result: Result) -> bool:
        """Whether what the log says is of the same jobs as a result, batch by batch."""
        return self.actual is not None and np.array_equal(self.actual.batches[:, 0], result.batches[:, JOBS])


def compare(
    system: System | Fleet,
    policies: Sequence[PolicyOfFleet],
    *,
    dispatch: Rules = None,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    warmup: float | None = None,
    actual: bool = False,
    progress: Callable[[str, SimulationProgress], None] | None = None,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> Comparison:
    """Simulates every policy on the same jobs. A policy that cannot run on this system is reported in `errors`, by name.

    A name such as "nMSR" or "improved" (`rota.policy.DESIGNED_NAMES`) is designed for the system first. The intervals of the differences in
    the table hold at once for all pairs of policies, with 95 % confidence. With `actual`, the comparison also has what the log of a trace
    says of the same jobs (`rota.measure_actual`).

    On a `rota.Fleet` every policy is combined with every rule of `dispatch`, a rule or a list of them; the rest is as in `simulate`.
    """
    errors: dict[str, str] = {}
    given, system = system, server_for(system, dispatch, staleness, failures)
    checked_run(system, jobs, seed, warmup=warmup)
    chosen = chosen_policies(given, policies, errors, dispatch, staleness, failures)
    workload = None if workload is None else as_workload(workload, system)
    trace = checked_actual(workload) if actual else None
    labels = labels_of([policy_name(policy) for policy in chosen])
    running, stopped = threading.Lock(), threading.Event()

    def run(label: str, policy: Policy) -> Result | RotaError:
        def tell(at: SimulationProgress) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt  # only the main thread hears Ctrl-C; the run ends as by it
            if progress is not None:
                with running:
                    progress(label, at)

        try:
            return simulate(system, policy, jobs=jobs, seed=seed, workload=workload, warmup=warmup, progress=tell)
        except RotaError as error:
            return error

    # One trace at a time: it may be large. A function of a user may be in plain Python, of which one thread runs at a time.
    alone = workload is not None or any(isinstance(policy, Custom) for policy in chosen)
    answers = in_threads(run, list(zip(labels, chosen, strict=True)), stopped, workers=1 if alone else None)
    found = {label: answer for label, answer in zip(labels, answers, strict=False) if isinstance(answer, Result)}
    errors |= {label: str(answer) for label, answer in zip(labels, answers, strict=False) if isinstance(answer, RotaError)}
    if stopped.is_set() and not found:
        raise KeyboardInterrupt
    happened = None if trace is None else measure_actual(trace, system, edges=next((edges_of(result) for result in found.values()), None))
    return Comparison(tuple(found.values()), errors, tuple(found), happened)


def edges_of(result: Result) -> Int:
    """The numbers of the jobs at which the batches of a result begin and, at last, end."""
    counts = result.batches[:, JOBS].astype(np.int64)
    return round(result.warmup * result.jobs) + np.concatenate([[0], np.cumsum(counts)])


def labels_of(names: list[str]) -> list[str]:
    """The names, with a number where one comes more than once."""
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def compare_pair(first: Result, second: Result, *, comparisons: int = 1) -> Difference:
    """The difference of two policies that saw the same jobs, batch by batch, so that what the jobs have in common cancels.

    Both means are over the same jobs: those that came after the longer of the two warm-ups. If this is one of several `comparisons`, its
    interval is made wider, so that all of them hold at once with 95 % confidence (Bonferroni).
    """
    for result in (first, second):
        if not isinstance(result, Result):
            raise BadSpec([Problem("result", "must be a rota.Result, as simulate and compare give them", result)])
    comparisons = whole("comparisons", comparisons, 1)
    _check_pair(first, second)
    if np.isnan(first.mean_response_time) or np.isnan(second.mean_response_time):
        return Difference(np.nan, np.nan)
    mean = first.mean_response_time - second.mean_response_time
    return _paired(first, second, mean, RESPONSES, comparisons)


def compare_relative(first: Result, second: Result, *, comparisons: int = 1) -> Difference:
    """The same for the mean over all jobs of the response time by the mean size of the job's type."""
    _check_pair(first, second)
    return _paired(first, second, first.relative_response_time - second.relative_response_time, RELATIVE, comparisons)


def _paired(first: Result, second: Result, mean: float, column: int, comparisons: int) -> Difference:
    n = min(len(first.batches), len(second.batches))
    a, b = first.batches[-n:], second.batches[-n:]
    jobs, apart = a[:, JOBS], a[:, column] - b[:, column]
    if first.warmup != second.warmup:
        mean = float(apart.sum() / jobs.sum())
    return Difference(mean, difference_interval(apart, jobs, comparisons))


def _check_pair(first: Result, second: Result) -> None:
    """Only results of the same jobs on the same server are a pair."""
    one, other, wrong = first.system, second.system, []
    if one.names != other.names or not (np.array_equal(one.demand, other.demand) and np.array_equal(one.capacity, other.capacity)):
        wrong.append("they are of different systems")
    elif first.jobs != second.jobs:
        wrong.append(f"one has {first.jobs:,} jobs, the other {second.jobs:,}")
    elif first.fingerprint != second.fingerprint:
        seeds = f" (seeds {first.seed} and {second.seed})" if first.seed != second.seed else ""
        wrong.append(f"they saw different jobs{seeds}")
    if wrong:
        raise BadSpec(
            [Problem("pair", f"{wrong[0]}: compare results of the same system, jobs, seed and workload, as rota.compare gives them")]
        )
