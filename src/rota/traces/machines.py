"""The machines of a trace as kinds of servers: machines with the same model and the same amounts are one kind.

Four lists are known, by their columns:

- Alibaba openb (`openb_node_list_…`): `cpu_milli`, `memory_mib`, `gpu` and `model`; amounts in cores, GiB and devices, as its pods have
  them. The devices of a node are one amount: parts of several devices add up.
- Google 2011 `machine_events`: six columns without a header; Borg 2019 `machine_events`: `machine_id`, `type`, `capacity.cpus` and
  `capacity.memory`. Machines come, go and change; those that are there after the last event are taken. Amounts are normalised.
- a table: a row per kind with `count`, or per machine without it; `kind` names it, and every other column is a resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.traces.readers.head import Head, look

__all__ = ["Machines", "read_machines"]

_GOOGLE = ("time", "machine ID", "event type", "platform ID", "CPUs", "Memory")


@dataclass(frozen=True, eq=False)
class Machines:
    """`count[c]` machines of each kind with `capacity[c]` (R,); most frequent kinds first."""

    kinds: tuple[str, ...]
    resources: tuple[str, ...]
    count: Int
    capacity: Array

    def __len__(self) -> int:
        return int(self.count.sum())

    def __repr__(self) -> str:
        return f"<Machines: {len(self):,} of {len(self.kinds)} kinds, with {', '.join(self.resources)}>"

    def amounts(self, resources: Sequence[str], each: Mapping[str, float] | None = None) -> Array:
        """The capacities in the order of these resources (C, R); `each`: what every machine has of those that the list does not tell."""
        given = dict(each or {})
        problems = [
            Problem(f"each.{name}", "must be positive and finite", x) for name, x in given.items() if not (np.isfinite(x) and x > 0)
        ]
        problems += [
            Problem(f"each.{name}", f"is {rule}", given[name])
            for name in given
            for rule in (
                ["in the list of machines"] if name in self.resources else [] if name in resources else ["no resource of the trace"]
            )
        ]
        unknown = [name for name in resources if name not in self.resources and name not in given]
        if unknown:
            rule = f"does not tell how much of these the machines have: {', '.join(unknown)}. Say it, if it is the same for all"
            problems.append(Problem("machines", f"{rule}: each={{'{unknown[0]}': …}}, or --each {unknown[0]}=…"))
        if problems:
            raise BadSpec(problems)
        return np.column_stack(
            [
                self.capacity[:, self.resources.index(name)] if name in self.resources else np.full(len(self.kinds), given[name])
                for name in resources
            ]
        )


def read_machines(path: str | Path) -> Machines:
    """The machines that a file lists; the content says in which format. Raises `BadSpec` if it is none of those known."""
    path = Path(path)
    if not path.is_file():
        raise BadSpec([Problem("machines", "is not a file", str(path))])
    head = look(path)
    columns = set(head.columns)
    try:
        if {"cpu_milli", "memory_mib", "gpu"} <= columns:
            return _openb(_table(path, head))
        if {"machine_id", "type", "capacity.cpus", "capacity.memory"} <= columns:
            names = {"machine_id": "machine", "type": "event", "capacity.cpus": "cpu", "capacity.memory": "memory"}
            return _after_events(_table(path, head).rename(names), removed={"2", "REMOVE"})
        if head.container == "text" and _is_google(head):
            rows = pl.read_csv(path, has_header=False, new_columns=list(_GOOGLE), infer_schema=False)
            names = {"machine ID": "machine", "event type": "event", "CPUs": "cpu", "Memory": "memory", "platform ID": "model"}
            return _after_events(rows.rename(names), removed={"1"})
        if head.container in ("text", "json", "parquet"):
            return _listed(_table(path, head))
    except pl.exceptions.PolarsError as error:
        raise BadSpec([Problem("machines", f"cannot be read: {str(error).splitlines()[0]}", str(path))]) from None
    raise BadSpec([Problem("machines", "is not a list of machines: a CSV, JSON lines or parquet file", str(path))])


def _table(path: Path, head: Head) -> pl.DataFrame:
    if head.container == "parquet":
        rows = pl.read_parquet(path)
        nested = [name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Struct)]
        for name in nested:
            parts = rows[name].struct.unnest()
            rows = rows.drop(name).hstack(parts.rename({part: f"{name}.{part}" for part in parts.columns}).get_columns())
        return rows.cast(pl.String)
    if head.container == "json":
        return pl.json_normalize(pl.read_ndjson(path).to_dicts()).cast(pl.String)
    rows = pl.read_csv(path, separator=head.separator, infer_schema=False)
    return rows.rename({name: name.strip() for name in rows.columns})


def _is_google(head: Head) -> bool:
    parts = [line.split(",") for line in head.lines[:5]]
    return bool(parts) and all(len(row) == len(_GOOGLE) and row[0].isdigit() and row[2] in ("0", "1", "2") for row in parts)


def _amount(column: str, scale: float = 1.0) -> pl.Expr:
    return (pl.col(column).cast(pl.Float64, strict=True) / scale).alias(column)


def _openb(rows: pl.DataFrame) -> Machines:
    model = pl.col("model").fill_null("") if "model" in rows.columns else pl.lit("")
    found = rows.select(
        cpu=(_amount("cpu_milli") / 1000).round(3),
        memory=_amount("memory_mib") / 1024,
        gpu=_amount("gpu"),
        label=pl.when(_amount("gpu") > 0).then(model).otherwise(pl.lit("cpu")),
    )
    return _kinds(found, ("cpu", "memory", "gpu"))


def _after_events(rows: pl.DataFrame, removed: set[str]) -> Machines:
    """The machines that the last event of each leaves, with the last amounts that were given."""
    rows = rows.with_columns(_amount("cpu"), _amount("memory"), pl.col("time").cast(pl.Float64), pl.col("event").str.strip_chars())
    amounts = [pl.col(name).drop_nulls().last() for name in ("cpu", "memory")]
    label = pl.col("model").drop_nulls().last() if "model" in rows.columns else pl.lit("")
    last = (
        rows.sort("time", maintain_order=True).group_by("machine", maintain_order=True).agg(*amounts, pl.col("event").last(), label=label)
    )
    there = last.filter(~pl.col("event").is_in(sorted(removed)) & pl.col("cpu").is_not_null() & pl.col("memory").is_not_null())
    return _kinds(there.with_columns(label=pl.lit("")), ("cpu", "memory"))


def _listed(rows: pl.DataFrame) -> Machines:
    names = tuple(name for name in rows.columns if name not in ("kind", "count"))
    if not names or not rows.height:
        raise BadSpec([Problem("machines", "needs a column for each resource, and a row for each machine or kind", rows.columns)])
    table = rows.select(
        *(_amount(name) for name in names),
        label=pl.col("kind").fill_null("") if "kind" in rows.columns else pl.lit(""),
        number=_amount("count") if "count" in rows.columns else pl.lit(1.0),
    )
    for name in (*names, "number"):
        low = 0 if name in names else 1
        bad = table.filter(pl.col(name).is_null() | ~pl.col(name).is_finite() | (pl.col(name) < low))
        if bad.height or (name == "number" and (table[name] % 1 != 0).any()):
            column = "count" if name == "number" else name
            rule = "must be whole numbers of at least 1" if name == "number" else "must be finite numbers that are not negative"
            raise BadSpec([Problem(f"machines.{column}", rule, (bad if bad.height else table)[name][0])])
    return _kinds(table, names)


def _kinds(rows: pl.DataFrame, resources: tuple[str, ...]) -> Machines:
    """Equal machines together, most frequent first. A kind is called by its model; kinds of one model by a number too."""
    if "number" not in rows.columns:
        rows = rows.with_columns(number=pl.lit(1.0))
    rows = rows.filter(pl.sum_horizontal(resources) > 0)
    if not rows.height:
        raise BadSpec([Problem("machines", "lists none")])
    kinds = rows.group_by("label", *resources).agg(pl.col("number").sum()).sort("number", *resources, "label", descending=True)
    labels = [label or "machine" for label in kinds["label"]]
    seen: dict[str, int] = {}
    names = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        names.append(label if labels.count(label) == 1 else f"{label}-{seen[label]}")
    return Machines(tuple(names), resources, kinds["number"].to_numpy().astype(np.int64), kinds.select(resources).to_numpy())
