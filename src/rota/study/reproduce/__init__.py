"""Every figure and table of the paper, computed from scratch: one module each, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence

from rota.errors import BadSpec, Problem
from rota.study.reproduce import borg, comparison, load, processes, queues, setup, switching, vm
from rota.study.reproduce.figure import EFFORTS, Effort, Figure, Finding, Redrawn, Settings

__all__ = ["EFFORTS", "FIGURES", "Effort", "Figure", "Finding", "Redrawn", "Settings", "figures_named"]

_IN_ORDER = (comparison, queues, switching, setup, load, borg, processes, vm)  # as they stand in the paper
FIGURES: dict[str, Figure] = {module.FIGURE.name: module.FIGURE for module in _IN_ORDER}


def figures_named(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, in the order of the paper; "all", or no name, means all of them."""
    unknown = [name for name in names if name not in FIGURES and name != "all"]
    if unknown:
        raise BadSpec([Problem("figure", f"must be one of {', '.join(FIGURES)}, or all", name) for name in unknown])
    everything = not names or "all" in names
    return [figure for name, figure in FIGURES.items() if everything or name in names]
