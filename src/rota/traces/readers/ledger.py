"""The ledger of an import: what was read, which lines could not be, and how far it has come.

Every reader writes here, so that nothing is dropped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from rota.errors import BadSpec, Problem

__all__ = ["BadLine", "ImportProgress", "Ledger", "OnError"]

OnError = Literal["stop", "skip"]
_SHOWN = 5  # bad lines reported with their place; all are counted


class BadLine(NamedTuple):
    """A line (or a row of a parquet file) that could not be read: `place` is file:line."""

    place: str
    rule: str
    value: str | None = None

    def __str__(self) -> str:
        return str(Problem(self.place, self.rule, self.value))


class ImportProgress(NamedTuple):
    """How far an import has come: the `step` it is in, and how much of that is done (bytes, parts)."""

    step: str
    done: int
    total: int


@dataclass
class Ledger:
    """What an import has seen so far."""

    on_error: OnError = "stop"
    total_bytes: int = 0
    progress: Callable[[ImportProgress], None] | None = None
    read_bytes: int = 0
    rows: int = 0
    bad: int = 0
    places: list[BadLine] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)

    def advance(self, size: int) -> None:
        """Counts bytes of the input that were read."""
        self.read_bytes += size
        self.step("reading", self.read_bytes, self.total_bytes)

    def step(self, name: str, done: int, total: int) -> None:
        """Reports the progress of the import."""
        if self.progress is not None:
            self.progress(ImportProgress(name, done, total))

    def refuse(self, path: Path, lines: Iterable[tuple[int, str, str | None]]) -> None:
        """Counts lines that cannot be read, each with its number, the rule it breaks and its text; may stop the import."""
        for number, rule, text in lines:
            self.bad += 1
            if len(self.places) < _SHOWN:
                self.places.append(BadLine(f"{path}:{number}", rule, text))
        if self.bad and self.on_error == "stop":
            problems = [Problem(*bad) for bad in self.places]
            if self.bad > len(problems):
                problems.append(Problem("lines", f"{self.bad - len(problems)} more that cannot be read"))
            problems.append(Problem("on_error", 'nothing was imported: correct the file, or use "skip" to leave such lines out'))
            raise BadSpec(problems)
