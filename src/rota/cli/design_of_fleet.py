"""What `rota design` and `rota analyze` do with a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rota
from rota.cli.output import finite, print_json, print_table, remark
from rota.cli.outputs import STDOUT
from rota.display import number, per_cent

if TYPE_CHECKING:
    from rota.design import DesignOfFleet, Servers
    from rota.policy import FleetDesign

    FleetAnalysis = rota.PinnedAnalysis | rota.PartlyPinnedAnalysis | rota.SplitAnalysis

__all__ = ["analyze_fleet", "design_fleet", "refuse"]

_TITLES = {"pinned": "pinned", "partly-pinned": "partly pinned", "split": "split at random, all turn"}


def refuse(given: Mapping[str, object], usual: Mapping[str, object]) -> None:
    """Raises `BadSpec` for options of one server that were given with a fleet."""
    rule = "is for one server, and this file is of a fleet"
    problems = [rota.Problem(f"--{name.replace('_', '-')}", rule) for name, value in given.items() if value != usual.get(name)]
    if problems:
        raise rota.BadSpec(problems)


def design_fleet(fleet: rota.Fleet, servers: Servers, time_limit: float, output: Path | None, json: bool) -> None:
    """Designs the servers of a fleet, writes them and prints them."""
    from rota.design import find_fleet_design
    from rota.policy import fleet_policy_to_dict

    found = find_fleet_design(fleet, servers=servers, time_limit_s=time_limit)
    if output is not None and output != STDOUT:
        rota.save_fleet_policy(found.policy, output)
    for text in found.remarks:
        remark(text)
    if output == STDOUT:
        print_json(fleet_policy_to_dict(found.policy))
    elif json:
        print_json(finite({**analysis_fields(found.answer), "means": found.means, "left_out": found.left_out}))
    else:
        print_fleet_analysis(found.answer)
        _print_compared(found)
    if output is not None and output != STDOUT and not json:
        remark(f"policy written to {output}")


def _print_compared(found: DesignOfFleet) -> None:
    if len(found.means) + len(found.left_out) > 1:
        rows = [(_TITLES[name], f"{mean:.6g}") for name, mean in found.means.items()]
        rows += [(_TITLES[name], "none") for name in found.left_out]
        print_table("Compared", ["servers", "mean response time, exact"], rows)


def analyze_fleet(fleet: rota.Fleet, policy: Path, *, exponential: bool, json: bool) -> None:
    """Prints the exact values of the servers in a file."""
    answer = rota.analyze(fleet, _read(policy, fleet), sizes="exponential" if exponential else "as given")
    if (fleet.up_time < float("inf")).any():
        remark("servers of this fleet fail: these values are for servers that do not (rota simulate has failures)")
    if json:
        print_json(finite(analysis_fields(answer)))
    else:
        print_fleet_analysis(answer)
    answer.require_stable()


def _read(path: Path, fleet: rota.Fleet) -> FleetDesign:
    """The servers in the file of a design, or of the plan of this fleet."""
    from rota.policy import FleetDesign
    from rota.policy.fleet_plan_file import fleet_plan_at

    planned = fleet_plan_at(path, fleet)
    if planned is None:
        return rota.read_fleet_policy(path)
    if isinstance(planned.policy, FleetDesign):
        return planned.policy
    raise rota.Infeasible(
        f"{path} sends jobs by the rule {planned.dispatch.label!r}, which has no exact analysis: see `rota simulate`. Pinned, partly "
        "pinned and split servers have one (rota design)"
    )


def analysis_fields(answer: FleetAnalysis) -> dict[str, Any]:
    """The fields of the analysis of a fleet under their Python names; undefined values become null."""
    from rota.policy import fleet_policy_to_dict

    fleet = answer.fleet
    fields: dict[str, Any] = {
        "policy": fleet_policy_to_dict(answer.design),
        "names": fleet.names,
        "kinds": fleet.kinds,
        "count": fleet.count,
        "load": answer.load,
        "stable": answer.stable,
        "largest_scaling": answer.largest_scaling,
        "lower_bound": answer.lower_bound,
    }
    if answer.stable:
        fields |= {"exact": answer.exact, "response_time": answer.response_time, "mean_response_time": answer.mean_response_time}
    return fields


def print_fleet_analysis(answer: FleetAnalysis) -> None:
    """The servers, the types and the mean response time."""
    fleet, design = answer.fleet, answer.design
    print(_headline(fleet, design))
    print_table("Servers", ["kind", "servers", "jobs together"], design.rows(fleet), left=(0, 2))
    heads = ["", "arrivals", "mean size", "load", *(["E[Q]", "E[T]"] if answer.stable else []), "goes to"]
    values = [[f"{q:.6g}", f"{t:.6g}"] for q, t in zip(answer.exact, answer.response_time, strict=True)] if answer.stable else []
    goes = _goes_to(fleet, design)
    rows = [
        (
            name,
            f"{fleet.arrival_rate[i]:.4g}",
            f"{1 / fleet.service_rate[i]:.4g}",
            f"{answer.load[i]:.4f}",
            *(values[i] if values else ()),
            goes[i],
        )
        for i, name in enumerate(fleet.names)
    ]
    print_table("Job types", heads, rows, left=(0, len(heads) - 1))
    if not answer.stable:
        return
    above = answer.mean_response_time / answer.lower_bound - 1
    print(f"\nMean response time {answer.mean_response_time:.6g}, exactly.")
    print(f"No dispatcher and no policy can have less than {number(answer.lower_bound)} (proved): this is {per_cent(above)} above that.")
    print(f"Arrivals can grow by a factor of up to {answer.largest_scaling:.4g} with these servers.")


def _headline(fleet: rota.Fleet, design: FleetDesign) -> str:
    """Which servers these are."""
    if isinstance(design, rota.Split):
        return f"Split at random: {fleet.servers:,} servers, all of which turn"
    if isinstance(design, rota.PartlyPinned):
        held, turn = int(design.pinned.servers.sum()), int(design.turning.sum())
        return f"Partly pinned: {held:,} servers hold one set of jobs for good, and {turn:,} turn"
    return f"Pinned: {int(design.servers.sum()):,} servers hold one set of jobs for good"


def _goes_to(fleet: rota.Fleet, design: FleetDesign) -> list[str]:
    """Where the jobs of each type go."""
    pinned = design if isinstance(design, rota.Pinned) else design.pinned if isinstance(design, rota.PartlyPinned) else None
    parts: list[list[str]] = [[] for _ in fleet.names]
    if pinned is not None:
        still = design.pinned_share if isinstance(design, rota.PartlyPinned) else [1.0] * len(fleet.names)
        for queue in pinned.queues(fleet):
            share = queue.share * float(still[queue.type])
            if share > 0:
                kinds = " + ".join(fleet.kinds[c] for c in queue.kinds)
                parts[queue.type].append(f"{kinds} {per_cent(share)} ({queue.slots:,} slots)")
    if not isinstance(design, rota.Pinned):
        turn = " (turning)" if pinned is not None else ""
        for i, found in enumerate(parts):
            found += [f"{kind}{turn} {per_cent(design.split[c, i])}" for c, kind in enumerate(fleet.kinds) if design.split[c, i] > 0]
    return [", ".join(found) for found in parts]
