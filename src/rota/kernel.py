"""How the event-level functions are compiled.

They take many arrays, in named tuples, and allocate nothing. Numba would count references to every array that they touch, which costs ten
times what they do; `_nrt=False` tells it that nothing is allocated, so nothing needs to be counted. A function that does allocate does not
compile this way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba as nb

__all__ = ["kernel"]

_F = TypeVar("_F", bound=Callable[..., object])


def kernel(function: _F) -> _F:
    """Compiles a function that allocates nothing."""
    compiled: _F = nb.njit(_nrt=False, cache=True)(function)  # type: ignore[call-overload]
    return compiled
