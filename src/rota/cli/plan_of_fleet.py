"""What `rota plan` prints of a fleet."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from rota.cli.capacity_of_fleet import fleet_fields
from rota.cli.output import finite, print_table
from rota.display import number, verdict_cells

if TYPE_CHECKING:
    from rota.study import FleetPlan

__all__ = ["fleet_plan_fields", "print_fleet_plan"]


def fleet_plan_fields(found: FleetPlan) -> dict[str, Any]:
    """The fields of a `FleetPlan` under their Python names; what is undefined becomes null."""
    enough, result = found.enough, found.result
    return finite(
        {
            "recommended": found.recommended_name,
            "dispatch": found.recommended.dispatch.rule,
            "explanation": found.explain(),
            "baseline": found.baseline,
            "objective": found.objective,
            "type_limits": found.type_limits,
            "keeps_limits": found.keeps_limits,
            "excluded": found.excluded,
            "left_out": found.left_out,
            "lower_bound": found.lower_bound,
            "pairs": found.comparison.pairs,
            "load": fleet_fields(found.load),
            "response_time": dict(zip(found.fleet.names, result.response_time.tolist(), strict=True)),
            "parts": result.parts,
            "kind_response_time": result.kind_response_time,
            "kind_utilization": result.kind_utilization,
            "options": found.table().to_dicts(),
            "one_more": [
                {
                    "kind": more.kind,
                    "carries": more.carries,
                    "load": more.load,
                    "pinned": more.pinned,
                    "mean_response_time": None if more.result is None else more.result.mean_response_time,
                    "difference": None if more.difference is None else more.difference.mean,
                    "difference_interval": None if more.difference is None else more.difference.interval,
                }
                for more in found.one_more
            ],
            "by_servers": found.by_servers.to_dicts(),
            "enough": None
            if enough is None
            else {
                "targets": enough.targets,
                "kept_today": enough.kept_today,
                "count": enough.count,
                "response_time": None if enough.estimate is None else enough.estimate.response_time,
                "response_time_interval": None if enough.estimate is None else enough.estimate.response_time_interval,
                "mean_response_time": None if enough.estimate is None else enough.estimate.mean_response_time,
                "pinned": enough.pinned,
                "pinned_response_time": None if enough.known is None else enough.known.response_time,
            },
            "jobs": found.jobs,
            "grid_jobs": found.grid_jobs,
            "seed": found.seed,
            "time_s": found.time_s,
            "version": found.version,
        }
    )


def print_fleet_plan(found: FleetPlan) -> None:
    """The tables of `rota plan` for a fleet."""
    from rota.study.fleet_words import places_words, waiting_of

    print(found.explain())
    fleet, result, exact = found.fleet, found.result, found.recommended.known
    print_table(
        f"Response time by type under {found.recommended_name}",
        ["", "mean", "±", *(["exact"] if exact is not None else []), "waiting", "50%", "95%", "99%", "runs on (mean there)"],
        [
            (
                name,
                number(result.response_time[i], 4),
                number(result.response_time_interval[i], 2),
                *((number(exact.response_time[i], 4),) if exact is not None else ()),
                number(waiting_of(found, i), 3),
                *(number(result.type_response_time_quantiles[p][i]) for p in (0.5, 0.95, 0.99)),
                places_words(found, i),
            )
            for i, name in enumerate(fleet.names)
        ],
        left=(0, 7 if exact is None else 8),
    )
    print_table(
        "In use by kind, simulated",
        ["", "servers", *fleet.resources],
        [
            (kind, f"{fleet.count[c]:,}", *("–" if isnan(part) else f"{part:.1%}" for part in result.kind_utilization[c]))
            for c, kind in enumerate(fleet.kinds)
        ],
    )
    rows = []
    for row in found.table().to_dicts():
        other = row["difference"] is not None
        cells = (
            number(row["mean_response_time"], 4),
            number(row["interval"], 2),
            "" if row["exact"] is None else number(row["exact"], 4),
            f"{row['difference']:+.3g}" if other else "–",
            number(row["difference_interval"], 2) if other else "",
            "" if row["above_bound"] is None else f"{row['above_bound']:.0%}",
            number(row["p95"]),
            number(row["p99"]),
        )
        rows.append((f"{row['option']} *" if row["recommended"] else row["option"], *(verdict_cells(row, len(cells)) or cells)))
    print_table(
        f"Response time, {found.jobs:,} jobs each, the same for all, seed {found.seed}",
        ["policy and dispatch rule", "mean", "±", "exact", "against *", "±", "above bound", "95%", "99%"],
        rows,
    )
    if found.comparison.pairs > 1:
        print(f"\n{found.comparison.at_once()}")
    for name, text in found.left_out.items():
        print(f"{name}: {text}")
    _print_servers(found)


def _print_servers(found: FleetPlan) -> None:
    from rota.study.fleet_words import one_more_words

    fleet, best = found.fleet, found.load
    print_table(
        "One more server",
        ["", "today", "carries", "load then", "pinned, exact", "mean response time, simulated"],
        [
            (
                more.kind,
                f"{fleet.count[c]:,}",
                f"{best.more_in_words(c)} more" if more.carries[1] > 0 else "–",
                f"{more.load:.4f}",
                number(more.pinned, 4),
                one_more_words(found, more),
            )
            for more in found.one_more
            for c in (fleet.kinds.index(more.kind),)
        ],
        left=(0, 5),
    )
    print_table(
        f"Other numbers of servers, {max(found.by_servers['jobs']):,} jobs each",
        ["servers", *fleet.kinds, "load", "bound", "pinned, exact", "simulated", "±"],
        [
            (
                f"{row['servers']:,} *" if row["today"] else f"{row['servers']:,}  ",
                *(f"{n:,}" for n in row["count"]),
                f"{row['load']:.3f}",
                number(row["bound"], 4),
                number(row["pinned"], 4),
                number(row["mean_response_time"], 4) if row["stable"] else "grows",
                number(row["interval"], 2) if row["stable"] else "",
            )
            for row in found.by_servers.to_dicts()
        ],
        left=(),
    )
