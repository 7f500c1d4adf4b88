"""Whether a trace and a system are in one unit of time, where one of the two does not say its own."""

from __future__ import annotations

import warnings

import numpy as np

from rota.errors import RotaWarning
from rota.model import Chunk, Fleet, System

__all__ = ["warn_of_units"]

_APART = 10.0  # beyond this factor, rates or sizes are not those of one system
_LEAST = 50  # jobs needed for a useful mean


def warn_of_units(chunk: Chunk, system: System | Fleet, unit_s: float | None) -> None:
    """Warns if the jobs of a trace come at other rates, or are of other sizes, than those of the system by orders of magnitude."""
    n, span = len(chunk.times), float(chunk.times[-1] - chunk.times[0]) if len(chunk.times) else 0.0
    expected_rate = float(system.arrival_rate.sum())
    if n < _LEAST or span == 0 or expected_rate == 0:
        return
    more = n / span / expected_rate
    larger = float(chunk.sizes.mean() / np.mean(1.0 / system.service_rate[chunk.kinds]))
    if all(1 / _APART <= factor <= _APART for factor in (more, larger)):
        return
    units = [_said("the trace", unit_s), _said("the system", system.unit_s)]
    warnings.warn(
        f"trace and system differ by orders of magnitude: the trace's jobs come {more:.3g} times as often, and are {larger:.3g} times as "
        f"large, as the system says. Are both in one unit of time? {' '.join(units)}",
        RotaWarning,
        stacklevel=3,
    )


def _said(what: str, unit_s: float | None) -> str:
    if unit_s is not None:
        return f"One unit of {what} is {unit_s:g} s."
    way = 'time_unit = "h" at the top of its file says it' if what == "the system" else 'about={"time_unit_s": 3600} says it'
    return f"The unit of {what} is not known: {way}."
