"""`rota optimal`: the best policy there is, for few types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import rota
from rota.cli.one_server import read_server
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Flag, Force, Json, OptionalOutput, SystemFile

if TYPE_CHECKING:
    from rota.optimal import OptimalProgress


def optimal(
    file: SystemFile,
    /,
    *,
    output: OptionalOutput = None,
    force: Force = False,
    preemption: Literal["full", "none"] | None = None,
    load: float | None = None,
    exponential: Flag = False,
    truncation: Annotated[list[int] | None, Parameter(consume_multiple=True, negative="")] = None,
    accuracy: float = 1e-3,
    memory_limit: float = 4.0,
    time_limit: float = 600.0,
    json: Json = False,
) -> None:
    """The least mean response time that any policy can have, and a policy that has it. For few types and exponential sizes.

    Parameters
    ----------
    output
        Write the policy, a table of decisions, to this file (JSON), for rota simulate and rota compare.
    preemption
        Whether jobs can be stopped, if not as the file says.
    load
        Scale the arrivals to this system load first.
    exponential
        Take every size as exponential with its mean. Needed where a size is of another distribution.
    truncation
        Count at most so many jobs: one number for all types, or one for each. Enlarged until
        the table found is near the bound on all policies if not given.
    accuracy
        How near to the bound on all policies, relative to the mean.
    memory_limit
        Gigabytes that the values may take.
    time_limit
        Seconds that the search may take. When they are over, or at Ctrl-C, the best answer so far is printed.
    """
    check_output(output, force)
    system = read_server(file)
    if load is not None:
        system = system.scaled(load=load)
    with ProgressLine() as line:

        def show(at: OptimalProgress) -> None:
            line.update(at.time_s, f"at most {' × '.join(map(str, at.truncation))} jobs: {at.text}, {at.time_s:.0f} s")

        found = rota.optimal_policy(
            system,
            preemption,
            truncation=truncation[0] if truncation and len(truncation) == 1 else truncation,
            accuracy=accuracy,
            sizes="exponential" if exponential else "as given",
            memory_limit_gb=memory_limit,
            time_limit_s=time_limit,
            progress=show,
        )
    if output is not None:
        rota.save_policy(found.policy, output)
    if json:
        print_json(as_fields(found))
    else:
        rows = [
            (name, f"{jobs:.5g}", f"{mean:.5g}")
            for name, jobs, mean in zip(system.names, found.queue_length, found.response_time, strict=True)
        ]
        print(
            f"Preemption {found.preemption}: mean response time {found.mean_response_time:.5g}, and no policy below {found.lower_bound:.5g}"
        )
        print_table("Jobs in the system", ["", "E[Q]", "E[T]"], rows)
        print(f"\n{found.explain()}")
    if output is not None:
        remark(f"policy written to {output}")


def as_fields(found: rota.Optimal) -> dict[str, Any]:
    """The fields of an `Optimal` under their Python names, without the table."""
    names = ["mean_response_time", "lower_bound", "gap", "queue_length", "response_time", "residual", "missing"]
    names += ["truncation", "states", "iterations", "settled", "stopped", "preemption"]
    return finite({"names": found.system.names, **{name: getattr(found, name) for name in names}})
