"""Names in the help of the verbs: those of the policies from their registry, those of the trace formats from their list.

Docstrings have `{policies}` in their place, which is filled in when help is asked for: the lists need numpy and Polars, and `rota` starts
without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["fill_in_names"]


def fill_in_names(verb: Callable[..., Any]) -> None:
    """Puts names in the place of `{policies}` (the name is enough), `{designed}` (to be designed), `{dispatch}` and `{formats}`."""
    text = verb.__doc__ or ""
    for place, names in {"{policies}": _policies, "{designed}": _designed, "{dispatch}": _dispatch, "{formats}": _formats}.items():
        if place in text:
            text = text.replace(place, ", ".join(names()))
    verb.__doc__ = text


def _policies() -> Iterable[str]:
    from rota.policy import POLICY_NAMES

    return POLICY_NAMES


def _designed() -> Iterable[str]:
    from rota.policy import DESIGNED_NAMES

    return DESIGNED_NAMES


def _dispatch() -> Iterable[str]:
    from rota.model.dispatch import DISPATCH_RULES

    return DISPATCH_RULES


def _formats() -> Iterable[str]:
    from rota.traces.detect import FORMATS

    return FORMATS
