"""Which server of a fleet an arriving job goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rota.errors import BadSpec, Problem

__all__ = ["Dispatch", "DispatchRule", "checked_dispatch", "make_dispatch"]

DispatchRule = Literal["random", "round-robin", "jsq", "power-of-d", "best-fit", "least-wait", "pull", "pinned"]
_CHOICES = 2  # servers that power-of-d compares, if nothing else is said


@dataclass(frozen=True)
class Dispatch:
    """Which server an arriving job goes to. `d`: how many servers the rule "power-of-d" compares; None for the other rules."""

    rule: DispatchRule
    d: int | None = None


def checked_dispatch(dispatch: object) -> Dispatch | None:
    """What says which server a job goes to, or the name of its rule; anything else is refused."""
    if dispatch is None:
        return None
    return make_dispatch(dispatch.rule, dispatch.d) if isinstance(dispatch, Dispatch) else make_dispatch(dispatch)


def make_dispatch(rule: object, d: object = None) -> Dispatch:
    """A dispatch rule by its name; raises `BadSpec` if there is none of this name."""
    if rule not in get_args(DispatchRule):
        known = ", ".join(f'"{name}"' for name in get_args(DispatchRule))
        raise BadSpec([Problem("dispatch.rule", f"must be one of {known}", rule)])
    if d is not None and rule != "power-of-d":
        raise BadSpec([Problem("dispatch.d", 'goes with rule = "power-of-d", and only with it', d)])
    if rule == "power-of-d":
        d = _CHOICES if d is None else d
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
            raise BadSpec([Problem("dispatch.d", "must be a whole number of at least 1", d)])
        return Dispatch(rule, int(d))
    return Dispatch(rule)  # type: ignore[arg-type]  # one of them, as was checked above
