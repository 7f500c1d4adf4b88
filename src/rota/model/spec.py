"""The TOML spec of a system, both ways, and its JSON schema.

A file is read in one pass that collects every problem: those of single values (the pydantic models below) and those between parts (a demand
for a resource that the server does not have). Each problem names its place, its line, the value and the rule.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rota.arguments import checked_path
from rota.errors import BadSpec, Problem, problems_of
from rota.model.distribution import NonNegative, Positive, SizeDistribution
from rota.model.live import OWN_TYPE, LiveSettings
from rota.model.phase_types import Exponential
from rota.model.sizes import Size
from rota.model.system import DEMANDS_NOTHING, Preemption, System, TimeUnit, exceeds, never_fits

__all__ = ["SPEC_VERSION", "json_schema", "parse_system", "read_system", "spec_text", "system_from", "write_toml"]

SPEC_VERSION = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Preemption(_Strict):
    model: Preemption = Field(
        "none",
        description="full: jobs can be stopped at no cost; none: never; setup: each stop takes a setup time",
    )
    setup_time: Positive | None = Field(None, description='mean setup time; with model = "setup"')

    @model_validator(mode="after")
    def _setup_time_goes_with_setup(self) -> _Preemption:
        if (self.model == "setup") != (self.setup_time is not None):
            raise ValueError('setup_time goes with model = "setup", and only with it')
        return self


class _Job(_Strict):
    demand: dict[str, NonNegative] = Field(description="how much of each resource a job holds while it runs")
    arrival_rate: NonNegative = Field(description="jobs per unit of time")
    mean_size: Positive | None = Field(None, description="mean running time of exponential sizes")
    size: Size | None = Field(None, description="the distribution of the running time, instead of mean_size")

    def distribution(self) -> SizeDistribution:
        if self.size is not None:
            return self.size
        assert self.mean_size is not None  # by _problems_between_parts
        return Exponential(mean=self.mean_size)


class _Spec(_Strict):
    """A server and the job types that arrive at it."""

    model_config = ConfigDict(extra="forbid", title="Rota system")

    version: Literal[1] = Field(1, description="version of this format")
    time_unit: TimeUnit | None = Field(None, description="the unit of time of rates and sizes, for real jobs and traces")
    server: dict[str, Positive] = Field(description="the server's resources and how much it has of each", min_length=1)
    preemption: _Preemption = _Preemption.model_construct()
    jobs: dict[str, _Job] = Field(description="the job types by name", min_length=1)
    live: LiveSettings | None = Field(None, description="how `rota serve` runs it; nothing else reads this")


def json_schema() -> dict[str, Any]:
    """The JSON schema of the spec, for editors that complete and check TOML."""
    schema = _Spec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def read_system(path: str | Path) -> System:
    """Reads a system from its TOML file. Raises `BadSpec` with every problem at once."""
    return parse_system(spec_text(path), str(path))


def spec_text(path: str | Path) -> str:
    """The text of a spec's file."""
    try:
        return checked_path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be read: {error.strerror or error}")], str(path)) from None
    except UnicodeDecodeError as error:
        raise BadSpec([Problem("file", f"is not UTF-8 text: {error.reason} at byte {error.start}")], str(path)) from None


def parse_system(text: str, source: str | None = None) -> System:
    """Reads a system from the text of a spec."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSpec([Problem("file", f"is not TOML: {error}")], source) from None
    if not raw:
        raise BadSpec([Problem("file", "is empty: it needs a [server] table and at least one [jobs.NAME]")], source)
    try:
        return system_from(raw)
    except BadSpec as error:
        raise _located(error.problems, text, source) from None


def system_from(raw: dict[str, Any]) -> System:
    """The system that a spec, as tables and values, describes."""
    problems: list[Problem] = []
    spec = None
    try:
        spec = _Spec.model_validate(raw)
    except ValidationError as error:
        problems += [_in_the_file(problem) for problem in problems_of(error)]
    problems += _problems_between_parts(raw)
    unit, live = (None, None) if spec is None else (spec.time_unit, spec.live)
    if live is not None and "time_unit" in live.model_fields_set:
        if unit is not None and unit != live.time_unit:
            problems.append(Problem("live.time_unit", f'is not time_unit = "{unit}" at the top: give one of them', live.time_unit))
        unit = live.time_unit
    if problems or spec is None:
        raise BadSpec(problems)

    resources, jobs = tuple(spec.server), list(spec.jobs.values())
    return System(
        capacity=list(spec.server.values()),
        demand=[[job.demand[resource] for resource in resources] for job in jobs],
        arrival_rate=[job.arrival_rate for job in jobs],
        sizes=[job.distribution() for job in jobs],
        names=tuple(spec.jobs),
        resources=resources,
        preemption=spec.preemption.model,
        setup_time=spec.preemption.setup_time,
        time_unit=unit,
    )


# ------------------------------------------------------------------------------------------------------------ problems


def _in_the_file(problem: Problem) -> Problem:
    """A problem as the author of the file sees it."""
    if problem.place == "version":
        return Problem("version", f"this release reads version {SPEC_VERSION} of the format", problem.value)
    place = problem.place.split(".")
    if len(place) > 3 and place[0] == "jobs" and place[2] == "size":
        del place[3]  # pydantic names the branch of the union, which is not a place in the file
    return Problem(".".join(place), problem.rule, problem.value)


def _problems_between_parts(raw: dict[str, Any]) -> list[Problem]:
    """What no single value shows. Looks only at parts of the right kind: the others are reported already."""
    problems = []
    server, jobs = raw.get("server"), raw.get("jobs")
    if not isinstance(jobs, dict):
        return []
    for name, job in jobs.items():
        if name == OWN_TYPE:
            problems.append(Problem(f"jobs.{name}", "is what the scheduler calls jobs that no type encloses: give the type another name"))
        if not isinstance(job, dict):
            continue
        if ("mean_size" in job) == ("size" in job):
            problems.append(Problem(f"jobs.{name}", "give either mean_size or size, and only one of them"))
        demand = job.get("demand")
        if not isinstance(demand, dict) or not isinstance(server, dict):
            continue
        known = ", ".join(server)
        place = f"jobs.{name}.demand"
        for resource, amount in demand.items():
            if resource not in server:
                problems.append(Problem(f"{place}.{resource}", f"the server has no such resource (it has: {known})"))
            elif _is_number(amount) and _is_number(server[resource]) and server[resource] > 0 and exceeds(amount, server[resource]):
                problems.append(Problem(f"{place}.{resource}", never_fits(server[resource]), amount))
        problems += [
            Problem(
                f"{place}.{resource}",
                "is missing: name every resource of the server, with 0 where none is needed",
            )
            for resource in server
            if resource not in demand
        ]
        if demand and all(_is_number(amount) and amount == 0 for amount in demand.values()):
            problems.append(Problem(place, DEMANDS_NOTHING))
    return problems


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_HEADER = re.compile(rf"^\s*\[{{1,2}}\s*{_DOTTED}\s*\]{{1,2}}\s*(?:#.*)?$")
_KEY = re.compile(rf"^\s*{_DOTTED}\s*=")


def _line_numbers(text: str) -> dict[str, int]:
    """The line of each table header and key, by dotted place. Keys inside an inline table share the line of the table."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            place = _dotted(key[1])
            lines.setdefault(f"{table}.{place}" if table else place, number)
    return lines


def _dotted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _located(problems: Iterable[Problem], text: str, source: str | None) -> BadSpec:
    """The error with all problems, each with its line, in the order of the file."""
    lines = _line_numbers(text)
    return BadSpec(sorted((_with_line(problem, lines) for problem in problems), key=lambda p: p.line or 0), source)


def _with_line(problem: Problem, lines: dict[str, int]) -> Problem:
    place = problem.place
    while place and place not in lines:
        place = place.rpartition(".")[0]
    return Problem(problem.place, problem.rule, problem.value, lines.get(place))


# ------------------------------------------------------------------------------------------------------------ writing


def write_toml(system: System) -> str:
    """The spec of a system; `parse_system` of it gives the system back, bit for bit."""
    out = [f"version = {SPEC_VERSION}", *([] if system.time_unit is None else [f'time_unit = "{system.time_unit}"']), "", "[server]"]
    out += [f"{_key(name)} = {_number(amount)}" for name, amount in zip(system.resources, system.capacity, strict=True)]
    out += ["", "[preemption]", f'model = "{system.preemption}"']
    if system.setup_time is not None:
        out.append(f"setup_time = {_number(system.setup_time)}")
    for job in system.job_types:
        demand = ", ".join(f"{_key(name)} = {_number(amount)}" for name, amount in job.demand.items())
        out += [
            "",
            f"[jobs.{_key(job.name)}]",
            f"demand = {{ {demand} }}",
            f"arrival_rate = {_number(job.arrival_rate)}",
        ]
        if isinstance(job.size, Exponential):
            out.append(f"mean_size = {_number(job.size.mean)}")
        else:
            fields = job.size.model_dump(exclude_none=True)
            out.append(f"size = {{ {', '.join(f'{key} = {_value(value)}' for key, value in fields.items())} }}")
    return "\n".join(out) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return str(value) if isinstance(value, int) else repr(float(value))
