"""The pictures of redrawn figures: what they plot."""

import polars as pl
import pytest

from rota.report.reproduced import charts_of
from rota.study.reproduce import EFFORTS, FIGURES, Settings
from rota.study.reproduce.borg import PAPER

SMOKE = Settings(EFFORTS["smoke"], workers=0)


def titles(chart, axis="y"):
    """The titles of an axis in all layers of a chart."""
    return {layer["encoding"][axis].get("title") for layer in chart.to_dict()["layer"] if axis in layer["encoding"]}


def test_the_borg_picture_has_both_sides_on_one_scale():
    """Redrawn and paper lie side by side with the same range; the paper's side has all of its nine loads, MaxWeight included."""
    chart = charts_of("borg", FIGURES["borg"].compute(SMOKE).tables)["borg"].to_dict()
    ours, paper = chart["hconcat"]
    domains = {
        tuple(layer["encoding"]["y"]["scale"]["domain"]) for side in (ours, paper) for layer in side["layer"] if "y" in layer["encoding"]
    }
    assert len(domains) == 1
    rows = max(chart["datasets"].values(), key=len)
    assert {row["policy"] for row in rows} == set(PAPER)
    assert len(rows) == 54


def test_curves_say_what_they_draw():
    """Curves of the paper's mean queue length say so, with the load figure's column in the place of E[T]."""
    tables = FIGURES["load"].compute(SMOKE).tables
    charts = charts_of("load", tables)
    assert list(charts) == ["pmsr", "nmsr-low", "nmsr-high"]
    for chart in charts.values():
        assert titles(chart) == {"mean queue length (types weighted by arrivals)"}
    drawn = {(row["policy"], row["x"]): row["y"] for data in charts["pmsr"].to_dict()["datasets"].values() for row in data if "y" in row}
    for row in tables["load"].filter((pl.col("policy") == "pMSR") & pl.col("stable")).to_dicts():
        assert drawn["pMSR", row["load"]] == pytest.approx(row["mean_queue_length"])


def test_the_comparison_says_why_there_is_no_bar():
    """A policy without a number has a word in its place; an exact number goes before a simulated one."""
    row = {"mean_response_time": None, "exact": None, "ten_types_us": 2.0, "preemptions_per_job": 0.0}
    table = pl.DataFrame(
        [{"policy": "fcfs", **row}, {"policy": "pMSR", **row, "mean_response_time": 19.0, "exact": 20.0, "preemptions_per_job": 2.0}]
    )
    chart = charts_of("comparison", {"comparison": table})["comparison"].to_dict()
    words = [[row["text"] for row in data] for data in chart["datasets"].values()]
    assert sorted(words) == sorted([["unstable", "20"], ["2", "2"], ["none", "2"]])
