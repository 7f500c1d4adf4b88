"""`Head`: the beginning of a file and what can be seen there. The format is detected from it, never from the file's name."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from rota.traces.readers.text import first_bytes

__all__ = ["Head", "look"]

_SIZE = 1 << 16


@dataclass(frozen=True)
class Head:
    """`columns` of parquet, of JSON lines and of text with a header (fields of structs with a dot: `resource_request.cpus`)."""

    container: Literal["parquet", "json", "text", "unknown"]
    columns: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()  # of text: the first ones, without comments
    comments: tuple[str, ...] = ()  # of text: the lines that begin with a semicolon
    separator: str = ","


def look(path: Path) -> Head:
    """Looks at the beginning of a file."""
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        return _parquet(path)
    head = first_bytes(path, _SIZE)
    if b"\0" in head:
        return Head("unknown")
    lines = head.decode("utf-8", errors="replace").splitlines()
    if len(head) == _SIZE and len(lines) > 1:  # the last one is cut off
        lines.pop()
    written = [line for line in lines if line.strip()]
    if not written:
        return Head("unknown")
    if written[0].lstrip().startswith("{"):
        return _json(written)
    comments = tuple(line for line in written if line.startswith(";"))
    content = tuple(line for line in written if not line.startswith(";"))
    separator = max(",;\t|", key=(content or [""])[0].count)
    columns = next(csv.reader(content[:1], delimiter=separator), [])
    return Head("text", tuple(name.strip() for name in columns), content, comments, separator)


def _parquet(path: Path) -> Head:
    try:
        schema = pl.read_parquet_schema(path)
    except pl.exceptions.PolarsError:
        return Head("unknown")
    columns = []
    for name, dtype in schema.items():
        columns += [f"{name}.{part.name}" for part in dtype.fields] if isinstance(dtype, pl.Struct) else [name]
    return Head("parquet", tuple(columns))


def _json(lines: list[str]) -> Head:
    """The union of the keys of the first records: what is null is often not written."""
    columns: dict[str, None] = {}
    for line in lines:
        try:
            record: Any = json.loads(line)
        except ValueError:
            continue
        for name, value in record.items() if isinstance(record, dict) else ():
            columns.update(dict.fromkeys(f"{name}.{part}" for part in value) if isinstance(value, dict) else {name: None})
    return Head("json", tuple(columns))
