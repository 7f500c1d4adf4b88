"""Workloads by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rota.errors import BadSpec, Problem
from rota.imported import import_object, is_place
from rota.model import System, Workload

__all__ = ["as_workload"]


def as_workload(workload: Workload | str | Path, system: System | None = None) -> Workload:
    """A workload; or a trace or log read from its file, or your own at `module:name`. One that has a `check` must fit the system."""
    found: Any = workload
    if is_place(workload) and not Path(str(workload)).exists():
        found = import_object(str(workload), "workload")
        found = found() if isinstance(found, type) else found
    elif isinstance(workload, str | Path):
        from rota.traces import read_trace

        found = read_trace(workload)
    if not callable(getattr(found, "chunks", None)):
        rule = "must give jobs by a method chunks(system, seed), as a trace, rota.Jobs and arrival processes of your own do"
        raise BadSpec([Problem("workload", rule, workload)])
    if system is not None and hasattr(found, "check"):
        found.check(system)
    return found  # type: ignore[no-any-return]
