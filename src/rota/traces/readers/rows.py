"""Rows from files: parquet, JSON lines, CSV and text separated by blanks, all as tables of the columns that a format asks for.

Text is read as text and turned into numbers afterwards: so a 64-bit integer is the same as a number or as a string, and a value that is not
what it should be is found together with its line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from rota.traces.readers.head import Head, look
from rota.traces.readers.ledger import Ledger
from rota.traces.readers.reader import Field, Reader
from rota.traces.readers.text import TextBlock, text_blocks

__all__ = ["rows"]

_ROWS = 1 << 18  # of a parquet file at a time


def rows(path: Path, reader: Reader, ledger: Ledger) -> Iterator[pl.DataFrame]:
    """The rows of a file in the reader's types, block by block; `row` counts them over all files. Bad lines go to the ledger."""
    head = look(path)
    for raw in _raw_blocks(path, head, reader, ledger):
        sound = _convert(raw, reader, path, ledger)
        yield sound.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64) + ledger.rows)
        ledger.rows += sound.height


def _raw_blocks(path: Path, head: Head, reader: Reader, ledger: Ledger) -> Iterator[pl.DataFrame]:
    """Tables of the reader's columns, not yet converted, and of `line`."""
    if head.container == "parquet":
        yield from _parquet(path, reader, ledger)
        return
    names = reader.header or head.columns
    for block in text_blocks(path, ledger):
        if head.container == "json":
            yield _json(block, reader, path, ledger)
        elif reader.keyed:
            yield _keyed(block, reader, path, ledger)
        elif reader.spaced:
            yield _spaced(block, names, path, ledger)
        else:
            skip = 1 if block.first == 1 and reader.header is None else 0
            yield _csv(block, names, head.separator, skip, reader, path, ledger)


# ---------------------------------------------------------------------------------------------------------------- parquet


def _parquet(path: Path, reader: Reader, ledger: Ledger) -> Iterator[pl.DataFrame]:
    size, done = path.stat().st_size, 0
    reported = 0
    try:
        table = pl.scan_parquet(path, glob=False)
        schema = table.collect_schema()
        total = max(1, int(table.select(pl.len()).collect().item()))
        for part in table.select(_column(name, schema) for name in reader.fields).collect_batches(chunk_size=_ROWS, maintain_order=True):
            yield part.with_row_index("line", offset=done + 1)
            done += part.height
            ledger.advance(size * done // total - reported)
            reported = size * done // total
    except pl.exceptions.PolarsError as error:
        ledger.refuse(path, [(done + 1, f"the parquet file is damaged from this row on ({str(error).splitlines()[0]})", None)])


def _column(name: str, schema: pl.Schema) -> pl.Expr:
    """A column, or the field of a struct, by its dotted name; null where the file has none. Dates become seconds."""
    if name in schema:
        if isinstance(schema[name], pl.Datetime):
            return pl.col(name).dt.epoch("us") / 1e6
        if isinstance(schema[name], pl.Duration):
            return pl.col(name).dt.total_microseconds() / 1e6
        return pl.col(name)
    outer, _, inner = name.partition(".")
    struct = schema.get(outer)
    if isinstance(struct, pl.Struct) and inner in {part.name for part in struct.fields}:
        return pl.col(outer).struct.field(inner).alias(name)
    return pl.lit(None).alias(name)


# ------------------------------------------------------------------------------------------------------------- JSON lines


def _json(block: TextBlock, reader: Reader, path: Path, ledger: Ledger) -> pl.DataFrame:
    schema = _json_schema(reader.fields)
    count = block.text.count(b"\n") + (not block.text.endswith(b"\n"))
    try:
        table = pl.read_ndjson(block.text, schema=schema)
    except pl.exceptions.PolarsError:
        table = None
    if table is not None and table.height == count:
        return _flat(table, schema).with_row_index("line", offset=block.first)
    # Something is blank or broken: look at each line.
    lines = [(number, line) for number, line in enumerate(block.text.split(b"\n"), block.first) if line.strip()]
    good = _readable([(number, line) for number, line in lines if _is_object(line)], schema)
    known = {number for number, _ in good}
    rule = "is not a JSON object of the expected form"
    ledger.refuse(path, [(number, rule, line.decode(errors="replace")) for number, line in lines if number not in known])
    table = pl.read_ndjson(b"\n".join(line for _, line in good), schema=schema) if good else pl.DataFrame(schema=schema)
    return _flat(table, schema).with_columns(line=pl.Series([number for number, _ in good], dtype=pl.Int64))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _readable(lines: list[tuple[int, bytes]], schema: dict[str, Any]) -> list[tuple[int, bytes]]:
    """The lines that Polars reads too (it is stricter than Python: no NaN, say), found by halving."""
    try:
        if not lines or pl.read_ndjson(b"\n".join(line for _, line in lines), schema=schema).height == len(lines):
            return lines
    except pl.exceptions.PolarsError:
        pass
    middle = len(lines) // 2
    return _readable(lines[:middle], schema) + _readable(lines[middle:], schema) if middle else []


def _json_schema(fields: Iterable[str]) -> dict[str, Any]:
    """All text: the fields of a struct are given as `struct.field`."""
    schema: dict[str, Any] = {}
    for name in fields:
        outer, _, inner = name.partition(".")
        if inner:
            schema.setdefault(outer, {})[inner] = pl.String
        else:
            schema[outer] = pl.String
    return {name: pl.Struct(inner) if isinstance(inner, dict) else inner for name, inner in schema.items()}


def _flat(table: pl.DataFrame, schema: dict[str, Any]) -> pl.DataFrame:
    structs = [name for name, dtype in schema.items() if isinstance(dtype, pl.Struct)]
    return table.unnest(structs, separator=".") if structs else table


# ------------------------------------------------------------------------------------------------------------------- text


def _csv(block: TextBlock, names: tuple[str, ...], separator: str, skip: int, reader: Reader, path: Path, ledger: Ledger) -> pl.DataFrame:
    lines = _lines(block).filter(pl.int_range(pl.len()) >= skip)
    commas = pl.col("text").str.count_matches(separator, literal=True) + 1
    quoted = pl.col("text").str.contains('"', literal=True) if reader.quoted else pl.lit(False)
    lines = lines.with_columns(fields=pl.when(quoted).then(None).otherwise(commas).cast(pl.Int64))
    if lines["fields"].null_count():
        counts = [_fields(text, separator) if count is None else count for text, count in lines.select("text", "fields").iter_rows()]
        lines = lines.with_columns(fields=pl.Series(counts, dtype=pl.Int64))
    good = _refuse_ragged(lines, len(names), path, ledger)
    wanted = [name for name in reader.fields if name in names]
    if not good.height:
        return pl.DataFrame(schema={"line": good["line"].dtype, **dict.fromkeys(reader.fields, pl.String)})
    text = "\n".join(good["text"]).encode()
    form: dict[str, Any] = {"has_header": False, "infer_schema": False, "raise_if_empty": False, "new_columns": list(names)}
    table = pl.read_csv(text, separator=separator, quote_char='"' if reader.quoted else None, **form)
    missing = [pl.lit(None, dtype=pl.String).alias(name) for name in reader.fields if name not in names]
    return table.select(pl.Series("line", good["line"]), *wanted, *missing)


def _spaced(block: TextBlock, names: tuple[str, ...], path: Path, ledger: Ledger) -> pl.DataFrame:
    lines = _lines(block).filter(~pl.col("text").str.starts_with(";"))
    lines = lines.with_columns(parts=pl.col("text").str.strip_chars().str.replace_all(r"\s+", " ").str.split(" "))
    good = _refuse_ragged(lines.with_columns(fields=pl.col("parts").list.len()), len(names), path, ledger)
    return good.select("line", *(pl.col("parts").list.get(j).alias(name) for j, name in enumerate(names)))


def _keyed(block: TextBlock, reader: Reader, path: Path, ledger: Ledger) -> pl.DataFrame:
    """Lines of `Name=value`. A value ends at a blank; a line without the first name of the reader is none of them."""
    first = next(iter(reader.fields))
    columns = (pl.col("text").str.extract(rf"(?:^| ){name}=(\S*)").replace("", None).alias(name) for name in reader.fields)
    table = _lines(block).with_columns(columns)
    lost = table.filter(pl.col(first).is_null()).select("line", "text")
    ledger.refuse(path, [(line, f"has no {first}=", text) for line, text in lost.iter_rows()])
    return table.filter(pl.col(first).is_not_null()).drop("text")


def _lines(block: TextBlock) -> pl.DataFrame:
    """The lines that are not blank, with their numbers."""
    lines = pl.DataFrame({"text": block.text.decode("utf-8", errors="replace").split("\n")}).with_row_index("line", offset=block.first)
    return lines.with_columns(pl.col("text").str.strip_chars_end("\r")).filter(pl.col("text").str.contains(r"\S"))


def _fields(text: str, separator: str) -> int:
    """How many fields a line with quotes has; 0 if a quote is left open."""
    try:
        return len(next(csv.reader([text], delimiter=separator, strict=True)))
    except csv.Error:
        return 0


def _refuse_ragged(lines: pl.DataFrame, width: int, path: Path, ledger: Ledger) -> pl.DataFrame:
    ragged = lines.filter(pl.col("fields") != width).select("line", "fields", "text")
    rule = f"has {{}} fields, not {width}"
    ledger.refuse(path, [(line, rule.format(fields) if fields else "has an open quote", text) for line, fields, text in ragged.iter_rows()])
    return lines.filter(pl.col("fields") == width)


# ---------------------------------------------------------------------------------------------------------------- numbers


def _convert(raw: pl.DataFrame, reader: Reader, path: Path, ledger: Ledger) -> pl.DataFrame:
    """The columns in their types; rows that break a rule go to the ledger."""
    after, rules = _cast(raw, reader)
    if not any(broken.any() for broken, _, _ in rules):
        return after.drop("line")
    # Blanks around a number, and text of nothing but blanks, are not broken: look again without them.
    before = raw.with_columns(pl.col(pl.String).str.strip_chars().replace("", None))
    after, rules = _cast(before, reader)
    judged = before.select(
        "line",
        rule=pl.coalesce(pl.when(broken).then(pl.lit(f"{name} {text}")) for broken, name, text in rules),
        value=pl.coalesce(pl.when(broken).then(pl.col(name).cast(pl.String)) for broken, name, _ in rules),
    )
    ledger.refuse(path, judged.filter(pl.col("rule").is_not_null()).iter_rows())
    return after.filter(judged["rule"].is_null()).drop("line")


def _cast(raw: pl.DataFrame, reader: Reader) -> tuple[pl.DataFrame, list[tuple[pl.Series, str, str]]]:
    """The columns in their types, and the rules with the rows that break them."""
    texts = [name for name, field in reader.fields.items() if field.dtype == pl.String]
    columns = (pl.col(name).cast(field.dtype, strict=False) for name, field in reader.fields.items())
    after = raw.select("line", *columns).with_columns(pl.col(texts).str.strip_chars())
    return after, [rule for name, field in reader.fields.items() for rule in _rules(name, field, raw[name], after[name])]


def _rules(name: str, field: Field, before: pl.Series, after: pl.Series) -> Iterator[tuple[pl.Series, str, str]]:
    """What may be wrong with a column: a mask of the rows, the column, and the rule."""
    if field.dtype != pl.String:
        yield before.is_not_null() & after.is_null(), name, f"must be a {'number' if field.dtype == pl.Float64 else 'whole number'}"
    if field.required:
        yield before.is_null(), name, "is missing"
    if field.dtype == pl.Float64:
        yield ~after.is_finite().fill_null(True), name, "must be finite"
    if field.pattern is not None:
        yield (~after.str.contains(field.pattern)).fill_null(False), name, field.rule
    if field.least is not None:
        yield (after < field.least).fill_null(False), name, f"must be at least {field.least:g}"
    if field.most is not None:
        yield (after > field.most).fill_null(False), name, f"must be at most {field.most:g}"
