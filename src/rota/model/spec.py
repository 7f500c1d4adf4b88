"""The TOML spec of a system, both ways, and its JSON schema.

A file is read in one pass that collects every problem: those of single values (the pydantic models below) and those between parts (a demand
for a resource that the server does not have). Each problem names its place, its line, the value and the rule.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rota.errors import BadSpec, Problem
from rota.model.sizes import Exponential, NonNegative, Positive, Size, SizeDistribution
from rota.model.system import DEMANDS_NOTHING, Preemption, System, exceeds, never_fits

__all__ = ["SPEC_VERSION", "json_schema", "parse_system", "read_system", "write_toml"]

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

    @model_validator(mode="after")
    def _one_size(self) -> _Job:
        if (self.mean_size is None) == (self.size is None):
            raise ValueError("give either mean_size or size, and only one of them")
        return self

    def distribution(self) -> SizeDistribution:
        if self.size is not None:
            return self.size
        assert self.mean_size is not None  # by _one_size
        return Exponential(mean=self.mean_size)


class _Spec(_Strict):
    """A server and the job types that arrive at it."""

    model_config = ConfigDict(extra="forbid", title="Rota system")

    version: Literal[1] = Field(1, description="version of this format")
    server: dict[str, Positive] = Field(description="the server's resources and how much it has of each", min_length=1)
    preemption: _Preemption = _Preemption.model_construct()
    jobs: dict[str, _Job] = Field(description="the job types by name", min_length=1)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the spec, for editors that complete and check TOML."""
    schema = _Spec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def read_system(path: str | Path) -> System:
    """Reads a system from its TOML file. Raises `BadSpec` with every problem at once."""
    source = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be read: {error.strerror or error}")], source) from None
    except UnicodeDecodeError as error:
        raise BadSpec([Problem("file", f"is not UTF-8 text: {error.reason} at byte {error.start}")], source) from None
    return parse_system(text, source)


def parse_system(text: str, source: str | None = None) -> System:
    """Reads a system from the text of a spec."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSpec([Problem("file", f"is not TOML: {error}")], source) from None
    if not raw:
        raise BadSpec([Problem("file", "is empty: it needs a [server] table and at least one [jobs.NAME]")], source)

    problems: list[Problem] = []
    spec = None
    try:
        spec = _Spec.model_validate(raw)
    except ValidationError as error:
        problems += [_plain(detail) for detail in error.errors(include_url=False)]
    problems += _problems_between_parts(raw)
    if problems or spec is None:
        lines = _line_numbers(text)
        raise BadSpec(sorted((_with_line(problem, lines) for problem in problems), key=lambda p: p.line or 0), source)

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
    )


# ------------------------------------------------------------------------------------------------------------ problems

_RULES = {
    "missing": "is missing",
    "extra_forbidden": "is not a known key",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "finite_number": "must be finite",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length} entries",
    "union_tag_invalid": "distribution must be one of {expected_tags}",
    "union_tag_not_found": 'needs distribution = "…"',
}


def _plain(detail: Any) -> Problem:
    """A pydantic error in this project's words."""
    place = [str(part) for part in detail["loc"]]
    if len(place) > 3 and place[0] == "jobs" and place[2] == "size":
        del place[3]  # pydantic names the branch of the union, which is not a place in the file
    rule = _RULES.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    value = None if detail["type"] in ("missing", "value_error") or isinstance(detail["input"], dict) else detail["input"]
    if detail["loc"] == ("version",):
        return Problem("version", f"this release reads version {SPEC_VERSION} of the format", value)
    return Problem(".".join(place), rule.format(**detail.get("ctx", {})), value)


def _problems_between_parts(raw: dict[str, Any]) -> list[Problem]:
    """What no single value shows. Looks only at parts of the right kind: the others are reported already."""
    problems = []
    server, jobs = raw.get("server"), raw.get("jobs")
    if not isinstance(server, dict) or not isinstance(jobs, dict):
        return []
    known = ", ".join(server)
    for name, job in jobs.items():
        demand = job.get("demand") if isinstance(job, dict) else None
        if not isinstance(demand, dict):
            continue
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


_HEADER = re.compile(r"^\s*\[{1,2}\s*(.+?)\s*\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _line_numbers(text: str) -> dict[str, int]:
    """The line of each table header and key, by dotted place. Keys inside an inline table share the line of the table."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            place = _dotted(key[1])
            lines.setdefault(f"{table}.{place}" if table else place, number)
    return lines


def _dotted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _with_line(problem: Problem, lines: dict[str, int]) -> Problem:
    place = problem.place
    while place and place not in lines:
        place = place.rpartition(".")[0]
    return Problem(problem.place, problem.rule, problem.value, lines.get(place))


# ------------------------------------------------------------------------------------------------------------ writing


def write_toml(system: System) -> str:
    """The spec of a system; `parse_system` of it gives the system back, bit for bit."""
    out = [f"version = {SPEC_VERSION}", "", "[server]"]
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
