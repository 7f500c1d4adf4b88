"""Validation errors of pydantic as texts of Rota: more rules than those of a spec file (see `rota.errors`)."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from rota.errors import Problem, problems_of

__all__ = ["problems_in"]

_MOST = 20  # the same error may occur ten thousand times

_RULES = {
    "too_long": "must have at most {max_length} entries",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "holds a character that is not allowed (NUL, or in a name a control character)",
    "string_unicode": "is not UTF-8 text",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
}


def problems_in(details: Sequence[Any]) -> list[Problem]:
    """The problems of a pydantic or FastAPI validation error, given by its `errors()`; at most 20 of them."""
    problems = [_problem(detail) for detail in details[:_MOST]]
    if len(details) > _MOST:
        problems.append(Problem("request", f"and {len(details) - _MOST:,} more problems"))
    return problems


def _problem(detail: Any) -> Problem:
    # A place may contain the name of a variable, so any characters: it is shown on one line.
    place = ".".join(part if (part := str(step)).isprintable() else repr(part) for step in detail["loc"])[:200] or "request"
    if (rule := _RULES.get(detail["type"])) is None:
        (known,) = problems_of(SimpleNamespace(errors=lambda include_url: [detail]))
        return Problem(place, known.rule, known.value)
    hidden = isinstance(detail["input"], (dict, list))
    return Problem(place, rule.format(**detail.get("ctx", {})), None if hidden else detail["input"])
