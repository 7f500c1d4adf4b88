"""A process for other tools: the same states and moves in networkx, GraphViz and JSON."""

import json
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from rota.process import build_process, to_dot, to_json, to_networkx
from rotas import paper_case, systems_and_rotas


@given(systems_and_rotas())
def test_json_is_complete(case):
    """Every state and move is there with all it knows."""
    process = build_process(*case)
    fields = json.loads(to_json(process))
    assert set(fields) == {"types", "states", "moves"}
    assert fields["types"] == list(process.names)
    assert [state["schedule"] for state in fields["states"]] == process.schedules.tolist()
    assert [state["held"] for state in fields["states"]] == process.held.tolist()
    assert [state["working"] for state in fields["states"]] == process.working.tolist()
    assert [state["probability"] for state in fields["states"]] == process.stationary.tolist()
    assert [state["name"] for state in fields["states"]] == [process.state_name(s) for s in range(len(process))]
    assert [[move["source"], move["target"], move["rate"]] for move in fields["moves"]] == [
        list(move) for move in zip(process.source.tolist(), process.target.tolist(), process.rate.tolist(), strict=True)
    ]
    assert [move["trigger"] for move in fields["moves"]] == [process.trigger_name(m) for m in range(len(process.source))]


@given(systems_and_rotas())
def test_networkx_graph(case):
    """The graph has the states and moves, its weighted adjacency is the generator, and every state is reached from every other."""
    process = build_process(*case)
    graph = to_networkx(process)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (len(process), len(process.source))
    rates = nx.to_numpy_array(graph, nodelist=range(len(process)), weight="rate")
    assert rates == pytest.approx(np.where(np.eye(len(process)), 0, process.generator.toarray()), rel=1e-14)
    assert nx.is_strongly_connected(graph)
    assert [graph.nodes[s]["schedule"] for s in range(len(process))] == process.schedules.tolist()
    assert {trigger for _, _, trigger in graph.edges(data="trigger")} == {process.trigger_name(m) for m in range(len(process.source))}


NODE = re.compile(r'  (\d+) \[label="((?:[^"\\]|\\.)*)", style=(bold|solid)\];')
EDGE = re.compile(r'  (\d+) -> (\d+) \[label="([\d.e+-]+) \(((?:[^"\\]|\\.)*)\)"\];')


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_dot(preemption):
    """The GraphViz source has one line per state and move, in the shape that dot reads; working states are bold."""
    process = build_process(*paper_case(0.9, preemption))
    head, *lines, tail = to_dot(process).splitlines()
    assert (head, tail) == ("digraph modulating_process {", "}")
    nodes = [found.groups() for line in lines if (found := NODE.fullmatch(line))]
    edges = [found.groups() for line in lines if (found := EDGE.fullmatch(line))]
    assert lines[:2] == ["  rankdir=LR;", "  node [shape=circle];"]
    assert len(lines) == 2 + len(nodes) + len(edges)
    assert [(int(s), name) for s, name, _ in nodes] == [(s, process.state_name(s)) for s in range(len(process))]
    assert [style == "bold" for _, _, style in nodes] == process.working.tolist()
    assert [(int(a), int(b)) for a, b, _, _ in edges] == list(zip(process.source.tolist(), process.target.tolist(), strict=True))
    assert [float(rate) for _, _, rate, _ in edges] == pytest.approx(process.rate, rel=1e-3)


def test_names_are_quoted():
    """A type's name with quotes and letters of any script stays inside its label."""
    system, policy = paper_case(0.9, "none")
    system = system.replace(names=['the "big" one', "Größe", "c\\d"])
    process = build_process(system, policy)
    for line in to_dot(process).splitlines()[3:-1]:
        assert NODE.fullmatch(line) or EDGE.fullmatch(line)
    assert '(completion of the \\"big\\" one)' in to_dot(process)
    assert "Größe" in to_json(process)
    assert json.loads(to_json(process))["types"] == list(system.names)
