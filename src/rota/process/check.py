"""Checks of a modulating process: its fields agree with each other, and it matches its system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from rota.arrays import Array, Int
from rota.capacity import fits
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import System

if TYPE_CHECKING:
    from rota.process.process import ModulatingProcess

__all__ = ["check_process", "field_problems", "frozen_field", "require_fit"]

_SAME = 1e-9  # completions must move the process at the rate at which they happen, up to this


def frozen_field(name: str, value: ArrayLike, whole: bool) -> Array | Int:
    """A field as a read-only array of floats, or of whole numbers."""
    try:
        given = np.asarray(value, dtype=np.float64 if not whole or not isinstance(value, np.ndarray) else None)
        if whole and given.dtype.kind == "f" and not (given == np.floor(given)).all():  # False for NaN too
            raise ValueError
        array: Array | Int = given.astype(np.int64) if whole else given.astype(np.float64)
    except (TypeError, ValueError):
        rule = "must be whole numbers" if whole else "must be numbers"
        raise BadSpec([Problem(name, rule, value)], "the modulating process") from None
    array.flags.writeable = False
    return array


def field_problems(process: ModulatingProcess) -> list[Problem]:
    """What is wrong with the fields of a process among themselves: shapes, states that do not exist, rates that are not positive."""
    if process.schedules.ndim != 2 or process.schedules.size == 0:
        return [Problem("schedules", "must be a table (N, K), a row per state and a column per type", process.schedules.shape)]
    N, K = process.schedules.shape
    M = process.source.shape[0] if process.source.ndim == 1 else 0
    shapes = {"held": (N, K), "candidate": (N,), "source": (M,), "target": (M,), "rate": (M,), "trigger": (M,)}
    problems = [
        Problem(name, f"must have the shape {shape}, for {N} states, {K} types and {M} moves", getattr(process, name).shape)
        for name, shape in shapes.items()
        if getattr(process, name).shape != shape
    ]
    if len(process.names) != K:
        problems.append(Problem("names", f"must name {K} types, as the schedules have {K} columns", list(process.names)))
    if problems:
        return problems
    rules = [
        ("schedules", process.schedules >= 0, "must not be negative"),
        ("held", process.held >= process.schedules, "must be at least the schedule: jobs that run hold resources"),
        ("source", (process.source >= 0) & (process.source < N), f"must be a state 0…{N - 1}"),
        ("target", (process.target >= 0) & (process.target < N), f"must be a state 0…{N - 1}"),
        ("target", process.target != process.source, "must be another state than the source"),
        ("rate", np.isfinite(process.rate) & (process.rate > 0), "must be positive and finite: leave out a move that never happens"),
        (
            "trigger",
            (process.trigger >= -2) & (process.trigger < K),
            f"must be −1 (timer), −2 (setup) or the type 0…{K - 1} that completes",
        ),
    ]
    return [Problem(f"{name}.{_first(good)}", rule, _value(process, name, good)) for name, good, rule in rules if not good.all()]


def _first(good: NDArray[np.bool_]) -> int:
    return int(np.argwhere(~good)[0][0])


def _value(process: ModulatingProcess, name: str, good: NDArray[np.bool_]) -> object:
    return getattr(process, name)[_first(good)].tolist()


def check_process(system: System, process: ModulatingProcess) -> None:
    """Raises if the process is not one for this system: other types, a schedule that does not fit, completions at other rates than those
    of the system, or states that are not all reached from each other.
    """
    K = len(system.names)
    if process.names != system.names:
        rule = f"differ from those of the system ({', '.join(system.names)}), which are {K}"
        raise BadSpec([Problem("names", rule, list(process.names))], "the modulating process")
    require_fit(system, process.held, "state")
    _check_completions(system, process)
    # An MSR policy has an irreducible process (Definition MSR); else its long run depends on where it begins.
    count, part = scipy.sparse.csgraph.connected_components(process.generator, directed=True, connection="strong")
    if count > 1:
        other = int(np.argmax(part != part[0]))
        raise Infeasible(
            f"the modulating process is not irreducible: states 0 and {other} are not both reached from each other "
            f"({count} separate parts). Add the moves that lead back, or leave out the states that are never returned to"
        )


def _check_completions(system: System, process: ModulatingProcess) -> None:
    """In a state with u slots of a type, the moves that its completions trigger come at rate u μ together, or not at all."""
    own = process.trigger >= 0
    if not own.any():
        return
    K = len(system.names)
    place = process.source[own] * K + process.trigger[own]
    rate = np.bincount(place, weights=process.rate[own], minlength=len(process) * K)
    rings = (process.schedules * system.service_rate).ravel()
    triggered = np.zeros(len(rate), dtype=bool)
    triggered[place] = True
    wrong = triggered & (np.abs(rate - rings) > _SAME * rings)
    if wrong.any():
        state, kind = divmod(int(np.argmax(wrong)), K)
        slots = int(process.schedules[state, kind])
        raise Infeasible(
            f"completions of {system.names[kind]!r} move state {state} at rate {rate[wrong][0]:.6g}, but its {slots} slots complete at "
            f"rate {rings[wrong][0]:.6g}: give these moves that rate together, or the trigger −1 (timer)"
        )


def require_fit(system: System, schedules: Int, what: str) -> None:
    """Raises `Infeasible` for the first schedule that does not fit the server, saying what it needs."""
    good = np.atleast_1d(fits(system, schedules))
    if good.all():
        return
    row = schedules[int(np.argmin(good))]
    over = [
        f"{resource} {need:g} of {have:g}"
        for resource, need, have in zip(system.resources, row @ system.demand, system.capacity, strict=True)
        if need > have
    ]
    raise Infeasible(f"{what} {row.tolist()} does not fit the server: it needs {', '.join(over)}")
