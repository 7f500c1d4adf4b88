"""Slurm's file of completed jobs (`JobCompType=jobcomp/filetxt`): a line per run, of fields `Name=value` separated by blanks.

    JobId=19 UserId=… Name=… JobState=COMPLETED Partition=main TimeLimit=5 StartTime=2026-11-18T05:29:47 EndTime=… NodeList=n1 NodeCnt=1
    ProcCnt=2 WorkDir=… Tres=cpu=2,mem=300M,node=1 … SubmitTime=… EligibleTime=… ArrayJobId=4 ArrayTaskId=0 DerivedExitCode=0:0 ExitCode=0:0

The time limit is in minutes. A run that was requeued is written with the state PENDING. The size is the time from start to end: the file
does not say how long a job was suspended.
"""

from __future__ import annotations

import polars as pl

from rota.traces.readers.head import Head
from rota.traces.readers.reader import Field, Reader
from rota.traces.readers.slurm_fields import COUNT, MINUTES, TIME, TRES, amount, gpus_of, has_others, time_s, tres
from rota.traces.readers.slurm_jobs import REMARKS, RESOURCES, SUSPENDED, jobs_of_runs, state_of

__all__ = ["READER"]

_NUMBER = Field(pl.Int64, least=0)
FIELDS = {
    "JobId": Field(pl.Int64, required=True, least=0),
    "JobState": Field(pl.String, required=True),
    "TimeLimit": MINUTES,
    **dict.fromkeys(("StartTime", "EndTime", "SubmitTime", "EligibleTime"), TIME),
    "NodeCnt": COUNT,
    "ProcCnt": COUNT,
    "Tres": TRES,
    "Cluster": Field(pl.String),
    **dict.fromkeys(("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"), _NUMBER),
}


def fits(head: Head) -> bool:
    """Whether the first line has the names of this file."""
    line = head.lines[0] if head.container == "text" and head.lines else ""
    return line.startswith("JobId=") and all(f" {name}=" in line for name in ("JobState", "StartTime", "EndTime"))


def shape(rows: pl.DataFrame) -> pl.DataFrame:
    """Lines as runs of jobs."""
    start, end, state = time_s("StartTime"), time_s("EndTime"), state_of("JobState")
    requeued = (state == "PENDING") & end.is_not_null()
    cores, nodes = amount(pl.col("ProcCnt")), amount(pl.col("NodeCnt"))
    return rows.select(
        "row",
        cluster="Cluster",
        group=pl.coalesce("ArrayJobId", "HetJobId", "JobId"),
        member=pl.coalesce("ArrayTaskId", pl.lit(-1)),
        component="HetJobOffset",
        state=pl.when(requeued).then(pl.lit("REQUEUED")).otherwise(state),
        submit=time_s("SubmitTime"),
        eligible=time_s("EligibleTime"),
        start=start,
        end=end,
        size=end - start,
        limit=pl.col("TimeLimit").str.extract(r"^(\d+)$").cast(pl.Float64) * 60,
        cores=pl.coalesce(tres("Tres", "cpu"), pl.when(cores > 0).then(cores)),
        memory_gb=tres("Tres", "mem"),
        gpus=gpus_of("Tres").fill_null(0.0),
        nodes=pl.coalesce(pl.when(nodes > 0).then(nodes), tres("Tres", "node"), pl.lit(1.0)),
        others=has_others("Tres"),
    )


READER = Reader(
    format="slurm_jobcomp",
    looks_for="lines that begin with JobId=… and have JobState=…, StartTime=…, EndTime=… (jobcomp/filetxt of Slurm)",
    fits=fits,
    fields=FIELDS,
    resources=RESOURCES,
    optional=("memory_gb", "gpus"),
    shape=shape,
    assemble=jobs_of_runs,
    remarks=tuple(text for text in REMARKS if text != SUSPENDED),
    keyed=True,
)
