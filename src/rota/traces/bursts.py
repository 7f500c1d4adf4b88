"""Bursts of a trace: the two-phase process (`rota.Bursts`) of each type that agrees with its counts of arrivals.

In windows of length w a process of rate λ whose phases have relative variance v, skewness s and time scale τ has, with u = w/τ,

    Var N/E N − 1   = I(w) − 1 = 2vλτ (1 − (1 − e^{−u})/u)                    the index of dispersion at w, less that of a Poisson process
    κ₃(N)/(λw)³     = s v^{3/2} · 6 (u − 2 + (u + 2) e^{−u})/u³                κ₃: the third factorial cumulant of the counts

The counts are made once, in windows of 2⁻²⁰ of the span, and joined by two again and again. The curve of I(w), fitted by least squares,
gives v and τ; counts near τ give s. A burst phase of share p then has s = (1 − 2p)/√(p(1 − p)), so

    p = (1 − s/√(4 + s²))/2,      factor = 1 + √(v (1 − p)/p),      length = τ/(1 − p)

and if that leaves less than nothing for the quiet phase, it gets nothing: p = 1/(1 + v). One time scale is fitted. Real logs have many,
days and weeks among them: a given `time_scale` says which one matters, and only windows of about that length are looked at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.optimize import minimize_scalar

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.model import ArrivalProcess, Bursts, Poisson

if TYPE_CHECKING:
    from rota.traces.trace import Trace

__all__ = ["fit_bursts"]

_HALVINGS = 20
_FEWEST_JOBS = 200  # of a type, to tell bursts from chance
_FEWEST_WINDOWS = 64
_CERTAIN = 4.5  # standard errors above the counts of a Poisson process, in some windows, before a type is called bursty
_SHORTER = 1e-2  # of the smallest window: the least time scale, for jobs that arrive together
_NEAR = 4.0  # with a given time scale: windows within this factor of it
_LEAST_SHARE = 1e-4
_LEAST_SPREAD, _LARGEST_SPREAD = 1e-9, 1e4  # of the rate, relative variance


def fit_bursts(trace: Trace, *, time_scale: float | None = None) -> tuple[ArrivalProcess, ...]:
    """The arrival process of each type: bursts where its counts spread more than those of a Poisson process can by chance, else Poisson.

    `time_scale`, in units of time of the trace, is fitted if not given.
    """
    if time_scale is not None and not (np.isfinite(time_scale) and time_scale > 0):
        raise BadSpec([Problem("time_scale", "must be positive and finite", time_scale)])
    width = trace.span / 2**_HALVINGS
    place = ((pl.col("arrival") - trace.begin) / width).floor().cast(pl.Int64).clip(0, 2**_HALVINGS - 1)
    found = trace.jobs.group_by("type", place.alias("window")).agg(jobs=pl.len()).sort("type", "window").collect(engine="streaming")
    processes: list[ArrivalProcess] = [Poisson()] * len(trace.names)
    for (kind,), part in found.group_by("type", maintain_order=True):
        processes[int(str(kind))] = _fitted(part["window"].to_numpy(), part["jobs"].to_numpy(), width, time_scale)
    return tuple(processes)


def _fitted(window: Int, jobs: Int, width: float, time_scale: float | None) -> ArrivalProcess:
    """The process of one type from its counts in those of the smallest windows that have any."""
    total = int(jobs.sum())
    if total < _FEWEST_JOBS:
        return Poisson()
    widths, excess, skewed = _by_width(window, jobs, width)
    windows = width * 2**_HALVINGS / widths
    looked = np.ones(len(widths), dtype=bool)
    if time_scale is not None:
        looked = np.abs(np.log(widths / time_scale)) <= math.log(_NEAR)
        if not looked.any():
            rule = f"must be between {widths[0]:.3g} and {widths[-1]:.3g}, the windows that the trace has enough of"
            raise BadSpec([Problem("time_scale", rule, time_scale)])
    if (excess * np.sqrt(windows / 2))[looked].max() < _CERTAIN:  # of a Poisson process it has mean 0 and variance 2/windows
        return Poisson()
    weights = np.where(looked, windows / (1 + np.maximum(excess, 0.0)) ** 2, 0.0)

    def level(tau: float) -> tuple[float, float]:
        """The best J = 2vλτ for a time scale, and what is left of the squares."""
        shape = _rise(widths / tau)
        best = max(float((weights * shape) @ excess / ((weights * shape) @ shape)), 0.0)
        return best, float(weights @ (excess - best * shape) ** 2)

    tau = time_scale
    if tau is None:
        grid = np.geomspace(_SHORTER * widths[0], widths[-1], 6 * len(widths))
        k = int(np.argmin([level(each)[1] for each in grid]))
        around = np.log(grid[max(k - 1, 0)]), np.log(grid[min(k + 1, len(grid) - 1)])
        tau = float(np.exp(minimize_scalar(lambda x: level(float(np.exp(x)))[1], bounds=around, method="bounded").x))
    spread = level(tau)[0] / (2 * total / (width * 2**_HALVINGS) * tau)  # v
    if spread < _LEAST_SPREAD:
        return Poisson()
    if spread > _LARGEST_SPREAD:  # jobs that arrive together: a little longer bursts of the same dispersion
        spread, tau = _LARGEST_SPREAD, tau * spread / _LARGEST_SPREAD
    near = int(np.argmin(np.abs(np.log(widths / tau))))
    skewness = float(skewed[near] / (spread**1.5 * _third(widths[near] / tau)))
    share = min(max((1 - skewness / math.sqrt(4 + skewness**2)) / 2, _LEAST_SHARE), 1 - _LEAST_SHARE)
    if spread * share > 1 - share:
        share = 1 / (1 + spread)
    factor = min(1 + math.sqrt(spread * (1 - share) / share), 1 / share)
    return Bursts(factor=factor, share=share, length=tau / (1 - share))


def _by_width(window: Int, jobs: Int, width: float) -> tuple[Array, Array, Array]:
    """By length of windows, as long as there are enough of them: that length, I(w) − 1, and κ₃/(λw)³."""
    widths, excess, skewed = [], [], []
    n, counts = 2**_HALVINGS, jobs.astype(np.float64)
    while n >= _FEWEST_WINDOWS:
        mean = counts.sum() / n
        second, third = (counts * (counts - 1)).sum() / n, (counts * (counts - 1) * (counts - 2)).sum() / n  # factorial moments
        widths.append(width)
        excess.append(second / mean - mean)
        skewed.append((third - 3 * second * mean + 2 * mean**3) / mean**3)
        window, n, width = window // 2, n // 2, 2 * width
        first = np.flatnonzero(np.diff(window, prepend=-1))
        window, counts = window[first], np.add.reduceat(counts, first)
    return np.array(widths), np.array(excess), np.array(skewed)


def _rise(u: Array) -> Array:
    """1 − (1 − e^{−u})/u: from 0 to 1."""
    return np.asarray(1 + np.expm1(-u) / u)


def _third(u: float) -> float:
    """6 (u − 2 + (u + 2) e^{−u})/u³: from 1 to 0."""
    return 6 * (u - 2 + (u + 2) * math.exp(-u)) / u**3 if u > 1e-2 else 1 - u / 2
