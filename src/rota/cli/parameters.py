"""The parameters that verbs share, each described once: the same name has the same words everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token


def _part(_: Any, tokens: Sequence[Token]) -> float:
    """A part of something: 0.01 or 1%."""
    text = tokens[0].value.strip()
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(f'"{text}" must be a part, as 1% or 0.01') from None


RUN_JOBS = Group("Run jobs", sort_key=1)

Flag = Annotated[bool, Parameter(negative="")]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object instead of text.")]
Seed = Annotated[int, Parameter(help="The same seed gives the same result.")]

# ------------------------------------------------------------------------------------------------------------------- files

SystemFile = Annotated[Path, Parameter(help="The system, a TOML file (see: rota schema).")]
TraceFile = Annotated[Path, Parameter(help="The trace, a parquet file (from: rota trace import).")]
Kind = Annotated[str | None, Parameter(help="Of a fleet: a server of this kind.")]
Output = Annotated[Path, Parameter(alias="-o")]
OptionalOutput = Annotated[Path | None, Parameter(alias="-o")]
TextOutput = Annotated[Path | None, Parameter(alias="-o", allow_leading_hyphen=True)]  # for -, standard output
TraceOutput = Annotated[Path, Parameter(alias="-o", help="The trace to write, a parquet file.")]
Force = Annotated[bool, Parameter(negative="", help="Write over what is there already.")]

# -------------------------------------------------------------------------------------------------------------- simulation

Part = Annotated[float | None, Parameter(converter=_part)]
JobCount = Annotated[int | None, Parameter(help="How many jobs arrive: a million, or all of --workload, if not given.")]
WorkloadName = Annotated[
    str | None,
    Parameter(
        help="The jobs: a trace (from: rota trace import) whose types are the file's, or your own arrivals as module:name. "
        "The file's arrivals and sizes if not given."
    ),
]
Staleness = Annotated[float | None, Parameter(help="Of a fleet: the dispatcher looks at the servers only every so many units of time.")]
Loops = Annotated[int | None, Parameter(help="Play the workload this many times.")]
WarmupLoops = Annotated[int, Parameter(help="Leave out this many of the first loops.")]
Workers = Annotated[
    int | None,
    Parameter(help="Processes on this machine, one per core if not given; 0 runs all in this one. The results do not depend on it."),
]

# ------------------------------------------------------------------------------------------------------------------ traces

Capacity = Annotated[
    list[float] | None,
    Parameter(consume_multiple=True, negative="", help="The server, one number per resource, unless the trace has it."),
]
TraceSizes = Annotated[
    Literal["mean", "empirical", "fitted"],
    Parameter(help="The sizes of a type in the system: exponential with its mean, as seen, or fitted to mean and variation."),
]
TraceArrivals = Annotated[
    Literal["poisson", "bursts"],
    Parameter(help="The arrivals of a type in the system: a Poisson process, or bursts and quiet times fitted to the counts of arrivals."),
]
TimeScale = Annotated[
    float | None, Parameter(help="With --arrivals bursts: the time scale of the bursts, in seconds of the trace; fitted if not given.")
]
TracePreemption = Annotated[Literal["full", "none"], Parameter(help="Whether jobs can be stopped.")]

# --------------------------------------------------------------------------------------------------- the running scheduler

At = Annotated[
    str | None,
    Parameter(
        env_var="ROTA_ADDRESS",
        show_env_var=False,
        help="The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.",
    ),
]
AtThisMachine = Annotated[
    str | None,
    Parameter(
        env_var="ROTA_ADDRESS",
        show_env_var=False,
        help="The state directory of the scheduler, or unix:/path of its socket. $ROTA_ADDRESS, or your own, if not given.",
    ),
]
JobId = Annotated[str, Parameter(help="The number of the job.")]
JobIds = Annotated[str, Parameter(help="Numbers of jobs or ranges of them: 12 14-16.")]
