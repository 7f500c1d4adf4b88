"""How all charts look: one configuration, one colour and one mark per policy, a palette for the job types, axes that people can read.

Policies and job types are different things, so each has colours of its own. Those of the policies are in their records
(`rota.policy.registry`), and were searched for: any two of them differ clearly for people with any kind of colour vision, on white, and
the three that MSR policies are compared with most are from Okabe and Ito's palette. Those of the types are Paul Tol's "muted" ones.
What a colour says, the shape of a point says too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any
from zlib import crc32

import altair as alt

from rota.policy import record_named

__all__ = [
    "CONFIG",
    "INK",
    "TYPE_COLOURS",
    "below",
    "beside",
    "log_axis",
    "number",
    "policy_colour",
    "policy_colours",
    "policy_shape",
    "policy_shapes",
    "styled",
    "text_colour",
    "type_colour",
    "type_colours",
]

INK, GREY, LIGHT = "#222222", "#767676", "#e4e4e4"
WIDTH, HEIGHT = 520, 340
TIME = "units of time"

_OTHER_COLOURS = ("#7F7F7F", "#CC79A7", "#009E73", "#56B4E9", "#B8860B", "#E15759")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
TYPE_COLOURS = ("#88CCEE", "#CC6677", "#117733", "#DDCC77", "#332288", "#AA4499", "#44AA99", "#999933", "#882255")

_FONT = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": "white",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": LIGHT,
        "domainColor": GREY,
        "tickColor": GREY,
        "titlePadding": 8,
    },
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": GREY,
        "labelLimit": 300,
        "symbolSize": 90,
        "symbolStrokeWidth": 2.5,
        "rowPadding": 4,
    },
    "title": {
        "fontSize": 15,
        "fontWeight": "bold",
        "anchor": "start",
        "color": INK,
        "subtitleFontSize": 12,
        "subtitleColor": GREY,
        "subtitlePadding": 5,
        "offset": 12,
    },
    "header": {"labelFontSize": 13, "labelColor": INK, "titleFontSize": 13},
    "line": {"strokeWidth": 2.25},
    "text": {"fontSize": 12, "color": INK},
}


# ---------------------------------------------------------------------------------------------------------------- colours


def policy_colour(name: str) -> str:
    """The colour of a policy, the same in every chart; a policy of another name has one that depends on its name only.

    "nMSR (1)", the first of several in a comparison, is drawn as "nMSR", and so is "nMSR, jsq", with a dispatch rule.
    """
    name = name.removesuffix(" (1)").partition(", ")[0]
    record = record_named(name)
    return record.colour if record is not None else _OTHER_COLOURS[_hash(name) % len(_OTHER_COLOURS)]


def policy_shape(name: str) -> str:
    """The shape of a policy's points: policies of one family differ, and so do policies of a similar colour."""
    name = name.removesuffix(" (1)")
    record = record_named(name)
    return record.mark if record is not None else _SHAPES[_hash(name) % len(_SHAPES)]


def policy_colours(names: Sequence[str]) -> Any:
    """The scale of these policies, in the order given, which is that of the legend."""
    return alt.Scale(domain=list(names), range=[policy_colour(name) for name in names])


def policy_shapes(names: Sequence[str]) -> Any:
    """The scale of the shapes of these policies."""
    return alt.Scale(domain=list(names), range=[policy_shape(name) for name in names])


def type_colour(place: int) -> str:
    """The colour of the system's job type at this place; the tenth is a darker first, and so on."""
    turn, k = divmod(place, len(TYPE_COLOURS))
    return _darker(TYPE_COLOURS[k], 0.72**turn)


def type_colours(names: Sequence[str]) -> Any:
    """The scale of a system's job types."""
    return alt.Scale(domain=list(names), range=[type_colour(i) for i in range(len(names))])


def text_colour(background: str) -> str:
    """Black or white, whichever is read better on this background."""
    linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in _parts(background)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def _hash(name: str) -> int:
    return crc32(name.encode())


def _parts(colour: str) -> list[float]:
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def _darker(colour: str, factor: float) -> str:
    return "#" + "".join(f"{round(255 * part * factor):02X}" for part in _parts(colour))


# ---------------------------------------------------------------------------------------------------------------- axes and numbers


def log_axis(channel: Any, field: str, title: str, low: float, high: float) -> Any:
    """A logarithmic axis from `low` to `high`: labels at 1, 2 and 5 times the powers of ten, over a long range at powers of ten only."""
    decades = range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
    leads = (1, 2, 5) if high / low < 400 else (1,)
    step = max(1, round(log10(high / low) / 8))
    ticks = [lead * 10.0**power for power in decades if power % step == 0 for lead in leads if low <= lead * 10.0**power * (1 + 1e-9)]
    label = "datum.value >= 0.00099 && datum.value <= 50001 ? format(datum.value, ',~g') : replace(format(datum.value, '.0e'), '+', '')"
    axis = alt.Axis(values=[tick for tick in ticks if tick <= high * (1 + 1e-9)], labelExpr=label)
    return channel(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(type="log", domain=[low, high], nice=False))


def number(value: float, digits: int = 3) -> str:
    """A number for people: three digits, no exponent between 0.001 and a million."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.{digits}g}"
        return f"{value:,.0f}" if "e" in text else text
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


# ---------------------------------------------------------------------------------------------------------------- whole charts


def styled(chart: Any, title: str | None = None, subtitle: str | Sequence[str] | None = None, **size: Any) -> Any:
    """The chart with the look of all others, and a title."""
    if title is not None:
        chart = chart.properties(title=alt.TitleParams(title, subtitle=subtitle) if subtitle else alt.TitleParams(title))
    return chart.properties(**size).configure(**CONFIG)


def beside(*charts: Any, title: str | None = None) -> Any:
    """Charts side by side in one picture."""
    return _joined(alt.hconcat, charts, title)


def below(*charts: Any, title: str | None = None) -> Any:
    """Charts one below the other in one picture."""
    return _joined(alt.vconcat, charts, title)


def _joined(join: Any, charts: Sequence[Any], title: str | None) -> Any:
    bare = []
    for chart in charts:  # Vega-Lite takes the configuration at the top only
        chart = chart.copy(deep=False)
        chart.config = alt.Undefined
        bare.append(chart)
    return styled(join(*bare, spacing=36).resolve_scale(color="independent", shape="independent", y="independent"), title)
