"""A system as tables and values, both ways. They are printed as TOML for people, and as JSON inside plans, results and requests.

Tables are read in one pass that collects every problem: those of single values (the pydantic models below) and those between parts (a
demand for a resource that the server does not have). Each problem names its place, the value and the rule.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rota.errors import BadSpec, Problem, problems_of, version_problem
from rota.model.arrivals import ArrivalProcess, Arrivals, Poisson
from rota.model.distribution import NonNegative, Positive, SizeDistribution
from rota.model.live import OWN_TYPE, LiveSettings, unknown_resources
from rota.model.phase_types import Exponential
from rota.model.sizes import Size
from rota.model.system import DEMANDS_NOTHING, JobType, Preemption, System, TimeUnit, exceeds, never_fits

__all__ = [
    "SERVER_OR_SERVERS",
    "SPEC_VERSION",
    "JobTable",
    "PreemptionTable",
    "Strict",
    "in_the_file",
    "is_number",
    "job_problems",
    "job_to_dict",
    "parts_from_dict",
    "plain_number",
    "server_schema",
    "system_from_dict",
    "system_to_dict",
]

SPEC_VERSION = 1
SERVER_OR_SERVERS = "give either [server], for one server, or [servers.NAME] tables, for a fleet, and only one of them"


class Strict(BaseModel):
    """A table of which every key is known."""

    model_config = ConfigDict(extra="forbid")


class PreemptionTable(Strict):
    """What stopping a job costs."""

    model: Preemption = Field(
        "none",
        description="full: jobs can be stopped at no cost; none: never; setup: each stop takes a setup time",
    )
    setup_time: Positive | None = Field(None, description='mean setup time; with model = "setup"')

    @model_validator(mode="after")
    def _setup_time_goes_with_setup(self) -> PreemptionTable:
        if (self.model == "setup") != (self.setup_time is not None):
            raise ValueError('setup_time goes with model = "setup", and only with it')
        return self


class JobTable(Strict):
    """A job type."""

    demand: dict[str, NonNegative] = Field(description="how much of each resource a job holds while it runs")
    arrival_rate: NonNegative | None = Field(None, description="jobs per unit of time, on average; an mmpp or map may say it itself")
    arrivals: Arrivals | None = Field(None, description="how jobs arrive: bursts, an mmpp, a map, batches; a Poisson process if left out")
    mean_size: Positive | None = Field(None, description="mean running time of exponential sizes")
    size: Size | None = Field(None, description="the distribution of the running time, instead of mean_size")

    def process(self) -> ArrivalProcess:
        """How jobs arrive."""
        return Poisson() if self.arrivals is None else self.arrivals

    def rate(self) -> float:
        """Jobs per unit of time."""
        return self.process().rate if self.arrival_rate is None else self.arrival_rate

    def distribution(self) -> SizeDistribution:
        """The law of sizes."""
        if self.size is not None:
            return self.size
        assert self.mean_size is not None  # by `job_problems`
        return Exponential(mean=self.mean_size)


class _Spec(Strict):
    """A server and the job types that arrive at it."""

    model_config = ConfigDict(extra="forbid", title="Rota system")

    version: Literal[1] = Field(1, description="version of this format")
    time_unit: TimeUnit | None = Field(None, description="the unit of time of rates and sizes, for real jobs and traces")
    server: dict[str, Positive] = Field(description="the server's resources and how much it has of each", min_length=1)
    preemption: PreemptionTable = PreemptionTable.model_construct()
    jobs: dict[str, JobTable] = Field(description="the job types by name", min_length=1)
    live: LiveSettings | None = Field(None, description="how `rota serve` runs it; nothing else reads this")


def server_schema() -> dict[str, Any]:
    """The JSON schema of the spec of one server."""
    return _Spec.model_json_schema()


# ------------------------------------------------------------------------------------------------------------ there and back


def system_to_dict(system: System) -> dict[str, Any]:
    """A system as tables and values; `system_from_dict` gives the system back, bit for bit."""
    unit = {} if system.time_unit is None else {"time_unit": system.time_unit}
    setup = {} if system.setup_time is None else {"setup_time": plain_number(system.setup_time)}
    return {
        "version": SPEC_VERSION,
        **unit,
        "server": {name: plain_number(amount) for name, amount in zip(system.resources, system.capacity, strict=True)},
        "preemption": {"model": system.preemption, **setup},
        "jobs": {job.name: job_to_dict(job) for job in system.job_types},
    }


def job_to_dict(job: JobType) -> dict[str, Any]:
    """A type as tables and values."""
    process = {} if job.arrivals.is_poisson else {"arrivals": _process_to_dict(job.arrivals)}
    exponential = {"mean_size": plain_number(job.size.mean)} if isinstance(job.size, Exponential) else None
    return {
        "demand": {name: plain_number(amount) for name, amount in job.demand.items()},
        "arrival_rate": plain_number(job.arrival_rate),
        **process,
        **(exponential or {"size": job.size.model_dump(mode="json", exclude_none=True)}),
    }


def _process_to_dict(process: ArrivalProcess) -> dict[str, Any]:
    fields = process.model_dump(mode="json", exclude_none=True)
    batch = {"batch": fields.pop("batch")} if "batch" in fields else {}
    return {**fields, **batch}  # what kind it is comes first


def plain_number(value: float) -> int | float:
    """As a person would write it: 8 rather than 8.0."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def system_from_dict(raw: dict[str, Any]) -> System:
    """The system that tables and values describe. Raises `BadSpec` with every problem at once."""
    return parts_from_dict(raw)[0]


def parts_from_dict(raw: dict[str, Any]) -> tuple[System, LiveSettings]:
    """The system, and the settings of the `live` table."""
    if "servers" in raw:
        rule = (
            "are several servers, and this takes one, in a [server] table: of the commands `rota plan`, `capacity`, `schedules`, "
            "`design`, `analyze`, `tune`, `simulate`, `compare` and `sweep` take a fleet"
        )
        raise BadSpec([Problem("servers", rule if "server" not in raw else SERVER_OR_SERVERS)])
    problems: list[Problem] = []
    spec = None
    try:
        spec = _Spec.model_validate(raw)
    except ValidationError as error:
        problems += [in_the_file(problem) for problem in problems_of(error)]
    problems += _problems_between_parts(raw)
    unit, live = (None, LiveSettings()) if spec is None else (spec.time_unit, spec.live or LiveSettings())
    if "time_unit" in live.model_fields_set:
        if unit is not None and unit != live.time_unit:
            problems.append(Problem("live.time_unit", f'is not time_unit = "{unit}" at the top: give one of them', live.time_unit))
        unit = live.time_unit
    elif unit is not None:
        live = live.model_copy(update={"time_unit": unit})
    if spec is not None:
        problems += unknown_resources(live, tuple(spec.server))
    if problems or spec is None:
        raise BadSpec(problems)

    resources, jobs = tuple(spec.server), list(spec.jobs.values())
    system = System(
        capacity=list(spec.server.values()),
        demand=[[job.demand[resource] for resource in resources] for job in jobs],
        arrival_rate=[job.rate() for job in jobs],
        arrivals=[job.process() for job in jobs],
        sizes=[job.distribution() for job in jobs],
        names=tuple(spec.jobs),
        resources=resources,
        preemption=spec.preemption.model,
        setup_time=spec.preemption.setup_time,
        time_unit=unit,
    )
    return system, live


# ------------------------------------------------------------------------------------------------------------ problems


def in_the_file(problem: Problem) -> Problem:
    """A problem as the author of the file sees it."""
    if problem.place == "version":
        return version_problem("version", problem.value, SPEC_VERSION, "write it as `rota schema` says") or problem
    place = problem.place.split(".")
    if len(place) > 3 and place[0] == "jobs" and place[2] in ("size", "arrivals"):
        del place[3]  # pydantic names the branch of the union, which is not a place in the file
        if len(place) > 4 and place[3] == "batch":
            del place[4]
    return Problem(".".join(place), problem.rule, problem.value)


def _problems_between_parts(raw: dict[str, Any]) -> list[Problem]:
    """Problems between values. Checks only parts of the right kind: the others are reported already."""
    problems = []
    server, jobs = raw.get("server"), raw.get("jobs")
    if not isinstance(jobs, dict):
        return []
    for name, job in jobs.items():
        problems += job_problems(name, job)
        if not isinstance(job, dict):
            continue
        demand = job.get("demand")
        if not isinstance(demand, dict) or not isinstance(server, dict):
            continue
        known = ", ".join(server)
        place = f"jobs.{name}.demand"
        for resource, amount in demand.items():
            if resource not in server:
                problems.append(Problem(f"{place}.{resource}", f"the server has no such resource (it has: {known})"))
            elif is_number(amount) and is_number(server[resource]) and server[resource] > 0 and exceeds(amount, server[resource]):
                problems.append(Problem(f"{place}.{resource}", never_fits(server[resource]), amount))
        problems += [
            Problem(
                f"{place}.{resource}",
                "is missing: name every resource of the server, with 0 where none is needed",
            )
            for resource in server
            if resource not in demand
        ]
        if demand and all(is_number(amount) and amount == 0 for amount in demand.values()):
            problems.append(Problem(place, DEMANDS_NOTHING))
    return problems


def job_problems(name: str, job: object) -> list[Problem]:
    """Problems of a type, whatever the server."""
    problems = []
    if name == OWN_TYPE:
        problems.append(Problem(f"jobs.{name}", "is what the scheduler calls jobs that no type encloses: give the type another name"))
    if not isinstance(job, dict):
        return problems
    process = job.get("arrivals")
    if "arrival_rate" not in job and not (isinstance(process, dict) and process.get("process") in ("mmpp", "map")):
        problems.append(Problem(f"jobs.{name}.arrival_rate", "is missing"))
    if ("mean_size" in job) == ("size" in job):
        problems.append(Problem(f"jobs.{name}", "give either mean_size or size, and only one of them"))
    return problems


def is_number(value: object) -> bool:
    """Whether a value of a file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
