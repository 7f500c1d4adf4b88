"""The file of a system: read once, as a `Spec`, and written. Its text is TOML; `rota.model.tables` defines what the tables mean.

A problem of the file names its line beside its place, the value and the rule.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rota.arguments import read_text
from rota.errors import BadSpec, Problem
from rota.model.fleet import Fleet
from rota.model.fleet_tables import fleet_from_dict, fleet_to_dict
from rota.model.live import LiveSettings
from rota.model.system import System
from rota.model.tables import parts_from_dict, system_to_dict

__all__ = [
    "FleetSpec",
    "Spec",
    "parse_any_system",
    "parse_spec",
    "parse_system",
    "read_any_spec",
    "read_server",
    "read_spec",
    "read_system",
    "write_toml",
]


@dataclass(frozen=True)
class Spec:
    """What the file of one server says: the system, how `rota serve` runs it, and the text itself."""

    system: System
    live: LiveSettings
    text: str


@dataclass(frozen=True)
class FleetSpec:
    """What the file of a fleet says: the fleet, and the text itself."""

    fleet: Fleet
    text: str


def read_spec(path: str | Path) -> Spec:
    """Reads the file of a system of one server, once. Raises `BadSpec` with every problem at once."""
    return parse_spec(read_text(path), str(path))


def read_any_spec(path: str | Path) -> Spec | FleetSpec:
    """Reads the file of a server or of a fleet, once. Raises `BadSpec` with every problem at once."""
    return _parse_any(read_text(path), str(path))


def _parse_any(text: str, source: str | None) -> Spec | FleetSpec:
    raw = _tables(text, source)
    if "servers" not in raw:
        return parse_spec(text, source)
    try:
        return FleetSpec(fleet_from_dict(raw), text)
    except BadSpec as error:
        raise _located(error.problems, text, source) from None


def read_system(path: str | Path) -> System | Fleet:
    """Reads a system from its TOML file: a `Fleet` if it has [servers.NAME] tables. Raises `BadSpec` with every problem at once."""
    return parse_any_system(read_text(path), str(path))


def parse_any_system(text: str, source: str | None = None) -> System | Fleet:
    """Reads a system or a fleet from the text of a spec."""
    spec = _parse_any(text, source)
    return spec.fleet if isinstance(spec, FleetSpec) else spec.system


def read_server(path: str | Path) -> System:
    """Reads a system of one server from its TOML file. A fleet is refused."""
    return read_spec(path).system


def parse_spec(text: str, source: str | None = None) -> Spec:
    """Reads the text of a spec of one server."""
    raw = _tables(text, source)
    try:
        system, live = parts_from_dict(raw)
    except BadSpec as error:
        raise _located(error.problems, text, source) from None
    return Spec(system, live, text)


def _tables(text: str, source: str | None) -> dict[str, Any]:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSpec([Problem("file", f"is not TOML: {error}")], source) from None
    if not raw:
        raise BadSpec([Problem("file", "is empty: it needs a [server] table and at least one [jobs.NAME]")], source)
    return raw


def parse_system(text: str, source: str | None = None) -> System:
    """Reads a system from the text of a spec."""
    return parse_spec(text, source).system


# ------------------------------------------------------------------------------------------------------------ lines


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


def write_toml(system: System | Fleet) -> str:
    """The spec of a system; `read_system` of it gives the system back, bit for bit."""
    tables = fleet_to_dict(system) if isinstance(system, Fleet) else system_to_dict(system)
    lines = [f"{_key(name)} = {_value(value)}" for name, value in tables.items() if not isinstance(value, dict)]
    for header, table in _headed(tables):
        lines += ["", f"[{header}]", *(f"{_key(name)} = {_value(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


def _headed(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables under headers of their own: a table of nothing but tables gives one to each of them. Any further table stands in line."""
    for name, table in tables.items():
        if isinstance(table, dict) and all(isinstance(part, dict) for part in table.values()):
            yield from ((f"{_key(name)}.{_key(part)}", values) for part, values in table.items())
        elif isinstance(table, dict):
            yield _key(name), table


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(part)}' for key, part in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return repr(value)
