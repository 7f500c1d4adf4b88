"""From a trace to a `System`: rates and sizes by type; and a trace brought to a server and a load.

A trace becomes a system of the same types, so that `rota.simulate(system, policy, workload=trace)` plays it. The arrival rate of a type is
its jobs over the span. Its sizes are

- `"mean"`: exponential with the type's mean;
- `"fitted"`: the small phase-type distribution with the type's mean and coefficient of variation (`rota.model.Fitted`), for exact analysis;
  a spread below the least that it can have becomes a constant size;
- `"empirical"`: what was seen, in buckets of 1/16 octave. The mean of a bucket stands for its jobs, so the type's mean is exact and its
  second moment within 0.05 % (the sizes in a bucket are at most 4.4 % apart).

Arrivals are

- `"poisson"`: Poisson processes of these rates;
- `"bursts"`: what agrees with the counts of arrivals of each type (`rota.traces.bursts`), with one time scale.

Three ways to a load ρ: *thinning* keeps each job with probability f, *time* divides arrival times by f; both multiply rates by f = ρ over
the load of the whole trace. Thinning leaves the length of bursts as it is, time divides it too. *Capacity* multiplies the server instead,
by the least factor that brings the load down to ρ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import ArrivalProcess, Bursts, Deterministic, Empirical, Exponential, Fitted, Fleet, Preemption, System
from rota.model.distribution import MAX_CV, SizeDistribution
from rota.model.phase_types import MAX_PHASES
from rota.model.system import SECONDS, exceeds
from rota.traces.trace import Trace

__all__ = ["ArrivalFit", "By", "Sizes", "in_less_time", "load_of", "scaled_to", "to_system"]

Sizes = Literal["mean", "empirical", "fitted"]
ArrivalFit = Literal["poisson", "bursts"]
By = Literal["thinning", "time", "capacity"]

AnySystem = TypeVar("AnySystem", System, Fleet)

_PER_OCTAVE = 16
_CAPACITY_STEP = 1e-3  # the server's factor is found to this relative accuracy


def to_system(
    trace: Trace,
    capacity: ArrayLike | None = None,
    *,
    sizes: Sizes = "mean",
    arrivals: ArrivalFit = "poisson",
    time_scale: float | None = None,
    load: float | None = None,
    by: By = "thinning",
    preemption: Preemption = "none",
    setup_time: float | None = None,
) -> System:
    """The system of a trace: its types, their rates and sizes, on a server of this capacity (else the trace's own).

    With a `load` the system is scaled to it: by "thinning" or "time" its rates, by "capacity" its server. `scaled_to` gives the trace that
    goes with it. A type without jobs gets rate 0 and mean size 1. With arrivals "bursts", `time_scale` is that of the bursts, in units of
    time of the trace; it is fitted if not given.
    """
    _check_arrivals(arrivals, time_scale)
    server = _capacity(trace, capacity)
    _check_fits(trace, server)
    jobs = trace.per_type["jobs"].to_numpy()
    mean = trace.per_type["mean_size"].to_numpy()
    if ((jobs > 0) & ~(mean > 0)).any():
        idle = trace.names[int(np.flatnonzero((jobs > 0) & ~(mean > 0))[0])]
        raise BadSpec([Problem("size", f"all jobs of type '{idle}' have size 0: leave them out before", 0.0)])
    system = System(
        capacity=server,
        demand=trace.demand,
        arrival_rate=jobs / trace.span,
        names=trace.names,
        resources=trace.resources,
        sizes=_sizes(trace, sizes),
        preemption=preemption,
        setup_time=setup_time,
        arrivals=_processes(trace, time_scale) if arrivals == "bursts" else None,
        time_unit=next((name for name, seconds in SECONDS.items() if seconds == trace.unit_s), None),
    )
    if load is None:
        return system
    _check_load(load, by)
    if by == "capacity":
        return _enlarged(system, load)
    scaled = system.scaled(load=load)
    return in_less_time(scaled, float(scaled.arrival_rate.sum() / system.arrival_rate.sum())) if by == "time" else scaled


def scaled_to(
    trace: Trace,
    load: float,
    *,
    capacity: ArrayLike | None = None,
    by: By = "thinning",
    seed: int = 0,
    sizes: Sizes = "mean",
    arrivals: ArrivalFit = "poisson",
    time_scale: float | None = None,
    preemption: Preemption = "none",
    setup_time: float | None = None,
) -> tuple[Trace, System]:
    """A trace brought to a server and a system load, and the system that belongs to it.

    The system has the load asked for (by "capacity": the greatest that is not above it, as jobs are whole). Its sizes are those of the
    whole trace; a thinned trace is a sample of it, and its own load differs from that by chance.
    """
    _check_load(load, by)
    fit = {"sizes": sizes, "arrivals": arrivals, "time_scale": time_scale}
    whole = to_system(trace, capacity, preemption=preemption, setup_time=setup_time, **fit)  # type: ignore[arg-type]
    if by == "capacity":
        system = _enlarged(whole, load)
        return replace(trace, capacity=system.capacity), system
    now = load_of(whole)
    factor = load / now
    if by == "time":
        scaled = trace.stretched(1 / factor)
    elif factor > 1 + 1e-12:
        hint = f"to reach {load:g}, scale by time or capacity"
        raise Infeasible(f"the trace has load {now:.4g} on this server, and thinning only lowers it: {hint}")
    else:
        scaled = trace.thinned(min(factor, 1.0), seed)
    system = whole.scaled(factor=factor)
    return replace(scaled, capacity=whole.capacity), in_less_time(system, factor) if by == "time" else system


def in_less_time(system: AnySystem, factor: float) -> AnySystem:
    """The same with bursts that last only 1/factor as long: arrivals come in so much less time."""
    quicker = [each.changed(length=each.length / factor) if isinstance(each, Bursts) else each for each in system.arrivals]
    return system.replace(arrivals=quicker)


def load_of(system: System | Fleet) -> float:
    """The load, as 1 over the factor that brings a system to load 1: so that this package does not depend on `rota.capacity`."""
    most = int(np.argmax(system.arrival_rate))
    return float(system.arrival_rate[most] / system.scaled(load=1.0).arrival_rate[most])


# ---------------------------------------------------------------------------------------------------------------- the server


def _capacity(trace: Trace, capacity: ArrayLike | None) -> Array:
    if capacity is None and trace.capacity is None:
        wanted = ", ".join(f"{name} = …" for name in trace.resources)
        raise BadSpec([Problem("capacity", f"is not known to the trace: say how large the server is (--capacity, or capacity=: {wanted})")])
    server = np.asarray(capacity if capacity is not None else trace.capacity, dtype=np.float64)
    if server.shape != (len(trace.resources),):
        raise BadSpec([Problem("capacity", f"needs {len(trace.resources)} numbers: {', '.join(trace.resources)}", capacity)])
    return server


def _check_fits(trace: Trace, server: Array) -> None:
    """One problem for all types that do not fit, with the way out; `System` would list thousands."""
    large = [i for i, row in enumerate(trace.demand) if any(exceeds(d, c) for d, c in zip(row, server, strict=True))]
    idle = [i for i, row in enumerate(trace.demand) if not row.any()]
    problems = []
    for group, what in ((large, "demands more than the server has"), (idle, "demands nothing")):
        if group:
            others = f", as do {len(group) - 1:,} other types" if len(group) > 1 else ""
            problems.append(Problem(f"jobs.{trace.names[group[0]]}", what + others, trace.demand[group[0]].tolist()))
    if problems:
        raise BadSpec([*problems, Problem("types", "leave such jobs out: trace.grouped(capacity=…), or rota trace group --capacity …")])


def _check_arrivals(arrivals: str, time_scale: float | None) -> None:
    if arrivals not in ("poisson", "bursts"):
        raise BadSpec([Problem("arrivals", 'must be "poisson" or "bursts"', arrivals)])
    if time_scale is not None and arrivals == "poisson":
        raise BadSpec([Problem("time_scale", 'goes with arrivals="bursts": a Poisson process has none', time_scale)])


def _check_load(load: float, by: str) -> None:
    if not (np.isfinite(load) and load > 0):
        raise BadSpec([Problem("load", "must be positive and finite", load)])
    if by not in ("thinning", "time", "capacity"):
        raise BadSpec([Problem("by", 'must be "thinning", "time" or "capacity"', by)])


def _enlarged(system: System, load: float) -> System:
    """The system on its server times the least factor that brings the load to `load` or below.

    The load falls with the factor, in steps. It is never below the work over the capacity: there the search begins, or where all types
    just fit.
    """
    demand, capacity = system.demand, system.capacity
    fits = float((demand / capacity).max())
    fluid = float((system.offered_work @ demand / capacity).max()) / load

    def on(factor: float) -> System:
        return system.replace(capacity=capacity * factor)

    low = high = max(fits, fluid)
    if load_of(on(low)) <= load:
        return on(low)
    while load_of(on(high)) > load:
        low, high = high, high * 1.25
    while high / low > 1 + _CAPACITY_STEP:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if load_of(on(middle)) <= load else (middle, high)
    return on(high)


# ---------------------------------------------------------------------------------------------------------------- arrivals, sizes


def _processes(trace: Trace, time_scale: float | None) -> tuple[ArrivalProcess, ...]:
    from rota.traces.bursts import fit_bursts  # loads SciPy

    return fit_bursts(trace, time_scale=time_scale)


def _sizes(trace: Trace, sizes: Sizes) -> list[SizeDistribution]:
    if sizes == "empirical":
        return _empirical(trace)
    if sizes not in ("mean", "fitted"):
        raise BadSpec([Problem("sizes", 'must be "mean", "empirical" or "fitted"', sizes)])
    law = _fitted if sizes == "fitted" else _exponential
    rows = trace.per_type.select("jobs", "mean_size", "cv").iter_rows()
    return [law(mean, cv) if jobs else Exponential(mean=1.0) for jobs, mean, cv in rows]


def _exponential(mean: float, cv: float) -> SizeDistribution:
    return Exponential(mean=mean)


def _fitted(mean: float, cv: float) -> SizeDistribution:
    return Deterministic(mean=mean) if cv < MAX_PHASES**-0.5 else Fitted(mean=mean, cv=min(cv, MAX_CV))


def _empirical(trace: Trace) -> list[SizeDistribution]:
    """Sizes in buckets, streaming: memory for the buckets only. Jobs of size 0 share the lowest bucket of their type."""
    size = pl.col("size")
    bucket = pl.when(size > 0).then((size.log(2) * _PER_OCTAVE).floor()).cast(pl.Int32)
    found = (
        trace.jobs.group_by("type", bucket.alias("bucket"))
        .agg(jobs=pl.len(), total=size.sum())
        .collect(engine="streaming")
        .with_columns(bucket=pl.col("bucket").fill_null(pl.col("bucket").min().over("type")))
        .group_by("type", "bucket")
        .agg(pl.col("jobs").sum(), pl.col("total").sum())
        .sort("type", "bucket")
    )
    laws: list[SizeDistribution] = [Exponential(mean=1.0)] * len(trace.names)
    for (kind,), part in found.group_by("type", maintain_order=True):
        values = (part["total"] / part["jobs"]).to_list()
        laws[int(str(kind))] = Empirical(values=tuple(values), weights=tuple(float(n) for n in part["jobs"]))
    return laws
