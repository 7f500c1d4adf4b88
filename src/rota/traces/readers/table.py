"""Plain tables (CSV, parquet, JSON lines): a row per job, and a mapping that says which column is what.

`arrival`, `size` (or `start` and `end`), `estimate` and `type` have a meaning; every other name is a resource, and its column the demand
for it. Without any resource, every job asks for one slot.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rota.errors import BadSpec, Problem
from rota.traces.readers.head import Head
from rota.traces.readers.reader import Field, Reader

__all__ = ["TIME_UNITS", "plain_columns", "reader"]

# Seconds = value × first / second: both whole, so that 0.002 ms and the like are not rounded twice.
TIME_UNITS = {"ns": (1, 10**9), "us": (1, 10**6), "ms": (1, 1000), "s": (1, 1), "min": (60, 1), "h": (3600, 1), "d": (86400, 1)}
MEANINGS = ("arrival", "size", "start", "end", "estimate", "type")
RESERVED = ("row", "line", "group", "member", "label", "reason", "code", "jobs")  # names that the import uses itself
NO_ESTIMATE = "without an estimate (it is then the size)"


def reader(columns: Mapping[str, str], time_unit: str = "s") -> Reader:
    """The reader of a table, by a mapping from meanings and resources to the table's columns."""
    _check(columns, time_unit)
    resources = tuple(name for name in columns if name not in MEANINGS)
    fields = {
        column: Field(pl.String, required=True)
        if name == "type"
        else Field(pl.Float64, required=name == "arrival", least=0 if name in resources else None)
        for name, column in sorted(columns.items(), key=lambda item: item[0] == "arrival")  # last: its rule holds if a column has two roles
    }
    times, per = TIME_UNITS[time_unit]

    def shape(rows: pl.DataFrame) -> pl.DataFrame:
        size = pl.col(columns["size"]) if "size" in columns else pl.col(columns["end"]) - pl.col(columns["start"])
        shaped = rows.select(
            arrival=pl.col(columns["arrival"]) * times / per,
            size=size * times / per,
            **{name: pl.col(columns[name]) * times / per for name in ("estimate", "start", "end") if name in columns},
            **({"label": pl.col(columns["type"])} if "type" in columns else {}),
            **({name: pl.col(columns[name]).fill_null(0.0) for name in resources} or {"slots": pl.lit(1.0)}),
            group="row",
            member=pl.lit(0, dtype=pl.Int64),
        )
        if "start" in columns and "end" not in columns:
            shaped = shaped.with_columns(end=pl.col("start") + pl.col("size"))
        estimated = pl.col("estimate").is_null() if "estimate" in columns else pl.lit(False)
        return shaped.with_columns(reason=pl.when(pl.col("size").is_null()).then(pl.lit("size unknown")), **{NO_ESTIMATE: estimated})

    def fits(head: Head) -> bool:
        return set(columns.values()) <= set(head.columns)

    return Reader(
        format="table",
        looks_for=f"a CSV or parquet table with the columns {', '.join(columns.values())}",
        fits=fits,
        fields=fields,
        resources=resources or ("slots",),
        shape=shape,
        remarks=(NO_ESTIMATE,),
    )


def plain_columns(head: Head) -> dict[str, str] | None:
    """The mapping of a table that uses our own column names; None for any other table."""
    named = set(head.columns)
    plain = "arrival" in named and ("size" in named or {"start", "end"} <= named)
    return {name: name for name in head.columns} if plain else None


def _check(columns: Mapping[str, str], time_unit: str) -> None:
    problems = []
    if "arrival" not in columns:
        problems.append(Problem("columns", "must say which column is the arrival: arrival=…", ", ".join(columns)))
    if "size" not in columns and not {"start", "end"} <= set(columns):
        problems.append(Problem("columns", "must say which column is the size (size=…), or which are start and end", ", ".join(columns)))
    problems += [
        Problem("columns", "is a name that the import needs itself: call the resource something else", name)
        for name in columns
        if name in RESERVED
    ]
    if time_unit not in TIME_UNITS:
        problems.append(Problem("time_unit", f"must be one of {', '.join(TIME_UNITS)}", time_unit))
    if problems:
        raise BadSpec(problems)
