"""What `rota capacity` prints of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.output import print_table
from rota.display import jobs_together

if TYPE_CHECKING:
    from rota.capacity import FleetLoad

__all__ = ["fleet_fields", "print_fleet_load"]


def fleet_fields(best: FleetLoad) -> dict[str, object]:
    """The fields of a `FleetLoad` under their Python names."""
    fields = {name: value for name, value in vars(best).items() if name != "fleet"}
    return {
        **fields,
        "names": best.fleet.names,
        "resources": best.fleet.resources,
        "kinds": best.fleet.kinds,
        "count": best.fleet.count,
        "type_share": best.type_share,
        "kind_share": best.kind_share,
        "resource_share": best.resource_share,
        "bottleneck": best.bottleneck,
        "explanation": best.explain(),
    }


def print_fleet_load(best: FleetLoad) -> None:
    """The tables."""
    fleet = best.fleet
    proof = f"at least {best.lower_bound:.9f}, gap {max(best.gap, 0):.0e}" if best.gap > 1e-9 else "proved optimal"
    print(f"Load of the fleet {best.load:.9f} ({proof})")
    print_table(
        "Best rotas",
        ["kind", "servers", "jobs together"],
        [
            (fleet.kinds[c], f"{servers:.2f}", jobs_together(schedule, fleet.names))
            for c, servers, schedule in zip(best.kind, best.weights, best.candidates, strict=True)
        ],
        left=(0, 2),
    )
    print_table(
        "Kinds of servers",
        ["", "servers", "part of the limit", "one more carries"],
        [
            (kind, f"{fleet.count[c]:,}", f"{best.kind_share[c]:.0%}", f"{best.more_in_words(c)} more" if best.server_price[c] > 0 else "–")
            for c, kind in enumerate(fleet.kinds)
        ],
    )
    print_table(
        "Resources",
        ["kind", "", "capacity", "in use", "part of the limit"],
        [
            (kind, resource, f"{fleet.capacity[c, r]:g}", f"{best.utilization[c, r]:.1%}", f"{best.resource_share[c, r]:.0%}")
            for c, kind in enumerate(fleet.kinds)
            for r, resource in enumerate(fleet.resources)
            if fleet.capacity[c, r] > 0
        ],
        left=(0, 1),
    )
    print_table(
        "Job types",
        ["", "arrivals", "mean size", "load", "part of the load", "runs on"],
        [
            (
                name,
                f"{fleet.arrival_rate[i]:.4g}",
                f"{1 / fleet.service_rate[i]:.4g}",
                f"{best.type_load[i]:.4f}",
                f"{best.type_share[i]:.0%}",
                ", ".join(f"{kind} {best.split[c, i]:.0%}" for c, kind in enumerate(fleet.kinds) if best.split[c, i] >= 0.005),
            )
            for i, name in enumerate(fleet.names)
        ],
        left=(0, 5),
    )
    print(f"\n{best.explain()}")
