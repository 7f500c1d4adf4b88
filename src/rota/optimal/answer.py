"""What an evaluation and an optimisation have in common: means per type on a truncation, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rota.arrays import Array
from rota.display import html_lines, html_table, html_title, number
from rota.model import System

__all__ = ["Answer", "OptimalProgress"]


class OptimalProgress(NamedTuple):
    """How far an evaluation or an optimisation has come."""

    truncation: tuple[int, ...]
    text: str
    time_s: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer:
    """Means on states with at most `truncation` jobs of each type. Arrays have one entry per type (K,).

    `queue_length` E[Q_i]; `missing`: an estimate of what the states beyond the truncation would add to it, from the decay of its law.
    """

    system: System
    queue_length: Array
    missing: Array
    truncation: tuple[int, ...]
    states: int
    settled: bool

    @property
    def mean_response_time(self) -> float:
        """E[T] = Σ E[Q_i] / Σ λ_i over all jobs, by Little's law."""
        return float(self.queue_length.sum() / self.system.arrival_rate.sum())

    @property
    def response_time(self) -> Array:
        """E[T_i] = E[Q_i]/λ_i by Little's law; not a number for a type that never arrives."""
        lam = self.system.arrival_rate
        return np.asarray(np.divide(self.queue_length, lam, out=np.full(len(lam), np.nan), where=lam > 0))

    @property
    def edge(self) -> str:
        """The truncation in words."""
        return ", ".join(f"{N} × {name}" for N, name in zip(self.truncation, self.system.names, strict=True))

    def explain(self) -> str:
        """How far the numbers can be trusted, in sentences."""
        part = number(100 * self.missing.sum() / self.queue_length.sum(), 2)
        return f"The states beyond would add about {part} % to the mean number of jobs, by the decay of its law."

    def _repr_html_(self) -> str:
        rows = [
            (name, number(q, 6), number(t, 6)) for name, q, t in zip(self.system.names, self.queue_length, self.response_time, strict=True)
        ]
        return html_title(repr(self)[1:-1]) + html_table(["", "E[Q]", "E[T]"], rows) + html_lines(self.explain())
