"""`rota design`: a good rota for a system."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import rota
from rota.cli.analyze import as_fields, print_analysis
from rota.cli.output import ProgressLine, check_output, print_json, remark

if TYPE_CHECKING:
    from rota.design import SwitchingRate, TuneProgress


def design(
    file: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    preemption: Literal["full", "none", "setup"] | None = None,
    objective: Literal["load", "response-time"] = "load",
    switching_rate: float | None = None,
    setup_rate: float | None = None,
    by: Literal["exact", "prediction", "upper", "lower"] | None = None,
    route: Literal["type-order", "fastest-first", "parallel", "random", "search"] = "type-order",
    opening: Literal["late", "early"] = "late",
    seed: int = 0,
    time_limit: float = 30.0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Designs a rota: which sets of jobs to run, how much of the time each, and how fast to switch.

    Sizes are taken as exponential with their means.

    Parameters
    ----------
    file
        The system, a TOML file (see: rota schema).
    output
        Write the policy to this file (JSON), for rota analyze and the other verbs.
    preemption
        The preemption model, if not the one of the file.
    objective
        load: balance the loads of the types, as the paper does. response-time: go on from there and tune everything on the mean response
        time.
    switching_rate
        Departures from working states per unit of working time; chosen if left out.
    setup_rate
        Setups per unit of time, with preemption setup; 1 / setup_time of the file if left out.
    by
        What the switching rate is chosen by: the exact mean response time (default for small processes), the prediction or a bound.
    route
        Without preemption: the order in which slots are drained.
    opening
        Without preemption: whether new slots open at the end of a move or as soon as there is room.
    seed
        For --route random.
    time_limit
        Seconds that --objective response-time may take.
    json
        Print one JSON object instead of tables.
    """
    system = rota.read_system(file)
    check_output(output, True)
    with ProgressLine() as line:

        def show(at: TuneProgress) -> None:
            line.update(at.time_s, f"mean response time {at.mean_response_time:.4g} (from {at.start:.4g}), {at.step}, {at.time_s:.0f} s")

        policy = rota.design_policy(
            system,
            preemption,
            switching_rate=switching_rate,
            setup_rate=setup_rate,
            objective=objective,
            by=by,
            route=route,
            opening=opening,
            seed=seed,
            time_limit_s=time_limit,
            progress=show,
        )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        rota.save_policy(policy, output)
    answer = rota.analyze(system, policy, sizes="exponential")
    if json:
        print_json(as_fields(answer, exact=_small(answer)))
        return
    print_analysis(answer, exact=_small(answer))
    if policy.preemption != "full" and objective == "load" and switching_rate is None and len(policy.weights) > 1:
        print(_about_the_rate(rota.choose_switching_rate(system, policy, by=by), system))
    if policy.preemption == "setup" and _small(answer) and len(policy.weights) > 1:
        print(_about_setups(rota.break_even_setup_rate(system)))
    if output is not None:
        remark(f"policy written to {output}")


def _about_the_rate(choice: SwitchingRate, system: rota.System) -> str:
    """How good the choice of the switching rate is, in words."""
    if choice.by != "exact":
        yardstick = choice.by if choice.by == "prediction" else f"{choice.by} bound"
        return f"The switching rate, chosen by the {yardstick}, is within {choice.guarantee:.1%} of the best one: the bounds prove it."
    predicted = rota.choose_switching_rate(system, choice.policy, by="prediction")
    return (
        f"The switching rate is the best one. The prediction would choose {predicted.rate:.6g}; "
        f"the bounds prove that to be within {predicted.guarantee:.1%} of the best."
    )


def _about_setups(break_even: float) -> str:
    """Whether to preempt, in words."""
    if math.isinf(break_even):
        return "Preempting does not pay, however fast the setups."
    if break_even == 0:
        return "Preempting pays, however slow the setups."
    return f"Preempting pays if the setup rate is above {break_even:.4g} (setups shorter than {1 / break_even:.4g}), not otherwise."


def _small(answer: rota.Analysis) -> bool:
    """Whether exact values take no noticeable time; `rota analyze` computes them for large processes too."""
    return len(answer.process) <= 400
