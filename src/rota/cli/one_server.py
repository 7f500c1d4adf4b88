"""The file of a system, for verbs that take one server, or the servers of a fleet one kind after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rota

if TYPE_CHECKING:
    from rota.model import System

__all__ = ["read_server", "server_of", "servers_of"]


def read_server(file: Path) -> System:
    """The system; a fleet is refused. Imports on first use: `rota --help` stays fast."""
    from rota import model

    return model.read_server(file)


def servers_of(file: Path, kind: str | None) -> dict[str, System]:
    """One server of each kind of a fleet on which jobs can run, or of this kind alone; a server that is none of a fleet has the name ""."""
    system = rota.read_system(file)
    if not isinstance(system, rota.Fleet):
        if kind is not None:
            raise rota.BadSpec([rota.Problem("--kind", "is for a fleet: this file has one [server]", kind)])
        return {"": system}
    if kind is not None:
        _check_kind(system, kind)
    return {name: system.server(name) for c, name in enumerate(system.kinds) if kind in (None, name) and system.runs[c].any()}


def server_of(file: Path, kind: str | None) -> System:
    """The server of a file; of a fleet one of this kind, with the part of the arrivals that the best split of the load sends it."""
    system = rota.read_system(file)
    if not isinstance(system, rota.Fleet):
        return servers_of(file, kind)[""]
    if kind is None:
        rule = f"is missing: this file is of a fleet, and this takes one server (kinds: {', '.join(system.kinds)})"
        raise rota.BadSpec([rota.Problem("--kind", rule)])
    _check_kind(system, kind)
    c = system.kinds.index(kind)
    rate = system.arrival_rate * rota.system_load(system).split[c] / system.count[c]
    if not rate.any():
        raise rota.Infeasible(f"the best split of the load sends no jobs to servers of kind {kind!r}")
    return system.server(c, rate)


def _check_kind(fleet: rota.Fleet, kind: str) -> None:
    if kind not in fleet.kinds:
        raise rota.BadSpec([rota.Problem("--kind", f"must be one of {', '.join(fleet.kinds)}", kind)])
