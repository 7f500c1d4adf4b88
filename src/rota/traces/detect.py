"""Which files to read, and in which format: decided by their content, not by their names."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rota.errors import BadSpec, Problem
from rota.traces.files import is_trace_file
from rota.traces.readers import alibaba_openb, borg2019, google2011, rota_events, sacct, slurm_jobcomp, swf, table
from rota.traces.readers.head import Head, look
from rota.traces.readers.reader import Reader

__all__ = ["FORMATS", "Choice", "Options", "Source", "choose", "detect"]

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Options:
    """What a user says of the files: each is for one format only."""

    columns: Mapping[str, str] | None = None  # table
    time_unit: str | None = None  # table
    nodes: Path | None = None  # alibaba_openb


@dataclass(frozen=True)
class Choice:
    """The files to read, the reader for them, and the files found beside them that are something else, with the reason."""

    reader: Reader
    paths: tuple[Path, ...]
    others: dict[str, str] = field(default_factory=dict)


def detect(path: str | os.PathLike[str], options: Options | None = None) -> Reader | None:
    """The reader that fits a file's content, or None."""
    head = look(Path(path))
    return next((reader for reader in _readers(head, options or Options()) if reader.fits(head)), None)


def choose(source: Source, format: str | None = None, options: Options | None = None) -> Choice:
    """Finds the files of a source (file, directory, glob, or a list of them) and the one reader that fits them all."""
    options = options or Options()
    format = _checked_format(format, options)
    named, found = _expand(source)
    readers: dict[Path, Reader] = {}
    others: dict[str, str] = {}
    for path in (*named, *found):
        if is_trace_file(path):
            if path in named:
                raise BadSpec([Problem("source", "is a trace made by Rota already: open it as it is")], source=str(path))
            others[str(path)] = "a trace made by Rota already"
            continue
        head = look(path)
        fitting = [reader for reader in _readers(head, options) if format in (None, reader.format) and reader.fits(head)]
        if fitting:
            readers[path] = fitting[0]
        elif path in named and path.stat().st_size:
            raise BadSpec([_unknown(head, format, options)], source=str(path))
        else:
            others[str(path)] = "not in this format" if path.stat().st_size else "empty"
    if not readers:
        raise BadSpec([_unknown(None, format, options)], source=", ".join(_texts(source)))
    kinds = {reader.looks_for: (path, reader) for path, reader in reversed(readers.items())}
    if len(kinds) > 1:
        problems = [Problem(str(path), f"is {reader.format}: {reader.looks_for}") for path, reader in reversed(kinds.values())]
        raise BadSpec([*problems, Problem("source", "holds several kinds of files: import them one by one, or say which by the format")])
    return Choice(next(iter(readers.values())), tuple(readers), others)


# ------------------------------------------------------------------------------------------------------------- the pieces


def _plain_table(options: Options, head: Head) -> list[Reader]:
    """The reader of a plain table. Which columns it has, its head tells if no option does."""
    columns = options.columns or table.plain_columns(head)
    return [table.reader(columns, options.time_unit or "s")] if columns else []


# Every format with its readers, the most particular first: the first reader that fits is used. A new format is one line here.
FORMATS: dict[str, Callable[[Options, Head], Sequence[Reader]]] = {
    "borg2019": lambda options, head: [borg2019.READER],
    "google2011": lambda options, head: google2011.READERS,
    "swf": lambda options, head: [swf.READER],
    "alibaba_openb": lambda options, head: [alibaba_openb.reader(options.nodes)],
    "sacct": lambda options, head: [sacct.READER],
    "slurm_jobcomp": lambda options, head: [slurm_jobcomp.READER],
    "rota_events": lambda options, head: [rota_events.READER],
    "table": _plain_table,
}


def _readers(head: Head, options: Options) -> list[Reader]:
    return [reader for readers in FORMATS.values() for reader in readers(options, head)]


def _checked_format(format: str | None, options: Options) -> str | None:
    if format is not None and format not in FORMATS:
        raise BadSpec([Problem("format", f"must be one of {', '.join(FORMATS)}", format)])
    only = {"columns": "table", "time_unit": "table", "nodes": "alibaba_openb"}
    for option, owner in only.items():
        if getattr(options, option) is None:
            continue
        if format not in (None, owner):
            raise BadSpec([Problem(option, f"goes with the format {owner} only; {format} needs none")])
        format = owner
    return format


def _expand(source: Source) -> tuple[list[Path], list[Path]]:
    """The files that were named one by one, and those found in directories and by patterns; hidden ones are skipped."""
    named: dict[Path, None] = {}
    found: dict[Path, None] = {}
    for text in _texts(source):
        path = Path(text)
        if path.is_file():
            named[path] = None
        elif path.is_dir():
            found.update(dict.fromkeys(sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file.relative_to(path)))))
        elif matches := sorted(Path(match) for match in glob.glob(text, recursive=True)):
            found.update(dict.fromkeys(match for match in matches if match.is_file()))
        else:
            raise BadSpec([Problem("source", "is no file, no directory, and no pattern that fits a file")], source=text)
    if not named and not found:
        raise BadSpec([Problem("source", "holds no files")], source=", ".join(_texts(source)))
    return list(named), [path for path in found if path not in named]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _texts(source: Source) -> list[str]:
    return [os.fspath(source)] if isinstance(source, str | os.PathLike) else [os.fspath(one) for one in source]


def _unknown(head: Head | None, format: str | None, options: Options) -> Problem:
    """The problem when no format fits: what was looked for, and what was found."""
    if head is not None and head.container == "unknown":
        return Problem("content", "is neither text nor a valid parquet file")
    readers = [reader for reader in _readers(Head("unknown"), options) if format in (None, reader.format)]
    lines = [f"{reader.format}: {reader.looks_for}" for reader in readers]
    if not options.columns and format in (None, "table"):
        lines.append("table: the columns arrival and size (or start and end), or a mapping: columns arrival=…,size=…,cpu=…")
    if head is not None and head.columns:
        lines.append(f"found: {head.container} that begins with {', '.join(head.columns[:12])}")
    first = "is in no known format; looked for" if format is None else f"is not {format}; looked for"
    return Problem("content", "\n    ".join([first, *lines]))
