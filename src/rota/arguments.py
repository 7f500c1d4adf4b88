"""Checks of arguments: what is clear is accepted (1e5 jobs are 100,000), everything else is refused with the rule.

A file that they name is written whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from rota.errors import BadSpec, Problem

__all__ = [
    "checked_path",
    "is_real",
    "parse_duration",
    "parse_json",
    "read_text",
    "whole",
    "whole_file",
    "with_parameters_of",
    "write_text",
]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ms|s|min|m|h|d)\s*)+")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_real(value: object) -> bool:
    """Whether this is a finite number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def whole(place: str, value: object, least: int) -> int:
    """A whole number of at least `least`; 1e5 is one, 1.5 is not."""
    if not is_real(value) or (not isinstance(value, Integral) and not float(value).is_integer()):  # type: ignore[arg-type]
        raise BadSpec([Problem(place, f"must be a whole number of at least {least:,}", value)])
    if value < least:  # type: ignore[operator]
        raise BadSpec([Problem(place, f"must be at least {least:,}", value)])
    return int(value)  # type: ignore[call-overload, no-any-return]


def parse_duration(text: str, place: str, unit_s: float | None = 1.0) -> float:
    """The length of `90`, `90s`, `5m`, `1h30m` or `2 d`, in units of this many seconds; a plain number is in these units already.

    Where the unit is not known (None), only a plain number has a meaning.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _DURATION.fullmatch(text):
        plain = "90 (seconds)" if unit_s == 1.0 else "90 (units of time)"
        raise BadSpec([Problem(place, f"must be a duration: {plain}, 90s, 5m, 1h30m or 2d", text)])
    if unit_s is None:
        rule = 'has a unit, and the system does not say its own: give a plain number, or time_unit = "h" at the top of its file'
        raise BadSpec([Problem(place, rule, text)])
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)) / unit_s


def checked_path(path: object, place: str = "file") -> Path:
    """A path; anything else is refused."""
    if not isinstance(path, str | PathLike) or "\0" in str(path):
        raise BadSpec([Problem(place, "must be the path of a file", path)])
    return Path(path)


def read_text(path: str | PathLike[str]) -> str:
    """The text of a file; raises `BadSpec` if it cannot be read."""
    try:
        return checked_path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be read: {error.strerror or error}")], str(path)) from None
    except UnicodeDecodeError as error:
        raise BadSpec([Problem("file", f"is not UTF-8 text: {error.reason} at byte {error.start}")], str(path)) from None


def parse_json(text: str, source: str | None = None) -> Any:
    """The values of a JSON text; raises `BadSpec` if it is not JSON. `source` is the file that it comes from."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSpec([Problem("file", f"is not JSON: {error}")], source) from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file to write to, beside the target; at the end it replaces the target. On an error nothing changes."""
    target = path.resolve()  # what a link leads to, so that it stays a link
    if target.exists() and not target.is_file():  # a device or a pipe cannot be replaced
        yield path
        return
    beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield beside
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Writes a file; raises `BadSpec` with its path if it cannot."""
    try:
        with whole_file(checked_path(path)) as place:
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be written: {error.strerror or error}", str(path))]) from None


def with_parameters_of(other: Callable[_P, Any]) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Gives a function that passes its arguments on to another one the same parameters, for people, editors and type checkers."""

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        own = signature(function)
        function.__signature__ = own.replace(parameters=list(signature(other).parameters.values()))  # type: ignore[attr-defined]
        return function

    return decorate
