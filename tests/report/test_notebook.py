"""What objects show of themselves in a notebook: HTML that is well formed, has the names and numbers, and runs nothing."""

import re
import sys
from functools import cache
from typing import Any
from xml.etree import ElementTree

import altair as alt
import numpy as np
import polars as pl
import pytest

import rota
from rota.display import html_table
from rota.report import beside, process_graph, schedules
from rota.traces import Trace
from rotas import paper_rota
from systems import paper_example

EVIL = "<script>alert('&')</script>"
NAMES = ("train", EVIL, "batch")
SYSTEM = paper_example(0.8).replace(names=NAMES)
ROTA = paper_rota("none", 0.1, names=NAMES)


def idle(state, target):
    """Runs <b>nothing</b> at all."""
    return np.inf


def trace() -> Trace:
    """Six jobs of three types."""
    jobs = pl.DataFrame(
        {"arrival": [0.0, 1, 2, 3, 4, 5], "size": [2.5, 1, 1, 1, 1, 1], "type": [0, 1, 1, 2, 2, 2]}, schema_overrides={"type": pl.Int32}
    )
    return Trace(jobs.lazy(), NAMES, SYSTEM.resources, SYSTEM.demand, SYSTEM.capacity)


MAKERS = {
    "system": lambda: SYSTEM,
    "setup": lambda: SYSTEM.with_preemption("setup", 0.25),
    "load": lambda: rota.system_load(SYSTEM),
    "rota": lambda: ROTA,
    "process": lambda: rota.build_process(SYSTEM, ROTA),
    "analysis": lambda: rota.analyze(SYSTEM, ROTA),
    "unstable analysis": lambda: rota.analyze(SYSTEM.scaled(load=0.99), ROTA.replace(switching_rate=1.0)),
    "result": lambda: rota.simulate(SYSTEM, "first-fit", jobs=20_000, seed=1),
    "growing": lambda: rota.simulate(SYSTEM.scaled(load=1.5), "fcfs", jobs=20_000, seed=1),
    "replications": lambda: rota.replicate(SYSTEM, "first-fit", replications=3, jobs=5000),
    "comparison": lambda: rota.compare(SYSTEM.scaled(load=0.9), ["first-fit", "fcfs", "server-filling", ROTA], jobs=20_000, seed=1),
    "plan": lambda: rota.plan(SYSTEM, jobs=5000, tuning_s=0.05, optimum_s=0),
    "trace": trace,
    "sweep": lambda: rota.sweep(SYSTEM, ["first-fit"], jobs=2000, workers=0),
    "max-weight": lambda: rota.MaxWeight("none"),
    "fcfs": rota.FCFS,
    "custom": lambda: rota.Custom(idle, name=EVIL),
}


@cache
def made(kind: str) -> Any:
    """The object of this kind, made once."""
    return MAKERS[kind]()


def cells(shown: str) -> list[list[str]]:
    """The rows of all tables in a piece of HTML, which must be well formed."""
    root = ElementTree.fromstring(f"<div>{shown}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def row_of(name: str, kind: str) -> list[str]:
    """The row of a job type, or of a policy, in what an object shows."""
    return next(row for row in cells(made(kind)._repr_html_()) if row[0] == name)


@pytest.mark.parametrize("kind", MAKERS)
def test_every_object_is_shown_as_harmless_html(kind):
    """Well formed, without anything that runs or loads, whatever the types and policies are called."""
    shown = made(kind)._repr_html_()
    if kind != "sweep":  # a Polars table, whose style sheet and markup are its own
        ElementTree.fromstring(f"<div>{shown}</div>")
    assert not re.search(r"<script|<(img|link|iframe|object|embed)|https?:|javascript:", shown)
    assert "object at 0x" not in shown


@pytest.mark.parametrize("kind", ["system", "load", "rota", "process", "analysis", "result", "replications", "trace"])
def test_names_are_escaped_and_whole(kind):
    """A type of a dangerous name is shown under exactly that name, and does nothing."""
    shown = ElementTree.fromstring(f"<div>{made(kind)._repr_html_()}</div>")
    assert EVIL in "".join(shown.itertext())


def test_system():
    """The server and each type: demands, rate, mean size, kind of sizes."""
    assert row_of("server", "system")[1:4] == ["20", "15", "50"]
    assert row_of("train", "system") == ["train", "3", "7", "1", f"{SYSTEM.arrival_rate[0]:.4g}", "1", "exponential"]
    assert "setups of 0.25" in made("setup")._repr_html_()


def test_load():
    """The load, what limits it, and the candidates with their part of the time."""
    best = made("load")
    shown = best._repr_html_()
    assert "System load 0.8, proved" in shown
    assert "The bottleneck is &#x27;resource1&#x27;" in shown
    assert ["50.0%", "2 × batch"] in cells(shown)
    assert len(cells(shown)) == 1 + len(best.weights)


def test_rota():
    """The candidates with their weights, in words where the types have names."""
    assert cells(ROTA._repr_html_())[1:] == [["50.0%", "2 × batch"], ["50.0%", f"1 × train + 4 × {EVIL}"]]
    assert ["50.0%", "(1, 4, 0)"] in cells(paper_rota()._repr_html_())
    setup = paper_rota("setup", backfill=True)._repr_html_()
    assert "preemption setup, switching rate 2, setup rate 10, backfilling" in setup


def test_process():
    """Every state with its part of the time and its moves; of very many states the first."""
    process = made("process")
    rows = cells(process._repr_html_())[1:]
    assert [row[0] for row in rows] == [process.state_name(s) for s in range(len(process))]
    assert sum(float(row[1].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.5)
    assert rows[0][2] == "timer, rate 0.1, to t(0, 0, 2)"
    assert repr(process) == "<ModulatingProcess of 9 states, 2 of them working, and 9 moves>"


def test_analysis():
    """Load, bounds, prediction, exact values per type, and the mean response time."""
    answer = made("analysis")
    row = row_of("batch", "analysis")
    columns = (answer.load, answer.lower, answer.upper, answer.prediction, answer.exact, answer.response_time)
    assert row[1:] == [f"{column[2]:.5g}" for column in columns]
    assert f"Mean response time {answer.mean_response_time:.6g}" in answer._repr_html_()
    assert repr(answer).startswith("<Analysis: stable")


def test_unstable_analysis():
    """A policy that cannot carry the load shows the loads, and the words of the exception."""
    answer = made("unstable analysis")
    assert len(row_of("train", "unstable analysis")) == 2
    assert "is not below 1: scale arrivals by less than" in answer._repr_html_()


def test_looking_computes_nothing_long(monkeypatch):
    """Exact values that are estimated to take long are shown only once they have been asked for."""
    monkeypatch.setattr(sys.modules["rota.analysis.analyze"], "QUICK_S", 0.01)
    system = rota.System([100], [[1], [1]], [30, 30], [1, 1])
    answer = rota.analyze(system, rota.MSR([(100, 0), (0, 100)], (0.5, 0.5), "none", switching_rate=0.05))
    assert len(answer.process) == 202
    assert "exact" not in answer._repr_html_()
    _ = answer.exact
    assert "exact" in answer._repr_html_()


def test_result():
    """A row per type and one for all jobs, each mean with its interval."""
    result = made("result")
    row = row_of("train", "result")
    assert row[1] == f"{result.counted[0]}"
    assert row[2:6] == [
        f"{result.mean_queue_length[0]:.4g}",
        f"{result.mean_queue_length_interval[0]:.2g}",
        f"{result.response_time[0]:.4g}",
        f"{result.response_time_interval[0]:.2g}",
    ]
    assert row_of("all jobs", "result")[4:6] == [f"{result.mean_response_time:.4g}", f"{result.interval:.2g}"]
    growing = made("growing")._repr_html_()
    assert "the queue kept growing" in growing
    assert "nan" not in growing


def test_comparison():
    """A row per policy, unstable ones without numbers, and the reasons of those that cannot run."""
    first_fit = made("comparison").results[0]
    assert row_of("first-fit", "comparison")[1:3] == [f"{first_fit.mean_response_time:.5g}", f"{first_fit.interval:.2g}"]
    assert "server-filling: ServerFilling needs one resource" in made("comparison")._repr_html_()
    assert "nan" not in made("comparison")._repr_html_()


def test_plan():
    """Sentences first, then the policies with how far arrivals can grow; the recommended one is marked."""
    plan = made("plan")
    shown = plan._repr_html_()
    assert shown.startswith("<p>Run ")
    assert [row[0] for row in cells(shown)[1:]] == [f"{name} *" if name == plan.recommended_name else name for name in plan.results]
    assert row_of("nMSR", "plan")[-1] == f"{1 / plan.load.load:.3g}"


def test_trace():
    """The most frequent types first, with demands and sizes."""
    assert [row[0] for row in cells(trace()._repr_html_())[1:]] == ["batch", EVIL, "train"]
    assert row_of("train", "trace") == ["train", "3", "7", "1", "1", "2.5", "0"]


def test_policies_say_what_they_do():
    """A policy shows its options and a sentence; one's own shows the sentence of its function."""
    assert "preemption=&#x27;none&#x27;" in made("max-weight")._repr_html_()
    assert "First come, first served" in made("fcfs")._repr_html_()
    assert "Runs &lt;b&gt;nothing&lt;/b&gt; at all." in made("custom")._repr_html_()


def test_long_tables_are_cut():
    """A table of very many rows shows the first and says how many more there are."""
    shown = html_table(["n"], [(str(n),) for n in range(1000)], most=20)
    assert len(cells(shown)) == 21
    assert "… and 980 more." in shown


def test_charts_show_themselves():
    """A chart is an Altair chart, and Altair's renderer "svg" draws it without a network, as the documentation says."""
    chart = beside(schedules(ROTA, SYSTEM), process_graph(rota.build_process(SYSTEM, ROTA)))
    with alt.renderers.enable("default"):
        assert "train" in chart._repr_mimebundle_()["text/html"]
    with alt.renderers.enable("svg"):
        ((kind, text),) = chart._repr_mimebundle_().items()
    assert kind == "image/svg+xml"
    drawn = ElementTree.fromstring(text)
    assert EVIL in "".join(drawn.itertext())
    assert not {element.tag.rpartition("}")[2] for element in drawn.iter()} & {"script", "image", "use", "foreignObject"}
