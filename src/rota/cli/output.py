"""How the verbs print: tables for people, JSON for programs, remarks and progress on standard error."""

from __future__ import annotations

import json
import math
import os
import select
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

__all__ = ["ProgressLine", "finite", "print_json", "print_table", "remark"]


def print_json(fields: dict[str, Any]) -> None:
    """One JSON object; arrays become lists."""
    print(json.dumps(fields, default=_plain, allow_nan=False))


def finite(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with arrays as lists, keys as text, and null for what is infinite or undefined: JSON has no such numbers."""
    return {str(name): _finite(value) for name, value in fields.items()}


def _finite(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array or a number of NumPy, which is not imported for this
        value = value.tolist()
    if isinstance(value, dict):
        return finite(value)
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """A plain table: columns aligned right except those listed in `left`."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    print(f"\n{title}")
    for row in cells:
        aligned = [cell.ljust(width) if j in left else cell.rjust(width) for j, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print(("  " + "  ".join(aligned)).rstrip())


def remark(text: str) -> None:
    """A line on standard error."""
    try:
        if _takes_text(sys.stderr):
            print(text, file=sys.stderr, flush=True)
    except OSError:  # the reader has gone or the disk is full: that must not fail, now or when the rest is flushed at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _takes_text(stream: TextIO) -> bool:
    """Whether a stream can be written without waiting long for a reader."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # not a file
        return True
    return bool(poll.poll(1000))


class ProgressLine:
    """One line on standard error that rewrites itself, shown only if the work takes longer than a second. A context manager."""

    def __init__(self, after_s: float = 1.0, every_s: float = 0.2) -> None:
        self._next, self._every, self._shown = after_s, every_s, 0

    def update(self, elapsed_s: float, text: str, at_once: bool = False) -> None:
        """Shows the text if it is time; `at_once` if nothing more can be said for a while."""
        if elapsed_s < self._next and not at_once:
            return
        live = sys.stderr.isatty()
        self._next = max(self._next, elapsed_s + (self._every if live else 5.0))
        sys.stderr.write(f"\r{text.ljust(self._shown)}" if live else f"{text}\n")
        sys.stderr.flush()
        self._shown = len(text) if live else 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
