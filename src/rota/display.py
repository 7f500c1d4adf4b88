"""How things are shown to people: schedules in words, numbers with their intervals, durations, and small HTML tables for notebooks.

The tables hold no script and load nothing. Everything that goes into them is text and is escaped here, since names of job types, resources
and policies come from anywhere. Colours and fonts are left to the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

__all__ = [
    "duration",
    "html_lines",
    "html_table",
    "html_title",
    "interval_cells",
    "jobs_together",
    "number",
    "per_cent",
    "rota_rows",
    "rough_duration",
    "verdict_cells",
    "with_interval",
]

_ROWS = 20  # of a table; the rest is counted


def jobs_together(schedule: Iterable[int], names: Sequence[str]) -> str:
    """A schedule in words: `1 × train + 4 × web`."""
    parts = [f"{int(count)} × {name}" for count, name in zip(schedule, names, strict=True) if count]
    return " + ".join(parts) or "nothing"


def rota_rows(
    candidates: Sequence[Sequence[int]], weights: Sequence[float], names: Sequence[str], digits: int = 2
) -> list[tuple[str, str]]:
    """A rota in words, as two cells a row: the part of the working time, and the jobs of a schedule.

    Where the schedules have most of their slots in common, these come first, as `always`, and then what each schedule has beside them.
    """
    common = [min(counts) for counts in zip(*candidates, strict=True)]
    times = [f"{weight:.{digits}%}" for weight in weights]
    if len(candidates) == 1:
        return [("always", jobs_together(common, names))]
    if 2 * sum(common) < max(map(sum, candidates)):
        return [(time, jobs_together(row, names)) for time, row in zip(times, candidates, strict=True)]
    beside = [[count - always for count, always in zip(row, common, strict=True)] for row in candidates]
    rows = [(time, f"+ {jobs_together(row, names)}") for time, row in zip(times, beside, strict=True)]
    return [("always", jobs_together(common, names)), *rows]


def number(x: float | None, digits: int = 4) -> str:
    """A number with this many digits; a dash for none."""
    return "–" if x is None or isnan(x) else f"{x:.{digits}g}".replace("inf", "∞")


def per_cent(x: float) -> str:
    """A part of a whole."""
    return "–" if isnan(x) else f"{x:.1%}"


def interval_cells(x: float, half_width: float, digits: int = 5) -> tuple[str, str]:
    """A number and the half-width of its interval, as two cells of a table."""
    return number(x, digits), number(half_width, 2)


def with_interval(x: float, half_width: float, digits: int = 5) -> str:
    """A number with the half-width of its interval: `4.213 ± 0.041`."""
    return " ± ".join(interval_cells(x, half_width, digits))


def duration(seconds: float) -> str:
    """A length of time: `23 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 0.9995:
        return f"{1000 * max(seconds, 0):.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        (many, few), units = divmod(whole, 60), ("min", "s")
    elif (minutes := round(seconds / 60)) < 24 * 60:
        (many, few), units = divmod(minutes, 60), ("h", "min")
    else:
        (many, few), units = divmod(round(seconds / 3600), 24), ("d", "h")
    return f"{many} {units[0]}" + (f" {few} {units[1]}" if few else "")


def rough_duration(seconds: float, digits: int = 2) -> str:
    """A length of time in one unit, for estimates: `90 s`, `3 h`, `2.5 d`."""
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length or seconds == length:
            return f"{seconds / length:.{digits}g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.3g} s"


def verdict_cells(row: Mapping[str, Any], width: int) -> tuple[str, ...]:
    """The cells for a policy without a mean response time, with the reason. Empty if it has one."""
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
    """A table of text: columns aligned right except those listed in `left`. Of very many rows the first are shown."""

    def line(tag: str, row: Sequence[str]) -> str:
        aligned = ("left" if j in left else "right" for j in range(len(row)))
        return "".join(f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in zip(row, aligned, strict=True))

    cells = list(rows)
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in cells[:most])
    more = f"<p>… and {len(cells) - most:,} more.</p>" if len(cells) > most else ""
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>{more}"
