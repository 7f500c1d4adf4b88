"""`rota design`: a good rota for a server, or the servers of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import rota
from rota.cli.analyze import as_fields, print_analysis
from rota.cli.design_of_fleet import design_fleet, refuse
from rota.cli.output import ProgressLine, print_json, remark
from rota.cli.outputs import STDOUT, check_output
from rota.cli.parameters import Force, Json, Seed, SystemFile, TextOutput

if TYPE_CHECKING:
    from rota.design import TuneProgress

_USUAL: dict[str, object] = {"objective": "close", "seed": 0}


def design(
    file: SystemFile,
    /,
    *,
    output: TextOutput = None,
    force: Force = False,
    preemption: Literal["full", "none", "setup"] | None = None,
    objective: Literal["close", "response-time", "load", "p95"] = "close",
    switching_rate: float | None = None,
    setup_rate: float | None = None,
    by: Literal["exact", "prediction", "upper", "lower"] | None = None,
    route: Literal["type-order", "fastest-first", "parallel", "random", "search"] | None = None,
    opening: Literal["late", "early"] | None = None,
    seed: Seed = 0,
    max_response_time: dict[str, float] | None = None,
    servers: Literal["best", "pinned", "partly-pinned", "split"] | None = None,
    time_limit: float = 30.0,
    json: Json = False,
) -> None:
    """Designs a rota: which sets of jobs to run, how much of the time each, and how fast to switch. Of a fleet: which servers hold
    which set of jobs for good, which turn, and where the jobs of each type go.

    Sizes are taken as exponential with their means.

    Parameters
    ----------
    output
        Write the policy to this file (JSON), for rota analyze and the other verbs; - prints it in place of the tables.
    preemption
        The preemption model, if not the one of the file.
    objective
        close: sets of jobs next to each other, so that a switch changes few jobs, or one set that runs always. load: the paper's design,
        which balances the loads of the types. response-time: go on from there and tune everything on the mean response time. p95: as close,
        with the switching rate of the least 95 % quantile of the response time, exact.
    switching_rate
        Departures from working states per unit of working time; chosen if left out.
    setup_rate
        Setups per unit of time, with preemption setup; 1 / setup_time of the file if left out.
    by
        What the switching rate is chosen by: the exact mean response time (default for small processes), the prediction or a bound.
    route
        Without preemption: the order in which slots are drained; random, which draws it by --seed, and search go with --objective load.
    opening
        Without preemption: whether new slots open at the end of a move or as soon as capacity is free.
    max_response_time
        Not with --objective load or p95: the largest mean response time that a type may have, as in --max-response-time.train 5.
    servers
        Of a fleet: pinned, each to one set of jobs; partly-pinned, where some turn; split, where all turn and jobs are spread at random; or
        best, the one of these with the least exact mean response time. Only --output and --time-limit go with it.
    time_limit
        Seconds that the design may take. What would take longer is done by the prediction, with a remark.
    """
    check_output(output, force, stdout=True)
    if output == STDOUT and json:
        raise rota.BadSpec([rota.Problem("--json", "does not go with --output -: both go to standard output")])
    system = rota.read_system(file)
    if isinstance(system, rota.Fleet):
        one_server = {"preemption": preemption, "objective": objective, "switching_rate": switching_rate, "setup_rate": setup_rate}
        refuse({**one_server, "by": by, "route": route, "opening": opening, "seed": seed, "max_response_time": max_response_time}, _USUAL)
        design_fleet(system, servers or "best", time_limit, output, json)
        return
    if servers is not None:
        raise rota.BadSpec([rota.Problem("--servers", "is for a fleet: this file has one [server]")])
    from rota.design import balanced_beside, explain_design, find_design

    with ProgressLine() as line:

        def show(at: TuneProgress) -> None:
            line.update(at.time_s, f"mean response time {at.mean_response_time:.4g} (from {at.start:.4g}), {at.step}, {at.time_s:.0f} s")

        found = find_design(
            system,
            preemption,
            switching_rate=switching_rate,
            setup_rate=setup_rate,
            objective=objective,
            by=by,
            route=route,
            opening=opening,
            seed=seed,
            max_response_time=max_response_time,
            time_limit_s=time_limit,
            progress=show,
        )
    policy = found.policy
    if output is not None and output != STDOUT:
        rota.save_policy(policy, output)
    for text in found.remarks:
        remark(text)
    if output == STDOUT:
        from rota.policy import policy_to_json

        print(policy_to_json(policy), end="")
        return
    answer = rota.analyze(system, policy, sizes="exponential")
    exact = answer.has_exact
    if json:
        balanced = None if objective == "load" else balanced_beside(system, policy)
        print_json({**as_fields(answer, exact=exact), "objective": objective, "balanced": balanced and balanced.fields()})
        return
    print_analysis(answer, exact=exact)
    for sentence in explain_design(found, answer, time_limit):
        print(sentence)
    if output is not None:
        remark(f"policy written to {output}")
