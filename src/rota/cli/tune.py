"""`rota tune`: the queue-driven rota that is best on a system or a trace."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import rota
from rota.cli.one_server import server_of
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, Json, Kind, OptionalOutput, Seed, SystemFile, WorkloadName
from rota.display import number

if TYPE_CHECKING:
    from rota.tuning import TuningProgress


def tune(
    file: SystemFile,
    /,
    *,
    output: OptionalOutput = None,
    force: Force = False,
    kind: Kind = None,
    load: float | None = None,
    workload: WorkloadName = None,
    jobs: int | None = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Finds the best queue-driven rota by simulation: the queues choose a set of jobs and hold it. It never stops a job. Of a fleet, for
    a server of --kind with the part of the arrivals that the best split of the load sends it.

    What is printed was measured on jobs that the search has not seen.

    Parameters
    ----------
    output
        Write the policy to this file (JSON), for rota simulate and the other verbs.
    load
        Scale the arrivals of the file to this system load first; not with --workload.
    jobs
        Jobs of the longest runs, 400,000 or more if not given; about twenty times as many are simulated in all. A workload with an end is
        used up to its middle for the search, and from there on to measure.
    """
    check_output(output, force)
    if load is not None and workload is not None:
        raise rota.BadSpec([rota.Problem("--load", "does not go with --workload, whose jobs come when they come", load)])
    system = server_of(file, kind)
    if load is not None:
        system = system.scaled(load=load)
    if workload is not None:
        from rota.simulation.named import as_workload

        played = as_workload(workload, system)
    else:
        played = None
    with ProgressLine() as line:

        def show(at: TuningProgress) -> None:
            line.update(at.time_s, f"{at.step}, {at.part:.0%}, {at.time_s:.0f} s")

        found = rota.tune_adaptive(system, jobs=jobs, seed=seed, workload=played, progress=show)
    if output is not None:
        rota.save_policy(found.policy, output)
    if json:
        print_json(as_fields(found))
    else:
        print_found(found)
    if output is not None:
        remark(f"policy written to {output}")


def print_found(found: rota.Tuned) -> None:
    """The setting, how it was found, and what it reaches."""
    result = found.result
    print(repr(found.policy)[1:-1])
    rounds = [
        (f"{k + 1}", f"{one.jobs:,}", f"{len(one.entries)}", f"{one.kept}", f"{one.entries[0].mean:.5g}")
        for k, one in enumerate(found.rounds)
    ]
    print_table("How it was found", ["round", "jobs", "settings", "went on", "mean of the best"], rounds)
    names = result.system.names
    types = [
        (name, number(mean, 5), number(half if isfinite(half) else None, 2))
        for name, mean, half in zip(names, result.response_time, result.response_time_interval, strict=True)
    ]
    print_table(
        "Response time, on other jobs", ["", "mean", "±"], [*types, ("all", f"{result.mean_response_time:.5g}", f"{result.interval:.2g}")]
    )
    if found.equal:
        others = "1 other setting" if len(found.equal) == 1 else f"{len(found.equal)} other settings"
        print(f"\nCannot be distinguished from it there: {others}.")
    for text in result.remarks:
        remark(text)


def as_fields(found: rota.Tuned) -> dict[str, Any]:
    """The fields of a `Tuned` under their Python names; of its rounds and its result, the numbers."""
    from rota.policy import policy_to_dict

    result = found.result
    names = ["jobs", "stable", "mean_response_time", "interval", "response_time", "response_time_interval"]
    rounds = [{"jobs": one.jobs, "settings": len(one.entries), "kept": one.kept, "mean": one.entries[0].mean} for one in found.rounds]
    return finite(
        {
            "policy": policy_to_dict(found.policy),
            "names": result.system.names,
            "result": {name: getattr(result, name) for name in names},
            "equal": [policy_to_dict(policy) for policy in found.equal],
            "rounds": rounds,
            "seed": found.seed,
            "simulated": found.simulated,
            "time_s": found.time_s,
        }
    )
