"""`rota schedules`: which sets of jobs fit a server together."""

from __future__ import annotations

import rota
from rota.cli.one_server import servers_of
from rota.cli.output import print_json, print_table
from rota.cli.parameters import Flag, Json, Kind, SystemFile
from rota.display import jobs_together


def schedules(
    file: SystemFile,
    /,
    *,
    maximal: Flag = False,
    count: Flag = False,
    limit: int = 10_000,
    kind: Kind = None,
    json: Json = False,
) -> None:
    """Lists the sets of jobs that fit the server together; of a fleet, those of each kind of server.

    Parameters
    ----------
    maximal
        Only those to which no job can be added.
    count
        Only estimate how many there are, without listing them.
    limit
        Refuse to list more than this many.
    """
    if limit < 1:
        raise rota.BadSpec([rota.Problem("--limit", "must be at least 1", limit)])
    servers = servers_of(file, kind)
    show = _count if count else _list
    if json:
        found = {name: show(system, maximal, limit, None) for name, system in servers.items()}
        print_json(found.get("", {"kinds": found}))
        return
    for at, (name, system) in enumerate(servers.items()):
        if at > 0 and not count:
            print()
        show(system, maximal, limit, f"{name}: " if name else "")


def _count(system: rota.System, maximal: bool, limit: int, title: str | None) -> dict[str, object]:
    """The number of schedules of a server, printed if there is a title."""
    estimate = rota.estimate_count(system, maximal=maximal)
    what = "maximal schedules" if maximal else "schedules"
    if title is not None and estimate.standard_error == 0:
        print(f"{title}{estimate.schedules:.0f} {what}")
    elif title is not None:
        spread = f"standard error {estimate.standard_error:.1g}, at most {estimate.at_most:.4g}"
        print(f"{title}about {estimate.schedules:.4g} {what} ({spread})")
    return {"maximal": maximal, **estimate._asdict()}


def _list(system: rota.System, maximal: bool, limit: int, title: str | None) -> dict[str, object]:
    """The schedules of a server, printed if there is a title."""
    found = rota.list_schedules(system, maximal=maximal, limit=limit)
    use = found @ system.demand / system.capacity
    if title is not None:
        print(f"{title}{len(found)} {'maximal schedules' if maximal else 'schedules'}")
        print_table(
            "Jobs together, and how full each resource is",
            ["jobs", *system.resources],
            [(jobs_together(row, system.names), *(f"{part:.0%}" for part in used)) for row, used in zip(found, use, strict=True)],
        )
    return {"maximal": maximal, "names": system.names, "resources": system.resources, "schedules": found, "use": use}
