"""Curves against load and rates: what is plotted, where, and in which order."""

import numpy as np
import polars as pl
import pytest

import rota
from rota.errors import BadSpec
from rota.report import (
    load_table,
    queue_against_setup_rate,
    queue_against_switching_rate,
    response_times_against_load,
    setup_rate_table,
    switching_rate_table,
    type_colour,
)
from rotas import paper_rota
from systems import paper_example


def layers(chart):
    """The layers of a chart: mark, encoding and the rows that reach it."""
    spec = chart.to_dict()
    for layer in spec["layer"]:
        data = layer.get("data", spec.get("data"))
        yield layer["mark"], layer["encoding"], spec["datasets"][data["name"]]


def mark(chart, kind, field=None):
    """The layers of one kind of mark (and one y)."""
    return [
        (look, encoding, rows)
        for look, encoding, rows in layers(chart)
        if look["type"] == kind and (field is None or encoding["y"].get("field") == field)
    ]


TABLE = pl.DataFrame(
    {
        "policy": ["nMSR", "nMSR", "fcfs", "fcfs", "first-fit", "first-fit"],
        "load": [0.9, 0.5, 0.5, 0.9, 0.5, 0.9],
        "mean_response_time": [100.0, 5.0, 1.4, np.nan, 1.2, 10.0],
        "interval": [10.0, 0.5, 0.1, np.nan, 0.1, np.inf],
        "stable": [True, True, True, False, True, True],
        "lower": [90.0, 3.0, None, None, None, None],
        "upper": [130.0, 9.0, None, None, None, None],
        "prediction": [105.0, 4.5, None, None, None, None],
    }
)


def test_values_bounds_and_predictions_are_plotted():
    """Every finite value is in the data; log axis; bounds as an area, predictions dashed, intervals as bars."""
    chart = response_times_against_load(TABLE)
    ((_, encoding, rows),) = mark(chart, "line", "y")
    assert encoding["y"]["scale"]["type"] == "log"
    assert encoding["y"]["title"] == "mean response time E[T] (units of time)"
    points = {(row["policy"], row["x"]): row["y"] for row in rows}
    assert points == {
        ("nMSR", 0.5): 5.0,
        ("nMSR", 0.9): 100.0,
        ("fcfs", 0.5): 1.4,
        ("fcfs", 0.9): None,
        ("first-fit", 0.5): 1.2,
        ("first-fit", 0.9): 10.0,
    }
    low, high = encoding["y"]["scale"]["domain"]
    assert low < 1.2
    assert high > 105
    ((dashed, _, _),) = mark(chart, "line", "prediction")
    assert dashed["strokeDash"]
    assert len(mark(chart, "area")) == 1
    assert len(mark(chart, "rule")) == 1
    subtitle = chart.to_dict()["title"]["subtitle"]
    assert all(word in subtitle for word in ("shaded", "dashed", "95%", "↑"))


def test_infinite_numbers_do_not_reach_the_chart():
    """What is not finite is missing, so an interval that is infinite has no bar."""
    ((_, _, rows),) = mark(response_times_against_load(TABLE), "line", "y")
    assert [row["interval"] for row in rows if row["policy"] == "first-fit"] == [0.1, None]


def test_legend_reads_like_the_picture():
    """Policies that give up come first, then by where their lines end, the highest first."""
    ((_, encoding, _),) = mark(response_times_against_load(TABLE), "line", "y")
    assert encoding["color"]["scale"]["domain"] == ["fcfs", "nMSR", "first-fit"]


def test_unstable_policies_have_an_arrow_where_they_give_up():
    """One arrow per policy at the first load at which it is not stable, near the upper edge, one below the other."""
    unstable = pl.DataFrame({"policy": ["a", "a", "a", "b"], "load": [0.5, 0.8, 0.9, 0.8], "stable": [True, False, False, False]})
    chart = response_times_against_load(unstable.with_columns(mean_response_time=pl.Series([1.0, None, None, None])))
    ((_, encoding, rows),) = mark(chart, "text")
    assert [(row["policy"], row["x"]) for row in rows] == [("a", 0.8), ("b", 0.8)]
    assert rows[1]["y"] < rows[0]["y"] < encoding["y"]["scale"]["domain"][1]
    assert not mark(response_times_against_load(TABLE.filter(pl.col("policy") == "nMSR")), "text")


def test_a_table_without_the_columns_is_told_so():
    """The error names what is missing."""
    with pytest.raises(BadSpec, match="mean_response_time"):
        response_times_against_load(TABLE.drop("mean_response_time"))
    with pytest.raises(BadSpec, match="at least one row"):
        response_times_against_load(TABLE.clear())


def test_switching_rate_against_the_analysis():
    """Table and chart hold the sums of E[Q_i] of `analyze`, the mark stands at α*, and the unstable range is grey."""
    system, policy = paper_example(0.9), paper_rota("none", 0.05)
    rates = [0.01, 0.05, 1.0, 2.0]
    table = switching_rate_table(system, policy, rates)
    answer = rota.analyze(system, policy)
    row = table.row(1, named=True)
    assert row["mean_queue_length"] == pytest.approx(answer.exact.sum())
    assert row["lower"] <= row["mean_queue_length"] <= row["upper"]
    assert row["prediction"] == pytest.approx(answer.prediction.sum())
    assert table["stable"].to_list() == [True, True, False, False]

    chart = queue_against_switching_rate(table, best=0.05)
    ((_, encoding, rows),) = mark(chart, "line", "y")
    assert encoding["x"]["scale"]["type"] == encoding["y"]["scale"]["type"] == "log"
    assert [row["y"] for row in rows[:2]] == pytest.approx(table["mean_queue_length"].to_list()[:2])
    ((_, _, (marked,)),) = mark(chart, "rule")
    assert marked["x"] == 0.05
    assert marked["text"] == "α* = 0.05"
    ((_, _, (band,)),) = mark(chart, "rect")
    assert 0.05 < band["x"] < 1.0
    assert band["end"] >= 2.0


def test_setup_rate_per_type():
    """A line per type in the colours of the types; the sum over types is the whole."""
    system, policy = paper_example(0.8), paper_rota("setup", 0.5)
    whole, parts = (setup_rate_table(system, policy, [5.0, 50.0], per_type=each) for each in (False, True))
    sums = parts.group_by("setup_rate", maintain_order=True).agg(pl.col("mean_queue_length").sum())
    assert sums["mean_queue_length"].to_list() == pytest.approx(whole["mean_queue_length"].to_list())
    chart = queue_against_setup_rate(parts, best=10.0)
    ((_, encoding, _),) = mark(chart, "line", "y")
    assert encoding["color"]["scale"] == {"domain": list(system.names), "range": [type_colour(i) for i in range(3)]}
    assert "setup rate γ" in encoding["x"]["title"]


def test_load_table_exact_and_simulated():
    """Exact values are those of the analysis at that load; simulated ones come with intervals; a function designs anew at each load."""
    system = paper_example(0.5)
    exact = load_table(system, [paper_rota("full")], [0.4, 0.8])
    assert exact["mean_response_time"][1] == pytest.approx(rota.analyze(system.scaled(load=0.8), paper_rota("full")).mean_response_time)
    assert (exact["lower"] <= exact["mean_response_time"]).all()
    assert (exact["upper"] >= exact["mean_response_time"]).all()

    designed = []

    def design(at):
        designed.append(float(at.arrival_rate[0]))
        return paper_rota("full")

    table = load_table(system, ["first-fit", design], [0.4, 0.8], jobs=2000)
    assert designed == pytest.approx([0.2, 0.4])
    assert table["policy"].to_list() == ["first-fit"] * 2 + ["pMSR"] * 2
    assert table["interval"].is_finite().all()
    assert table["prediction"].is_null().to_list() == [True, True, False, False]
    with pytest.raises(BadSpec, match="first-fit has no exact answer"):
        load_table(system, ["first-fit"], [0.5])
