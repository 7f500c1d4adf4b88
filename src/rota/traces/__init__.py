"""Traces: readers for real logs, grouping into job types, thinning, synthesis.

What needs compiled functions or SciPy is loaded on first use, so that importing this package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rota.traces.files import is_trace_file, open_trace, save_trace
from rota.traces.importing import ImportReport, import_trace, read_trace
from rota.traces.info import TraceInfo, trace_info
from rota.traces.machines import Machines, read_machines
from rota.traces.resample import resample
from rota.traces.to_fleet import fleet_scaled_to, to_fleet
from rota.traces.to_system import scaled_to, to_system
from rota.traces.trace import Looped, Trace

__all__ = [
    "BorgModel",
    "Grouping",
    "ImportReport",
    "LeftOut",
    "Looped",
    "Machines",
    "Trace",
    "TraceInfo",
    "borg_month",
    "fit_bursts",
    "fleet_scaled_to",
    "group_types",
    "import_trace",
    "is_trace_file",
    "open_trace",
    "read_machines",
    "read_trace",
    "resample",
    "save_trace",
    "scaled_to",
    "to_fleet",
    "to_system",
    "trace_info",
    "write_borg_month",
]

_HOME = {
    "BorgModel": "rota.traces.borg",
    "borg_month": "rota.traces.borg",
    "write_borg_month": "rota.traces.borg",
    "fit_bursts": "rota.traces.bursts",
    "Grouping": "rota.traces.grouping",
    "LeftOut": "rota.traces.grouping",
    "group_types": "rota.traces.grouping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rota.traces' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # the same names, for editors and type checkers
    from rota.traces.borg import BorgModel, borg_month, write_borg_month
    from rota.traces.bursts import fit_bursts
    from rota.traces.grouping import Grouping, LeftOut, group_types
