"""The kinds of array that the packages pass to each other."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bool", "Int"]

Array: TypeAlias = NDArray[np.floating[Any]]
Int: TypeAlias = NDArray[np.int64]
Bool: TypeAlias = NDArray[np.bool_]
