"""From events to jobs: one job is one instance, and its life is a list of events.

Of the instance (group, member):

- arrival = its first SUBMIT;
- end = its last FINISH; start = the last SCHEDULE before that; size = end − start;
- demand = the last non-null request at or before the start (of several at one instant, the one with the highest event code);
- it is kept if it was submitted and finished inside the window of the log. Time 0 stands for "before the window", 2⁶³ − 1 for "after it".

Nothing here depends on the order of the events. Times are whole microseconds until the end: no size is a difference of rounded numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

__all__ = ["BEFORE", "RESTARTED", "TWICE", "Codes", "jobs_of_events"]

BEFORE, _AFTER = 0, 2**63 - 1
_KEY = ["group", "member"]
RESTARTED = "started more than once (the last start counts)"
TWICE = "finished more than once (the last run counts)"


@dataclass(frozen=True)
class Codes:
    """What the numbers of a log's event types mean."""

    submit: int
    schedule: int
    evict: int
    fail: int
    finish: int
    kill: int
    lost: int
    most: int  # the highest code there is


def jobs_of_events(events: pl.DataFrame, codes: Codes, resources: Sequence[str]) -> pl.DataFrame:
    """A row per instance: `group`, `member`, `arrival`, `size`, the resources, `reason` (null: keep it) and the remarks."""
    rows = events.lazy()
    time, event = pl.col("time"), pl.col("event")
    inside = (time > BEFORE) & (time < _AFTER)

    ends = rows.filter((event == codes.finish) & inside).group_by(_KEY).agg(end=time.max(), finishes=pl.len())
    starts = (
        rows.filter((event == codes.schedule) & inside)
        .join(ends.select(*_KEY, "end"), on=_KEY)
        .filter(time < pl.col("end"))
        .group_by(_KEY)
        .agg(start=time.max(), starts=pl.len())
    )
    submits = rows.filter(event == codes.submit).group_by(_KEY).agg(submit=time.min())
    requests = (
        rows.filter(pl.any_horizontal(pl.col(resources).is_not_null()))
        .join(starts.select(*_KEY, "start"), on=_KEY)
        .filter(time <= pl.col("start"))
        .sort("time", "event", *resources)
        .group_by(_KEY)
        .agg(pl.col(resources).last())
    )
    # How an instance ended that never finished: by its last event, of those that begin or end something.
    marks = [codes.submit, codes.schedule, codes.evict, codes.fail, codes.kill, codes.lost]
    lasts = rows.filter(event.is_in(marks)).sort("time", "event").group_by(_KEY).agg(last=event.last())

    jobs = rows.select(_KEY).unique()
    for part in (submits, ends, starts, requests, lasts):
        jobs = jobs.join(part, on=_KEY, how="left")
    return (
        jobs.with_columns(reason=_reason(codes, resources))
        .select(
            *_KEY,
            arrival=pl.col("submit") / 1e6,
            size=(pl.col("end") - pl.col("start")) / 1e6,
            reason="reason",
            **{name: pl.col(name).fill_null(0.0) for name in resources},
            **{RESTARTED: pl.col("starts") > 1, TWICE: pl.col("finishes") > 1},
        )
        .collect()
    )


def _reason(codes: Codes, resources: Sequence[str]) -> pl.Expr:
    """Why an instance is left out: the first rule that it breaks."""
    unfinished = pl.col("end").is_null()
    rules = [(unfinished & (pl.col("last") == code), f"ended without FINISH: {word}") for code, word in _ends(codes)]
    rules += [
        (unfinished, "not finished inside the log"),
        (pl.col("submit").is_null(), "no SUBMIT event"),
        (pl.col("submit") == BEFORE, "submitted before the log begins"),
        (pl.col("submit") == _AFTER, "submitted after the log ends"),
        (pl.col("start").is_null(), "no SCHEDULE before its FINISH"),
        (pl.all_horizontal(pl.col(resources).is_null()), "no resource request"),
    ]
    return pl.coalesce([pl.when(broken).then(pl.lit(text)) for broken, text in rules])


def _ends(codes: Codes) -> list[tuple[int, str]]:
    return [(codes.evict, "evicted"), (codes.fail, "failed"), (codes.kill, "killed"), (codes.lost, "lost")]
