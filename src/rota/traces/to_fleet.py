"""From a trace and a list of machines to a `Fleet`: the types of the trace as `rota.traces.to_system` has them, on kinds of servers.

`rota.simulate(fleet, policy, workload=trace)` then plays the trace on its own machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rota.arrays import Array
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Fleet
from rota.model.system import WITHIN_ROUNDING
from rota.traces.machines import Machines, read_machines
from rota.traces.to_system import in_less_time, load_of, to_system
from rota.traces.trace import Trace

__all__ = ["fleet_scaled_to", "to_fleet"]


def to_fleet(
    trace: Trace, machines: Machines | str | Path, *, each: Mapping[str, float] | None = None, load: float | None = None, **how: Any
) -> Fleet:
    """The fleet of a trace: its types, their rates and sizes, on these machines, which are a file or what `read_machines` found there.

    `each`: what every machine has of a resource that the list does not tell. `load` scales the rates. All else as `rota.traces.to_system`
    takes it: `sizes`, `arrivals`, `time_scale`, `preemption`, `setup_time`.
    """
    found = machines if isinstance(machines, Machines) else read_machines(machines)
    capacity = found.amounts(trace.resources, each)
    _check_fits(trace, found, capacity)
    system = to_system(trace, capacity.max(axis=0), **how)
    fields = {name: getattr(system, name) for name in system.__dataclass_fields__ if name not in ("capacity", "service_rate")}
    fleet = Fleet(count=found.count, capacity=capacity, kinds=found.kinds, **fields)
    return fleet if load is None else fleet.scaled(load=load)


def fleet_scaled_to(
    trace: Trace,
    machines: Machines | str | Path,
    load: float,
    *,
    by: Literal["thinning", "time"] = "time",
    seed: int = 0,
    **how: Any,
) -> tuple[Trace, Fleet]:
    """A trace brought to a load of these machines, by thinning or by moving its arrivals, and the fleet that belongs to it."""
    if not (np.isfinite(load) and load > 0):
        raise BadSpec([Problem("load", "must be positive and finite", load)])
    if by not in ("thinning", "time"):
        raise BadSpec([Problem("by", 'must be "thinning" or "time"', by)])
    whole = to_fleet(trace, machines, **how)
    now = load_of(whole)
    factor = load / now
    if by == "time":
        return trace.stretched(1 / factor), in_less_time(whole.scaled(factor=factor), factor)
    if factor > 1 + 1e-12:
        raise Infeasible(f"the trace has load {now:.4g} on these machines, and thinning only lowers it: to reach {load:g}, scale by time")
    return trace.thinned(min(factor, 1.0), seed), whole.scaled(factor=factor)


def _check_fits(trace: Trace, machines: Machines, capacity: Array) -> None:
    """One problem for all types that fit no machine, with the way out."""
    large = [i for i, row in enumerate(trace.demand) if not (row <= capacity * WITHIN_ROUNDING).all(axis=1).any()]
    if large:
        others = f", as do {len(large) - 1:,} other types" if len(large) > 1 else ""
        problem = Problem(f"jobs.{trace.names[large[0]]}", f"demands more than any machine has{others}", trace.demand[large[0]].tolist())
        raise BadSpec([problem, Problem("types", "leave such jobs out, or use more types (rota trace group)")])
