"""`rota schedules`: which sets of jobs fit the server together."""

from __future__ import annotations

import rota
from rota.cli.one_server import read_server
from rota.cli.output import print_json, print_table
from rota.cli.parameters import Flag, Json, SystemFile
from rota.display import jobs_together


def schedules(
    file: SystemFile,
    /,
    *,
    maximal: Flag = False,
    count: Flag = False,
    limit: int = 10_000,
    json: Json = False,
) -> None:
    """Lists the sets of jobs that fit the server together.

    Parameters
    ----------
    maximal
        Only those to which no job can be added.
    count
        Only estimate how many there are, without listing them.
    limit
        Refuse to list more than this many.
    """
    system = read_server(file)
    kind = "maximal schedules" if maximal else "schedules"
    if count:
        estimate = rota.estimate_count(system, maximal=maximal)
        if json:
            print_json({"maximal": maximal, **estimate._asdict()})
        elif estimate.standard_error == 0:
            print(f"{estimate.schedules:.0f} {kind}")
        else:
            print(f"about {estimate.schedules:.4g} {kind} (standard error {estimate.standard_error:.1g}, at most {estimate.at_most:.4g})")
        return
    if limit < 1:
        raise rota.BadSpec([rota.Problem("--limit", "must be at least 1", limit)])
    found = rota.list_schedules(system, maximal=maximal, limit=limit)
    use = found @ system.demand / system.capacity
    if json:
        print_json(
            {
                "maximal": maximal,
                "names": system.names,
                "resources": system.resources,
                "schedules": found,
                "use": use,
            }
        )
        return
    print(f"{len(found)} {kind}")
    print_table(
        "Jobs together, and how full each resource is",
        ["jobs", *system.resources],
        [(jobs_together(row, system.names), *(f"{part:.0%}" for part in used)) for row, used in zip(found, use, strict=True)],
    )
