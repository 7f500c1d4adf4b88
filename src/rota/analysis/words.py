"""What a reader of an analysis should know, in words: exact values with few digits, and bounds that prove little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.errors import NotConverged

if TYPE_CHECKING:
    from rota.analysis.analyze import Analysis

__all__ = ["FEW_DIGITS", "LARGEST_ERROR", "SMALL_ERROR", "remarks_on", "require_accurate"]

FEW_DIGITS = 1e-6  # an estimated relative error above this is worth a remark,
SMALL_ERROR = 1e-3  # below this the value is shown without being asked for,
LARGEST_ERROR = 1e-2  # and above this it is not called exact
_WIDE = 2.0  # bounds further apart than this factor prove little


def require_accurate(analysis: Analysis) -> None:
    """Raises `NotConverged` if the numbers of an exact analysis are too far off, by its own estimate, to be called exact."""
    i, error = _worst(analysis)
    if not error <= LARGEST_ERROR:
        raise NotConverged(
            f"the mean of type {analysis.system.names[i]!r} came out with an estimated relative error of {error:.2g}, "
            f"which is too much to call it exact (load {analysis.load[i]:.6g}). Use lower, upper and prediction, or simulate; "
            "queue_length still returns the value"
        )


def remarks_on(analysis: Analysis, *, exact: bool) -> tuple[str, ...]:
    """Sentences on the analysis, with or without its exact values; none if there is nothing to say."""
    if not analysis.stable:
        return ()
    remarks: list[str] = []
    if exact:
        try:
            require_accurate(analysis)
        except NotConverged as why:
            remarks.append(f"There are no exact values: {why}.")
            exact = False
    if exact:
        i, error = _worst(analysis)
        if error > FEW_DIGITS:
            remarks.append(
                f"The exact values have few digits: the estimated relative error of type {analysis.system.names[i]!r} is {error:.1g}, "
                "as digits are lost close to load 1."
            )
    else:
        low = analysis.little(np.maximum(analysis.lower, analysis.system.offered_work))  # never fewer jobs than busy slots
        high = analysis.little(analysis.upper)
        if high > _WIDE * low:
            what = "the prediction is not proved to be near the truth" if analysis.exponential else "they say little"
            remarks.append(f"The bounds on the mean response time are a factor of {high / low:.3g} apart, so {what}: simulate to know.")
    return tuple(remarks)


def _worst(analysis: Analysis) -> tuple[int, float]:
    """The type with the largest estimated relative error, and that error."""
    errors = [analysis.queue_length(i).accuracy for i in range(len(analysis.system.names))]
    i = int(np.argmax(np.nan_to_num(errors, nan=np.inf)))
    return i, float(errors[i])
