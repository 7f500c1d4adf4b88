"""From the runs in Slurm's logs to jobs. A log has a row per run, and a job that was requeued ran several times.

Runs of one id, in the order in which they were submitted:

- a run that was logged twice (the same submission, as when exports of two months have it) counts once, the row with the latest end;
- a run after one that ended as REQUEUED, PREEMPTED, NODE_FAIL or the like is the same job again; after any other end it is another job,
  as Slurm may use an id again;
- the components of a heterogeneous job (`123+0`, `123+1`) run side by side: one job, with the sum of what they hold.

Of a job: arrival = when its first run became eligible, else was submitted; start = the first start; end = the last end; size = the time of
the last run without what it was suspended. What earlier runs lost is waiting, in `end − arrival − size`.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

__all__ = ["REMARKS", "RESOURCES", "jobs_of_runs", "state_of"]

RESOURCES = ("cores", "memory_gb", "gpus")
_KEY = ["cluster", "group", "member"]
_AGAIN = (
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "SPECIAL_EXIT",
    "PREEMPTED",
    "NODE_FAIL",
    "BOOT_FAIL",
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
)
_MEASURES = ("arrival", "submit", "start", "end", "size", "limit", "state", "nodes", "others", "cores", "gpus")
_PENDING = ("PENDING",)
_RUNNING = ("RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT")

FAILED = "failed, but ran"
CANCELLED = "cancelled while they ran"
TIMEOUT = "stopped at their time limit (the size is the time until then)"
MEMORY = "stopped for lack of memory (the size is the time until then)"
LOST = "stopped by a failed node, preemption or a deadline (the size is the time until then)"
RESTARTED = "started more than once (the last run is the size)"
SUSPENDED = "suspended for a time (which is no part of the size)"
SEVERAL = "on more than one node (their demand is the sum)"
PARTS = "heterogeneous (their demand is the sum of the components)"
LATER = "eligible later than submitted (they arrive when eligible)"
BEFORE = "started before they were eligible (they arrive when they start)"
OTHERS = "with licenses or generic resources other than GPUs (not counted)"
NO_MEMORY = "of unknown memory (taken as 0)"
NO_ESTIMATE = "without a time limit (the estimate is then the run time)"
REMARKS = (
    *(FAILED, CANCELLED, TIMEOUT, MEMORY, LOST, RESTARTED, SUSPENDED, SEVERAL, PARTS, LATER, BEFORE, OTHERS),
    *(NO_MEMORY, NO_ESTIMATE),
)
_ENDS = {
    FAILED: ("FAILED",),
    CANCELLED: ("CANCELLED",),
    TIMEOUT: ("TIMEOUT",),
    MEMORY: ("OUT_OF_MEMORY",),
    LOST: ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED"),
}


def state_of(name: str) -> pl.Expr:
    """The state without what follows it: `CANCELLED by 1000`, `RUNNING+`."""
    return pl.col(name).str.extract(r"^([A-Za-z_]+)").str.to_uppercase()


def jobs_of_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """A row per job, from all runs of these ids.

    `runs` has cluster, group, member, component (of a heterogeneous job, else null), state, submit, eligible, start, end, size, limit,
    cores, memory_gb, gpus, nodes, others, row; null is unknown.
    """
    several = (pl.len().over(_KEY) > 1) | pl.col("component").is_not_null()
    marked = runs.with_columns(several=several, arrival=pl.max_horizontal("submit", "eligible"), end=_end())
    alone = marked.lazy().filter(~pl.col("several")).select(*_KEY, *_MEASURES, **_of_one_run())
    jobs = pl.concat([alone, _joined(marked.lazy().filter("several")).select(alone.collect_schema().names())])
    early = (pl.col("start") < pl.col("arrival")).fill_null(False)
    return jobs.select(
        "group",
        "member",
        "size",
        "start",
        "end",
        estimate="limit",
        arrival=pl.min_horizontal("arrival", "start"),
        **{name: pl.when(pl.col(name) > 0).then(name).otherwise(0.0) for name in RESOURCES},  # the sum of no numbers is −0
        reason=_reason(),
        **{text: pl.col("state").is_in(states).fill_null(False) for text, states in _ENDS.items()},
        **{
            RESTARTED: pl.col("runs") > 1,
            SUSPENDED: (pl.col("held") > 0).fill_null(False),
            SEVERAL: pl.col("nodes") > 1,
            PARTS: pl.col("parts") > 1,
            LATER: ~early & (pl.col("arrival") > pl.col("submit")).fill_null(False),
            BEFORE: early,
            OTHERS: pl.col("others"),
            NO_MEMORY: pl.col("unknown_memory"),
            NO_ESTIMATE: pl.col("limit").is_null(),
        },
    ).collect()


def _end() -> pl.Expr:
    """The end, if need be from start and size; without a state, only a known end says that a run has ended."""
    return pl.when(pl.col("state").is_null()).then("end").otherwise(pl.coalesce("end", pl.col("start") + pl.col("size")))


def _of_one_run() -> dict[str, pl.Expr]:
    """What is known of a job that ran once, as for those that ran more often."""
    return {
        "held": pl.col("end") - pl.col("start") - pl.col("size"),
        "runs": pl.col("start").is_not_null().cast(pl.UInt32),
        "parts": pl.lit(1, dtype=pl.UInt32),
        "unknown_memory": pl.col("memory_gb").is_null(),
        "memory_gb": pl.col("memory_gb").fill_null(0.0),
    }


def _joined(runs: pl.LazyFrame) -> pl.LazyFrame:
    """A row per job of those with several runs or components."""
    one = [*_KEY, "component"]
    again = pl.col("state").is_in(_AGAIN).fill_null(False).shift(1, fill_value=False).over(one)
    numbered = (
        runs.sort(*one, "submit", "end", "row", nulls_last=False)
        .unique([*one, "submit"], keep="last", maintain_order=True)
        .with_columns(job=(~again).cum_sum().over(one), held=pl.col("end") - pl.col("start") - pl.col("size"))
    )
    # What a component holds and its size are those of its last run.
    components = numbered.group_by(*one, "job", maintain_order=True).agg(
        pl.col("arrival", "submit").first(),
        pl.col("start").drop_nulls().first(),
        pl.col("end", "held", "size", "limit", "state", "nodes", "others", *RESOURCES).last(),
        runs=pl.col("start").count(),
    )
    return components.group_by(*_KEY, "job", maintain_order=True).agg(
        pl.col("arrival").max(),  # a heterogeneous job waits until all its components can run
        pl.col("start", "submit").min(),
        pl.col("end", "size", "limit", "held", "runs").max(),
        pl.col("state").first(),
        pl.col("nodes", "memory_gb", "gpus").sum(),
        pl.col("others").any(),
        parts=pl.col("component").n_unique(),
        unknown_memory=pl.col("memory_gb").is_null().any(),
        cores=pl.when(pl.col("cores").count() > 0).then(pl.col("cores").sum()),
    )


def _reason() -> pl.Expr:
    """Why a job is left out: the first rule that it breaks."""
    state, size, start = pl.col("state"), pl.col("size"), pl.col("start")
    never_ran = start.is_null() | (pl.col("end") <= start).fill_null(False)
    rules: Sequence[tuple[pl.Expr, str]] = [
        (state.is_in(_PENDING), "still pending (an array in one line counts once)"),
        (state.is_in(_RUNNING), "still running"),
        (state.is_null() & pl.col("end").is_null(), "not ended in the log"),
        (state == "REQUEUED", "requeued, and its next run is not in the log"),
        ((state == "CANCELLED") & never_ran & ~(size > 0).fill_null(False), "cancelled before it ran"),
        (pl.col("arrival").is_null(), "submit time unknown"),
        (size.is_null() & start.is_null(), "ended without having run"),
        (size.is_null(), "run time unknown"),
        (pl.col("cores").is_null(), "number of CPUs unknown"),
    ]
    return pl.coalesce([pl.when(broken).then(pl.lit(text)) for broken, text in rules])
