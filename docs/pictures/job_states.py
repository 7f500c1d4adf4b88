"""Draws job-states.svg, the states of a job: `python docs/pictures/job_states.py`. A test compares it with the scheduler's table."""

from __future__ import annotations

from html import escape
from pathlib import Path

BEFORE, STARTED, ENDED = "not started", "started", "ended"
GROUPS = {
    BEFORE: ("held", "blocked", "waiting"),
    STARTED: ("starting", "running", "suspended", "stopping"),
    ENDED: ("done", "failed", "cancelled"),
}
# Centres of the states, and corners of the groups (left, top, right, bottom).
PLACES = {
    "held": (100, 80),
    "blocked": (100, 190),
    "waiting": (100, 300),
    "starting": (360, 300),
    "running": (560, 300),
    "suspended": (560, 80),
    "stopping": (360, 190),
    "done": (800, 80),
    "failed": (800, 190),
    "cancelled": (800, 300),
}
FRAMES = {BEFORE: (10, 30, 190, 350), STARTED: (285, 30, 635, 350), ENDED: (725, 30, 875, 350)}
# From, to, words. A group stands for each of its states.
EDGES = (
    ("held", "blocked", "released"),
    ("blocked", "held", "held"),
    ("blocked", "waiting", "eligible"),
    ("waiting", "held", "held"),
    ("held", "waiting", ""),
    ("waiting", "starting", "the policy starts it"),
    ("starting", "running", "claimed"),
    ("starting", "suspended", "preempted"),
    ("running", "suspended", "preempted"),
    ("suspended", "running", "resumed"),
    ("starting", "stopping", ""),
    ("running", "stopping", "preempted, cancelled"),
    (STARTED, "waiting", "stopped: it starts again later"),
    (STARTED, ENDED, "its end"),
    (BEFORE, "cancelled", "cancelled, or what it comes after failed"),
)
WIDTH, HEIGHT = 104, 40


def steps() -> set[tuple[str, str]]:
    """Every step that the picture shows."""
    return {(a, b) for start, end, _ in EDGES for a in GROUPS.get(start, (start,)) for b in GROUPS.get(end, (end,))}


def _frame(name: str) -> tuple[float, float, float, float]:
    if name in FRAMES:
        return FRAMES[name]
    x, y = PLACES[name]
    return x - WIDTH / 2, y - HEIGHT / 2, x + WIDTH / 2, y + HEIGHT / 2


def _arrow(start: str, end: str, words: str) -> str:
    """A line from border to border: down a column, along a row, or along a path of its own."""
    paths = {
        (BEFORE, "cancelled"): ([(100, 350), (100, 395), (800, 395), (800, 320)], (450, 388)),
        (STARTED, "waiting"): ([(320, 350), (320, 368), (130, 368), (130, 320)], (225, 362)),
        (STARTED, ENDED): ([(635, 190), (725, 190)], (680, 180)),
        ("held", "blocked"): ([(85, 100), (85, 170)], (55, 138)),
        ("blocked", "held"): ([(115, 170), (115, 100)], (137, 138)),
        ("waiting", "held"): ([(152, 290), (174, 290), (174, 70), (152, 70)], (168, 58)),
        ("held", "waiting"): ([(48, 85), (24, 85), (24, 305), (48, 305)], (0, 0)),
        ("suspended", "running"): ([(575, 100), (575, 280)], (602, 150)),
        ("running", "suspended"): ([(540, 280), (540, 100)], (508, 240)),
        ("starting", "suspended"): ([(330, 280), (305, 260), (305, 80), (508, 80)], (400, 72)),
        ("running", "stopping"): ([(508, 290), (470, 260), (470, 190), (412, 190)], (472, 182)),
        ("starting", "stopping"): ([(360, 280), (360, 210)], (398, 248)),
    }
    if (start, end) in paths:
        points, label = paths[start, end]
    else:
        a, b = _frame(start), _frame(end)
        if a[0] < b[2] and b[0] < a[2]:  # one above the other
            x = (max(a[0], b[0]) + min(a[2], b[2])) / 2
            points = [(x, a[3]), (x, b[1])] if a[3] <= b[1] else [(x, a[1]), (x, b[3])]
            label = (x + 30, (points[0][1] + points[1][1]) / 2 + 4)
        else:
            y = (max(a[1], b[1]) + min(a[3], b[3])) / 2
            points = [(a[2], y), (b[0], y)] if a[2] <= b[0] else [(a[0], y), (b[2], y)]
            label = ((points[0][0] + points[1][0]) / 2, y - 8)
    line = " ".join(f"{x:g},{y:g}" for x, y in points)
    text = f'<text class="step" x="{label[0]:g}" y="{label[1]:g}">{escape(words)}</text>' if words else ""
    return f'<polyline class="arrow" points="{line}"/>{text}'


def svg() -> str:
    """The picture."""
    groups = "\n".join(
        f'<rect class="group" x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" rx="10"/>'
        f'<text class="title" x="{(x0 + x1) / 2:g}" y="{y0 - 8}">{escape(name)}</text>'
        for name, (x0, y0, x1, y1) in FRAMES.items()
    )
    states = "\n".join(
        f'<rect class="state" x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text class="name" x="{x}" y="{y + 5}">{escape(name)}</text>'
        for name, (x, y) in PLACES.items()
    )
    arrows = "\n".join(_arrow(*edge) for edge in EDGES)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 410" role="img" aria-label="The states of a job">
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path d="M0,0L10,5L0,10z" fill="#444"/></marker></defs>
<style>
text {{ font-family: sans-serif; text-anchor: middle; fill: #222 }}
.name {{ font-size: 15px }} .title {{ font-size: 13px; fill: #666 }} .step {{ font-size: 11px; fill: #0b5394 }}
.group {{ fill: #f5f6f8; stroke: #c5cad3 }} .state {{ fill: #fff; stroke: #444 }}
.arrow {{ fill: none; stroke: #444; marker-end: url(#tip) }}
</style>
<rect width="900" height="410" fill="#fff"/>
{groups}
{arrows}
{states}
</svg>
"""


if __name__ == "__main__":
    Path(__file__).with_name("job-states.svg").write_text(svg(), encoding="utf-8")
