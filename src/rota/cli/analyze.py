"""`rota analyze`: the response times of a policy on a system."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import rota
from rota.cli.design_of_fleet import analyze_fleet, refuse
from rota.cli.output import finite, print_json, print_table, remark
from rota.cli.parameters import Flag, Json, SystemFile
from rota.display import number, rota_rows

if TYPE_CHECKING:
    from rota.arrays import Array

_A_WHILE_S = 5.0  # exact values that take longer are announced


def analyze(
    file: SystemFile,
    policy: Path,
    /,
    *,
    exponential: Flag = False,
    exact: bool = True,
    quantiles: Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")] = None,
    json: Json = False,
) -> None:
    """The response times of a policy, per type and in total: bounds, prediction and exact values.

    Of a fleet, the exact values of servers that are pinned, partly pinned or split (from: rota design).

    An improved rota, and a rota with full preemption that backfills, look at the queues: of them it says what is proved.

    Parameters
    ----------
    policy
        The policy, a JSON file (from: rota design -o).
    exponential
        Take every size as exponential with its mean. Needed where a size is neither exponential nor phase-type.
    exact
        Compute exact values. They take some time for a process with thousands of states.
    quantiles
        Also compute, for each type, within which time these parts of its jobs are done: 0.5 0.95 0.99. For exponential sizes.
    """
    if quantiles and not exact:
        raise rota.BadSpec([rota.Problem("--quantiles", "are exact values: they do not go with --no-exact")])
    if wrong := [p for p in quantiles or () if not 0 <= p < 1]:
        raise rota.BadSpec([rota.Problem("--quantiles", "must be at least 0 and below 1", p) for p in wrong])
    system = rota.read_system(file)
    if isinstance(system, rota.Fleet):
        refuse({"no_exact": not exact, "quantiles": quantiles}, {"no_exact": False})
        analyze_fleet(system, policy, exponential=exponential, json=json)
        return
    chosen = rota.read_policy(policy)
    if not isinstance(chosen, rota.MSR | rota.Improved):
        raise rota.Infeasible(f"{policy} has no rota, so it has no exact analysis: see `rota simulate`")
    answer = rota.analyze(system, chosen, sizes="exponential" if exponential else "as given")
    if isinstance(answer, rota.Guarantee):
        _show_guarantee(answer, exact=exact, quantiles=quantiles, json=json)
        return
    if exact and answer.stable and _A_WHILE_S < answer.exact_time_s < math.inf:
        states, seconds = len(answer.process), answer.exact_time_s
        remark(f"the process has {states} states: exact values will take about {seconds:.0f} s (--no-exact leaves them out)")
    tails = answer.type_response_time_quantiles(quantiles) if quantiles and answer.stable else {}
    if json:
        print_json(as_fields(answer, exact=exact, tails=tails))
    else:
        print_analysis(answer, exact=exact, tails=tails)
    answer.require_stable()


def _show_guarantee(answer: rota.Guarantee, *, exact: bool, quantiles: list[float] | None, json: bool) -> None:
    """Prints what is proved of a policy that looks at the queues."""
    if not exact:
        raise rota.BadSpec([rota.Problem("--no-exact", "leaves nothing: the guarantee is the exact mean of the rota behind the policy")])
    tails = answer.type_response_time_quantiles_upper(tuple(quantiles)) if quantiles and answer.stable else {}
    if json:
        print_json(guarantee_fields(answer, tails))
    else:
        print_guarantee(answer, tails)
    answer.require_stable()


def guarantee_fields(answer: rota.Guarantee, tails: Mapping[float, Array]) -> dict[str, Any]:
    """The fields of a `Guarantee` under their Python names; undefined values become null."""
    from rota.policy import policy_name

    fields = _common_fields(answer) | {"guaranteed": policy_name(answer.guaranteed), "per_type": answer.per_type}
    if answer.stable:
        fields |= {
            "lower": answer.lower.tolist(),
            "upper": answer.upper.tolist(),
            "response_time_upper": answer.response_time_upper.tolist(),
            "mean_response_time_lower": answer.mean_response_time_lower,
            "mean_response_time_upper": answer.mean_response_time_upper,
        }
    if tails:
        fields["type_response_time_quantiles_upper"] = {f"{p:g}": times.tolist() for p, times in tails.items()}
    return finite(fields | {"remarks": answer.remarks()})


def print_guarantee(answer: rota.Guarantee, tails: Mapping[float, Array]) -> None:
    """A `Guarantee` for people: the rota behind the policy, the bounds, and what is proved in words."""
    from rota.policy import policy_name

    _print_rota(answer)
    if not answer.stable:
        return
    columns = {
        "load": [f"{load:.4f}" for load in answer.load],
        "E[Q] at most": [f"{x:.5g}" for x in answer.upper],
        "E[T] at most": [f"{x:.6g}" for x in answer.response_time_upper],
    }
    columns |= {f"T {100 * p:g}% at most": [number(t, 6) for t in times] for p, times in tails.items()}
    rows = [(name, *(column[i] for column in columns.values())) for i, name in enumerate(answer.system.names)]
    print_table(f"Jobs in the system under {policy_name(answer.guaranteed)}", ["", *columns], rows)
    print()
    for sentence in answer.explain():
        print(sentence)
    print(f"Arrivals can grow by a factor of up to {answer.largest_scaling:.4g} under this policy, and perhaps more.")


def as_fields(answer: rota.Analysis, *, exact: bool, tails: Mapping[float, Array] | None = None) -> dict[str, Any]:
    """The fields of an `Analysis` under their Python names; infinite and undefined values become null. `tails`: quantiles by level."""
    fields = _common_fields(answer)
    if answer.stable:
        fields |= {
            "lower": answer.lower.tolist(),
            "upper": answer.upper.tolist(),
            "prediction": answer.prediction.tolist() if answer.exponential else None,
            "heavy_traffic_constant": answer.heavy_traffic_constant.tolist(),
        }
    fields["remarks"] = answer.remarks(exact=exact)
    if answer.stable and exact and not answer.accurate:
        fields["exact"] = None
    elif answer.stable and exact:
        fields |= {
            "exact": answer.exact.tolist(),
            "variance": answer.variance.tolist(),
            "decay_rate": [answer.queue_length(i).decay_rate for i in range(len(answer.system.names))],
            "response_time": answer.response_time.tolist(),
            "mean_response_time": answer.mean_response_time,
            "accuracy": answer.accuracy,
        }
    if tails:
        fields["type_response_time_quantiles"] = {f"{p:g}": times.tolist() for p, times in tails.items()}
    return finite(fields)


def _common_fields(answer: rota.Analysis) -> dict[str, Any]:
    """The policy, its process and its load."""
    from rota.policy import policy_to_dict

    policy = answer.guaranteed if isinstance(answer, rota.Guarantee) else answer.policy
    return {
        "policy": policy_to_dict(policy) if policy is not None else None,
        "names": answer.system.names,
        "states": len(answer.process),
        "working_fraction": answer.process.working_fraction,
        "load": answer.load.tolist(),
        "service_share": answer.service_share.tolist(),
        "stable": answer.stable,
        "largest_scaling": answer.largest_scaling,
    }


def print_analysis(answer: rota.Analysis, *, exact: bool, tails: Mapping[float, Array] | None = None) -> None:
    """The tables of `rota analyze` and `rota design`; `tails`: quantiles of the response times by level."""
    system = answer.system
    _print_rota(answer)
    if not answer.stable:
        return
    remarks = answer.remarks(exact=exact)
    exact = exact and answer.accurate
    columns: list[tuple[str, list[str]]] = [("load", [f"{load:.4f}" for load in answer.load])]
    columns += [("E[Q] at least", [f"{x:.5g}" for x in answer.lower]), ("at most", [f"{x:.5g}" for x in answer.upper])]
    if answer.exponential:
        columns += [("predicted", [f"{x:.5g}" for x in answer.prediction])]
    if exact:
        columns += [
            ("exact", [f"{x:.6g}" for x in answer.exact]),
            ("E[T]", [f"{x:.6g}" for x in answer.response_time]),
        ]
    columns += [(f"T {100 * p:g}%", [number(t, 6) for t in times]) for p, times in (tails or {}).items()]
    rows = [(name, *(column[i] for _, column in columns)) for i, name in enumerate(system.names)]
    print_table("Jobs in the system", ["", *(head for head, _ in columns)], rows)
    if exact:
        print(f"\nMean response time {answer.mean_response_time:.6g} (relative error about {max(answer.accuracy, 1e-15):.0e}).")
    else:
        low, high = answer.little(answer.lower), answer.little(answer.upper)
        predicted = f", predicted {answer.little(answer.prediction):.5g}" if answer.exponential else ""
        print(f"\nMean response time between {low:.5g} and {high:.5g}{predicted}.")
    for sentence in remarks:
        print(sentence)
    print(f"Arrivals can grow by a factor of up to {answer.largest_scaling:.4g} under this policy.")


def _print_rota(answer: rota.Analysis) -> None:
    """The rota, or the one behind the policy."""
    system, policy, process = answer.system, answer.policy, answer.process
    if policy is None:
        return
    states = f"{len(process)} state{'s' if len(process) != 1 else ''}"
    switching = f", switching rate {policy.switching_rate:.6g}" if len(policy.weights) > 1 else ""
    setups = f", setup rate {policy.setup_rate:.6g}" if policy.setup_rate is not None else ""
    print(f"Preemption {policy.preemption}{switching}{setups}: {states}, {process.working_fraction:.1%} of the time working")
    print_table(
        "Rota",
        ["working time", "jobs together"],
        rota_rows(policy.candidates.tolist(), policy.weights.tolist(), system.names),
        left=(1,),
    )
