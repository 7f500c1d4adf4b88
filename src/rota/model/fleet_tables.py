"""A fleet as tables and values, both ways: `[servers.NAME]`, `[dispatch]` and the job types, with `only` and `speed`.

The rest is as in the spec of one server (`rota.model.tables`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rota.errors import BadSpec, Problem, problems_of
from rota.model.dispatch import CustomDispatch, Dispatch, DispatchRule, make_dispatch
from rota.model.distribution import NonNegative, Positive
from rota.model.fleet import Fleet
from rota.model.fleet_checks import COUNT_RULE, MOST_SERVERS, RESERVED, placement_problems
from rota.model.system import DEMANDS_NOTHING, TimeUnit
from rota.model.tables import (
    SERVER_OR_SERVERS,
    SPEC_VERSION,
    JobTable,
    PreemptionTable,
    Strict,
    in_the_file,
    is_number,
    job_problems,
    job_to_dict,
    plain_number,
    server_schema,
)

__all__ = ["dispatch_to_dict", "fleet_from_dict", "fleet_to_dict", "json_schema"]


class _Servers(BaseModel):
    """A kind of servers: `count`, and how much each of them has of its resources."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, NonNegative]

    count: Annotated[int, Field(ge=1, le=MOST_SERVERS, strict=True)] = Field(description="how many servers of this kind there are")

    up_time: Positive | None = Field(None, description="how long a server works until it fails, on average; left out, it does not fail")
    down_time: Positive | None = Field(None, description="how long a server that has failed takes until it works again, on average")

    @property
    def capacity(self) -> dict[str, float]:
        """How much a server has of each resource that it names."""
        return self.__pydantic_extra__


class _Dispatch(Strict):
    rule: DispatchRule = Field(description="which server an arriving job goes to")
    d: Annotated[int, Field(ge=1, strict=True)] | None = Field(None, description='servers that rule = "power-of-d" compares; 2 if left out')
    staleness: NonNegative = Field(0.0, description="how often the dispatcher looks at the servers; always if left out")
    cost: NonNegative = Field(0.0, description="how long a job is on its way to its server")

    @model_validator(mode="after")
    def _d_goes_with_power_of_d(self) -> _Dispatch:
        if self.d is not None and self.rule != "power-of-d":
            raise ValueError('d goes with rule = "power-of-d", and only with it')
        return self


class _FleetJob(JobTable):
    only: list[str] | None = Field(None, description="the kinds of servers on which it may run; those on which it fits if left out")
    speed: dict[str, Positive] = Field({}, description="by kind of server: how many times as fast it runs there; 1 if left out")


class _FleetSpec(Strict):
    """A fleet of servers and the job types that arrive at it."""

    version: Literal[1] = Field(1, description="version of this format")
    time_unit: TimeUnit | None = Field(None, description="the unit of time of rates and sizes, for real jobs and traces")
    servers: dict[str, _Servers] = Field(description="the kinds of servers by name", min_length=1)
    dispatch: _Dispatch | None = Field(None, description="which server an arriving job goes to")
    preemption: PreemptionTable = PreemptionTable.model_construct()
    jobs: dict[str, _FleetJob] = Field(description="the job types by name", min_length=1)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the spec, of one server or of a fleet, for editors that complete and check TOML."""
    server, fleet = server_schema(), _FleetSpec.model_json_schema()
    shared = {**fleet.pop("$defs", {}), **server.pop("$defs", {})}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": shared,
        "title": server["title"],
        "anyOf": [server, {**fleet, "title": "Rota fleet"}],
    }


# ------------------------------------------------------------------------------------------------------------ there and back


def fleet_to_dict(fleet: Fleet) -> dict[str, Any]:
    """A fleet as tables and values; `fleet_from_dict` gives the fleet back, bit for bit."""
    unit = {} if fleet.time_unit is None else {"time_unit": fleet.time_unit}
    setup = {} if fleet.setup_time is None else {"setup_time": plain_number(fleet.setup_time)}
    rule = fleet.dispatch
    dispatch = {} if rule is None else {"dispatch": dispatch_to_dict(rule)}
    return {
        "version": SPEC_VERSION,
        **unit,
        "servers": _servers_to_dict(fleet),
        **dispatch,
        "preemption": {"model": fleet.preemption, **setup},
        "jobs": {job.name: {**job_to_dict(job), **_placement_to_dict(fleet, i)} for i, job in enumerate(fleet.job_types)},
    }


def dispatch_to_dict(rule: Dispatch) -> dict[str, Any]:
    """The `[dispatch]` table of a rule."""
    if isinstance(rule, CustomDispatch):
        raise BadSpec(
            [Problem("dispatch", "is a rule of your own, which a file does not hold: leave it out and give it to simulate", rule.rule)]
        )
    times = {name: plain_number(value) for name, value in (("staleness", rule.staleness), ("cost", rule.cost)) if value}
    return {"rule": rule.rule, **({} if rule.d is None else {"d": rule.d}), **times}


def _servers_to_dict(fleet: Fleet) -> dict[str, dict[str, Any]]:
    amounts = [{name: plain_number(has) for name, has in zip(fleet.resources, row, strict=True)} for row in fleet.capacity]
    positive = [{name: has for name, has in row.items() if has} for row in amounts]
    # The order of resources is that in which the file names them first. Where zeros are needed for it, they are written.
    rows = positive if _in_order(positive) == fleet.resources else amounts
    fails = [
        {"up_time": plain_number(up), "down_time": plain_number(down)} if np.isfinite(up) else {}
        for up, down in zip(fleet.up_time.tolist(), fleet.down_time.tolist(), strict=True)
    ]
    return {kind: {"count": int(n), **row, **more} for kind, n, row, more in zip(fleet.kinds, fleet.count, rows, fails, strict=True)}


def _placement_to_dict(fleet: Fleet, i: int) -> dict[str, Any]:
    places = fleet.only[i]
    only = {} if places is None else {"only": list(places)}
    speeds = {kind: plain_number(v) for kind, v in zip(fleet.kinds, fleet.speed[:, i], strict=True) if v != 1}
    return {**only, **({"speed": speeds} if speeds else {})}


def _in_order(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """The names, in the order in which they are first met."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def fleet_from_dict(raw: dict[str, Any]) -> Fleet:
    """The fleet that tables and values describe. Raises `BadSpec` with every problem at once."""
    problems: list[Problem] = []
    spec = None
    try:
        spec = _FleetSpec.model_validate({name: table for name, table in raw.items() if name != "server"})
    except ValidationError as error:
        problems += [_in_the_file(problem) for problem in problems_of(error)]
    if "server" in raw:
        problems.append(Problem("server", SERVER_OR_SERVERS))
    problems += _problems_between_parts(raw)
    if problems or spec is None:
        raise BadSpec(problems)
    kinds, jobs = spec.servers, list(spec.jobs.values())
    resources = _in_order([kind.capacity for kind in kinds.values()])
    return Fleet(
        count=[kind.count for kind in kinds.values()],
        capacity=[[kind.capacity.get(resource, 0.0) for resource in resources] for kind in kinds.values()],
        demand=[[job.demand[resource] for resource in resources] for job in jobs],
        arrival_rate=[job.rate() for job in jobs],
        names=tuple(spec.jobs),
        resources=resources,
        kinds=tuple(kinds),
        only=[job.only for job in jobs],
        speed=[[job.speed.get(kind, 1.0) for job in jobs] for kind in kinds],
        dispatch=None if spec.dispatch is None else make_dispatch(**spec.dispatch.model_dump()),
        up_time=[np.inf if kind.up_time is None else kind.up_time for kind in kinds.values()],
        down_time=[kind.down_time or 0.0 for kind in kinds.values()],
        sizes=[job.distribution() for job in jobs],
        preemption=spec.preemption.model,
        setup_time=spec.preemption.setup_time,
        time_unit=spec.time_unit,
        arrivals=[job.process() for job in jobs],
    )


# ------------------------------------------------------------------------------------------------------------ problems


def _in_the_file(problem: Problem) -> Problem:
    """A problem as the author of the file sees it."""
    place = problem.place.split(".")
    if len(place) == 3 and place[0] == "servers" and place[2] == "count" and isinstance(problem.value, int):
        return Problem(problem.place, COUNT_RULE, problem.value)
    return in_the_file(problem)


def _problems_between_parts(raw: dict[str, Any]) -> list[Problem]:
    """Problems between values. Checks only parts of the right kind: the others are reported already."""
    problems: list[Problem] = []
    tables, jobs = raw.get("servers"), raw.get("jobs")
    tables = tables if isinstance(tables, dict) and all(isinstance(table, dict) for table in tables.values()) else None
    servers = {kind: {name: has for name, has in table.items() if name not in RESERVED} for kind, table in (tables or {}).items()}
    for kind, server in servers.items():
        if not any(is_number(has) and has > 0 for has in server.values()):
            problems.append(Problem(f"servers.{kind}", "needs a positive amount of at least one resource"))
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        problems += job_problems(name, job)
        if isinstance(job, dict) and servers:
            problems += _demand_problems(name, job, servers)
    return problems


def _demand_problems(name: str, job: dict[str, Any], servers: dict[str, dict[str, Any]]) -> list[Problem]:
    """Problems of a type with the servers: resources that no kind has or that are missing, and nowhere to run."""
    demand, place = job.get("demand"), f"jobs.{name}.demand"
    if not isinstance(demand, dict):
        return []
    resources = _in_order(list(servers.values()))
    rule = f"no kind of server has such a resource (they have: {', '.join(resources)})"
    problems = [Problem(f"{place}.{resource}", rule) for resource in demand if resource not in resources]
    rule = "is missing: name every resource of the servers, with 0 where none is needed"
    problems += [Problem(f"{place}.{resource}", rule) for resource in resources if resource not in demand]
    only, speed = job.get("only"), job.get("speed", {})
    numbers = [*demand.values(), *(has for server in servers.values() for has in server.values())]
    if demand and all(is_number(amount) and amount == 0 for amount in demand.values()):
        problems.append(Problem(place, DEMANDS_NOTHING))
    elif (
        not problems
        and all(map(is_number, numbers))
        and (only is None or (isinstance(only, list) and all(isinstance(kind, str) for kind in only)))
        and (isinstance(speed, dict) and all(is_number(v) and v > 0 for v in speed.values()))
    ):
        problems += placement_problems(name, demand, servers, only, speed)
    return problems
