"""How far the states must reach: a truncation is enlarged where the queue of a type has weight at its edge.

Beyond the edge the law of Q_i goes on about geometrically, P(Q_i = N + k) ≈ P(Q_i = N) r^k, with r from the last quarter of the law (at
most 1 − 1/N). What that would add to E[Q_i] is P(Q_i = N) r/(1−r) (N + 1/(1−r)). It says how much further to go; whether the answer stands
still is seen by going there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rota.arguments import whole
from rota.arrays import Array, Int
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import Exponential, System
from rota.optimal.state_space import least_truncation

__all__ = ["Sizes", "check_system", "checked_truncation", "first_truncation", "grown_blindly", "larger_truncation", "missing_beyond"]

Sizes = str
_GROWTH = 2.0  # of the edge of a type from one truncation to the next
_CHECK = 1.2  # by how much all edges grow to see that the answer stands still
_BLIND, _BLIND_MOST = 1.25, 1.4  # of all edges, and of that of the type that lacks most, where no law says how far to go


def first_truncation(system: System) -> Int:
    """Where to begin."""
    return np.maximum(least_truncation(system), np.where(system.arrival_rate > 0, 12, 0))


def missing_beyond(law: Array, present: Int, N: Int) -> tuple[Array, Array]:
    """What lies beyond the edge of each type, as an estimate of its part in E[Q_i], and the decay r."""
    missing, decay = np.zeros(len(N)), np.zeros(len(N))
    for i, edge in enumerate(N.tolist()):
        marginal = np.maximum(np.bincount(present[:, i], weights=law, minlength=edge + 1), 0.0)
        width = max(edge // 4, 1)
        at, before = marginal[edge - 1], marginal[edge - 1 - width]
        if at <= 0:
            continue
        decay[i] = r = min((at / before) ** (1 / width) if before > 0 else 1.0, 1 - 1 / edge)
        missing[i] = marginal[edge] * r / (1 - r) * (edge + 1 / (1 - r))
    return missing, decay


def larger_truncation(N: Int, missing: Array, decay: Array, allowed: float) -> Int:
    """The next truncation: along each type by what the estimate asks for, and all types a little further where it asks for nothing."""
    larger = N.copy()
    for i in np.flatnonzero(missing > allowed / len(N)):
        further = np.log(missing[i] * len(N) / allowed) / -np.log(decay[i])
        larger[i] = int(np.ceil(min(N[i] + further, _GROWTH * N[i])))
    grown = larger > N
    return larger if grown.any() else np.where(decay > 0, np.ceil(_CHECK * N), N).astype(np.int64)


def grown_blindly(N: Int, missing: Array) -> Int:
    """The next truncation where no law was found: all types further, and most the one with the most `missing` by the last law there was."""
    return np.ceil(np.where(missing == missing.max(), _BLIND_MOST, _BLIND) * N).astype(np.int64)


# ---------------------------------------------------------------------------------------------------------------- arguments


def check_system(system: System, sizes: Sizes, load: float | None = None) -> None:
    """Raises unless there are jobs, Poisson arrivals, sizes exponential or taken as such, and the load, if given, is below 1."""
    if sizes not in ("as given", "exponential"):
        raise BadSpec([Problem("sizes", 'must be "as given" or "exponential"', sizes)])
    if not system.arrival_rate.any():
        raise Infeasible("no jobs arrive, so there is no response time: give arrival rates")
    if system.bursty:
        raise Infeasible(
            f"the arrivals of type {system.bursty[0]!r} are not Poisson, so the numbers of jobs are not the whole state: simulate, or take "
            "system.with_poisson_arrivals() (on the command line: a file without arrivals)"
        )
    for name, size in zip(system.names, system.sizes, strict=True):
        if sizes == "as given" and not isinstance(size, Exponential):
            kind = getattr(size, "distribution", type(size).__name__)
            raise Infeasible(
                f"type {name!r} has {kind} sizes, and the number of jobs is a state only for exponential ones: simulate, or take every "
                'size as exponential with its mean, sizes="exponential" (on the command line: --exponential)'
            )
    if load is not None and load >= 1:
        raise Unstable(f"load {load:.4g} is not below 1: no policy keeps the queues short. Scale arrivals by less than {1 / load:.4g}")


def checked_truncation(system: System, truncation: int | Sequence[int] | Int) -> Int:
    """A truncation that is given: one number for all types, or one for each."""
    K, least = len(system.names), least_truncation(system)
    given = [truncation] * K if np.ndim(truncation) == 0 else list(truncation)  # type: ignore[arg-type]
    if len(given) != K:
        raise BadSpec([Problem("truncation", f"must be one number, or {K}, one per type", truncation)])
    return np.array([whole(f"truncation of {name}", N, int(m)) for name, N, m in zip(system.names, given, least, strict=True)])
