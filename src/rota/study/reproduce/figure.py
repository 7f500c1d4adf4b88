"""What a redrawn figure is: tables, what the paper says beside what we got, and how much work to spend on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EFFORTS", "Effort", "Figure", "Finding", "Redrawn", "Settings", "n", "percent"]


@dataclass(frozen=True)
class Finding:
    """What the paper says, what we got, whether they agree, and, where there is something to explain, why they differ."""

    says: str
    got: str
    agrees: bool
    why: str = ""


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A figure's data by name, its findings, and remarks on how it was made and what was left out. The tables `shown` go into the text."""

    tables: dict[str, pl.DataFrame]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effort:
    """How much is computed.

    On the example system: `jobs` of a simulation, `points` of an exact curve, `loads`. For the time of a decision with ten types:
    `decisions`. On the Borg trace: `borg_loads`, the made months by their seeds, their `borg_days`, `borg_loops` through each, those loads
    that MaxWeight is run at, the jobs on which the queue-driven rota is tuned, and the seconds after which a run is ended (checked now and
    then).
    """

    name: str
    jobs: int
    points: int
    loads: tuple[float, ...]
    decisions: int
    borg_loads: tuple[float, ...]
    borg_months: tuple[int, ...]
    borg_days: float
    borg_loops: int
    max_weight_loads: tuple[float, ...]
    borg_tuning: int
    patience_s: float


_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MONTH = 2_679_600 / 86_400  # days
EFFORTS = {
    "full": Effort(
        name="full",
        jobs=20_000_000,
        points=81,
        loads=(*_TENTHS, 0.75, 0.85, 0.925, 0.95, 0.975),
        decisions=100_000,
        borg_loads=_TENTHS,
        borg_months=(4, 0, 1, 2, 3, 5, 6, 7),
        borg_days=_MONTH,
        borg_loops=3,
        max_weight_loads=_TENTHS,
        borg_tuning=60_000,
        patience_s=1200.0,
    ),
    "fast": Effort(
        name="fast",
        jobs=1_000_000,
        points=41,
        loads=(*_TENTHS, 0.85, 0.95),
        decisions=5_000,
        borg_loads=(0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9),
        borg_months=(4,),
        borg_days=_MONTH,
        borg_loops=2,
        max_weight_loads=(0.1, 0.2, 0.3),
        borg_tuning=60_000,
        patience_s=120.0,
    ),
    # Takes seconds: shows that everything runs; the numbers mean nothing.
    "smoke": Effort(
        name="smoke",
        jobs=20_000,
        points=9,
        loads=(0.3, 0.7, 0.9),
        decisions=300,
        borg_loads=(0.1, 0.8),
        borg_months=(4,),
        borg_days=1.0,
        borg_loops=2,
        max_weight_loads=(),
        borg_tuning=1_000,
        patience_s=10.0,
    ),
}


def _silent(text: str) -> None:
    pass


@dataclass(frozen=True)
class Settings:
    """What a figure is computed with. `workers` processes (None: one per core; 0: this one); `trace`, a file in place of the made month.

    `tell` is called with the progress.
    """

    effort: Effort = field(default_factory=lambda: EFFORTS["full"])
    workers: int | None = None
    seed: int = 0
    trace: Path | None = None
    tell: Callable[[str], None] = _silent


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper: its name here, its title, where it stands in the paper, and what computes it."""

    name: str
    title: str
    place: str
    compute: Callable[[Settings], Redrawn]


def n(value: float, digits: int = 4) -> str:
    """A number for the text."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def percent(value: float) -> str:
    """A part as a percentage with the digits that matter."""
    return f"{100 * value:.1f} %" if abs(value) >= 0.01 else f"{100 * value:.2g} %"
