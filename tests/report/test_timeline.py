"""Gantt charts: logs cut into pieces, slots without collisions, and the states of the rota."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.errors import BadSpec
from rota.report import gantt, gantt_table, type_colour, watch
from rota.report.timeline import _slots
from rotas import paper_rota
from systems import paper_example

SYSTEM = paper_example(0.8)


def make_log(*events):
    """A log from (time, event, type, job)."""
    return pl.DataFrame(events, schema=["time", "event", "type", "job"], orient="row")


def test_pieces_of_one_job():
    """A job waits, runs, is preempted, waits and runs on; the last piece of a job that is still there is open."""
    log = make_log(
        (0.0, "arrive", "type1", 0),
        (1.0, "start", "type1", 0),
        (2.0, "preempt", "type1", 0),
        (2.5, "arrive", "type2", 1),
        (2.5, "start", "type2", 1),
        (4.0, "start", "type1", 0),
        (6.0, "finish", "type1", 0),
    )
    assert gantt_table(log).rows() == [
        (0, "type1", 0.0, 1.0, "waiting", "start"),
        (0, "type1", 1.0, 2.0, "running", "preempt"),
        (0, "type1", 2.0, 4.0, "waiting", "start"),
        (0, "type1", 4.0, 6.0, "running", "finish"),
        (1, "type2", 2.5, 6.0, "running", "open"),
    ]


@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(["first-fit", "max-weight"]))
def test_pieces_of_a_simulated_log(seed, policy):
    """Pieces of a job join end to start from its arrival to its finish, and at no time run more jobs than fit the server."""
    log = rota.simulate(SYSTEM, policy, jobs=150, seed=seed, log_jobs=40).log
    pieces = gantt_table(log)
    for job, part in pieces.group_by("job"):
        assert part["start"][1:].to_list() == part["end"][:-1].to_list()
        assert part["start"][0] == log.filter((pl.col("job") == job[0]) & (pl.col("event") == "arrive"))["time"][0]
    for time in np.linspace(0, log["time"].max(), 50):
        running = pieces.filter((pl.col("doing") == "running") & (pl.col("start") <= time) & (pl.col("end") > time))
        counts = np.array([(running["type"] == name).sum() for name in SYSTEM.names])
        assert rota.fits(SYSTEM, counts)


def test_slots_do_not_collide():
    """In a slot one piece ends before the next begins, and no more slots are used than jobs of the type ever ran at once."""
    log = rota.simulate(SYSTEM, "first-fit", jobs=200, seed=3, log_jobs=100).log
    placed = _slots(gantt_table(log).filter(pl.col("doing") == "running"), SYSTEM)
    for _, part in placed.sort("start").group_by("slot"):
        assert (part["start"][1:] >= part["end"][:-1]).all()
    largest = dict(zip(SYSTEM.names, rota.largest_counts(SYSTEM), strict=True))
    for (name,), part in placed.group_by("type"):
        assert part["slot"].n_unique() <= largest[name]


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_watching_changes_nothing(preemption):
    """The log is that of `simulate` with the same seed, bit by bit, and the states follow each other along moves of the process."""
    policy = paper_rota(preemption, 1.0)
    seen = watch(SYSTEM, policy, jobs=50, seed=4)
    assert seen.log.equals(rota.simulate(SYSTEM, policy, jobs=200, seed=4, log_jobs=50).log)
    modes = seen.modes
    assert modes["start"][0] == 0
    assert modes["start"][1:].to_list() == modes["end"][:-1].to_list()
    assert modes["end"][-1] == seen.log["time"].max()
    assert set(modes.filter("working")["state"]) <= {"(0, 0, 2)", "(1, 4, 0)"}
    assert modes["working"].all() == (preemption == "full")


def test_jobs_run_only_in_their_slots():
    """While the rota works in (0, 0, 2), at most two jobs of type3 run and no others."""
    seen = watch(SYSTEM, paper_rota("full", 1.0), jobs=60, seed=4)
    running = gantt_table(seen.log).filter(pl.col("doing") == "running")
    for start, end, state, _ in seen.modes.iter_rows():
        middle = (start + end) / 2
        here = running.filter((pl.col("start") < middle) & (pl.col("end") > middle))["type"]
        most = dict(zip(SYSTEM.names, map(int, state.strip("()").split(", ")), strict=True))
        assert all((here == name).sum() <= most[name] for name in SYSTEM.names)


def test_what_the_chart_shows():
    """Rows are jobs in order of arrival, colours those of the types, the strip holds the states and time is shared."""
    seen = watch(SYSTEM, paper_rota("none", 1.0), jobs=30, seed=4)
    spec = gantt(seen.log, SYSTEM, seen.modes).to_dict()
    strip, bars = spec["vconcat"]
    waiting, running, cut = bars["layer"]
    assert waiting["encoding"]["y"]["scale"]["domain"] == list(range(30))
    assert waiting["mark"]["height"] < 3
    assert running["encoding"]["color"]["scale"] == {"domain": list(SYSTEM.names), "range": [type_colour(i) for i in range(3)]}
    pieces = spec["datasets"][(bars.get("data") or waiting["data"])["name"]]
    assert [row["job"] for row in pieces] == gantt_table(seen.log)["job"].to_list()
    assert spec["datasets"][cut["data"]["name"]] == []  # nMSR never preempts
    states = spec["datasets"][(strip.get("data") or strip["layer"][0]["data"])["name"]]
    assert len(states) == len(seen.modes)
    assert spec["resolve"]["scale"]["x"] == "shared"


def test_until_cuts():
    """Nothing is drawn after the time given, and what went on there is open."""
    log = watch(SYSTEM, paper_rota("full", 1.0), jobs=60, seed=4).log
    spec = gantt(log, SYSTEM, until=5.0).to_dict()
    rows = [row for data in spec["datasets"].values() for row in data]
    assert max(row["end"] for row in rows) == 5.0
    assert any(row["ended"] == "open" for row in rows)


def test_too_many_jobs():
    """A picture of a thousand rows is refused with the ways out; by slots it can be drawn."""
    log = rota.simulate(SYSTEM, "first-fit", jobs=500, seed=3, log_jobs=500).log
    with pytest.raises(BadSpec, match="until"):
        gantt(log, SYSTEM)
    gantt(log, SYSTEM, rows="slots").to_dict()
    with pytest.raises(BadSpec, match="slots"):
        gantt(log, SYSTEM, rows="columns")
