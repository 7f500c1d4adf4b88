"""Rota's own event log, `events.jsonl`: what `rota serve` did, one JSON object per line, to be played again under another policy.

    { "n": 1, "t": 1760000000.0, "event": "serve", "resources": {"cores": 20}, "types": {"train": {"cores": 3}}, "time_unit_s": 1.0, … }
    { "n": 2, "t": …, "event": "submit", "job": 1, "type": "train", "demand": {"cores": 3}, "estimate_s": null }
    { "n": 3, "t": …, "event": "start", "job": 1, "attempt": 1 }
    { "n": 4, "t": …, "event": "end", "job": 1, "outcome": "done", "exit_code": 0, "run_s": 12.1, "response_s": 12.3 }

and `eligible` (a held or blocked job joins the queue), `suspend`, `resume`, `requeue`, `swap`. One job is one job:

- arrival: when it joined the queue for the run that was to come: the last `eligible` before its first start, else its `submit`;
- size: `run_s` of its end, the time in service of all attempts, whether it ended well or not; jobs that never ran are left out;
- type: by name; types, their order and demands, the capacity and the unit of time are those of the last `serve`.

Times are divided by `time_unit_s`, so that rates agree with the spec that was served. A line torn by a crash is counted and skipped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from rota.errors import BadSpec, Problem
from rota.events import EVENTS_VERSION, Eligible, End, Serve, Start, Submit, decode_event
from rota.traces.readers.head import Head
from rota.traces.readers.ledger import Ledger
from rota.traces.readers.reader import Field, Reader
from rota.traces.readers.text import text_blocks

__all__ = ["READER"]

FAILED = "failed, but ran"
CANCELLED = "cancelled while they ran"
RESTARTED = "started more than once (the time of all runs counts)"

FIELDS = {
    "n": Field(pl.Int64, required=True),
    "t": Field(pl.Float64, required=True),
    "event": Field(pl.String, required=True),
    "job": Field(pl.Int64),
    "type": Field(pl.String),
    "estimate_s": Field(pl.Float64, least=0),
    "outcome": Field(pl.String),
    "run_s": Field(pl.Float64, least=0),
}


def fits(head: Head) -> bool:
    """Whether these are JSON lines with the keys of events."""
    columns = set(head.columns)
    return head.container == "json" and {"n", "t", "event"} <= columns and bool({"time_unit_s", "job"} & columns)


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Lines as events of jobs."""
    return rows.filter(pl.col("job").is_not_null()).select(
        "n", "t", "event", "type", "estimate_s", "outcome", "run_s", group="job", member=pl.lit(0, dtype=pl.Int64)
    )


def settled(paths: Sequence[Path]) -> Reader:
    """The reader for these files: with the types, the capacity and the unit of time of the last `serve` in them."""
    serve = _last_serve(paths)
    resources = tuple(serve.resources)
    unit = float(serve.time_unit_s)
    types = pl.DataFrame(
        {
            "label": list(serve.types),
            **{name: [float(demand.get(name, 0.0)) for demand in serve.types.values()] for name in resources},
        },
        schema={"label": pl.String, **dict.fromkeys(resources, pl.Float64)},
    )
    capacity = {name: float(amount) for name, amount in serve.resources.items()}
    return replace(
        READER,
        resources=resources,
        types=types,
        assemble=lambda events: _jobs(events, types, unit),
        capacity=lambda paths: capacity,
        about={"time_unit_s": unit, "policy": serve.policy},
    )


def _last_serve(paths: Sequence[Path]) -> Serve:
    source = ", ".join(map(str, paths))
    lines = (line for path in paths for block in text_blocks(path, Ledger("skip")) for line in block.text.split(b"\n"))
    last = max(filter(None, map(_serve, lines)), key=lambda found: found[:2], default=None)
    if last is None:
        problem = Problem("serve", "no event says which types are served: the log needs the line that the daemon writes when it starts")
        raise BadSpec([problem], source)
    serve = last[2]
    if serve.events > EVENTS_VERSION:
        rule = f"the log is of a later version of Rota ({serve.version}): this one reads version {EVENTS_VERSION}; read it with that one"
        raise BadSpec([Problem("serve.events", rule, serve.events)], source)
    return serve


def _serve(line: bytes) -> tuple[float, int, Serve] | None:
    """Time, number and content of a line that is a `serve` and says what it must."""
    if f'"{Serve.name}"'.encode() not in line:
        return None
    try:
        raw = json.loads(line)
    except ValueError:
        return None
    if not isinstance(raw, dict) or not _whole(raw):
        return None
    event = decode_event({"version": "", "policy": "", **raw})  # what an import does not need
    return (raw["t"], raw["n"], event) if isinstance(event, Serve) else None


def _whole(event: dict[str, Any]) -> bool:
    unit, types, resources = event.get("time_unit_s"), event.get("types"), event.get("resources")
    return (
        isinstance(unit, int | float)
        and math.isfinite(unit)
        and unit > 0
        and isinstance(resources, dict)
        and isinstance(types, dict)
        and all(isinstance(demand, dict) for demand in types.values())
        and isinstance(event.get("t"), int | float)
        and isinstance(event.get("n"), int)
    )


def _jobs(events: pl.DataFrame, types: pl.DataFrame, unit: float) -> pl.DataFrame:
    """A row per job of the events of whole jobs, in the unit of time of the plan."""
    rows = events.lazy().sort("n")
    event = pl.col("event")

    def last(name: str, **columns: pl.Expr) -> pl.LazyFrame:
        return rows.filter(event == name).group_by("group").agg(**columns)

    submits = last(Submit.name, submit=pl.col("t").first(), label=pl.col("type").first(), estimate=pl.col("estimate_s").first())
    starts = last(Start.name, first_start=pl.col("n").min(), start=pl.col("t").first(), starts=pl.len())
    ends = last(End.name, outcome=pl.col("outcome").last(), run=pl.col("run_s").last(), end=pl.col("t").last())
    jobs = rows.select("group").unique()
    for part in (submits, starts, ends):
        jobs = jobs.join(part, on="group", how="left")
    eligible = (
        rows.filter(event == Eligible.name)
        .join(jobs.select("group", "first_start"), on="group")
        .filter(pl.col("first_start").is_null() | (pl.col("n") < pl.col("first_start")))
        .group_by("group")
        .agg(eligible=pl.col("t").last())
    )
    known = types.lazy().with_columns(known=pl.lit(True))
    return (
        jobs.join(eligible, on="group", how="left")
        .join(known, on="label", how="left")
        .select(
            "group",
            "label",
            member=pl.lit(0, dtype=pl.Int64),
            arrival=pl.coalesce("eligible", "submit") / unit,
            size=pl.col("run") / unit,
            start=pl.col("start") / unit,
            end=pl.col("end") / unit,
            estimate=pl.col("estimate") / unit,
            reason=_reason(),
            **{name: pl.col(name).fill_null(0.0) for name in types.columns if name != "label"},
            **{
                FAILED: pl.col("outcome") == "failed",
                CANCELLED: pl.col("outcome") == "cancelled",
                RESTARTED: (pl.col("starts") > 1).fill_null(False),
            },
        )
        .collect()
    )


def _reason() -> pl.Expr:
    """Why a job is left out: the first rule that it breaks."""
    never_ran = pl.col("starts").is_null() & ~(pl.col("run") > 0).fill_null(False)
    rules = [
        (pl.col("submit").is_null(), "submitted before the log begins"),
        (pl.col("end").is_null(), "not ended inside the log"),
        (never_ran & (pl.col("outcome") == "cancelled"), "cancelled before it ran"),
        (never_ran, "ended without having run"),
        (pl.col("label") == "own", "of no type of the plan ('own')"),
        (pl.col("known").is_null(), "of a type that the last plan does not have"),
        (pl.col("run").is_null(), "time in service unknown"),
    ]
    return pl.coalesce([pl.when(broken).then(pl.lit(text)) for broken, text in rules])


READER = Reader(
    format="rota_events",
    looks_for="JSON lines with the keys n, t, event and job (events.jsonl of rota serve)",
    fits=fits,
    fields=FIELDS,
    resources=(),
    shape=shape,
    remarks=(FAILED, CANCELLED, RESTARTED),
    settled=settled,
    skips_bad_lines=True,
)
