"""`rota capacity`: the load of a system and the rota that carries most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.cli.capacity_of_fleet import fleet_fields, print_fleet_load
from rota.cli.output import ProgressLine, print_json, print_table
from rota.cli.parameters import Json, SystemFile
from rota.display import jobs_together

if TYPE_CHECKING:
    from rota.capacity import Load, Progress


def capacity(
    file: SystemFile,
    /,
    *,
    gap: float = 1e-7,
    time_limit: Annotated[float | None, Parameter(help="Seconds after which to stop with the gap proved by then.")] = None,
    json: Json = False,
) -> None:
    """The load of a system: how much of what the server can carry do the jobs ask for?

    Prints the system load with a proof, the best rota (which jobs together, how much of the time), and what limits it. Of a fleet: how many
    servers of each kind run which jobs together, where each type runs, and what one more server of each kind is worth.

    Parameters
    ----------
    gap
        Stop when the load is proved to this relative accuracy.
    """
    system = rota.read_system(file)
    with ProgressLine() as line:

        def show(at: Progress) -> None:
            line.update(
                at.time_s,
                f"load {at.load:.6f}, at least {at.lower_bound:.6f} (gap {at.load / at.lower_bound - 1:.1e}), "
                f"{at.columns} schedules, {at.time_s:.0f} s",
            )

        best = rota.system_load(system, gap=gap, time_limit_s=time_limit, progress=show)
    if isinstance(best, rota.FleetLoad):
        print_json(fleet_fields(best)) if json else print_fleet_load(best)
    else:
        print_json(as_fields(best)) if json else print_load(best)


def as_fields(best: Load) -> dict[str, object]:
    """The fields of a `Load` under their Python names."""
    fields = {name: value for name, value in vars(best).items() if name != "system"}
    return {
        **fields,
        "names": best.system.names,
        "resources": best.system.resources,
        "type_share": best.type_share,
        "resource_share": best.resource_share,
        "bottleneck": best.bottleneck,
        "explanation": best.explain(),
    }


def print_load(best: Load) -> None:
    """The tables of `rota capacity`."""
    system = best.system
    proof = f"at least {best.lower_bound:.9f}, gap {max(best.gap, 0):.0e}" if best.gap > 1e-9 else "proved optimal"
    print(f"System load {best.load:.9f} ({proof})")
    print_table(
        "Best rota",
        ["time", "jobs together"],
        [(f"{weight:.2%}", jobs_together(schedule, system.names)) for schedule, weight in zip(best.candidates, best.weights, strict=True)],
        left=(1,),
    )
    print_table(
        "Resources",
        ["", "capacity", "in use", "part of the limit"],
        [
            (name, f"{amount:g}", f"{used:.1%}", f"{share:.0%}")
            for name, amount, used, share in zip(system.resources, system.capacity, best.utilization, best.resource_share, strict=True)
        ],
    )
    print_table(
        "Job types",
        ["", "arrivals", "mean size", "load", "part of the load"],
        [
            (name, f"{rate:.4g}", f"{1 / mu:.4g}", f"{load:.4f}", f"{share:.0%}")
            for name, rate, mu, load, share in zip(
                system.names,
                system.arrival_rate,
                system.service_rate,
                best.type_load,
                best.type_share,
                strict=True,
            )
        ],
    )
    print(f"\n{best.explain()}")
