"""Google Borg 2019 (clusterdata-2019): the table `instance_events`, as JSON lines, CSV or parquet shards.

One job is one instance (collection_id, instance_index); see `lifecycle` for its arrival, size and demand. Requests are normalised: 1 is the
largest machine.
"""

from __future__ import annotations

import polars as pl

from rota.traces.readers.head import Head
from rota.traces.readers.lifecycle import RESTARTED, TWICE, Codes
from rota.traces.readers.reader import Field, Reader

__all__ = ["CODES", "READER"]

CODES = Codes(submit=0, schedule=3, evict=4, fail=5, finish=6, kill=7, lost=8, most=10)

FIELDS = {
    "time": Field(pl.Int64, required=True, least=0),
    "type": Field(pl.Int64, required=True, least=0, most=CODES.most),
    "collection_id": Field(pl.Int64, required=True),
    "instance_index": Field(pl.Int64, required=True),
    "resource_request.cpus": Field(pl.Float64, least=0),
    "resource_request.memory": Field(pl.Float64, least=0),
}


def fits(head: Head) -> bool:
    """Whether the columns are those of `instance_events` (`collection_events` has no instance_index)."""
    return {"time", "type", "collection_id", "instance_index"} <= set(head.columns)


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `instance_events` as events. A request is null if both its parts are; one part alone missing counts as 0."""
    cpu, memory = pl.col("resource_request.cpus"), pl.col("resource_request.memory")
    asked = cpu.is_not_null() | memory.is_not_null()
    return rows.select(
        group="collection_id",
        member="instance_index",
        time="time",
        event=pl.col("type").cast(pl.UInt8),
        cpu=pl.when(asked).then(cpu.fill_null(0.0)),
        memory=pl.when(asked).then(memory.fill_null(0.0)),
    )


READER = Reader(
    format="borg2019",
    looks_for="JSON lines, CSV or parquet with the columns time, type, collection_id and instance_index (instance_events)",
    fits=fits,
    fields=FIELDS,
    resources=("cpu", "memory"),
    shape=shape,
    codes=CODES,
    remarks=(RESTARTED, TWICE),
    capacity=lambda paths: {"cpu": 1.0, "memory": 1.0},
)
