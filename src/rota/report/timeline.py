"""Gantt chart: when each job waited and ran, and what the rota was doing meanwhile.

A log has a row per event (`time`, `event`, `type`, `job`), as `rota.simulate(…, log_jobs=n)` gives it. `gantt_table` cuts it into pieces:
from arrival to start a job waits, from start to preemption or finish it runs. The state of the modulating process is no part of a log;
`watch` runs an MSR policy and notes it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import numpy as np
import polars as pl

from rota.errors import BadSpec, Problem
from rota.report.style import INK, TIME, styled, type_colours

if TYPE_CHECKING:
    from rota.model import System
    from rota.policy import MSR

__all__ = ["Watched", "gantt", "gantt_table", "watch"]

_WIDTH = 720
_ROW = {"jobs": 9, "slots": 18}  # pixels
_MOST_ROWS = 120
_ENOUGH = 100  # the least number of jobs that can be simulated


def gantt(
    log: pl.DataFrame,
    system: System,
    modes: pl.DataFrame | None = None,
    *,
    rows: Literal["jobs", "slots"] = "jobs",
    until: float | None = None,
    title: str = "When jobs ran",
) -> Any:
    """A row per job in order of arrival (thin: waiting, thick: running), or a row per slot of each type.

    `modes`: the states of the modulating process (columns `start`, `end`, `state`, `working`, as `watch` gives them), drawn as a strip
    above. `until`: only what comes before this time.
    """
    if rows not in _ROW:
        raise BadSpec([Problem("rows", 'must be "jobs" or "slots"', rows)])
    pieces = gantt_table(log)
    if until is not None:
        pieces = _clipped(pieces, until)
    if rows == "jobs" and pieces["job"].n_unique() > _MOST_ROWS:
        n = pieces["job"].n_unique()
        raise BadSpec([Problem("log", f'has too many jobs to be drawn: use until=…, rows="slots", or log at most {_MOST_ROWS}', n)])
    if not len(pieces):
        raise BadSpec([Problem("log", "has no events in the time that is to be drawn")])
    low, high = float(np.asarray(pieces["start"].min())), float(np.asarray(pieces["end"].max()))
    low = 0.0 if low < 0.05 * high else low
    x = alt.X("start:Q", title=f"time ({TIME})", scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(tickCount=10))
    color = alt.Color("type:N", scale=type_colours(system.names), title=None, legend=alt.Legend(orient="bottom", symbolOpacity=1))
    bars = _job_rows(pieces, x, color) if rows == "jobs" else _slot_rows(pieces, system, x, color)
    words = ["thick: running, thin: waiting" if rows == "jobs" else "a row per slot of each type"]
    if (pieces["ended"] == "preempt").any():
        words.append("│: preempted")
    if modes is None:
        return styled(bars, title, "; ".join(words))
    seen = _clipped(modes, high).filter(pl.col("end") > low).with_columns(pl.col("start").clip(low))
    strip = _strip(seen, x, f"schedule ({', '.join(system.names)})")
    both = alt.vconcat(strip, bars, spacing=6).resolve_scale(x="shared", color="independent")
    return styled(both, title, "; ".join(words))


def _job_rows(pieces: pl.DataFrame, x: Any, color: Any) -> Any:
    jobs = pieces["job"].unique().sort()
    y = alt.Y(
        "job:O",
        title="job, in order of arrival",
        scale=alt.Scale(domain=jobs.to_list(), padding=0.15),
        axis=alt.Axis(values=jobs.gather_every(max(1, len(jobs) // 12)).to_list(), grid=False, ticks=False),
    )
    tooltip: Any = ["job:N", "type:N", "doing:N", alt.Tooltip("start:Q", format=".4~g"), alt.Tooltip("end:Q", format=".4~g"), "ended:N"]
    base = alt.Chart(pieces).encode(x, alt.X2("end"), y, color, tooltip=tooltip)
    waiting = base.transform_filter("datum.doing == 'waiting'").mark_bar(height=1.5, opacity=0.75)
    running = base.transform_filter("datum.doing == 'running'").mark_bar()
    cut = alt.Chart(pieces.filter(pl.col("ended") == "preempt")).mark_tick(color=INK, thickness=1.5)
    return (waiting + running + cut.encode(_moved(x, "end"), y)).properties(width=_WIDTH, height=max(160, _ROW["jobs"] * len(jobs)))


def _slot_rows(pieces: pl.DataFrame, system: System, x: Any, color: Any) -> Any:
    placed = _slots(pieces.filter(pl.col("doing") == "running"), system)
    order = placed.unique("slot").sort("place")["slot"].to_list()
    y = alt.Y("slot:N", title=None, sort=order, axis=alt.Axis(ticks=False, grid=False, labelLimit=200))
    tooltip = ["job:N", "type:N", alt.Tooltip("start:Q", format=".4~g"), alt.Tooltip("end:Q", format=".4~g"), "ended:N"]
    bars = alt.Chart(placed).mark_bar(stroke="white", strokeWidth=0.8).encode(x, alt.X2("end"), y, color, tooltip=tooltip)
    cut = alt.Chart(placed.filter(pl.col("ended") == "preempt")).mark_tick(color=INK, thickness=1.5).encode(_moved(x, "end"), y)
    return (bars + cut).properties(width=_WIDTH, height=_ROW["slots"] * max(len(order), 2))


def _strip(modes: pl.DataFrame, x: Any, title: str) -> Any:
    """The states over time; working states are named where the name fits."""
    names = modes.filter("working")["state"].unique(maintain_order=True).to_list()
    shades = ["#3d3d3d", "#8a8a8a", "#5f5f5f", "#a8a8a8"]
    domain = names if modes["working"].all() else [*names, "switching"]
    scale = alt.Scale(domain=domain, range=[*(shades[k % 4] for k in range(len(names))), "#e4e4e4"][: len(domain)])
    legend = alt.Legend(orient="top", titleOrient="left", symbolType="square", columns=4) if len(names) <= 8 else None
    span = float(np.asarray(modes["end"].max())) - float(np.asarray(modes["start"].min()))
    data = modes.with_columns(
        shade=pl.when("working").then("state").otherwise(pl.lit("switching")),
        middle=(pl.col("start") + pl.col("end")) / 2,
        fits=(pl.col("end") - pl.col("start")) / span * _WIDTH > 7 * pl.col("state").str.len_chars() + 6,
    )
    bare = alt.X("start:Q", title=None, scale=x["scale"], axis=alt.Axis(labels=False, ticks=False, domain=False, grid=False))
    tooltip = ["state:N", alt.Tooltip("start:Q", format=".4~g"), alt.Tooltip("end:Q", format=".4~g")]
    base = alt.Chart(data, height=22, width=_WIDTH)
    bars = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        bare, alt.X2("end"), alt.Color("shade:N", scale=scale, title=title, legend=legend), tooltip=tooltip
    )
    text = base.transform_filter("datum.working && datum.fits").mark_text(color="white", fontSize=11)
    return bars + text.encode(_moved(bare, "middle"), text="state:N")


def _moved(x: Any, field: str) -> Any:
    """The same axis for another field."""
    return alt.X(f"{field}:Q", title=x["title"], scale=x["scale"], axis=x["axis"])


# ---------------------------------------------------------------------------------------------------------------- tables


def gantt_table(log: pl.DataFrame) -> pl.DataFrame:
    """A log cut into pieces: `job`, `type`, `start`, `end`, `doing` ("waiting", "running"), `ended` ("start", "preempt", "finish", "open").

    A piece ends at the job's next event; what was still going on when the log ended is open. Pieces of no length are left out.
    """
    last = log["time"].max()
    after = pl.col("event").shift(-1).over("job")
    return (
        log.with_columns(
            end=pl.col("time").shift(-1).over("job").fill_null(last),
            ended=after.fill_null("open"),
            doing=pl.when(pl.col("event") == "start").then(pl.lit("running")).otherwise(pl.lit("waiting")),
        )
        .filter((pl.col("event") != "finish") & (pl.col("end") > pl.col("time")))
        .select("job", "type", pl.col("time").alias("start"), "end", "doing", "ended")
        .sort("job", "start")
    )


def _clipped(pieces: pl.DataFrame, until: float) -> pl.DataFrame:
    """What lies before a time; a piece that goes on is open there."""
    cut = pieces.filter(pl.col("start") < until)
    if "ended" in cut.columns:
        cut = cut.with_columns(ended=pl.when(pl.col("end") > until).then(pl.lit("open")).otherwise("ended"))
    return cut.with_columns(pl.col("end").clip(upper_bound=until))


def _slots(running: pl.DataFrame, system: System) -> pl.DataFrame:
    """Gives each piece the first slot of its type that is free when it begins."""
    free: dict[str, list[float]] = {name: [] for name in system.names}
    order = {name: i for i, name in enumerate(system.names)}
    labels, places = [], []
    pieces = running.sort("start", "job")
    for kind, start, end in pieces.select("type", "start", "end").iter_rows():
        ends = free[kind]
        k = next((k for k, when in enumerate(ends) if when <= start), len(ends))
        ends[k : k + 1] = [end]
        labels.append(f"{kind} {k + 1}")
        places.append(1000 * order[kind] + k)
    return pieces.with_columns(slot=pl.Series(labels, dtype=pl.String), place=pl.Series(places, dtype=pl.Int64))


# ---------------------------------------------------------------------------------------------------------------- the states, too


@dataclass(frozen=True)
class Watched:
    """A short run of an MSR policy: its events, and the states of its modulating process (`start`, `end`, `state`, `working`)."""

    log: pl.DataFrame
    modes: pl.DataFrame


def watch(system: System, policy: MSR, *, jobs: int = 60, seed: int = 0) -> Watched:
    """Runs a policy and notes its first `jobs` jobs and every state of its process until the last of them has left.

    The run is that of `rota.simulate` with the same seed, event by event; the decisions are the same function, asked one by one.
    """
    from rota.decide import decider_of
    from rota.decide.msr import PLACE
    from rota.decide.state import SWITCHING
    from rota.policy import Custom, policy_name
    from rota.process import build_process
    from rota.simulation import simulate

    decider, process = decider_of(system, policy), build_process(system, policy)
    moves: list[tuple[float, int, bool]] = []

    def decide(state: Any, target: Any) -> float:
        again = float(decider.decide(state, target))
        now = int(state.counters[PLACE]), bool(state.mode[SWITCHING] == 0)
        if not moves or moves[-1][1:] != now:
            moves.append((float(state.clock[0]), *now))
        return again

    spied = Custom(decide, policy_name(policy), decider.data, decider.memory, decider.counters, compiled=False)
    log = simulate(system, spied, jobs=max(4 * jobs, _ENOUGH), seed=seed, log_jobs=jobs).log
    assert log is not None
    end = float(np.asarray(log["time"].max()))
    starts = np.array([time for time, _, _ in moves])
    modes = pl.DataFrame(
        {
            "start": starts,
            "end": np.append(starts[1:], max(end, starts[-1])),
            "state": ["(" + ", ".join(str(int(u)) for u in process.schedules[s]) + ")" for _, s, _ in moves],
            "working": [working for _, _, working in moves],
        }
    )
    return Watched(log, _clipped(modes, end))
