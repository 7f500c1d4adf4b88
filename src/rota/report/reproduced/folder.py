"""A folder of redrawn figures: one folder each, written at once when the figure is done, and an index of all.

`figure.json` in a figure's folder says what it was made with. If the same is asked for again, the figure is not remade.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rota import __version__
from rota.report.reproduced.charts import charts_of
from rota.report.reproduced.pages import figure_text, index_page, index_text
from rota.report.save import save_chart
from rota.study.reproduce import FIGURES, Figure, Redrawn, Settings

__all__ = ["Done", "redraw"]

_FORMATS = ("svg", "png", "html")


@dataclass(frozen=True)
class Done:
    """A figure that is in the folder: whether it was `found` there, its seconds, and how many of its findings agree with the paper."""

    figure: Figure
    found: bool
    time_s: float
    agrees: int
    findings: int


def redraw(folder: Path, figures: Sequence[Figure], settings: Settings, *, force: bool = False) -> Iterator[Done]:
    """Makes the figures that the folder does not have yet, one after the other, and keeps its index up to date."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        made_with = _made_with(settings)
        known = _read(folder / figure.name)
        found = not force and known is not None and known["made_with"] == made_with
        if not found:
            began = time.perf_counter()
            redrawn = figure.compute(settings)
            known = _write(folder / figure.name, figure, redrawn, made_with, began)
        assert known is not None
        _write_index(folder)
        yield Done(figure, found, known["time_s"], sum(finding["agrees"] for finding in known["findings"]), len(known["findings"]))


def _made_with(settings: Settings) -> dict[str, Any]:
    trace = None if settings.trace is None else str(settings.trace.resolve())
    return {"rota": __version__, "effort": settings.effort.name, "seed": settings.seed, "trace": trace}


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        known: dict[str, Any] = json.loads((folder / "figure.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known


def _write(folder: Path, figure: Figure, redrawn: Redrawn, made_with: dict[str, Any], began: float) -> dict[str, Any]:
    """Writes everything into a folder beside it, which then takes its place: so the folder is always complete."""
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for name, table in redrawn.tables.items():
        table.write_parquet(fresh / f"{name}.parquet")
        table.write_csv(fresh / f"{name}.csv")
    charts = charts_of(figure.name, redrawn.tables)
    for name, chart in charts.items():
        for kind in _FORMATS:
            save_chart(chart, fresh / f"{name}.{kind}", title=figure.title)
    known = {
        "name": figure.name,
        "title": figure.title,
        "place": figure.place,
        "made_with": made_with,
        "time_s": round(time.perf_counter() - began, 2),
        "findings": [asdict(finding) for finding in redrawn.findings],
        "remarks": list(redrawn.remarks),
        "pictures": list(charts),
        "tables": list(redrawn.tables),
        "shown": list(redrawn.shown),
    }
    (fresh / "README.md").write_text(figure_text(known, fresh), encoding="utf-8")
    (fresh / "figure.json").write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return known


def _write_index(folder: Path) -> None:
    known = [found for name in FIGURES if (found := _read(folder / name)) is not None]
    (folder / "README.md").write_text(index_text(known), encoding="utf-8")
    (folder / "index.html").write_text(index_page(known, folder), encoding="utf-8")
