"""`Reader`: what the import must know of a format, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from rota.traces.readers.head import Head
from rota.traces.readers.lifecycle import Codes

__all__ = ["Field", "Reader"]


@dataclass(frozen=True)
class Field:
    """A column to read: its type, whether a row is broken without it, and the smallest and largest value it may have.

    Text may have to fit a `pattern`; `rule` says in words what it must be.
    """

    dtype: type[pl.DataType]
    required: bool = False
    least: float | None = None
    most: float | None = None
    pattern: str | None = None
    rule: str = ""


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    `shape` makes events of the rows (`group`, `member`, `time` in µs, `event`, and the resources) if there are `codes`, else jobs
    (`arrival`, `size` and the resources; where known `estimate`, `label`, and the actual `start` and `end`; `reason` says why a job is left
    out, null for the others).
    With `assemble`, `shape` makes events of any form with `group` and `member`, and `assemble` makes jobs of all events of some of them.
    `remarks` names columns of true and false: the import reports for how many kept jobs they are true.
    """

    format: str
    looks_for: str
    fits: Callable[[Head], bool]
    fields: Mapping[str, Field]
    resources: tuple[str, ...]
    shape: Callable[[pl.DataFrame], pl.DataFrame]
    codes: Codes | None = None
    remarks: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # resources that are left out if no job states its demand
    header: tuple[str, ...] | None = None  # the columns of text files without a header line
    spaced: bool = False  # columns separated by blanks, comments after a semicolon
    keyed: bool = False  # lines of name=value separated by blanks
    quoted: bool = True  # whether quotes have a meaning in text with separators
    capacity: Callable[[Sequence[Path]], Mapping[str, float]] = field(default=lambda paths: {})  # of one machine, per resource
    assemble: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    types: pl.DataFrame | None = None  # `label` and the resources, if the log says which types there are, and in which order
    settled: Callable[[Sequence[Path]], Reader] | None = None  # makes the reader from the contents of the whole files
    skips_bad_lines: bool = False  # counted, but no reason to stop
    about: Mapping[str, Any] = field(default_factory=dict)  # to be kept with the trace
