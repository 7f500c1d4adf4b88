"""Statistics of measured times in bounded memory: counts, means and quantiles per job type.

A `Sketch` counts values in buckets whose ends grow by 4 %: a quantile read off the middle of its bucket is right to 2 %, a microsecond to a
century takes 900 buckets at most, and two sketches add up to one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Measures", "Sketch", "Summary"]

_GROWTH = 1.04
_LOG = math.log(_GROWTH)
_MIDDLE = 2 / (1 + _GROWTH)  # the point of (g^(k−1), g^k] whose relative distance to both ends is the same, in parts of g^k
_LOWEST, _HIGHEST = math.ceil(math.log(1e-6) / _LOG), math.ceil(math.log(4e9) / _LOG)


@dataclass(frozen=True)
class Summary:
    """Statistics of a sample; None if the sample is empty."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class Sketch:
    """A sample of nonnegative numbers: quantiles to 2 %, the mean exactly."""

    __slots__ = ("buckets", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.buckets: dict[int, int] = {}

    def add(self, value: float) -> None:
        """Counts a value; in the quantiles, a value below a microsecond counts as one microsecond."""
        place = _LOWEST if value <= 1e-6 else min(math.ceil(math.log(value) / _LOG), _HIGHEST)
        self.buckets[place] = self.buckets.get(place, 0) + 1
        self.count += 1
        self.total += value

    @property
    def mean(self) -> float | None:
        """The mean; None if the sample is empty."""
        return self.total / self.count if self.count else None

    def quantiles(self, *probabilities: float) -> list[float | None]:
        """The quantiles for probabilities in ascending order; each is within 2 % of a value of that rank."""
        if not self.count:
            return [None] * len(probabilities)
        found: list[float | None] = []
        places = iter(sorted(self.buckets))
        place, below = next(places), 0
        for p in probabilities:
            rank = max(1, math.ceil(p * self.count - 1e-9))
            while below + self.buckets[place] < rank:
                below += self.buckets[place]
                place = next(places)
            found.append(_GROWTH**place * _MIDDLE)
        return found

    def summary(self) -> Summary:
        """Count, mean and the usual quantiles."""
        return Summary(self.count, self.mean, *self.quantiles(0.5, 0.95, 0.99))

    def state(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {"count": self.count, "total": self.total, "buckets": {str(place): n for place, n in sorted(self.buckets.items())}}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Sketch:
        """A sketch from its `state()`."""
        sketch = cls()
        sketch.count, sketch.total = int(state["count"]), float(state["total"])
        sketch.buckets = {int(place): int(n) for place, n in state["buckets"].items()}
        return sketch


class Measures:
    """Response times and sizes of the jobs that have ended, by type; a type appears when its first job ends."""

    def __init__(self) -> None:
        self._response: dict[str, Sketch] = {}
        self._size: dict[str, Sketch] = {}

    def ended(self, type: str, response_s: float, size_s: float) -> None:
        """A job of this type ended."""
        self._response.setdefault(type, Sketch()).add(response_s)
        self._size.setdefault(type, Sketch()).add(size_s)

    def response(self, type: str) -> Summary:
        """Response times of a type."""
        return self._response.get(type, _EMPTY).summary()

    def size(self, type: str) -> Summary:
        """Times in service of a type."""
        return self._size.get(type, _EMPTY).summary()

    def state(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            "version": 1,
            "types": {name: {"response": sketch.state(), "size": self._size[name].state()} for name, sketch in self._response.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Measures:
        """Measures from their `state()`."""
        measures = cls()
        for name, saved in state["types"].items():
            measures._response[name] = Sketch.restored(saved["response"])
            measures._size[name] = Sketch.restored(saved["size"])
        return measures


_EMPTY = Sketch()
