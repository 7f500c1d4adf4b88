"""How objects show themselves to people: schedules in words, and small HTML tables for notebooks.

The tables hold no script and load nothing. Everything that goes into them is text and is escaped here, since names of job types, resources
and policies come from anywhere. Colours and fonts are left to the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

__all__ = ["html_lines", "html_table", "html_title", "jobs_together", "number", "per_cent", "verdict_cells"]

_ROWS = 20  # of a table; the rest is counted


def jobs_together(schedule: Iterable[int], names: Sequence[str]) -> str:
    """A schedule in words: `1 × train + 4 × web`."""
    parts = [f"{int(count)} × {name}" for count, name in zip(schedule, names, strict=True) if count]
    return " + ".join(parts) or "nothing"


def number(x: float | None, digits: int = 4) -> str:
    """A number with this many digits; a dash for none."""
    return "–" if x is None or isnan(x) else f"{x:.{digits}g}".replace("inf", "∞")


def per_cent(x: float) -> str:
    """A part of a whole."""
    return "–" if isnan(x) else f"{x:.1%}"


def verdict_cells(row: Mapping[str, Any], width: int) -> tuple[str, ...]:
    """So many cells for a policy without a mean response time: why it has none. Empty if it has one."""
    if row["stable"] and not isnan(row["mean_response_time"]):
        return ()
    return ("not known" if row["stable"] else "unstable", *[""] * (width - 1))


def html_title(text: str) -> str:
    """The first line: what the object is."""
    return f"<p><b>{escape(text)}</b></p>"


def html_lines(text: str) -> str:
    """A paragraph per line."""
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines())


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = (0,), most: int = _ROWS) -> str:
    """A table of text: columns aligned right but for those listed in `left`. Of very many rows the first are shown."""

    def line(tag: str, row: Sequence[str]) -> str:
        aligned = ("left" if j in left else "right" for j in range(len(row)))
        return "".join(f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in zip(row, aligned, strict=True))

    cells = list(rows)
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in cells[:most])
    more = f"<p>… and {len(cells) - most:,} more.</p>" if len(cells) > most else ""
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>{more}"
