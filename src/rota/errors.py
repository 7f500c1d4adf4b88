"""The exceptions of Rota: one small tree, each carrying the values and the way out.

`exit_code` is what the command line ends with: 1 the problem has no answer or the work failed, 2 wrong use or a bad file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BadSpec",
    "Infeasible",
    "NotConverged",
    "Problem",
    "RotaError",
    "RotaWarning",
    "TooManySchedules",
    "Unstable",
    "problems_of",
    "version_problem",
]


class RotaError(Exception):
    """The root of the tree."""

    exit_code = 1


class RotaWarning(UserWarning):
    """Something is probably a mistake, but the work goes on."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a description of a system: where, which value, and the rule it breaks."""

    place: str
    rule: str
    value: object = None
    line: int | None = None

    def __str__(self) -> str:
        where = self.place if self.line is None else f"line {self.line}: {self.place}"
        got = "" if self.value is None else f" (got {_shorten(repr(self.value))})"
        return f"{where}: {self.rule}{got}"


class BadSpec(RotaError, ValueError):
    """A description (file or arguments) breaks the rules. `problems` lists every one of them."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem], source: str | None = None) -> None:
        self.problems = tuple(problems)
        self.source = source
        count = len(self.problems)
        head = f"{source}: " if source else ""
        head += f"{count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class Infeasible(RotaError):
    """No schedule, weight or process meets what was asked for."""


class Unstable(RotaError):
    """The load is not below one, so no stationary answer exists."""


class NotConverged(RotaError):
    """An iteration ended before its residual was small enough. `lower_bound`: what it proved of the mean response time all the same."""

    def __init__(self, message: str, *, lower_bound: float = 0.0) -> None:
        self.lower_bound = lower_bound
        super().__init__(message)


class TooManySchedules(RotaError):
    """There are more schedules than the limit allows; nothing was left out silently."""

    def __init__(self, limit: int, estimate: float) -> None:
        self.limit, self.estimate = limit, estimate
        super().__init__(
            f"there are more than {limit:,} schedules (about {estimate:.3g}): raise the limit, "
            "ask for the maximal ones only, or read them block by block (rota.capacity.iterate_schedules)"
        )


def version_problem(place: str, found: object, current: int, renew: str) -> Problem | None:
    """What is wrong with the version of a file's format; None if it is the one that this release reads and writes.

    `renew` says how to get a file of this version in place of an older one.
    """
    if found == current:
        return None
    rule = f"this release reads version {current} of the format"
    if not isinstance(found, int) or isinstance(found, bool):
        return Problem(place, f"{rule}: {renew}", found)
    newer = "a newer one: install a newer Rota (pip install --upgrade rota)"
    rule += f", and this is {newer if found > current else f'an older one: {renew}'}"
    return Problem(place, rule, found)


def _shorten(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# ------------------------------------------------------------------------------- what pydantic found, in this project's words

_RULES = {
    "missing": "is missing",
    "extra_forbidden": "is not a known key",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of a sensible size",
    "int_from_float": "must be a whole number",
    "finite_number": "must be finite",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "less_than": "must be less than {lt:g}",
    "union_tag_invalid": "{tag!r} is none of {expected_tags}",
    "union_tag_not_found": 'needs {discriminator} = "…"',
}


def problems_of(error: Any) -> list[Problem]:
    """The problems of a pydantic `ValidationError`."""
    return [_problem(detail) for detail in error.errors(include_url=False)]


def _problem(detail: Any) -> Problem:
    rule = _RULES.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    values = {name: value.strip("'") if name == "discriminator" else value for name, value in detail.get("ctx", {}).items()}
    hidden = detail["type"] in ("missing", "value_error") or isinstance(detail["input"], dict)
    return Problem(".".join(map(str, detail["loc"])), rule.format(**values), None if hidden else detail["input"])
