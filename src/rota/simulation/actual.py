"""What really happened to the jobs of a log, as a row beside simulated policies.

A log that says when jobs started and ended gives, for each job, its response time T = end − arrival and its waiting time T − size, which
are what a simulation measures too: lost runs and suspensions count as waiting. Quantiles come from the same histogram as those of a
`Result`, and sums over the same batches of jobs, so that the difference to a policy has an interval.

In use is Σ size · demand over the capacity and the time from the first arrival to the last end, as for a simulated list of jobs. `peak` is
the largest sum of the demands of jobs that ran at one time, as a part of the capacity: above 1, the log is of a larger machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.arrays import Array, Int
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Fleet, System
from rota.simulation.measured import quantiles_of, type_quantiles_of
from rota.simulation.named import as_workload
from rota.simulation.statistics import mean_interval
from rota.simulation.tally import BUCKETS, MANY, buckets_of

if TYPE_CHECKING:
    from rota.model import Workload
    from rota.traces import Trace

__all__ = ["Actual", "checked_actual", "measure_actual"]

_CHUNK = 1 << 18
_BATCHES = 256
_MOST_SORTED = 20_000_000  # jobs whose starts and ends are sorted for the peak
_ROUNDING = 1e-9
_T, _W, _S = 0, 1, 2  # response time, waiting time, slowdown


@dataclass(frozen=True, eq=False)
class Actual:
    """The response and waiting times that a log gives; arrays have one entry per type (K,) or per resource (R,).

    `jobs` of the trace were looked at, and for `missing` of them the log has no start and end. `batches` (n, 2): jobs, and the sum of their
    response times, over jobs that arrived one after the other. `notes` say what the numbers do and do not mean.
    """

    jobs: int
    missing: int
    counted: Int
    response_time: Array
    waiting_time: Array
    slowdown: Array
    mean_response_time: float
    interval: float
    mean_waiting_time: float
    mean_slowdown: float
    response_time_quantiles: dict[float, float]
    waiting_time_quantiles: dict[float, float]
    slowdown_quantiles: dict[float, float]
    type_response_time_quantiles: dict[float, Array]
    type_waiting_time_quantiles: dict[float, Array]
    utilization: Array
    peak: Array  # not a number if there are too many jobs to sort
    notes: tuple[str, ...]
    batches: Array = field(repr=False)

    def __repr__(self) -> str:
        means = f"mean response time {self.mean_response_time:.5g}, mean waiting time {self.mean_waiting_time:.5g}"
        return f"<Actual: {means}, {self.counted.sum():,} jobs>"


def measure_actual(workload: Workload | str | Path, system: System | Fleet, *, edges: Int | None = None) -> Actual:
    """What the log of a trace says of its jobs, with the types, the capacity and the unit of time of a system.

    `edges` are the numbers of the jobs at which batches begin and, at last, end; jobs before and after do not count. If not given, all do.
    """
    trace = checked_actual(as_workload(workload, system))  # type: ignore[arg-type]  # a fleet has job types, too
    n = len(trace)
    bounds = np.unique(np.linspace(0, n, min(n, _BATCHES) + 1).astype(np.int64)) if edges is None else np.minimum(edges, n)
    return _actual(trace, system, bounds, _Sums(trace, system, bounds))


def checked_actual(workload: Workload | None) -> Trace:
    """The workload, if it is a trace that says when its jobs really started and ended."""
    from rota.traces import Looped, Trace

    if workload is None:
        raise BadSpec([Problem("workload", "must be a trace of a log (from: rota trace import) to say what really happened")])
    if isinstance(workload, Looped):
        raise BadSpec([Problem("workload", "is played several times, but what really happened, happened once: leave the loops out")])
    if not isinstance(workload, Trace) or not workload.has_actual:
        why = "the log does not, or arrivals were moved (stretched, scaled by time, resampled), or an older Rota imported it"
        raise BadSpec([Problem("workload", f"does not say when jobs really started and ended: {why}")])
    return workload


class _Sums:
    """Sums, histograms and batches over the jobs of a trace, read in chunks."""

    def __init__(self, trace: Trace, system: System | Fleet, edges: Int) -> None:
        K = len(system.names)
        self.counted = np.zeros(K, dtype=np.int64)
        self.rows = np.zeros((3, K))  # sums of response time, waiting time, slowdown
        self.squares = 0.0
        self.work = np.zeros(K)
        self.histogram = np.zeros((3, K if K <= MANY else 1, BUCKETS), dtype=np.int64)
        self.batches = np.zeros((len(edges) - 1, 2))
        self.missing = 0
        self.begin, self.end = np.inf, -np.inf
        place = np.array([system.names.index(name) for name in trace.names])
        unit, first = trace.units_in(system), 0
        for part in trace.jobs.select("arrival", "size", "type", "start", "end").collect_batches(chunk_size=_CHUNK, maintain_order=True):
            number = np.arange(first, first + part.height)
            first += part.height
            arrival, size, start, end = (part[name].to_numpy() for name in ("arrival", "size", "start", "end"))
            inside = (number >= edges[0]) & (number < edges[-1])
            known = inside & np.isfinite(start) & np.isfinite(end) & (end >= arrival)
            self.missing += int((inside & ~known).sum())
            self.begin = min(self.begin, float(arrival[inside].min(initial=np.inf)))
            self.end = max(self.end, float(end[known].max(initial=-np.inf)))
            batch = np.searchsorted(edges, number[known], side="right") - 1
            self._add(place[part["type"].to_numpy()[known]], batch, size[known] * unit, (end - arrival)[known] * unit)
        self.time = (self.end - self.begin) * unit

    def _add(self, kinds: Int, batch: Int, sizes: Array, responses: Array) -> None:
        K = len(self.counted)
        waits = np.maximum(responses - sizes, 0.0)
        waits[waits < _ROUNDING * responses] = 0.0  # times are seconds since 1970: a difference of them is not exact
        slowdowns = np.divide(responses, sizes, out=np.ones_like(sizes), where=sizes > 0)
        self.counted += np.bincount(kinds, minlength=K)
        self.work += np.bincount(kinds, sizes, K)
        self.squares += float(responses @ responses)
        for which, values in ((_T, responses), (_W, waits), (_S, slowdowns)):
            self.rows[which] += np.bincount(kinds, values, K)
            np.add.at(self.histogram[which], (np.minimum(kinds, self.histogram.shape[1] - 1), buckets_of(values)), 1)
        self.batches[:, 0] += np.bincount(batch, minlength=len(self.batches))
        self.batches[:, 1] += np.bincount(batch, responses, len(self.batches))


def _actual(trace: Trace, system: System | Fleet, edges: Int, sums: _Sums) -> Actual:
    total = int(sums.counted.sum())
    if total == 0:
        raise Infeasible("the log says of no job when it started and ended")
    by_type = np.divide(sums.rows, sums.counted, out=np.full(sums.rows.shape, np.nan), where=sums.counted > 0)
    mean = sums.rows.sum(axis=1) / total
    jobs, responses = sums.batches.T
    spread = mean_interval(responses, jobs, sums.squares / total - mean[_T] ** 2)
    capacity = system.count @ system.capacity if isinstance(system, Fleet) else system.capacity
    peak = _peak(trace, system, edges) / capacity
    shown = np.ones(len(system.names))
    return Actual(
        jobs=int(edges[-1] - edges[0]),
        missing=sums.missing,
        counted=sums.counted,
        response_time=by_type[_T],
        waiting_time=by_type[_W],
        slowdown=by_type[_S],
        mean_response_time=float(mean[_T]),
        interval=spread.half_width,
        mean_waiting_time=float(mean[_W]),
        mean_slowdown=float(mean[_S]),
        response_time_quantiles=quantiles_of(sums.histogram[_T].sum(axis=0)),
        waiting_time_quantiles=quantiles_of(sums.histogram[_W].sum(axis=0)),
        slowdown_quantiles=quantiles_of(sums.histogram[_S].sum(axis=0)),
        type_response_time_quantiles=type_quantiles_of(sums.histogram[_T], shown),
        type_waiting_time_quantiles=type_quantiles_of(sums.histogram[_W], shown),
        utilization=np.asarray(sums.work @ system.demand / capacity / max(sums.time, 1e-300)),
        peak=peak,
        notes=_notes(trace, system, sums.missing, peak),
        batches=sums.batches,
    )


def _peak(trace: Trace, system: System | Fleet, edges: Int) -> Array:
    """The largest sum of the demands of running jobs (R,); what ends at an instant is free for what starts then.

    Jobs that ran several times, or were suspended, are not counted: it may be too little, never too much.
    """
    if len(trace) > _MOST_SORTED:
        return np.full(len(system.resources), np.nan)
    jobs = trace.jobs.slice(int(edges[0]), int(edges[-1] - edges[0])).select("type", "size", "start", "end").drop_nulls().collect()
    demand = trace.demand[:, [trace.resources.index(name) for name in system.resources]][jobs["type"].to_numpy()]
    size, start, end = (jobs[name].to_numpy() for name in ("size", "start", "end"))
    at_once = end - start <= size + _ROUNDING * np.abs(end)
    demand, times = demand[at_once], np.concatenate([end[at_once], start[at_once]])
    order = np.argsort(times, kind="stable")  # ends stand before starts
    most: list[float] = []
    for needed in demand.T:
        changes = np.concatenate([-needed, needed])[order]
        most.append(float(np.cumsum(changes).max(initial=0.0)))
    return np.array(most)


def _notes(trace: Trace, system: System | Fleet, missing: int, peak: Array) -> tuple[str, ...]:
    """What the numbers do and do not mean, one sentence each."""
    found = [
        "This is what the log says: its machine may have had other jobs, limits, priorities, failures and several nodes. "
        "The policies begin with an empty server and have it for these jobs alone."
    ]
    if missing:
        found.append(f"The log has no start and end of {_jobs(missing)}: left out here, but played under the policies.")
    about: dict[str, Any] = trace.about
    lost = sum(about.get("import", {}).get("left_out", {}).values())
    lost += sum(part["jobs"] for account in about.get("grouping", []) for part in account["left_out"])
    if lost:
        found.append(f"Of the log, the import and the grouping left out {_jobs(lost)}: some of them may have used the machine.")
    if "thinned" in about:
        found.append(f"The trace has {about['thinned']:.3g} of the jobs: the machine ran the others, too.")
    if (peak > 1 + 1e-6).any():
        worst = int(np.argmax(peak))
        found.append(
            f"The log's jobs held up to {peak[worst]:.2f} times the {system.resources[worst]} of this server at once: "
            "they had more than the policies have here."
        )
    return tuple(found)


def _jobs(number: int) -> str:
    return f"{number:,} job{'s' if number != 1 else ''}"
