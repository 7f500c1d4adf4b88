"""What a plan judges policies by: one number per policy with its interval, and limits on the response times of single types.

| objective | what is to be small |
| mean | E[T], the mean response time over all jobs |
| slowdown | the mean over all jobs of T μ, the response time by the mean size of the job's type |
| p95 | the time that 95 % of the jobs are faster than |
| worst-type | max over types i of E[T_i] μ_i, the mean response time of a type by its mean size |

The mean of response time by the job's own size would be infinite for exponential sizes: E[1/S] is.
Means over all jobs are compared batch by batch, on the same jobs. A quantile and a largest type are not means over jobs: there the
intervals a and b of two policies give √(a² + b²), as if they were independent. That they see the same jobs makes the true error smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rota.arguments import is_real, parse_duration
from rota.errors import BadSpec, Problem
from rota.model import Fleet, System
from rota.simulation import Comparison, Difference, Result, compare_pair, compare_relative
from rota.simulation.result import JOBS, RELATIVE
from rota.simulation.statistics import ratio_interval, widening

__all__ = ["Measure", "PlanObjective", "checked_limits", "measure_of", "time_words", "worst_type"]

PlanObjective = Literal["mean", "slowdown", "p95", "worst-type"]


@dataclass(frozen=True)
class Measure:
    """How a policy is judged: the smaller, the better."""

    objective: PlanObjective
    title: str  # within a sentence
    head: str  # of a column
    value: Callable[[Result], float]
    interval: Callable[[Result], float]
    is_time: bool
    paired: Callable[..., Difference] | None = None

    def difference(self, first: Result, second: Result, comparisons: int) -> Difference:
        """The value of the first minus that of the second, one of so many differences that hold at once."""
        if self.paired is not None:
            return self.paired(first, second, comparisons=comparisons)
        apart = self.value(first) - self.value(second)
        return Difference(apart, widening(comparisons) * float(np.hypot(self.interval(first), self.interval(second))))

    def apart(self, comparison: Comparison, first: str, second: str) -> Difference:
        """The same for two policies of a comparison, by their labels, of which one may have seen fewer jobs."""
        if self.paired is not None:
            return comparison.difference(first, second, self.paired)
        results = dict(zip(comparison.labels, comparison.results, strict=True))
        return self.difference(results[first], results[second], comparison.at_the_end)


def worst_type(result: Result) -> int:
    """The type with the largest mean response time by its mean size, among those that have one."""
    times = result.response_time * result.system.service_rate
    return int(np.nanargmax(np.where(np.isnan(times), -np.inf, times)))


def _of_worst(values: Callable[[Result], np.ndarray]) -> Callable[[Result], float]:
    return lambda result: float(values(result)[worst_type(result)] * result.system.service_rate[worst_type(result)])


_MEASURES = {
    "mean": Measure(
        "mean", "mean response time", "mean", lambda result: result.mean_response_time, lambda result: result.interval, True, compare_pair
    ),
    "slowdown": Measure(
        "slowdown",
        "mean response time by the mean size of the type",
        "slowdown",
        lambda result: result.relative_response_time,
        lambda result: ratio_interval(result.batches[:, RELATIVE], result.batches[:, JOBS]),
        False,
        compare_relative,
    ),
    "p95": Measure(
        "p95",
        "95% quantile of the response time",
        "95%",
        lambda result: result.response_time_quantiles[0.95],
        lambda result: result.response_time_quantile_intervals[0.95],
        True,
    ),
    "worst-type": Measure(
        "worst-type",
        "largest mean response time of a type by its mean size",
        "worst type",
        _of_worst(lambda result: result.response_time),
        _of_worst(lambda result: result.response_time_interval),
        False,
    ),
}


def measure_of(objective: str) -> Measure:
    """The measure of this name; raises `BadSpec` for any other."""
    if objective not in get_args(PlanObjective):
        raise BadSpec([Problem("objective", f"must be one of {', '.join(get_args(PlanObjective))}", objective)])
    return _MEASURES[objective]


def checked_limits(
    system: System | Fleet, limits: Mapping[str, float | str] | None, place: str = "limits", also: tuple[str, ...] = ()
) -> dict[str, float]:
    """Limits by type, in the system's unit of time: numbers, or durations as "12h" where the system says its unit.

    `also`: names that may have a limit beside the types.
    """
    if limits is not None and not isinstance(limits, Mapping):
        raise BadSpec([Problem(place, 'must be a table by type, as {"train": 12.0}', limits)])
    found, problems = {}, []
    for name, limit in (limits or {}).items():
        where = f"{place}.{name}"
        if name not in (*system.names, *also):
            problems.append(Problem(where, f"no such type (there are: {', '.join((*system.names, *also))})"))
            continue
        try:
            value = parse_duration(limit, where, system.unit_s) if isinstance(limit, str) else limit
        except BadSpec as error:
            problems += error.problems
            continue
        if not is_real(value) or not value > 0:
            problems.append(Problem(where, "must be a positive time", limit))
        else:
            found[name] = float(value)
    if problems:
        raise BadSpec(problems)
    return found


def time_words(system: System | Fleet, mean: float, interval: float | None = None) -> str:
    """A time with its interval, and with its unit if the system says one: `42.1 ± 3.2 h`."""
    spread = "" if interval is None else f" ± {interval:.2g}"
    return f"{mean:.3g}{spread}" + (f" {system.time_unit}" if system.time_unit is not None else "")
