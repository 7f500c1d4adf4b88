"""The texts of redrawn figures: what the paper says, what we got, the difference and why, in Markdown and as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from rota.report.style import number

__all__ = ["figure_text", "index_page", "index_text"]

_ROWS = 100  # of a table that is shown in the text; what is left out is in its CSV
_STYLE = """
body { font: 16px/1.5 Helvetica, Arial, sans-serif; color: #222; max-width: 1180px; margin: 32px auto; padding: 0 24px; }
h1 { font-size: 28px; } h2 { font-size: 21px; margin: 56px 0 4px; border-top: 1px solid #ddd; padding-top: 28px; }
.place, .remark, .made { color: #666; font-size: 14px; } img { max-width: 100%; margin: 14px 18px 14px 0; vertical-align: top; }
table { border-collapse: collapse; font-size: 14px; margin: 14px 0; }
th { text-align: left; color: #666; font-weight: normal; }
th, td { padding: 5px 14px 5px 0; vertical-align: top; border-bottom: 1px solid #eee; }
td.number { text-align: right; white-space: nowrap; }
.agrees { color: #00664d; } .differs { color: #a63c00; font-weight: bold; } details { font-size: 14px; } a { color: #0060a0; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data: file:"


# ---------------------------------------------------------------------------------------------------------------- Markdown


def figure_text(known: dict[str, Any], folder: Path) -> str:
    """The README of one figure."""
    return "\n".join(_figure_lines(known, folder)) + "\n"


def _figure_lines(known: dict[str, Any], folder: Path) -> Iterator[str]:
    yield from (f"# {known['title']}", "", f"{known['place']}. {_made(known)}", "")
    for name in known["pictures"]:
        yield from (f"![{known['title']}: {name}]({name}.svg)", "")
    yield from ("| the paper says | we got | | why |", "| --- | --- | --- | --- |")
    for finding in known["findings"]:
        yield "| " + " | ".join(_cell(text) for text in (finding["says"], finding["got"], _verdict(finding), finding["why"])) + " |"
    yield ""
    for remark in known["remarks"]:
        yield from (remark, "")
    for name in known["shown"]:
        yield from (f"## {name}", "", *_table_lines(name, pl.read_parquet(folder / f"{name}.parquet")), "")
    yield "Data: " + ", ".join(f"[{name}.csv]({name}.csv), [.parquet]({name}.parquet)" for name in known["tables"]) + "."


def _table_lines(name: str, table: pl.DataFrame) -> Iterator[str]:
    yield "| " + " | ".join(column.replace("_", " ") for column in table.columns) + " |"
    yield "| " + " | ".join("---:" if table.schema[column].is_numeric() else "---" for column in table.columns) + " |"
    for row in table.head(_ROWS).rows():
        yield "| " + " | ".join(_cell(_shown(value)) for value in row) + " |"
    if len(table) > _ROWS:
        yield from ("", f"{_left_out(table)} [{name}.csv]({name}.csv).")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def index_text(known: Sequence[dict[str, Any]]) -> str:
    """The README of the folder."""
    lines = ["# The paper redrawn", "", "| figure | in the paper | agrees | seconds |", "| --- | --- | --- | ---: |"]
    for figure in known:
        name = figure["name"]
        lines.append(f"| [{figure['title']}]({name}/README.md) | {_cell(figure['place'])} | {_count(figure)} | {figure['time_s']:.0f} |")
    for figure in known:
        lines += ["", f"## {figure['title']}", ""]
        lines += [f"![{figure['title']}: {picture}]({figure['name']}/{picture}.svg)" for picture in figure["pictures"]]
        differing = [finding for finding in figure["findings"] if not finding["agrees"]]
        if differing:
            lines += ["", "What differs:", ""]
            lines += [f"- {finding['says']} *We got:* {finding['got']} {finding['why']}".rstrip() for finding in differing]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------------------------------- HTML


def index_page(known: Sequence[dict[str, Any]], folder: Path) -> str:
    """All figures on one page, which needs the folder it lies in and no network."""
    contents = "".join(
        f'<tr><td><a href="#{figure["name"]}">{escape(figure["title"])}</a></td>'
        f"<td>{escape(figure['place'])}</td><td>{_count(figure)}</td></tr>"
        for figure in known
    )
    sections = "\n".join(_section(figure, folder) for figure in known)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>The paper redrawn</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>The paper redrawn</h1>
<table><tr><th>figure</th><th>in the paper</th><th>agrees</th></tr>{contents}</table>
{sections}
</body>
</html>
"""


def _section(known: dict[str, Any], folder: Path) -> str:
    name = known["name"]
    pictures = "".join(
        f'<a href="{name}/{picture}.html"><img src="{name}/{picture}.svg" alt="{escape(known["title"])}: {picture}"></a>'
        for picture in known["pictures"]
    )
    rows = "".join(
        f'<tr><td>{escape(finding["says"])}</td><td>{escape(finding["got"])}</td><td class="{_verdict(finding)}">{_verdict(finding)}</td>'
        f"<td>{escape(finding['why'])}</td></tr>"
        for finding in known["findings"]
    )
    remarks = "".join(f'<p class="remark">{escape(remark)}</p>' for remark in known["remarks"])
    shown = "".join(_details(table, folder / name) for table in known["shown"])
    data = ", ".join(f'<a href="{name}/{table}.csv">{table}.csv</a>' for table in known["tables"])
    return f"""<h2 id="{name}">{escape(known["title"])}</h2>
<p class="place">{escape(known["place"])}. {_made(known)}</p>
{pictures}
<table><tr><th>the paper says</th><th>we got</th><th></th><th>why</th></tr>{rows}</table>
{remarks}{shown}
<p class="made">Data: {data} (and .parquet)</p>"""


def _details(name: str, folder: Path) -> str:
    table = pl.read_parquet(folder / f"{name}.parquet")
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in table.head(_ROWS).rows())
    more = f'<p>{_left_out(table)} <a href="{folder.name}/{name}.csv">{escape(name)}.csv</a>.</p>' if len(table) > _ROWS else ""
    return f"<details><summary>table: {escape(name.replace('_', ' '))}</summary><table><tr>{head}</tr>{rows}</table>{more}</details>"


def _html_cell(value: Any) -> str:
    kind = ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{kind}>{escape(_shown(value))}</td>"


# ---------------------------------------------------------------------------------------------------------------- words


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return number(value, 4) if isinstance(value, float) else str(value)


def _left_out(table: pl.DataFrame) -> str:
    return f"The first {_ROWS} of {len(table):,} rows; the other {len(table) - _ROWS:,} are in"


def _verdict(finding: dict[str, Any]) -> str:
    return "agrees" if finding["agrees"] else "differs"


def _count(known: dict[str, Any]) -> str:
    return f"{sum(finding['agrees'] for finding in known['findings'])} of {len(known['findings'])}"


def _made(known: dict[str, Any]) -> str:
    made = known["made_with"]
    trace = f" --trace {Path(made['trace']).name}" if made["trace"] else ""
    effort = "" if made["effort"] == "full" else f" --effort {made['effort']}"
    return f"Made by rota {made['rota']}: rota reproduce {known['name']}{effort}{trace}."
