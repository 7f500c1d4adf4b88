"""Results as files: a `Result`, a `Comparison` or `Replications` as versioned JSON, and back, bit for bit.

{ "rota_result": 1, "rota": "0.1.0", "saved": { "record": "Result", "fields": { "system": { "system": … }, "jobs": 1000000, … } } }

What JSON cannot express is an object with one key that names its kind: an array, a table, a tuple, a system, a policy, a number that is not
finite. A policy of your own is a function, which is not in the file: its name is, and the place that it was imported from.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.arguments import parse_json, read_text, write_text
from rota.errors import BadSpec, Infeasible, Problem, version_problem
from rota.imported import source_of
from rota.model import Dispatch, Fleet, System, system_from_dict, system_to_dict
from rota.model.fleet_tables import fleet_from_dict, fleet_to_dict
from rota.policy import Custom, Policy, policy_from_dict, policy_to_dict
from rota.policy.custom import place_of_custom
from rota.simulation.actual import Actual
from rota.simulation.compare import Comparison, Difference
from rota.simulation.fleet.files import fleet_policy_from_plain, fleet_policy_plain, rule_from_plain, rule_plain
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.result import FleetResult
from rota.simulation.replicate import Replications
from rota.simulation.result import Result
from rota.simulation.start import Start

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RESULT_VERSION", "read_result", "save_result"]

RESULT_VERSION = 1

Saved = Result | Comparison | Replications
_RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Result, FleetResult, Comparison, Difference, Replications, Start, Actual)
}


def save_result(result: Saved, path: str | Path) -> None:
    """Writes a result, a comparison or replications to a file (JSON), with the version of Rota that made it."""
    if not isinstance(result, Result | Comparison | Replications):
        raise BadSpec([Problem("result", "must be a Result, a Comparison or Replications; tables go by rota.report.save_table", result)])
    content = {"rota_result": RESULT_VERSION, "rota": _version(), "saved": _plain(result)}
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")


def read_result(path: str | Path) -> Saved:
    """Reads what `save_result` wrote."""
    source = str(path)
    raw = parse_json(read_text(path), source)
    if not isinstance(raw, dict) or "rota_result" not in raw:
        raise BadSpec([Problem("file", 'is not a result of Rota: it needs "rota_result": 1 (from: rota.save_result)')], source)
    if wrong := version_problem("rota_result", raw["rota_result"], RESULT_VERSION, "simulate again"):
        raise BadSpec([wrong], source)
    try:
        found = _whole(raw["saved"])
    except BadSpec as error:
        rule = f"was written by Rota {raw.get('rota')}, this is {_version()}"
        raise BadSpec([*error.problems, Problem("file", rule)], source) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSpec([Problem("file", f"is damaged: {type(error).__name__} {error}")], source) from None
    if not isinstance(found, Result | Comparison | Replications):
        raise BadSpec([Problem("file", "is damaged: it holds no result")], source)
    return found


def _version() -> str:
    return str(sys.modules["rota"].__version__)  # set when the package was imported; importing it here would be a cycle


# ------------------------------------------------------------------------------------------------------------- to JSON and back


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    if isinstance(value, np.ndarray):
        items = [_plain(item) for item in value.ravel().tolist()]
        return {"array": items, "shape": list(value.shape), "dtype": value.dtype.name}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, dict):
        return {"map": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, System):
        return {"system": system_to_dict(value)}
    if isinstance(value, Fleet):
        return {"fleet": fleet_to_dict(value)}
    if isinstance(value, FleetPolicy):
        return {"fleet_policy": fleet_policy_plain(value, _plain), "of": fleet_to_dict(value.given)}
    if isinstance(value, Dispatch):
        return {"dispatch": rule_plain(value)}
    if isinstance(value, Custom):
        return {"custom": value.name, **_place(value)}
    if type(value).__name__ in _RECORDS:
        named = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"record": type(value).__name__, "fields": named}
    if hasattr(value, "write_ipc"):
        return {"table": value.to_dict(as_series=False), "schema": {name: str(kind) for name, kind in value.schema.items()}}
    if isinstance(value, Policy):
        return {"policy": policy_to_dict(value)}
    raise BadSpec([Problem("result", "holds something that cannot be written down", value)])


def _place(policy: Custom) -> dict[str, str]:
    try:
        place = place_of_custom(policy)
        return {"place": place, "source": source_of(place, "policy")}
    except BadSpec:  # of a notebook, say
        return {}


def _whole(value: Any) -> Any:
    """The value that `_plain` wrote."""
    if not isinstance(value, dict):
        return value
    match value:
        case {"number": text}:
            return float(text)
        case {"array": items, "shape": shape, "dtype": dtype}:
            return np.array([_whole(item) for item in items], dtype=dtype).reshape(shape)
        case {"tuple": items}:
            return tuple(_whole(item) for item in items)
        case {"map": pairs}:
            return {_whole(key): _whole(item) for key, item in pairs}
        case {"system": tables}:
            return system_from_dict(tables)
        case {"fleet": tables}:
            return fleet_from_dict(tables)
        case {"fleet_policy": tables, "of": fleet}:
            return fleet_policy_from_plain(fleet_from_dict(fleet), tables, _whole)
        case {"dispatch": rule}:
            return rule_from_plain(rule)
        case {"policy": tables}:
            return policy_from_dict(tables)
        case {"custom": name}:
            return Custom(_Lost(name, value.get("place")), name=name, compiled=False)
        case {"table": columns, "schema": schema}:
            return _table(columns, schema)
        case {"record": kind, "fields": named}:
            return _record(_RECORDS[kind], named)
    raise BadSpec([Problem("file", "holds something that this release does not know", sorted(value))])


def _record(kind: type[Any], named: dict[str, Any]) -> Any:
    known = {field.name: field for field in fields(kind)}
    missing = [name for name, field in known.items() if name not in named and field.default is MISSING and field.default_factory is MISSING]
    problems = [Problem(f"{kind.__name__}.{name}", "is missing") for name in missing]
    problems += [Problem(f"{kind.__name__}.{name}", "is not a field that this release knows") for name in named if name not in known]
    if problems:
        raise BadSpec(problems)
    return kind(**{name: _whole(value) for name, value in named.items()})


def _table(columns: dict[str, list[Any]], schema: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    kinds = {"Float64": pl.Float64, "Int64": pl.Int64, "String": pl.String, "Boolean": pl.Boolean}
    return pl.DataFrame(columns, schema={name: kinds[kind] for name, kind in schema.items()})


class _Lost:
    """The function of a policy that was read from a file."""

    def __init__(self, name: str, place: str | None) -> None:
        self.name, self.place = name, place

    def __call__(self, state: Any, target: Any) -> float:
        way_out = f"it was {self.place}" if self.place else "give the function again"
        raise Infeasible(f"{self.name} was read from a file of results, which holds no functions: {way_out}")
