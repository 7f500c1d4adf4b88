"""`rota trace fleet`: a trace on the machines that it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import rota
from rota.cli.output import print_json, print_table, remark
from rota.cli.outputs import STDOUT, check_output
from rota.cli.parameters import Force, Json, TextOutput, TimeScale, TraceArrivals, TraceFile, TracePreemption, TraceSizes


def fleet(
    file: TraceFile,
    /,
    *,
    machines: Path,
    output: TextOutput = None,
    each: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    load: float | None = None,
    sizes: TraceSizes = "mean",
    arrivals: TraceArrivals = "poisson",
    time_scale: TimeScale = None,
    preemption: TracePreemption = "none",
    force: Force = False,
    json: Json = False,
) -> None:
    """Makes the fleet of a trace: its types, with the rates and sizes that were seen, on the machines of a list.

    Machines that are alike are one kind.

    Parameters
    ----------
    machines
        The list of machines: nodes of Alibaba openb, machine_events of Google 2011 or Borg 2019, or a table with a column per resource.
    output
        The TOML file to write; printed if not given.
    each
        What every machine has of resources that the list does not tell, as disk=1.
    load
        The load of the fleet to scale arrivals to; says how to bring the trace to it.
    """
    check_output(output, force, stdout=True)
    if output == STDOUT and json:
        raise rota.BadSpec([rota.Problem("--json", "does not go with --output -: both go to standard output")])
    from rota.traces import fleet_scaled_to, open_trace, to_fleet

    how: dict[str, Any] = {
        "each": _amounts(each or []),
        "sizes": sizes,
        "arrivals": arrivals,
        "time_scale": time_scale,
        "preemption": preemption,
    }
    jobs = open_trace(file)
    if load is None:
        made = to_fleet(jobs, machines, **how)
    else:
        scaled, made = fleet_scaled_to(jobs, machines, load, **how)
        remark(f"the trace at this load: rota trace cut {file} --stretch {scaled.span / jobs.span:.6g} -o …")
    if json:
        names = ("kinds", "count", "capacity", "resources", "names", "demand", "arrival_rate", "service_rate", "preemption")
        print_json({name: getattr(made, name) for name in names} | {"servers": made.servers})
    elif output is None or output == STDOUT:
        print(made.to_toml(), end="")
    else:
        print(f"{made.servers:,} servers of {len(made.kinds)} kinds; {len(made.names):,} types, {made.arrival_rate.sum():.4g} jobs per s")
        amounts = [[kind, f"{n:,}", *(f"{x:.6g}" for x in row)] for kind, n, row in zip(made.kinds, made.count, made.capacity, strict=True)]
        print_table("Kinds of servers", ["", "servers", *made.resources], amounts)
    if output is not None and output != STDOUT:
        made.save(output)
        remark(f"written to {output}")


def _amounts(each: list[str]) -> dict[str, float]:
    """`disk=1` as a name and a number."""
    amounts = {}
    for text in each:
        name, sign, amount = text.partition("=")
        try:
            amounts[name] = float(amount)
        except ValueError:
            sign = ""
        if not (sign and name):
            raise rota.BadSpec([rota.Problem("--each", "must be a resource and an amount, as disk=1", text)])
    return amounts
