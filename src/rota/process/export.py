"""A modulating process for other tools: networkx, GraphViz, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rota.process.process import ModulatingProcess

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["to_dot", "to_json", "to_networkx"]


def to_networkx(process: ModulatingProcess) -> nx.MultiDiGraph[int]:
    """A directed multigraph: nodes carry name, schedule, held, working, probability; edges rate and trigger. Needs networkx."""
    import networkx as nx

    graph: Any = nx.MultiDiGraph()
    for s, state in enumerate(_states(process)):
        graph.add_node(s, **state)
    for move in _moves(process):
        graph.add_edge(move["source"], move["target"], rate=move["rate"], trigger=move["trigger"])
    return graph


def to_dot(process: ModulatingProcess) -> str:
    """GraphViz source: working states drawn bold, moves labelled with rate and trigger."""
    lines = ["digraph modulating_process {", "  rankdir=LR;", "  node [shape=circle];"]
    for s, state in enumerate(_states(process)):
        style = "bold" if state["working"] else "solid"
        lines.append(f"  {s} [label={json.dumps(state['name'], ensure_ascii=False)}, style={style}];")
    for move in _moves(process):
        label = json.dumps(f"{move['rate']:.4g} ({move['trigger']})", ensure_ascii=False)
        lines.append(f"  {move['source']} -> {move['target']} [label={label}];")
    return "\n".join([*lines, "}"]) + "\n"


def to_json(process: ModulatingProcess) -> str:
    """States and moves as one JSON object."""
    return json.dumps({"types": process.names, "states": _states(process), "moves": _moves(process)}, ensure_ascii=False)


def _states(process: ModulatingProcess) -> list[dict[str, Any]]:
    return [
        {
            "name": process.state_name(s),
            "schedule": process.schedules[s].tolist(),
            "held": process.held[s].tolist(),
            "working": bool(process.candidate[s] >= 0),
            "probability": float(process.stationary[s]),
        }
        for s in range(len(process))
    ]


def _moves(process: ModulatingProcess) -> list[dict[str, Any]]:
    return [
        {
            "source": int(process.source[m]),
            "target": int(process.target[m]),
            "rate": float(process.rate[m]),
            "trigger": process.trigger_name(m),
        }
        for m in range(len(process.source))
    ]
