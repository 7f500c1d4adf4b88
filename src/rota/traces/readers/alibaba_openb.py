"""Alibaba openb (cluster-trace-gpu-v2023): pods with cpu, memory and gpu.

cpu is in cores, memory in GiB, gpu in devices: a pod with one GPU asks for gpu_milli thousandths of it. The arrival is the creation, the
size runs from scheduled_time to deletion_time. The capacity is that of the most frequent node with GPUs, if a list of nodes is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from rota.errors import BadSpec, Problem
from rota.traces.readers.head import look
from rota.traces.readers.reader import Field, Reader

__all__ = ["reader"]

RESOURCES = ("cpu", "memory", "gpu")
_TIME, _AMOUNT = Field(pl.Float64), Field(pl.Float64, required=True, least=0)
FIELDS = {
    "cpu_milli": _AMOUNT,
    "memory_mib": _AMOUNT,
    "num_gpu": _AMOUNT,
    "gpu_milli": _AMOUNT,
    "creation_time": Field(pl.Float64, required=True),
    "deletion_time": _TIME,
    "scheduled_time": _TIME,
    "pod_phase": Field(pl.String),
}
FAILED = "failed, but ran"
RUNNING = "deleted while they ran"


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Pods as jobs."""
    begin, end = pl.col("scheduled_time"), pl.col("deletion_time")
    # Rounded, as Polars multiplies by 0.001 here, which makes 0.47 to 0.47000000000000003.
    devices = pl.when(pl.col("num_gpu") == 1).then((pl.col("gpu_milli") / 1000).round(3)).otherwise(pl.col("num_gpu"))
    return rows.select(
        arrival="creation_time",
        size=end - begin,
        cpu=(pl.col("cpu_milli") / 1000).round(3),
        memory=pl.col("memory_mib") / 1024,
        gpu=devices,
        reason=pl.coalesce(
            pl.when(begin.is_null()).then(pl.lit("never scheduled")), pl.when(end.is_null()).then(pl.lit("not ended inside the log"))
        ),
        group="row",
        member=pl.lit(0, dtype=pl.Int64),
        **{FAILED: pl.col("pod_phase") == "Failed", RUNNING: pl.col("pod_phase") == "Running"},
    )


def reader(nodes: Path | None = None) -> Reader:
    """The reader of pods; `nodes` is the list of nodes, from which the capacity of one comes."""
    return Reader(
        format="alibaba_openb",
        looks_for="columns cpu_milli, memory_mib, num_gpu, gpu_milli, creation_time, deletion_time and scheduled_time",
        fits=lambda head: set(FIELDS) - {"pod_phase"} <= set(head.columns),
        fields=FIELDS,
        resources=RESOURCES,
        shape=shape,
        remarks=(FAILED, RUNNING),
        capacity=partial(_capacity, nodes),
    )


def _capacity(nodes: Path | None, paths: Sequence[Path]) -> Mapping[str, float]:
    """The most frequent node with GPUs; of several equally frequent, the largest."""
    if nodes is None:
        return {}
    columns = {"cpu_milli", "memory_mib", "gpu"}
    if not nodes.is_file() or not columns <= set(look(nodes).columns):
        raise BadSpec([Problem("nodes", f"must be a CSV file with the columns {', '.join(sorted(columns))}", str(nodes))])
    kinds = (
        pl.read_csv(nodes)
        .filter(pl.col("gpu") > 0)
        .group_by(cpu=(pl.col("cpu_milli") / 1000).round(3), memory=pl.col("memory_mib") / 1024, gpu=pl.col("gpu").cast(pl.Float64))
        .len()
        .sort("len", *RESOURCES, descending=True)
    )
    return dict(zip(RESOURCES, kinds.select(RESOURCES).row(0), strict=True)) if kinds.height else {}
