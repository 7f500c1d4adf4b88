"""The graph of the modulating process."""

import numpy as np
import pytest
from hypothesis import given, settings

import rota
from rota.report import process_graph, type_colour
from rota.report.states import ways
from rotas import paper_rota, systems_and_rotas
from systems import paper_example

SYSTEM = paper_example(0.8)


def rows(chart):
    """Nodes and labels of a chart."""
    data = list(chart.to_dict()["datasets"].values())
    nodes = next(table for table in data if "fill" in table[0])
    labels = next((table for table in data if "head_x" in table[0]), [])
    return nodes, labels


@pytest.mark.parametrize(("preemption", "states", "moves"), [("full", 2, 2), ("none", 9, 9), ("setup", 9, 9)])
def test_states_and_moves_of_the_paper_rota(preemption, states, moves):
    """Every state is a node and every move an arrow, with the names, rates and parts of the time of the process."""
    process = rota.build_process(SYSTEM, paper_rota(preemption))
    nodes, labels = rows(process_graph(process))
    assert len(nodes) == states
    assert len(labels) == moves
    assert [node["state"] for node in nodes] == [process.state_name(s) for s in range(states)]
    assert nodes[0]["text"] == f"(0, 0, 2) · {process.stationary[0]:.1%}"
    assert [float(label["text"]) for label in labels] == pytest.approx(process.rate.tolist())
    assert [label["trigger"] for label in labels] == [process.trigger_name(m) for m in range(moves)]


def test_moves_have_the_colours_of_their_types():
    """A completion is drawn in the colour of its type."""
    chart = process_graph(rota.build_process(SYSTEM, paper_rota("none"))).to_dict()
    scale = chart["layer"][0]["encoding"]["color"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    for i, name in enumerate(SYSTEM.names):
        assert colours[f"completion of {name}"] == type_colour(i)


@settings(max_examples=25)
@given(systems_and_rotas())
def test_any_process_is_drawn_without_states_on_each_other(case):
    """Nodes do not overlap in a loop, whatever its kind; all that is drawn is within the frame."""
    process = rota.build_process(*case)
    chart = process_graph(process)
    nodes, labels = rows(chart)
    spec = chart.to_dict()
    frame = spec["layer"][-1]["encoding"]
    (left, right), (low, high) = frame["x"]["scale"]["domain"], frame["y"]["scale"]["domain"]
    assert all(left < node["left"] and node["right"] < right and low < node["low"] and node["high"] < high for node in nodes)
    assert all(left < label["x"] < right and low < label["y"] < high for label in labels)
    if process.loop is not None:
        for k, a in enumerate(nodes):
            for b in nodes[:k]:
                apart = a["left"] >= b["right"] or b["left"] >= a["right"] or a["low"] >= b["high"] or b["low"] >= a["high"]
                assert apart, (a["state"], b["state"])


def test_a_large_process_is_collapsed():
    """Beyond 60 states a way is one arrow that tells its states and its mean time; each switching state is on one way."""
    policy = rota.MSR([(0, 40), (40, 0)], (0.5, 0.5), "none", switching_rate=0.1)
    process = rota.build_process(rota.System([40], [[1], [1]], [1, 1], [1, 2]), policy)
    nodes, labels = rows(process_graph(process))
    assert len(process) == 82
    assert len(nodes) == 2
    harmonic = (1 / np.arange(1, 41)).sum()
    assert [label["text"].split("\n")[1] for label in labels] == [f"via 40 states, mean time {m:.3g}" for m in (harmonic / 2, harmonic)]
    assert sum(way.states for way in ways(process)) == 80


def test_between_24_and_60_switching_states_are_dots():
    """Only working states are named, and only timers' rates are written; the rest is in the tooltips."""
    policy = rota.MSR([(0, 20), (20, 0)], (0.5, 0.5), "none", switching_rate=0.1)
    process = rota.build_process(rota.System([20], [[1], [1]], [1, 1], [1, 2]), policy)
    nodes, labels = rows(process_graph(process))
    assert [bool(node["text"]) for node in nodes] == process.working.tolist()
    assert [label["text"] for label in labels if label["trigger"] != "timer"] == [""] * 40


def test_one_state():
    """A rota of one schedule is a node without moves."""
    nodes, labels = rows(process_graph(rota.build_process(SYSTEM, rota.MSR([(1, 4, 0)]))))
    assert len(nodes) == 1
    assert labels == []


def test_mean_time_of_parallel_draining():
    """Two slots drained at once, at rate 1 each: 1 + 1/2 of a unit of time on average, through two layers."""
    policy = rota.MSR([(1, 1, 0), (0, 0, 2)], (0.5, 0.5), "none", switching_rate=0.1, route="parallel")
    there, back = ways(rota.build_process(SYSTEM, policy))
    assert there.mean_time == pytest.approx(1.5)
    assert [len(layer) for layer in there.layers] == [1, 2]
    assert back.mean_time == pytest.approx(1.5)
