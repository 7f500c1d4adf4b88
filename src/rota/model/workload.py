"""Jobs as a stream: what a simulation takes in and a trace gives out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from rota.arrays import Array, Int
from rota.model.system import System

__all__ = ["CHUNK", "Chunk", "Workload"]

CHUNK = 1 << 16


class Chunk(NamedTuple):
    """Some jobs in order of arrival: times, types (positions in the system), sizes, estimated sizes."""

    times: Array
    kinds: Int
    sizes: Array
    estimates: Array


class Workload(Protocol):
    """Anything that gives jobs in chunks, in order of arrival: a trace, a list, or an arrival process of your own.

    All chance comes from the seed, so that one seed gives the same jobs to every policy. A workload with an end may have a length. One
    that is the same for every seed says so by an attribute `fixed = True`.
    """

    def chunks(self, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
        """The jobs; a stream may have no end."""
