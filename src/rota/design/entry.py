"""`design_policy`: of one server, or of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, overload

from rota.capacity import FleetLoad, Load
from rota.design.design import Objective, RouteChoice, find_design
from rota.design.of_fleet import Servers, find_fleet_design
from rota.design.switching import Yardstick
from rota.design.tune import TuneProgress
from rota.errors import BadSpec, Problem
from rota.model import Fleet, Preemption, System
from rota.policy import MSR, FleetDesign, Opening

__all__ = ["design_policy"]

_OF_A_FLEET = ("servers", "load", "time_limit_s")


@overload
def design_policy(
    system: System,
    preemption: Preemption | None = None,
    *,
    load: Load | None = None,
    switching_rate: float | None = None,
    setup_rate: float | None = None,
    objective: Objective = "close",
    by: Yardstick | None = None,
    route: RouteChoice | None = None,
    opening: Opening | None = None,
    seed: int = 0,
    max_response_time: Mapping[str, float] | None = None,
    near: Sequence[MSR] = (),
    time_limit_s: float = 30.0,
    progress: Callable[[TuneProgress], None] | None = None,
) -> MSR: ...
@overload
def design_policy(
    system: Fleet, *, servers: Servers = "best", load: FleetLoad | None = None, time_limit_s: float = 30.0
) -> FleetDesign: ...
def design_policy(system: Any, *arguments: Any, **options: Any) -> MSR | FleetDesign:
    """A good MSR policy for a system, or servers for a fleet; sizes are taken as exponential.

    `preemption` and `setup_rate` are the system's unless given. `load`: the answer of `rota.system_load`, if it is known already.
    `objective="close"`, the default: candidates next to each other, so that a switch changes few jobs, or one schedule alone, chosen and
    tuned on E[T] (`rota.design.close`); some seconds for large servers too. `objective="load"`: the paper's design, candidates and weights
    that balance the loads of the types (Eq. optimization, solved to optimality), in a loop in lexicographic order, with the best switching
    rate. `objective="response-time"`: from there on everything is tuned on E[T], never for the worse. `objective="p95"`: a close rota
    whose switching rate has the least exact 95 % quantile of the response time over all jobs. `max_response_time`, as `{"train": 5.0}`,
    limits E[T_i] of some types, not with "load" or "p95"; `Infeasible` if no policy that keeps the limits was found.

    `near`: rotas to begin with too, such as those for another load (with objective "close" or "p95").

    `switching_rate` is kept if given; None means: choose it, `by` the exact E[T] (default where that is estimated to fit the time limit),
    the prediction or a bound. `route`, `opening`: how an nMSR moves between schedules, see `rota.MSR`; with objective "load", "random"
    orders by `seed`, "search" the best by prediction; tuning starts from what is given. `time_limit_s` is for all of it: what would take
    longer is left out, or done by the prediction.
    `rota.design.find_design` also says what was. For arrivals that are not Poisson see `rota.design.bursts`.

    Of a fleet: the servers of least exact mean response time, `servers="pinned"`, `"partly-pinned"` or `"split"`, or the `"best"` of them
    (`rota.Pinned`, `rota.PartlyPinned`, `rota.Split`); only `load` and `time_limit_s` go with it. `rota.design.find_fleet_design` also says
    what was compared.
    """
    if not isinstance(system, Fleet):
        if "servers" in options:
            raise BadSpec([Problem("servers", "is for a fleet: one server has a rota", options["servers"])])
        return find_design(system, *arguments, **options).policy
    other = ["preemption"] if arguments else [name for name in options if name not in _OF_A_FLEET]
    if other:
        rule = f"is for one server: for a fleet there are {', '.join(_OF_A_FLEET)}"
        raise BadSpec([Problem(name, rule) for name in other])
    return find_fleet_design(system, **options).policy


_own = signature(find_design)
design_policy.__signature__ = _own.replace(  # type: ignore[attr-defined]  # the same parameters, for people and editors
    parameters=[*_own.parameters.values(), Parameter("servers", Parameter.KEYWORD_ONLY, default="best", annotation="Servers")],
    return_annotation="MSR | FleetDesign",
)
