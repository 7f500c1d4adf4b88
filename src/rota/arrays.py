"""The two kinds of array that go through the house."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Int"]

Array: TypeAlias = NDArray[np.floating[Any]]
Int: TypeAlias = NDArray[np.int64]
