"""An analysis in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.display import html_lines, html_table, html_title, number

if TYPE_CHECKING:
    from rota.analysis.analyze import Analysis

__all__ = ["as_html"]


def as_html(analysis: Analysis, growth: str) -> str:
    """A table of all types; `growth`: how far the arrivals can grow, or why there is no answer, in words."""
    columns = {"load": analysis.load}
    if analysis.stable:
        columns |= {"E[Q] at least": analysis.lower, "at most": analysis.upper}
        columns |= {"predicted": analysis.prediction} if analysis.exponential else {}
    # Showing an object should take no time: exact values are shown where they are known or quick to compute.
    exact = "exact" in vars(analysis) or analysis.has_exact
    if exact:
        columns |= {"exact": analysis.exact, "E[T]": analysis.response_time}
    rows = [(name, *(number(column[i], 5) for column in columns.values())) for i, name in enumerate(analysis.system.names)]
    title = f"Mean response time {number(analysis.mean_response_time, 6)}" if exact else "Analysis" if analysis.stable else "Unstable"
    return html_title(title) + html_table(["", *columns], rows) + html_lines("\n".join([growth, *analysis.remarks(exact=exact)]))
