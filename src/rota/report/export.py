"""Tables for other programs: CSV, parquet, JSON, LaTeX and pandas.

The tables of Rota are Polars frames. Some columns hold a list per row, a number per type or resource: where the other side has no lists,
each becomes a column of its own, as `response_time.train`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rota.arguments import checked_path
from rota.errors import BadSpec, Problem, RotaError
from rota.simulation import Comparison

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLE_FORMATS", "check_table_name", "flat_table", "latex_table", "pandas_table", "save_table"]

TABLE_FORMATS = ("csv", "parquet", "json", "tex")
_OF_RESOURCES = ("utilization", "resources")
_SPECIAL = {"\\": r"\textbackslash{}", **{c: f"\\{c}" for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def save_table(table: pl.DataFrame | Comparison, path: str | Path) -> Path:
    """Writes a table, or that of a comparison; the extension decides the format: .csv, .parquet, .json or .tex."""
    frame, path = _frame(table), checked_path(path)
    kind = check_table_name(path)
    try:
        match kind:
            case "csv":
                flat_table(frame).write_csv(path)
            case "parquet":
                frame.write_parquet(path)
            case "json":
                frame.write_json(path)
            case _:
                path.write_text(latex_table(frame), encoding="utf-8")
    except OSError as error:
        raise BadSpec([Problem("path", f"cannot be written: {error.strerror or error}", str(path))]) from None
    return path


def check_table_name(path: Path, place: str = "path") -> str:
    """The format for the extension of a file."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in TABLE_FORMATS:
        raise BadSpec([Problem(place, f"must end in {', '.join('.' + name for name in TABLE_FORMATS)}", str(path))])
    return kind


def flat_table(table: pl.DataFrame | Comparison) -> pl.DataFrame:
    """The table without lists: a column per type or resource, named as the row's `names` and `resources` say, else by number."""
    frame = _frame(table)
    nested = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    if not nested:
        return frame
    wide: dict[str, list[Any]] = {}
    for k, row in enumerate(frame.to_dicts()):
        for name, value in row.items():
            if name in ("names", "resources") and name in nested:
                continue
            cells = {name: value}
            if name in nested:
                labels = row.get("resources" if name in _OF_RESOURCES else "names") or []
                labels = labels if value is not None and len(labels) == len(value) else range(1, len(value or []) + 1)
                cells = {f"{name}.{label}": item for label, item in zip(labels, value or [], strict=True)}
            for column, item in cells.items():
                values = wide.setdefault(column, [])
                values.extend([None] * (k - len(values)))
                values.append(item)
    for values in wide.values():
        values.extend([None] * (len(frame) - len(values)))
    schema = {name: frame.schema.get(name) for name in wide}
    return pl.DataFrame({name: pl.Series(name, values, dtype=schema[name], strict=False) for name, values in wide.items()})


def latex_table(
    table: pl.DataFrame | Comparison, *, columns: Sequence[str] | None = None, digits: int = 4, caption: str | None = None
) -> str:
    """The table in LaTeX, with the rules of the package booktabs: some `columns` or all, numbers with this many digits."""
    frame = flat_table(table)
    unknown = [name for name in columns or () if name not in frame.columns]
    if unknown:
        raise BadSpec([Problem("columns", f"the table has no such column (it has: {', '.join(frame.columns)})", name) for name in unknown])
    frame = frame.select(list(columns)) if columns is not None else frame
    sides = "".join("r" if kind.is_numeric() else "l" for kind in frame.dtypes)
    lines = [" & ".join(map(_escaped, frame.columns)) + r" \\"]
    rows = [" & ".join(_cell(value, digits) for value in row) + r" \\" for row in frame.rows()]
    tabular = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", *lines, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    if caption is None:
        return "\n".join(tabular) + "\n"
    around = [r"\begin{table}", r"\centering", rf"\caption{{{_escaped(caption)}}}", *tabular, r"\end{table}"]
    return "\n".join(around) + "\n"


def pandas_table(table: pl.DataFrame | Comparison) -> pd.DataFrame:
    """The table as a pandas frame, without lists."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise RotaError(f"this needs {error.name}: pip install 'rota[pandas]'") from None
    return flat_table(table).to_pandas()


def _frame(table: pl.DataFrame | Comparison) -> pl.DataFrame:
    if isinstance(table, Comparison):
        return table.table()
    if not isinstance(table, pl.DataFrame):
        raise BadSpec([Problem("table", "must be a table: a Polars frame, as rota.sweep gives it, or a comparison", table)])
    return table


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


def _cell(value: Any, digits: int) -> str:
    if value is None or value != value:  # not a number
        return "--"
    if isinstance(value, bool | int):
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:,}".replace(",", r"\,")
    if isinstance(value, float):
        mantissa, _, power = f"{value:.{digits}g}".partition("e")
        return f"${mantissa.replace('inf', chr(92) + 'infty')}" + (rf" \cdot 10^{{{int(power)}}}$" if power else "$")
    return _escaped(str(value))
