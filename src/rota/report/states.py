"""The modulating process as a graph: working states on a circle, the switching states on the ways between them.

A process that is one loop lies on the circle as a whole. Other moves bend to one side, so that there and back are two ways. How much is
written depends on how much there is: up to 24 states all names and rates, up to 60 switching states are dots, and beyond that a whole way
from one working state to the next is one arrow that says how many states it has and how long it takes on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import polars as pl

from rota.report.style import GREY, INK, number, styled, type_colour

if TYPE_CHECKING:
    from rota.arrays import Array
    from rota.process import ModulatingProcess

__all__ = ["Way", "process_graph", "ways"]

_NAMED, _DRAWN = 24, 60  # states up to which all are named, and drawn
_HEIGHT, _CHARACTER = 28.0, 7.2  # pixels of a named state
_DOT = 7.0
_SPACE, _LITTLE_SPACE, _MUCH_SPACE = 40.0, 26.0, 110.0  # between two states: for a number, for nothing, for a sentence
_FEW_NAMES = 5
_WORKING = "#3d3d3d"
_SAMPLES = 61


def process_graph(process: ModulatingProcess, *, title: str = "The modulating process") -> Any:
    """Working states with the part of the time spent in them, switching states, and the moves: their rates and what triggers them."""
    routes = ways(process)
    whole = len(process) <= _DRAWN
    named = len(process) <= _NAMED
    places = _Layout(process, routes, whole, named)
    nodes = pl.DataFrame([_node(process, s, places, named) for s in places.drawn])
    moves = list(_moves(process, places, named) if whole else _collapsed(process, routes, places))
    lines = [
        {"move": k, "order": j, "x": x, "y": y, "trigger": m["trigger"]} for k, m in enumerate(moves) for j, (x, y) in enumerate(m["path"])
    ]
    labels = [{key: m[key] for key in ("x", "y", "text", "trigger", "head_x", "head_y", "angle")} for m in moves]
    (left, right), (low, high) = _frame(nodes, labels)
    scales = [alt.Scale(domain=[left, right], nice=False, zero=False), alt.Scale(domain=[low, high], nice=False, zero=False)]

    def at(x: str = "x", y: str = "y") -> tuple[Any, Any]:
        return alt.X(f"{x}:Q", axis=None, scale=scales[0]), alt.Y(f"{y}:Q", axis=None, scale=scales[1])

    layers = []
    if moves:
        colours = {m["trigger"]: m["colour"] for m in moves}
        scale = alt.Scale(domain=list(colours), range=list(colours.values()))
        color = alt.Color("trigger:N", scale=scale, title="moves", legend=alt.Legend(symbolType="stroke", orient="bottom", columns=4))
        arrows = alt.Chart(pl.DataFrame(labels))
        layers.append(alt.Chart(pl.DataFrame(lines)).mark_line(strokeWidth=1.75).encode(*at(), color, order="order:Q", detail="move:N"))
        heads = arrows.mark_point(shape="triangle-up", filled=True, size=70, opacity=1)
        layers.append(heads.encode(*at("head_x", "head_y"), color, angle=alt.Angle("angle:Q", scale=None)))
        layers.append(arrows.mark_text(fontSize=11, lineBreak="\n").encode(*at(), text="text:N"))
    boxes = alt.Chart(nodes).mark_rect(cornerRadius=_HEIGHT / 2, stroke=GREY, strokeWidth=1.25)
    boxes = boxes.encode(
        *at("left", "low"), alt.X2("right"), alt.Y2("high"), alt.Color("fill:N", scale=None), tooltip=["state:N", "time:N"]
    )
    layers.append(boxes)
    layers.append(alt.Chart(nodes).mark_text(fontSize=12).encode(*at(), text="text:N", color=alt.Color("ink:N", scale=None)))
    slots = ", ".join(process.names) if len(process.names) <= _FEW_NAMES else f"{len(process.names)} types"
    words = [
        f"{len(process):,} states, named by their slots ({slots}); numbers at moves: rates",
        f"dark: the {int(process.working.sum())} that work, with their part of the time",
    ]
    if whole and not process.working.all():
        words[1] += "; light: those that switch"
    return styled(alt.layer(*layers), title, words, width=right - left, height=high - low)


# ---------------------------------------------------------------------------------------------------------------- ways


@dataclass(frozen=True)
class Way:
    """How the process goes from one working state to another: `layers` of switching states by how many moves away they are.

    `rate` at which it is begun, and how long it takes on average.
    """

    source: int
    target: int
    rate: float
    layers: tuple[tuple[int, ...], ...]
    mean_time: float

    @property
    def states(self) -> int:
        """The number of switching states."""
        return sum(map(len, self.layers))


def ways(process: ModulatingProcess) -> list[Way]:
    """The ways between working states."""
    after: dict[int, list[int]] = {}
    for move, s in enumerate(process.source):
        after.setdefault(int(s), []).append(move)
    found = []
    for s in np.flatnonzero(process.working):
        for move in after.get(int(s), []):
            layers, ends, here = [], [], [int(process.target[move])]
            seen: set[int] = set()
            while here:
                inner = [t for t in here if not process.working[t]]
                ends += [t for t in here if process.working[t]]
                seen.update(inner)
                if inner:
                    layers.append(tuple(inner))
                reached = dict.fromkeys(int(process.target[m]) for t in inner for m in after.get(t, []))
                here = [t for t in reached if t not in seen]
            time = _mean_time(process, sorted(seen), int(process.target[move]))
            found.append(Way(int(s), ends[0], float(process.rate[move]), tuple(layers), time))
    return found


def _mean_time(process: ModulatingProcess, states: list[int], first: int) -> float:
    """The expected time from the first of these states until they are left: t = −G⁻¹ 1 on them."""
    if not states:
        return 0.0
    inner = process.generator[states][:, states].toarray()
    return float(np.linalg.solve(-inner, np.ones(len(states)))[states.index(first)])


# ---------------------------------------------------------------------------------------------------------------- where things lie


class _Layout:
    """Places of states (pixels, y upwards) and the curves between them."""

    def __init__(self, process: ModulatingProcess, routes: list[Way], whole: bool, named: bool) -> None:
        self.process = process
        self.place: dict[int, Array] = {}
        self.flat = np.array([1.0, 1.0 if whole else 0.65])  # states are wide: what is written at the sides needs less height
        self.loop = _cycle(routes, int(process.working.sum()))
        working = [int(s) for s in np.flatnonzero(process.working)]
        self.drawn = list(range(len(process))) if whole else working
        space = _SPACE if named else _LITTLE_SPACE if whole else _MUCH_SPACE
        widths = {s: self.size(s, named)[0] for s in self.drawn}
        if self.loop:
            layers = [layer for way in self.loop for layer in ((way.source,), *(way.layers if whole else ()))]
            # Every layer gets a part of the circle that is as long as it is wide.
            lengths = np.array([max(widths[s] for s in layer) + space + 30.0 * (len(layer) - 1) for layer in layers])
            self.radius = max(1.05 * float(lengths.sum()) / (2 * np.pi), 90.0)
            middles = (np.cumsum(lengths) - lengths / 2 - lengths[0] / 2) / lengths.sum()
            for layer, part in zip(layers, middles, strict=True):
                out = np.array([np.cos(np.pi - 2 * np.pi * part), np.sin(np.pi - 2 * np.pi * part)])
                self._spread(layer, self.radius * out * self.flat, out, named)
            return
        n = len(working)
        deepest = max((len(way.layers) for way in routes), default=0) if whole else 0
        gap = max(widths.values()) + space
        self.radius = max((deepest + 1.5) * gap / (2 * np.sin(np.pi / max(n, 2))), 110.0) if n > 1 else 0.0
        for k, s in enumerate(working):
            angle = np.pi - 2 * np.pi * k / n
            self.place[s] = self.radius * np.array([np.cos(angle), np.sin(angle)])
        for way in routes if whole else []:
            curve = self._bend(self.place[way.source], self.place[way.target], len(way.layers) + 2)
            for d, layer in enumerate(way.layers):
                along = curve[d + 2] - curve[d]
                side = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9)
                self._spread(layer, curve[d + 1], side, named)

    def _spread(self, layer: tuple[int, ...], middle: Array, side: Array, named: bool) -> None:
        """States that are as far on their way as each other, side by side without touching."""
        w, h = np.max([self.size(s, named) for s in layer], axis=0) + 14.0
        apart = min(w / max(abs(side[0]), 1e-9), h / max(abs(side[1]), 1e-9))
        for j, s in enumerate(layer):
            self.place.setdefault(s, middle + side * (j - (len(layer) - 1) / 2) * apart)

    def size(self, s: int, named: bool) -> tuple[float, float]:
        """Width and height of a state in pixels."""
        text = _text(self.process, s, named)
        return (_CHARACTER * len(text) + 16.0, _HEIGHT) if text else (2 * _DOT, 2 * _DOT)

    def curve(self, a: int, b: int, straight: bool) -> Array:
        """Points from one state to another: along the circle in a loop, else bent to one side, or straight within a way."""
        p, q = self.place[a], self.place[b]
        if self.loop:
            p, q = p / self.flat, q / self.flat
            first, last = np.arctan2(p[1], p[0]), np.arctan2(q[1], q[0])
            turn = (first - last) % (2 * np.pi) or 2 * np.pi
            angles = first - turn * np.linspace(0, 1, _SAMPLES)
            reach = np.linspace(np.linalg.norm(p), np.linalg.norm(q), _SAMPLES)
            return np.asarray(np.column_stack([reach * np.cos(angles), reach * np.sin(angles)]) * self.flat)
        if straight:
            return p + np.linspace(0, 1, _SAMPLES)[:, None] * (q - p)
        return self._bend(p, q, _SAMPLES)

    def _bend(self, p: Array, q: Array, n: int) -> Array:
        """A quadratic curve that leaves the straight line to its left."""
        t = np.linspace(0, 1, n)[:, None]
        control = (p + q) / 2 + 0.28 * np.array([-(q - p)[1], (q - p)[0]])
        return np.asarray((1 - t) ** 2 * p + 2 * t * (1 - t) * control + t**2 * q)


def _cycle(routes: list[Way], n: int) -> list[Way]:
    """The ways in the order of the loop, if every working state has one way out and they make one round; else nothing."""
    following = {way.source: way for way in routes}
    if n < 2 or len(routes) != n or len(following) != n:
        return []
    order = [following[routes[0].source]]
    while len(order) < n:
        order.append(following[order[-1].target])
    return order if len({way.source for way in order}) == n and order[-1].target == order[0].source else []


# ---------------------------------------------------------------------------------------------------------------- what is drawn


def _text(process: ModulatingProcess, s: int, named: bool) -> str:
    """What is written into a state: slots, jobs in setup, and for working states the part of the time."""
    if process.working[s]:
        return f"{process.state_name(s)[1:]} · {process.stationary[s]:.1%}"
    return process.state_name(s)[1:].replace(" in setup", "") if named else ""


def _node(process: ModulatingProcess, s: int, places: _Layout, named: bool) -> dict[str, Any]:
    (x, y), (w, h) = places.place[s], places.size(s, named)
    working = bool(process.working[s])
    return {
        "state": process.state_name(s),
        "working": working,
        "time": f"{process.stationary[s]:.3%}",
        "text": _text(process, s, named),
        "x": x,
        "y": y,
        "left": x - w / 2,
        "right": x + w / 2,
        "low": y - h / 2,
        "high": y + h / 2,
        "fill": _WORKING if working else "#ffffff",
        "ink": "#ffffff" if working else INK,
    }


def _moves(process: ModulatingProcess, places: _Layout, named: bool) -> Iterator[dict[str, Any]]:
    """Every move with its rate; of a large process only the timers' rates are written."""
    for move, (a, b) in enumerate(zip(process.source, process.target, strict=True)):
        trigger = process.trigger_name(move)
        colour = {"timer": INK, "setup": GREY}.get(trigger) or type_colour(int(process.trigger[move]))
        within = not (process.working[a] and process.working[b])
        text = number(float(process.rate[move])) if named or trigger == "timer" else ""
        yield _arrow(places, int(a), int(b), within, named, text) | {"trigger": trigger, "colour": colour}


def _collapsed(process: ModulatingProcess, routes: list[Way], places: _Layout) -> Iterator[dict[str, Any]]:
    """A way as one arrow."""
    for way in routes:
        text = f"{number(way.rate)}\nvia {way.states:,} states, mean time {number(way.mean_time)}" if way.layers else number(way.rate)
        yield _arrow(places, way.source, way.target, False, True, text) | {"trigger": "timer, then the switching states", "colour": INK}


def _arrow(places: _Layout, a: int, b: int, straight: bool, named: bool, text: str) -> dict[str, Any]:
    """The part of a curve that lies outside of both states, its head, and where its label goes."""
    curve = places.curve(a, b, straight)
    outside = np.ones(len(curve), dtype=bool)
    for s, margin in ((a, 2.0), (b, 7.0)):
        w, h = places.size(s, named)
        outside &= (np.abs(curve - places.place[s]) > np.array([w, h]) / 2 + margin).any(axis=1)
    path = curve[outside] if outside.sum() > 2 else curve
    middle, along = path[len(path) // 2], path[-1] - path[0]
    ahead = path[-1] - path[-2]
    side = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9)
    wide, tall = 3.3 * max(map(len, text.split("\n"))), 7.0 * (1 + text.count("\n"))
    x, y = middle + side * (wide * abs(side[0]) + tall * abs(side[1]) + 6.0)  # its nearest corner stays off the line
    angle = float(np.degrees(np.arctan2(ahead[0], ahead[1])))
    return {"path": path.tolist(), "x": x, "y": y, "text": text, "head_x": path[-1][0], "head_y": path[-1][1], "angle": angle}


def _frame(nodes: pl.DataFrame, labels: list[dict[str, Any]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The smallest frame around everything."""
    wide = [3.3 * max(map(len, label["text"].split("\n"))) for label in labels]
    x = [*nodes["left"], *nodes["right"], *(v["x"] + side * w for v, w in zip(labels, wide, strict=True) for side in (-1, 1))]
    y = [*nodes["low"], *nodes["high"], *(v["y"] + side * 16 for v in labels for side in (-1, 1))]
    return (min(x) - 10, max(x) + 10), (min(y) - 10, max(y) + 10)
