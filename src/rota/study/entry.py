"""`plan`, of a server or of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import overload

from rota.errors import BadSpec, Problem
from rota.model import Fleet, System
from rota.study.fleet_plan import FleetPlan, plan_fleet
from rota.study.plan import Plan
from rota.study.plan import plan as plan_server
from rota.study.plan_objective import PlanObjective
from rota.study.plan_progress import PlanProgress

__all__ = ["plan"]

_Limits = Mapping[str, float | str] | None
_Tell = Callable[[PlanProgress], None] | None


@overload
def plan(
    system: System,
    *,
    objective: PlanObjective = ...,
    limits: _Limits = ...,
    jobs: int | None = ...,
    seed: int = ...,
    tuning_s: float = ...,
    optimum_s: float = ...,
    table: bool = ...,
    progress: _Tell = ...,
) -> Plan: ...
@overload
def plan(
    system: Fleet,
    *,
    objective: PlanObjective = ...,
    limits: _Limits = ...,
    targets: _Limits = ...,
    jobs: int | None = ...,
    seed: int = ...,
    tuning_s: float = ...,
    progress: _Tell = ...,
) -> FleetPlan: ...
def plan(
    system: System | Fleet,
    *,
    objective: PlanObjective = "mean",
    limits: _Limits = None,
    targets: _Limits = None,
    jobs: int | None = None,
    seed: int = 0,
    tuning_s: float = 4.0,
    optimum_s: float = 10.0,
    table: bool = False,
    progress: _Tell = None,
) -> Plan | FleetPlan:
    """Plans a server (a `Plan`) or a fleet (a `FleetPlan`); raises `Unstable`, with what to do, if its load is not below 1.

    `objective` is what the recommended policy should keep low: the "mean" response time, the "slowdown" (the mean over all jobs of the
    response time by the mean size of the job's type), "p95" (95 % of the jobs are faster) or "worst-type" (the mean response time of a type
    by its mean size, of the type where that is largest). `limits`, as `{"render": 12}` or, where the system says its unit of time,
    `{"render": "12h"}`, are mean response times that types may have: a policy whose interval reaches above is excluded. `targets`, of a
    fleet, are written alike, also for all jobs as `{"mean": 0.5}`: how many servers keep them is searched for.

    `jobs` are simulated under each policy at the system's own load (a million, or more if a type is rare), a fifth of them at each other
    load or number of servers. The same seed gives the same jobs to every policy. Takes half a minute or so. A design takes at most
    `tuning_s` seconds, by the clock, so two plans may differ a little. For one server with few types the least mean response time of any
    policy is computed, or a bound on it, for `optimum_s` seconds at most; 0 leaves it out. `table`: the policy that this search
    found, a table of decisions for this load, is compared with the others and may be recommended; the plan then waits for the search.
    """
    if isinstance(system, Fleet):
        if table:
            raise BadSpec([Problem("table", "is for one server: a fleet has no table of the best decisions")])
        return plan_fleet(
            system, objective=objective, limits=limits, targets=targets, jobs=jobs, seed=seed, tuning_s=tuning_s, progress=progress
        )
    if targets is not None:
        raise BadSpec([Problem("targets", "are for a fleet, whose number of servers can change; limits exclude policies of one server")])
    return plan_server(
        system,
        objective=objective,
        limits=limits,
        jobs=jobs,
        seed=seed,
        tuning_s=tuning_s,
        optimum_s=optimum_s,
        table=table,
        progress=progress,
    )
