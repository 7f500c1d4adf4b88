"""The jobs of a run as text, so that other processes and machines find them: the file of a trace, or an arrival process at `module:name`.

    { "trace": "/data/jobs.parquet", "sha256": "…", "faster": 1.25 }          arrival times divided by 1.25
    { "custom": "mine:BatchPoisson", "source": "…" }

Each has a hash: the content of the file defines the run, not its path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sized
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rota.errors import BadSpec, Problem
from rota.imported import import_object, is_place, place_of, source_of
from rota.model import System, Workload
from rota.simulation.named import as_workload
from rota.traces import Trace

__all__ = ["NamedWorkload", "defining", "named_workload", "workload_from_text"]


@dataclass(frozen=True)
class NamedWorkload:
    """A workload that has a text. `jobs` is how many it has, if it has an end; a `fixed` one is the same for every seed."""

    fields: dict[str, Any]
    jobs: int | None
    fixed: bool

    def text(self, factor: float) -> str:
        """The jobs for a system whose arrival rates are multiplied by `factor`. An arrival process sees that in the system."""
        return json.dumps({**self.fields, "faster": factor} if "trace" in self.fields and factor != 1 else self.fields)


def named_workload(given: Workload | str | Path, system: System) -> NamedWorkload:
    """The workload of a study, which must have a name: a file, or `module:name`."""
    workload = as_workload(given, system)
    place = str(given) if is_place(given) else place_of(given, type(given))
    if place is not None and not Path(place).exists():
        fields = {"custom": place, "source": source_of(place, "workload")}
    elif isinstance(given, str | Path):
        fields = {"trace": str(Path(given).resolve()), "sha256": _sha256(Path(given))}
    else:
        rule = (
            "a study can only take by name: the file of a trace (rota.traces.save_trace writes one), "
            'or an arrival process in a file, say mine.py, as "mine:name"'
        )
        raise BadSpec([Problem("workload", rule, given)])
    return NamedWorkload(fields, len(workload) if isinstance(workload, Sized) else None, bool(getattr(workload, "fixed", False)))


@lru_cache(maxsize=4)
def workload_from_text(text: str) -> Workload:
    """The workload that a text says, if it is still the same."""
    fields = json.loads(text)
    if "custom" in fields:
        found: Workload = import_object(fields["custom"], "workload")
        now = source_of(fields["custom"], "workload")
        _same(fields["custom"], fields["source"], now)
        return found() if isinstance(found, type) else found
    path = Path(fields["trace"])
    _same(str(path), fields["sha256"], _sha256(path))
    trace = as_workload(path)
    return trace.stretched(1 / fields["faster"]) if "faster" in fields and isinstance(trace, Trace) else trace


def defining(text: str) -> str:
    """The part of a text that defines the run."""
    return json.dumps({name: value for name, value in json.loads(text).items() if name != "trace"})


def _same(what: str, before: str, now: str) -> None:
    if before != now:
        raise BadSpec([Problem("workload", f"{what} has changed since the study began (hash {before}, now {now})")])


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise BadSpec([Problem("workload", f"cannot be read: {error.strerror or error}", str(path))]) from None
