"""Pictures of a trace: one Altair definition each, for SVG, PNG and HTML.

Colours are from Okabe and Ito's palette, which people with any kind of colour vision can distinguish.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import altair as alt
import numpy as np
import polars as pl

from rota.arguments import whole_file
from rota.traces.info import TraceInfo

__all__ = ["draw_info", "picture_paths", "save_pictures"]

BLUE, ORANGE = "#0072B2", "#D55E00"
_WIDTH, _WIDE, _HEIGHT = 460, 700, 290
_SAVE: dict[str, dict[str, Any]] = {"svg": {}, "png": {"ppi": 144}, "html": {"inline": True}}
_NAMES = ("sizes", "failure-rate", "arrivals", "dispersion", "demands")
_MOST_POINTS = 2000  # types in the picture of demands, those with most work


def draw_info(info: TraceInfo) -> dict[str, Any]:
    """The pictures of a trace that its numbers allow, by name."""
    drawn = (
        _sizes(info),
        _failure_rate(info),
        _arrivals(info) if len(info.hourly_arrivals) > 1 else None,
        _dispersion(info) if info.dispersion else None,
        _demands(info) if info.types.height > 1 else None,
    )
    charts = zip(_NAMES, drawn, strict=True)
    return {name: _styled(chart, _WIDE if name == "arrivals" else _WIDTH) for name, chart in charts if chart is not None}


def picture_paths(folder: str | Path, kind: str) -> list[Path]:
    """Where `save_pictures` may write."""
    return [Path(folder) / f"{name}.{kind}" for name in _NAMES]


def save_pictures(info: TraceInfo, folder: str | Path, kind: Literal["svg", "png", "html"] = "svg") -> list[Path]:
    """Writes the pictures into a folder, which is made if need be. HTML files need no network."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in draw_info(info).items():
        path = folder / f"{name}.{kind}"
        with whole_file(path) as place:
            chart.save(str(place), format=kind, **_SAVE[kind])
        written.append(path)
    return written


def _sizes(info: TraceInfo) -> Any:
    """P(size > x), both axes logarithmic, with the exponential of the same mean beside it."""
    x, above = info.size_tail[:, 0], info.size_tail[:, 1]
    seen = pl.DataFrame({"size": x, "above": above}).filter((pl.col("size") > 0) & (pl.col("above") > 0))
    if seen.height == 0:
        return None
    lowest = float(seen["above"].to_numpy().min())
    low, high = float(np.asarray(seen["size"].min())), float(np.asarray(seen["size"].max()))
    grid = np.geomspace(low, high, 200)
    memoryless = pl.DataFrame({"size": grid, "above": np.exp(-grid / info.size_mean)}).filter(pl.col("above") >= lowest)
    data = pl.concat([seen.with_columns(of=pl.lit("trace")), memoryless.with_columns(of=pl.lit("exponential, same mean"))])
    colour = alt.Color("of:N", scale=alt.Scale(domain=["trace", "exponential, same mean"], range=[BLUE, ORANGE]), title=None)
    return (
        alt.Chart(data, title="Sizes: how many jobs are longer than x")
        .mark_line(strokeWidth=2.5)
        .encode(_log_x("size", "x (s)"), _log_y("above", "part of jobs longer than x"), colour, strokeDash=_dash("of"))
    )


def _failure_rate(info: TraceInfo) -> Any:
    """The failure rate over logarithmic bins; bins with few jobs are faint."""
    low, high, rate, ends = info.failure_rate.T
    data = pl.DataFrame({"age": np.sqrt(low * high), "rate": rate, "jobs": ends}).filter(pl.col("rate").is_finite() & (pl.col("rate") > 0))
    if data.height == 0:
        return None
    line = (
        alt.Chart(data, title="Failure rate: chance to end soon, by age")
        .mark_line(strokeWidth=2, color=BLUE, opacity=0.5)
        .encode(_log_x("age", "age (s)"), _log_y("rate", "failure rate (per s)"))
    )
    many = alt.condition("datum.jobs >= 30", alt.value(1.0), alt.value(0.25))
    dots = line.mark_circle(size=36, color=BLUE).encode(opacity=many, tooltip=["age", "rate", "jobs"])
    return line + dots + _reference("rate", 1 / info.size_mean, "exponential, same mean")


def _arrivals(info: TraceInfo) -> Any:
    """Arrivals per hour over time, in days."""
    counts = info.hourly_arrivals
    data = pl.DataFrame({"day": np.arange(len(counts)) / 24, "arrivals": counts})
    area = (
        alt.Chart(data, title="Arrivals per hour")
        .mark_area(line={"color": BLUE, "strokeWidth": 1}, color=BLUE, fillOpacity=0.25, interpolate="step-after")
        .encode(
            alt.X("day:Q", title="days since the first arrival", axis=alt.Axis(grid=False)),
            alt.Y("arrivals:Q", title="arrivals in the hour", axis=alt.Axis(format=",.4~f", tickCount=7)),
        )
    )
    return area + _reference("arrivals", float(counts.mean()), "mean", right_of=_WIDE)


def _dispersion(info: TraceInfo) -> Any:
    """The index of dispersion against the window, with the Poisson process at 1."""
    data = pl.DataFrame({"window": list(info.dispersion), "index": list(info.dispersion.values())}).filter(pl.col("index") > 0)
    if data.height == 0:
        return None
    line = (
        alt.Chart(data, title="Index of dispersion of arrivals")
        .mark_line(point={"size": 60, "color": BLUE}, color=BLUE, strokeWidth=2.5)
        .encode(
            alt.X("window:Q", scale=alt.Scale(type="log"), title="window", axis=_time_axis(list(info.dispersion))),
            _log_y("index", "variance / mean of arrivals"),
        )
    )
    return line + _reference("index", 1.0, "Poisson process")


def _demands(info: TraceInfo) -> Any:
    """Types by their demand (the first two resources), area by share of the work."""
    columns = [f"demand.{name}" for name in info.resources][:2]
    data = info.types.sort("work_share", descending=True).head(_MOST_POINTS)
    data = data.select("name", "jobs", "work_share", x=columns[0], y=columns[-1])
    share = data["work_share"].to_numpy()
    points = alt.Chart(data, title="Demands of the job types").mark_circle(color=BLUE, opacity=0.55, stroke="white", strokeWidth=0.8)
    if len(columns) == 1:
        return points.encode(
            _demand_axis(alt.X, "x", info.resources[0], data),
            alt.Y("work_share:Q", title="share of work", axis=alt.Axis(format=".1~%")),
        )
    size = alt.Size(
        "work_share:Q",
        title="share of work",
        scale=alt.Scale(type="linear", domain=[0, float(share.max())], range=[12, 900]),
        legend=alt.Legend(format=".1~%", tickCount=4),
    )
    return points.encode(
        _demand_axis(alt.X, "x", info.resources[0], data),
        _demand_axis(alt.Y, "y", info.resources[1], data),
        size,
        tooltip=["name", "jobs", "work_share"],
    )


# ---------------------------------------------------------------------------------------------------------------- axes, notes


def _log_x(field: str, title: str) -> Any:
    return alt.X(f"{field}:Q", scale=alt.Scale(type="log"), title=title, axis=_powers())


def _log_y(field: str, title: str) -> Any:
    return alt.Y(f"{field}:Q", scale=alt.Scale(type="log"), title=title, axis=_powers())


def _powers() -> Any:
    """Labels at powers of ten only, plain between 0.001 and 10,000."""
    exponent = "round(log(datum.value) / LN10)"
    power = f"abs(log(datum.value) / LN10 - {exponent}) < 1e-6"
    plain = "datum.value >= 0.0009 && datum.value <= 10001"
    return alt.Axis(labelExpr=f"{power} ? ({plain} ? format(datum.value, ',~g') : '1e' + format({exponent}, 'd')) : ''", tickCount=6)


def _demand_axis(channel: Any, field: str, title: str, data: pl.DataFrame) -> Any:
    """A logarithmic axis if demands are positive and spread over more than a decade."""
    values = data[field].to_numpy()
    log = bool((values > 0).all() and values.max() > 10 * values.min())
    return channel(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log" if log else "linear", zero=not log),
        axis=_powers() if log else alt.Axis(format=",.4~f", tickCount=7),
    )


def _time_axis(windows: list[float]) -> Any:
    """The windows by their names."""
    names = {1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 21600.0: "6 h", 86400.0: "1 d"}
    chosen = " : ".join(f"datum.value == {w:.0f} ? '{names[w]}'" for w in windows)
    return alt.Axis(values=windows, labelExpr=f"{chosen} : ''")


def _dash(field: str) -> Any:
    return alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=["trace", "exponential, same mean"], range=[[1, 0], [6, 4]]), title=None)


def _reference(field: str, value: float, text: str, right_of: int | None = None) -> Any:
    """A broken line to compare with, and what it is: written above its left end, or right of the picture where that is crowded."""
    base = alt.Chart(pl.DataFrame({field: [value], "text": [text]})).encode(y=f"{field}:Q")
    rule = base.mark_rule(color=ORANGE, strokeDash=[6, 4], strokeWidth=2)
    place: dict[str, Any] = {"baseline": "bottom", "dx": 6, "dy": -3} if right_of is None else {"baseline": "middle", "dx": 4}
    label = base.mark_text(align="left", color=ORANGE, fontSize=12, **place).encode(text="text:N", x=alt.value(right_of or 0))
    return rule + label


def _styled(chart: Any, width: int) -> Any:
    return (
        chart.properties(width=width, height=_HEIGHT)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#e6e6e6", labelFontSize=12, titleFontSize=13, titleFontWeight="normal")
        .configure_title(fontSize=15, anchor="start", offset=10)
        .configure_legend(labelFontSize=12, titleFontSize=12, orient="bottom", labelLimit=260, symbolStrokeWidth=2.5)
    )
