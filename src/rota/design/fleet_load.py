"""The load that a design for a fleet starts from: given or computed, and checked."""

from __future__ import annotations

from rota.capacity import FleetLoad, system_load
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import Fleet

__all__ = ["checked_fleet_load"]


def checked_fleet_load(fleet: Fleet, load: FleetLoad | None, time_limit_s: float) -> FleetLoad:
    """The load of a fleet to design for. Raises unless this is a fleet with arrivals, and its load is known and below 1."""
    if not isinstance(fleet, Fleet):
        raise BadSpec([Problem("fleet", "must be a rota.Fleet (rota.Fleet.equal makes one of a system)", fleet)])
    if not time_limit_s > 0:
        raise BadSpec([Problem("time_limit_s", "must be positive", time_limit_s)])
    best = system_load(fleet, time_limit_s=time_limit_s) if load is None else load
    if not isinstance(best, FleetLoad) or best.fleet != fleet:
        raise BadSpec([Problem("load", "is of another fleet: give rota.system_load(fleet), or leave it out")])
    if best.load >= 1:
        raise Unstable(f"the load {best.load:.4g} of the fleet is not below 1: scale arrivals by less than {1 / best.load:.4g}")
    if best.load == 0:
        raise Infeasible("no jobs arrive: there is nothing to design for")
    return best
