"""`rota trace cut`, `rota trace scale`, `rota trace system`: a part of a trace, a trace at another load, and the system it makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rota
from rota.arguments import whole_file
from rota.cli.output import print_json, remark
from rota.cli.outputs import STDOUT, check_output
from rota.cli.parameters import (
    Capacity,
    Force,
    Json,
    Seed,
    TextOutput,
    TimeScale,
    TraceArrivals,
    TraceFile,
    TraceOutput,
    TracePreemption,
    TraceSizes,
)

if TYPE_CHECKING:
    from rota.traces import Trace


def cut(
    file: TraceFile,
    /,
    *,
    output: TraceOutput,
    begin: float | None = None,
    end: float | None = None,
    longest: float | None = None,
    share: float | None = None,
    stretch: float | None = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Writes a part of a trace: a window of time, without very long jobs, a random sample, or with arrivals farther apart.

    What is asked for is done in the order of the options below.

    Parameters
    ----------
    begin
        Keep jobs that arrive from this time on, in seconds.
    end
        Keep jobs that arrive before this. The time from --begin to --end is then the time that the trace covers, for rates and loops.
    longest
        Keep jobs of at most this size.
    share
        Keep each job with this probability, independently.
    stretch
        Multiply all arrival times by this; sizes stay.
    """
    check_output(output, force)
    from rota.traces import open_trace, save_trace

    trace = open_trace(file)
    before = len(trace)
    if begin is not None or end is not None:
        trace = _window(trace, begin, end)
    if longest is not None:
        trace = trace.without_long(longest)
    if share is not None:
        trace = trace.thinned(share, seed)
    if stretch is not None:
        trace = trace.stretched(stretch)
    if json:
        print_json({"output": str(output), "jobs": len(trace), "jobs_before": before, "span": trace.span})
    else:
        print(f"{len(trace):,} of {before:,} jobs, in {trace.span:,.0f} s")
    save_trace(trace, output)
    remark(f"written to {output}")


def _window(trace: Trace, begin: float | None, end: float | None) -> Trace:
    """The jobs from `begin` on and before `end`; what is not given is where the trace begins or ends."""
    first, beyond = trace.begin, trace.begin + trace.span
    low, high = first if begin is None else begin, beyond if end is None else end
    if low >= beyond or high <= first:
        option, value = ("--begin", begin) if low >= beyond else ("--end", end)
        raise rota.BadSpec([rota.Problem(option, f"leaves no jobs: the trace covers {first:,.6g} s to {beyond:,.6g} s", value)])
    return trace.window(low, high)


def scale(
    file: TraceFile,
    /,
    *,
    load: float,
    output: TraceOutput,
    system: Path,
    by: Literal["thinning", "time", "capacity"] = "thinning",
    capacity: Capacity = None,
    sizes: TraceSizes = "mean",
    arrivals: TraceArrivals = "poisson",
    time_scale: TimeScale = None,
    preemption: TracePreemption = "none",
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Brings a trace to a system load, and writes the trace and the system that belong together.

    Parameters
    ----------
    load
        The system load to reach (see: rota capacity).
    system
        The system to write, a TOML file.
    by
        Thinning keeps each job with one probability, time moves arrivals apart or together, capacity makes the server larger or smaller.
    """
    check_output(output, force)
    check_output(system, force, "--system")
    if output.absolute() == system.absolute():
        raise rota.BadSpec([rota.Problem("--system", "is the name of the trace, too: there are two files to write", str(system))])
    from rota.traces import open_trace, save_trace
    from rota.traces.to_system import load_of, scaled_to

    fit: dict[str, Any] = {"sizes": sizes, "arrivals": arrivals, "time_scale": time_scale}
    trace, made = scaled_to(open_trace(file), load, capacity=capacity, by=by, seed=seed, preemption=preemption, **fit)
    own = load_of(trace.system())
    if json:
        account = {"jobs": len(trace), "span": trace.span, "types": len(trace.names), "load": load, "by": by}
        print_json({"output": str(output), "system": str(system), **account, "trace_load": own, "capacity": made.capacity})
    else:
        print(f"{len(trace):,} jobs in {trace.span:,.0f} s, {len(trace.names):,} types, load {load:g} by {by}")
        if by == "thinning":
            print(f"The random sample of jobs has a load of {own:.4g}.")
        elif by == "capacity":
            print(f"The server has {_server(made)}.")
    with whole_file(output) as first, whole_file(system) as second:
        save_trace(trace, first)
        made.save(second)
    remark(f"written to {output} and {system}")


def system(
    file: TraceFile,
    /,
    *,
    output: TextOutput = None,
    capacity: Capacity = None,
    sizes: TraceSizes = "mean",
    arrivals: TraceArrivals = "poisson",
    time_scale: TimeScale = None,
    preemption: TracePreemption = "none",
    force: Force = False,
    json: Json = False,
) -> None:
    """Makes the system of a trace: its types, with the rates and sizes that were seen. Prints it, or writes it as a TOML file.

    Parameters
    ----------
    output
        The TOML file to write.
    """
    check_output(output, force, stdout=True)
    if output == STDOUT and json:
        raise rota.BadSpec([rota.Problem("--json", "does not go with --output -: both go to standard output")])
    from rota.traces import open_trace

    made = open_trace(file).system(capacity, sizes=sizes, arrivals=arrivals, time_scale=time_scale, preemption=preemption)
    if json:
        names = ("capacity", "resources", "names", "demand", "arrival_rate", "service_rate", "preemption")
        laws = {"sizes": [law.model_dump() for law in made.sizes], "arrivals": [law.model_dump(exclude_none=True) for law in made.arrivals]}
        print_json({name: getattr(made, name) for name in names} | laws)
    elif output is None or output == STDOUT:
        print(made.to_toml(), end="")
    else:
        print(f"{len(made.names):,} types, {made.arrival_rate.sum():.4g} jobs per s, on {_server(made)}")
    if output is not None and output != STDOUT:
        made.save(output)
        remark(f"written to {output}")


def _server(system: rota.System) -> str:
    return ", ".join(f"{name} {capacity:.6g}" for name, capacity in zip(system.resources, system.capacity, strict=True))
