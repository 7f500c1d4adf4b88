"""The pictures of redrawn figures: what they plot."""

import polars as pl
import pytest

from rota.report.reproduced import charts_of
from rota.report.reproduced.pages import figure_text, index_page
from rota.study.reproduce import EFFORTS, FIGURES, Settings
from rota.study.reproduce.borg import CLOSE, OWN, PAPER

SMOKE = Settings(EFFORTS["smoke"], workers=0)


def titles(chart, axis="y"):
    """The titles of an axis in all layers of a chart."""
    return {layer["encoding"][axis].get("title") for layer in chart.to_dict()["layer"] if axis in layer["encoding"]}


def test_the_borg_picture_has_both_panels_on_one_scale():
    """Redrawn above paper with the same range and the same legend; the paper's panel has all of its nine loads, MaxWeight included."""
    chart = charts_of("borg", FIGURES["borg"].compute(SMOKE).tables)["borg"].to_dict()
    ours, paper = chart["vconcat"]
    encodings = [layer["encoding"] for panel in (ours, paper) for layer in panel["layer"]]
    assert len({tuple(encoding["y"]["scale"]["domain"]) for encoding in encodings}) == 1
    assert len({tuple(encoding["color"]["scale"]["domain"]) for encoding in encodings}) == 1
    assert "resolve" not in chart  # one legend for both
    rows = chart["datasets"][paper["data"]["name"]]
    assert {row["policy"] for row in rows} == set(PAPER)
    assert set(encodings[0]["color"]["scale"]["domain"]) == {*PAPER, *OWN}
    for channel in ("color", "shape"):  # the two close rotas look like no other, and not like each other
        scale = next(encoding[channel]["scale"] for encoding in encodings if channel in encoding)
        looks = dict(zip(scale["domain"], scale["range"], strict=True))
        assert looks[CLOSE[0]] != looks[CLOSE[1]]
        assert channel == "shape" or len(set(looks.values())) == len(looks)
    assert len(rows) == 54
    assert [layer["mark"]["type"] for layer in ours["layer"]] == ["line", "point"]  # one month has no range


def test_the_borg_picture_shows_the_range_over_the_months():
    """A band from the least to the most month of a policy that has several, all of it inside; the legend reads like the upper panel."""
    rows = [("pMSR", 0.1, 20.0, 5.0, 90.0, 8), ("pMSR", 0.8, 300.0, 40.0, 9e6, 8), ("max-weight", 0.8, 400.0, 400.0, 400.0, 1)]
    table = pl.DataFrame(rows, schema=["policy", "load", "mean_response_time", "least", "most", "months"], orient="row")
    chart = charts_of("borg", {"borg": table})["borg"].to_dict()
    panel = chart["vconcat"][0]
    band = panel["layer"][0]
    assert band["mark"]["type"] == "area"
    assert (band["encoding"]["y"]["field"], band["encoding"]["y2"]["field"]) == ("least", "most")
    assert band["transform"] == [{"filter": "datum.months > 1"}]
    drawn = [(row["policy"], row["load"], row["least"], row["most"]) for row in chart["datasets"][panel["data"]["name"]]]
    assert drawn == [(name, load, least, most) for name, load, _, least, most, _ in rows]
    low, high = band["encoding"]["y"]["scale"]["domain"]
    assert low < 5
    assert high > 9e6
    assert band["encoding"]["color"]["scale"]["domain"][:2] == ["max-weight", "pMSR"]
    assert panel["title"]["subtitle"] == "lines: one month; shaded: from the least to the most of 8 months (max-weight: one)"


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


@pytest.mark.parametrize(
    ("interval", "words"), [(0.01, "95 % intervals are no wider than the marks"), (3.0, "bars: 95 % intervals, where")]
)
def test_load_pictures_say_whether_bars_can_be_seen(interval, words):
    """Intervals that the marks hide are said to be no wider than these; where a bar can be seen, it is said what it is."""
    columns = {"policy": ["first-fit"] * 2, "load": [0.5, 0.9], "stable": [True] * 2, "mean_queue_length": [1.0, 10.0]}
    table = pl.DataFrame(columns | {"mean_response_time": [1.0, 10.0], "interval": [0.001, interval]})
    for name in ("pmsr", "nmsr-high"):
        assert words in charts_of("load", {"load": table})[name].to_dict()["title"]["subtitle"]


def test_the_queue_picture_says_how_many_jobs_its_points_count():
    """The subtitle has the number of jobs in the log, and the axis ends a little below the least probability."""
    tables = FIGURES["queues"].compute(SMOKE).tables
    assert tables["laws"].filter(pl.col("source") == "simulated")["jobs"].unique().to_list() == [SMOKE.effort.jobs]
    laws = tables["laws"].filter(pl.col("probability") > 0.002)
    chart = charts_of("queues", {"laws": laws})["queues"].to_dict()
    assert chart["title"]["subtitle"] == "lines: exact; points: the first 20,000 jobs of a simulation"
    floor = chart["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
    assert laws["probability"].min() / 1.5 < floor < laws["probability"].min()
    (rows,) = chart["datasets"].values()
    assert len(rows) == len(laws)


def test_the_comparison_says_why_there_is_no_dot():
    """A policy without a number has a word in its place; an exact number goes before a simulated one; no bar starts anywhere."""
    row = {"mean_response_time": None, "exact": None, "ten_types_us": 2.0, "preemptions_per_job": 0.0}
    table = pl.DataFrame(
        [{"policy": "fcfs", **row}, {"policy": "pMSR", **row, "mean_response_time": 19.0, "exact": 20.0, "preemptions_per_job": 2.0}]
    )
    chart = charts_of("comparison", {"comparison": table})["comparison"].to_dict()
    words = [[row["text"] for row in data] for data in chart["datasets"].values()]
    assert sorted(words) == sorted([["unstable", "20"], ["2", "2"], ["none", "2"]])
    marks = {layer["mark"]["type"] for panel in chart["hconcat"] for layer in panel["layer"]}
    assert marks == {"point", "text"}
    (dots,) = (layer for layer in chart["hconcat"][0]["layer"] if layer["mark"]["type"] == "point")
    assert dots["encoding"]["x"]["field"] == "place"
    places = [row["place"] for data in chart["datasets"].values() for row in data if row["value"] is not None]
    assert sorted(places) == [2.0, 2.0, 2.0, 20.0]


# ------------------------------------------------------------------------------------------------------------ texts


@pytest.mark.parametrize("rows", [100, 104])
def test_long_tables_say_what_they_leave_out(tmp_path, rows):
    """A table shows a hundred rows; of a longer one, text and page say how many are left out and link to the CSV that has them."""
    (tmp_path / "vm").mkdir()
    pl.DataFrame({"load": range(rows)}).write_parquet(tmp_path / "vm" / "long_one.parquet")
    made_with = {"rota": "1", "effort": "full", "trace": None}
    texts = {"name": "vm", "title": "T", "place": "P", "made_with": made_with}
    known = texts | {"findings": [], "remarks": [], "pictures": [], "tables": ["long_one"], "shown": ["long_one"]}
    text, page = figure_text(known, tmp_path / "vm"), index_page([known], tmp_path)
    assert "| 99 |" in text
    assert "| 100 |" not in text
    words = "The first 100 of 104 rows; the other 4 are in"
    assert (f"\n\n{words} [long_one.csv](long_one.csv)." in text) == (rows == 104)
    assert (f'{words} <a href="vm/long_one.csv">long_one.csv</a>.' in page) == (rows == 104)
