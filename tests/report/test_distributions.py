"""Queue lengths, exact against simulated, and tails of response times."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rota
from rota.errors import BadSpec
from rota.report import ccdf_table, queue_length_distribution, queue_length_table, response_time_ccdf, simulated_queue_lengths
from rotas import paper_rota
from systems import paper_example

SYSTEM, ROTA = paper_example(0.7), paper_rota("full", 4.0)


@pytest.fixture(scope="module")
def result():
    """A run of which every job is logged."""
    return rota.simulate(SYSTEM, ROTA, jobs=60_000, seed=2, log_jobs=60_000)


def test_counted_law_is_a_law_with_the_right_mean(result):
    """Probabilities sum to 1; their mean is the measured mean queue length, and both are near the exact one."""
    exact = rota.analyze(SYSTEM, ROTA)
    for i, law in enumerate(simulated_queue_lengths(result).values()):
        assert law.sum() == pytest.approx(1)
        mean = law @ np.arange(len(law))
        assert mean == pytest.approx(result.mean_queue_length[i], rel=0.02)
        assert mean == pytest.approx(exact.exact[i], rel=0.15)
        assert law[:4] == pytest.approx(exact.queue_length_distribution(i, 4), abs=0.02)


def test_queue_length_of_a_log_by_hand(result):
    """One job of type1 from 1 to 3, another from 2 on, the last arrival at 4: one unit of time each with 0, 1, 2 and 1 jobs."""
    log = pl.DataFrame(
        [(1.0, "arrive", "type1", 0), (2.0, "arrive", "type1", 1), (3.0, "finish", "type1", 0), (4.0, "arrive", "type2", 2)],
        schema=["time", "event", "type", "job"],
        orient="row",
    )
    laws = simulated_queue_lengths(replace(result, log=log, warmup=0.0))
    assert laws["type1"] == pytest.approx([0, 2 / 3, 1 / 3])  # from the first arrival on
    assert laws["type2"] == pytest.approx([1.0])


def test_queue_chart_shows_both(result):
    """Lines of the exact law and points of the simulated one, on a log axis that ends at the floor."""
    table = queue_length_table(rota.analyze(SYSTEM, ROTA), result)
    chart = queue_length_distribution(table, floor=1e-4).to_dict()
    line, points = chart["layer"]
    assert (line["mark"]["type"], points["mark"]["type"]) == ("line", "point")
    scale = line["encoding"]["y"]["scale"]
    assert scale["type"] == "log"
    assert scale["domain"][0] == 1e-4
    (rows,) = chart["datasets"].values()
    assert min(row["probability"] for row in rows) >= 1e-4
    plotted = {(row["type"], row["queue_length"]): row["probability"] for row in rows if row["source"] == "exact"}
    assert plotted["type1", 0] == pytest.approx(rota.analyze(SYSTEM, ROTA).queue_length_distribution(0, 1)[0])
    assert chart["title"]["subtitle"] == "lines: exact; points: simulated"


def test_tail_is_counted_from_the_log(result):
    """At each time of the table, that part of the logged jobs took longer, and the tail passes through the measured quantiles."""
    tail = ccdf_table([result])
    assert tail["policy"].unique().to_list() == ["pMSR"]
    assert tail["ccdf"].is_sorted(descending=True)
    assert tail["response_time"].is_sorted()
    for level, value in result.response_time_quantiles.items():
        read = np.interp(np.log(value), np.log(tail["response_time"].to_numpy()), np.log(tail["ccdf"].to_numpy()))
        assert np.exp(read) == pytest.approx(1 - level, rel=0.12)


def test_tail_from_quantiles():
    """Without a log the five quantiles are the points; unstable results have none."""
    result = rota.simulate(SYSTEM, "first-fit", jobs=5000, seed=1)
    table = ccdf_table({"mine": result})
    assert table["policy"].unique().to_list() == ["mine"]
    assert table["ccdf"].to_list() == pytest.approx([0.5, 0.1, 0.05, 0.01, 0.001])
    assert table["response_time"].to_list() == list(result.response_time_quantiles.values())
    growing = rota.simulate(paper_example(1.5), "fcfs", jobs=5000, seed=1)
    assert not growing.stable
    assert len(ccdf_table([growing])) == 0
    with pytest.raises(BadSpec, match="no policy is stable"):
        response_time_ccdf(ccdf_table([growing]))


def test_tail_chart():
    """Both axes are logarithmic, the worst tail is first in the legend, few points are marked and many are not."""
    table = pl.DataFrame({"policy": ["a", "a", "b", "b"], "response_time": [1.0, 5.0, 2.0, 50.0], "ccdf": [0.5, 0.01, 0.5, 0.01]})
    chart = response_time_ccdf(table).to_dict()
    line, _ = chart["layer"]
    assert line["encoding"]["x"]["scale"]["type"] == line["encoding"]["y"]["scale"]["type"] == "log"
    assert line["encoding"]["color"]["scale"]["domain"] == ["b", "a"]
    many = pl.DataFrame({"policy": ["a"] * 50, "response_time": np.arange(1.0, 51), "ccdf": np.geomspace(1, 0.01, 50)})
    assert "layer" not in response_time_ccdf(many).to_dict()


def test_what_is_missing_is_named():
    """No log, no columns, nothing to draw."""
    with pytest.raises(BadSpec, match="log_jobs"):
        simulated_queue_lengths(rota.simulate(SYSTEM, "fcfs", jobs=1000))
    with pytest.raises(BadSpec, match="give at least one"):
        queue_length_table()
    with pytest.raises(BadSpec, match="source"):
        queue_length_distribution(pl.DataFrame({"type": ["a"], "queue_length": [0], "probability": [1.0]}))
