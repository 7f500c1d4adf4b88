"""How the event-level functions are compiled.

They take many arrays, in named tuples, and allocate nothing. Two settings make that fast. `_nrt=False` tells numba that nothing is
allocated, so references to arrays need not be counted, which costs ten times what the functions do; a function that does allocate does not
compile this way.
`forceinline=True` puts the functions into one another, so that the named tuples are not copied from call to call: three times faster again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba as nb

__all__ = ["kernel"]

_F = TypeVar("_F", bound=Callable[..., object])


def kernel(function: _F) -> _F:
    """Compiles a function that allocates nothing."""
    compiled: _F = nb.njit(_nrt=False, cache=True, forceinline=True)(function)  # type: ignore[call-overload]
    return compiled
