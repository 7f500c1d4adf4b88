"""The best servers of a fleet that can be analyzed exactly: pinned, partly pinned, or all of them turning.

Three designs are made and the one of least exact mean response time is kept, the simplest of those that are as good:

    pinned          every server holds one schedule for good (`rota.design.pinned`)
    partly pinned   most do, and some turn (`rota.design.partly_pinned`); if none turns, they are pinned servers too
    split           every server follows the rota of its kind, and jobs are spread at random (`rota.design.split`)

Where pinned servers are so near to the bound for every dispatcher and every policy that hardly anything can be gained, the others are not
designed. Sizes are taken as exponential and arrivals as Poisson; servers that fail are designed for as if they did not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rota.analysis import PartlyPinnedAnalysis, PinnedAnalysis, SplitAnalysis, analyze
from rota.analysis.pooled import least_mean_response_time
from rota.capacity import FleetLoad
from rota.design.deadline import Deadline
from rota.design.fleet_load import checked_fleet_load
from rota.design.partly_pinned import design_partly_pinned
from rota.design.pinned import design_pinned
from rota.design.split import design_split
from rota.errors import BadSpec, Infeasible, NotConverged, Problem, TooManySchedules, Unstable
from rota.model import Fleet
from rota.policy import FleetDesign, PartlyPinned

__all__ = ["DesignOfFleet", "Servers", "find_fleet_design"]

Servers = Literal["best", "pinned", "partly-pinned", "split"]
_DESIGNS: dict[str, tuple[Callable[..., FleetDesign], float]] = {  # and the part of the time for each; what one leaves, the next may use
    "pinned": (design_pinned, 0.2),
    "partly-pinned": (design_partly_pinned, 0.75),
    "split": (design_split, 1.0),
}
_NEAR = 1e-3  # relative: pinned servers this near to the bound are good enough
_EQUAL = 1e-9  # relative: of means that differ by less, the simpler design is kept
_LEAST_S = 1.0  # for a design, whatever is left of the time
_IMPOSSIBLE = (Infeasible, NotConverged, TooManySchedules, Unstable)


@dataclass(frozen=True, eq=False)
class DesignOfFleet:
    """The servers that were found, analyzed; `means`: the exact mean response time by design; `left_out`: why there is none of another."""

    policy: FleetDesign
    answer: PinnedAnalysis | PartlyPinnedAnalysis | SplitAnalysis
    means: dict[str, float]
    left_out: dict[str, str]
    remarks: tuple[str, ...]


def find_fleet_design(
    fleet: Fleet, *, servers: Servers = "best", load: FleetLoad | None = None, time_limit_s: float = 30.0
) -> DesignOfFleet:
    """`rota.design_policy` of a fleet, with an account of what was compared. `servers`: the design to make, or the best of them."""
    if servers not in get_args(Servers):
        raise BadSpec([Problem("servers", f"must be one of {', '.join(get_args(Servers))}", servers)])
    best = checked_fleet_load(fleet, load, time_limit_s)
    deadline = Deadline.after(time_limit_s)
    known = fleet.with_poisson_arrivals() if fleet.bursty else fleet
    bound = least_mean_response_time(known)
    found: dict[str, FleetDesign] = {}
    means: dict[str, float] = {}
    left_out: dict[str, str] = {}
    chosen = None
    for name in _DESIGNS if servers == "best" else (servers,):
        design, part = _DESIGNS[name]
        within = time_limit_s if servers != "best" else max(part * deadline.left_s, _LEAST_S)
        try:
            made = _plainest(design(fleet, load=best, time_limit_s=within))
            mean = analyze(known, made, sizes="exponential").mean_response_time
        except _IMPOSSIBLE as error:
            if servers != "best":
                raise
            left_out[name] = str(error)
            continue
        found[name], means[name] = made, mean
        if chosen is None or mean < means[chosen] * (1 - _EQUAL):
            chosen = name
        if means[chosen] <= bound * (1 + _NEAR) and servers == "best":
            break
    if chosen is None:
        raise Infeasible(f"no servers were found that serve all types, although the load is {best.load:.4g}: {left_out['split']}")
    return DesignOfFleet(found[chosen], analyze(known, found[chosen], sizes="exponential"), means, left_out, _remarks(fleet))


def _plainest(design: FleetDesign) -> FleetDesign:
    """Pinned servers, if none of partly pinned ones turns."""
    return design.pinned if isinstance(design, PartlyPinned) and not design.turning.any() else design


def _remarks(fleet: Fleet) -> tuple[str, ...]:
    """What the exact values do not know."""
    remarks = []
    if fleet.bursty:
        remarks.append(
            f"arrivals of type {fleet.bursty[0]!r} are not Poisson: they are taken as if they were, so longer waits are to be expected"
        )
    if np.isfinite(fleet.up_time).any():
        remarks.append("servers of this fleet fail: these values are for servers that do not (rota simulate has failures)")
    return tuple(remarks)
