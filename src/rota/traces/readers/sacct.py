"""Slurm's accounting as `sacct -P` prints it: a header, and a line per job and per job step, with fields separated by `|`.

    sacct -P -a -X -D -S 2026-07-01 -o JobID,State,Submit,Eligible,Start,End,ElapsedRaw,Timelimit,ReqTRES,AllocTRES,NNodes

Any order and choice of columns that suffices: an id, when the job came, how long it ran, whether it has ended, and what it held. Of several
columns that say the same, the first that is known counts: what was allocated before what was asked for, raw numbers before formatted ones.
Lines of job steps (`123.batch`, `123.0`) are no jobs and are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from rota.errors import BadSpec, Problem
from rota.traces.readers.head import Head, look
from rota.traces.readers.reader import Field, Reader
from rota.traces.readers.slurm_fields import (
    AMOUNT,
    COUNT,
    DURATION,
    MINUTES,
    TIME,
    TRES,
    amount,
    duration_s,
    gpus_of,
    has_others,
    memory_gb,
    node_count,
    time_s,
    tres,
)
from rota.traces.readers.slurm_jobs import REMARKS, RESOURCES, jobs_of_runs, state_of

__all__ = ["READER"]

_ID = Field(
    pl.String,
    pattern=r"^\d+(_(\d+|\[.*\]))?(\+\d+)?(\.\S+)?$",
    rule="must be the id of a job, such as 123, 123_4, 123+1 or 123.batch",
)
_SECONDS = Field(pl.Float64, least=0)
FIELDS = {
    "JobID": _ID,
    "JobIDRaw": _ID,
    "Cluster": Field(pl.String),
    "State": Field(pl.String),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), TIME),
    "ElapsedRaw": _SECONDS,
    "Elapsed": DURATION,
    "Suspended": DURATION,
    "TimelimitRaw": MINUTES,
    "Timelimit": DURATION,
    "AllocTRES": TRES,
    "ReqTRES": TRES,
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "AllocNodes"), COUNT),
    "NodeList": Field(pl.String),
    "ReqMem": AMOUNT,
}
# Each row: what must be known, and the columns of which one set must be there.
_NEEDED = (
    ("the id of the job", (("JobID",), ("JobIDRaw",))),
    ("when it came", (("Submit",), ("Eligible",))),
    ("how long it ran", (("ElapsedRaw",), ("Elapsed",), ("Start", "End"))),
    ("whether it has ended", (("State",), ("End",))),
    ("what it held", (("AllocTRES",), ("ReqTRES",), ("AllocCPUS",), ("NCPUS",), ("ReqCPUS",))),
)


def fits(head: Head) -> bool:
    """Whether the header has a column with job ids of Slurm, and is separated by bars, or has others of sacct's."""
    columns = set(head.columns)
    has_id = head.container == "text" and bool(columns & {"JobID", "JobIDRaw"})
    return has_id and (head.separator == "|" or len(columns & set(FIELDS)) >= 3)


def settled(paths: Sequence[Path]) -> Reader:
    """The reader, if the columns of these files suffice."""
    for path in paths:
        columns = look(path).columns
        problems = [
            Problem("columns", f"do not say {what}: ask sacct for {' or '.join(' and '.join(names) for names in ways)}")
            for what, ways in _NEEDED
            if not any(set(names) <= set(columns) for names in ways)
        ]
        problems += [Problem("columns", "come more than once", name) for name in FIELDS if columns.count(name) > 1]
        if problems:
            raise BadSpec(problems, source=str(path))
    return replace(READER, settled=None)


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Lines as runs of jobs, without those of job steps."""
    job = pl.coalesce("JobID", "JobIDRaw")
    start, end = time_s("Start"), time_s("End")
    cores = pl.coalesce(tres("AllocTRES", "cpu"), *(amount(pl.col(name)) for name in ("AllocCPUS", "NCPUS")), tres("ReqTRES", "cpu"))
    cores = pl.coalesce(pl.when(cores > 0).then(cores), amount(pl.col("ReqCPUS")))
    named = [amount(pl.col(name)) for name in ("NNodes", "AllocNodes")]
    nodes = pl.coalesce(tres("AllocTRES", "node"), *named, tres("ReqTRES", "node"), node_count("NodeList"), pl.lit(1.0))
    ran = pl.coalesce("ElapsedRaw", duration_s("Elapsed"), end - start - duration_s("Suspended").fill_null(0))
    return (
        rows.with_columns(job=job)
        .filter(~pl.col("job").str.contains(".", literal=True).fill_null(False))
        .select(
            "row",
            cluster="Cluster",
            group=pl.col("job").str.extract(r"^(\d+)").cast(pl.Int64),
            member=pl.coalesce(pl.col("job").str.extract(r"_(\d+)").cast(pl.Int64), pl.lit(-1)),
            component=pl.col("job").str.extract(r"\+(\d+)").cast(pl.Int64),
            state=state_of("State"),
            submit=time_s("Submit"),
            eligible=time_s("Eligible"),
            start=start,
            end=end,
            size=ran,
            limit=pl.coalesce(pl.col("TimelimitRaw").str.extract(r"^(\d+)$").cast(pl.Float64) * 60, duration_s("Timelimit")),
            cores=cores,
            memory_gb=pl.coalesce(tres("AllocTRES", "mem"), tres("ReqTRES", "mem"), memory_gb("ReqMem", cores, nodes)),
            gpus=pl.coalesce(gpus_of("AllocTRES"), gpus_of("ReqTRES"), pl.lit(0.0)),
            nodes=nodes,
            others=has_others("AllocTRES") | has_others("ReqTRES"),
        )
    )


READER = Reader(
    format="sacct",
    looks_for="text separated by | with the header JobID, Submit, … (sacct -P of Slurm)",
    fits=fits,
    fields=FIELDS,
    resources=RESOURCES,
    optional=("memory_gb", "gpus"),
    shape=shape,
    assemble=jobs_of_runs,
    remarks=REMARKS,
    settled=settled,
    quoted=False,
)
