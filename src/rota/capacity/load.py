"""The system load ρ and the schedules that attain it (Eq. system-load; Eq. optimization of the paper, solved to optimality).

    ρ = min Σ_s w_s   s.t.   Σ_s w_s W_s ≥ λ⊘μ,   w ≥ 0,   over all possible schedules W_s ∈ 𝒮,         π = w / ρ

By column generation (`rota.capacity.generation`), with schedules from `rota.capacity.pricing`. What makes it fast:

- the search starts at the prices of the fluid bound, ρ ≥ max_r Σ_i (λ_i/μ_i) D_ir / P_r (all jobs divisible), which is often tight;
- schedules are searched at prices between the best proved ones and the master's (smoothing), which keeps its prices from oscillating;
- greedy searches come first, and the exact ones fit the size of the jobs;
- many types are solved by halves first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rota.arguments import is_real
from rota.arrays import Array, Int
from rota.capacity.generation import Generation
from rota.capacity.packing import make_maximal
from rota.capacity.schedules import largest_counts
from rota.capacity.units import Units, integer_units
from rota.display import html_lines, html_table, html_title, jobs_together, number, per_cent
from rota.errors import BadSpec, Problem
from rota.model import System

__all__ = ["Load", "Progress", "attain", "between_in_words", "check_load", "is_interrupt", "system_load"]

_T = TypeVar("_T", bound=np.generic)

_LEAST_WORK, _MOST_WORK = 1e-100, 1e100  # so that products and quotients of floats neither overflow nor underflow
_NEAR = 1e-4  # the gap at which a search for a load that is low enough ends, if it is neither found nor refuted
_MISSED = 1e-6  # what a demand may lose when it is rounded to whole units, relative


@dataclass(frozen=True)
class Load:
    """The system load, the schedules that attain it, and the proof.

    `load` is attained by `candidates` (n ≤ K, K) with `weights` (n,), which sum to 1; no schedule mix can do better than `lower_bound`, and
    `gap` = load / lower_bound − 1. `type_price` y (K,): what one more busy slot of a type adds to the load; y·(λ⊘μ) = load at the optimum.
    `resource_price` p (R,): the same for one unit of a resource, from the relaxed knapsack: D p ≥ y. `utilization` (R,): how full each
    resource is when the candidates run with their weights. `fluid_load`: the load if jobs could be split at will; what exceeds it is lost
    to packing.
    """

    load: float
    candidates: Int
    weights: Array
    lower_bound: float
    gap: float
    type_load: Array
    type_price: Array
    resource_price: Array
    utilization: Array
    fluid_load: float
    system: System
    iterations: int
    columns: int
    exact_solves: int
    time_s: float

    @property
    def type_share(self) -> Array:
        """The part of the load that each type causes, y_i (λ_i/μ_i) / y·(λ⊘μ): sums to 1."""
        return _normalised(self.type_price * self.system.offered_work)

    @property
    def resource_share(self) -> Array:
        """How much each resource limits the load: its price times its capacity, normalised to sum to 1."""
        return _normalised(self.resource_price * self.system.capacity)

    @property
    def bottleneck(self) -> tuple[str, str]:
        """The resource that limits the load most, and the type that causes most of it."""
        return (
            self.system.resources[int(np.argmax(self.resource_share))],
            self.system.names[int(np.argmax(self.type_share))],
        )

    def scaled(self, factor: float) -> Load:
        """The load of the same mix at arrival rates times `factor`, without solving anything: ρ is proportional to λ, so candidates,
        weights and prices stay, and so does the proof.
        """
        if not (is_real(factor) and factor > 0):
            raise BadSpec([Problem("factor", "must be positive and finite", factor)])
        return replace(
            self,
            load=self.load * factor,
            lower_bound=self.lower_bound * factor,
            type_load=_frozen(self.type_load * factor),
            fluid_load=self.fluid_load * factor,
            system=self.system.scaled(factor=factor),
        )

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        if self.load == 0:
            return "No jobs arrive: the load is 0."
        sentences = []
        if self.gap > 1e-4:
            sentences.append(between_in_words(self.lower_bound, self.load))
        elif self.load < 1 - 1e-9:
            sentences.append(f"The load is {self.load:.4g}: arrivals can grow by a factor of up to {1 / self.load:.4g}.")
        elif self.load <= 1 + 1e-9:
            sentences.append("The load is 1: no policy can serve these arrivals, but any lower rates can be served.")
        else:
            sentences.append(f"The load is {self.load:.4g}: no policy can serve that. Scale arrivals by less than {1 / self.load:.4g}.")
        resource, kind = self.bottleneck
        r, i = self.system.resources.index(resource), self.system.names.index(kind)
        sentences.append(
            f"The bottleneck is {resource!r}: the best rota has {self.utilization[r]:.1%} of it in use, "
            f"and it accounts for {self.resource_share[r]:.0%} of the limit."
        )
        sentences.append(f"Type {kind!r} causes more of the load than any other: {self.type_share[i]:.0%}.")
        if self.gap > 1e-4:
            return "\n".join(sentences)
        return "\n".join([*sentences, packing_in_words(self.load, self.fluid_load)])

    def __repr__(self) -> str:
        return f"<Load {self.load:.9g}, gap {self.gap:.1e}, {len(self.weights)} candidates>"

    def _repr_html_(self) -> str:
        names = self.system.names
        rows = [(per_cent(weight), jobs_together(row, names)) for row, weight in zip(self.candidates, self.weights, strict=True)]
        return "".join(
            [
                html_title(f"System load {number(self.load, 6)}{'' if self.gap > 1e-4 else ', proved'}"),
                html_lines(self.explain()),
                html_table(["time", "jobs together"], rows, left=(1,)) if rows else "",
            ]
        )


@dataclass(frozen=True)
class Progress:
    """How far a computation of the load has come."""

    load: float
    lower_bound: float
    columns: int
    time_s: float


def system_load(
    system: System,
    *,
    gap: float = 1e-7,
    time_limit_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Load:
    """The smallest ρ with (λ⊘μ)/ρ in Conv(𝒮), with at most K candidates that attain it and a proved gap.

    Stops when the relative gap is at most `gap`, when `time_limit_s` is over, or on Ctrl-C; `Load.gap` is always what was proved by
    then.
    """
    check_limits(gap, time_limit_s)
    _compile()
    start = time.perf_counter()
    search = _Search(system)
    if not search.active.any():
        return search.nothing(time.perf_counter() - start)
    found = search.generation

    def tell() -> bool:
        if progress is not None:
            progress(Progress(found.upper, found.lower, len(found.master), time.perf_counter() - start))
        return False

    try:
        found.run(gap, _deadline(start, time_limit_s), tell)
    except (KeyboardInterrupt, SystemError) as error:
        if not (found.iterations and is_interrupt(error)):
            raise
        found.finish()
    return search.answer(time.perf_counter() - start)


def attain(system: System, level: float, *, known: Int | None = None, time_limit_s: float | None = None) -> Load:
    """The first mix of schedules that is found whose load is at most `level`; otherwise the best that was found until a lower bound above
    `level` was proved, the gap was small, or the time was over. `known` (n, K): schedules of the server to start from.
    """
    _compile()
    start = time.perf_counter()
    search = _Search(system)
    if not search.active.any():
        return search.nothing(time.perf_counter() - start)
    found = search.generation
    for schedule in () if known is None else known[:, search.active]:
        found.master.add(schedule)
    found.run(_NEAR, _deadline(start, time_limit_s), lambda: found.upper <= level or level < found.lower)
    return search.answer(time.perf_counter() - start)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether that is Ctrl-C. Within a compiled function it comes as a `SystemError` of which it is the cause."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, SystemError) and is_interrupt(error.__cause__))


def _deadline(start: float, time_limit_s: float | None) -> float:
    return np.inf if time_limit_s is None else start + time_limit_s


def check_limits(gap: float, time_limit_s: float | None) -> None:
    """Raises `BadSpec` unless these can end a search."""
    if not (np.isfinite(gap) and gap >= 0):
        raise BadSpec([Problem("gap", "must be finite and not negative", gap)])
    if time_limit_s is not None and not time_limit_s >= 0:
        raise BadSpec([Problem("time_limit", "must not be negative", time_limit_s)])


def between_in_words(lower: float, load: float) -> str:
    """What is known of a load that is not proved, with as many digits as it takes to tell the two numbers apart."""
    digits = max(4, 2 - math.floor(math.log10(load / lower - 1)))
    return f"The load is between {lower:.{digits}g} and {load:.{digits}g}; more time would narrow this."


def packing_in_words(load: float, fluid_load: float) -> str:
    """What whole jobs cost, against jobs that could be split at will."""
    loss = 1 - fluid_load / load
    if loss < 1e-6:
        return "No capacity is lost to packing."
    return f"Packing whole jobs costs {loss:.1%} of the capacity: if jobs could be split, the load would be {fluid_load:.4g}."


def check_load(load: object, system: System) -> None:
    """Raises `BadSpec` unless this is the load of that system. Its preemption model and the shape of sizes do not matter, only the work."""
    if not isinstance(load, Load):
        raise BadSpec([Problem("load", "must be what rota.system_load answers", load)])
    parts = ("capacity", "demand", "offered_work")
    if load.system.names != system.names or not all(np.array_equal(getattr(load.system, part), getattr(system, part)) for part in parts):
        raise BadSpec([Problem("load", "is of another system: give rota.system_load(system), or leave it out")])


@cache
def _compile() -> None:
    """Compiles the kernels before the clock starts: where they are not cached on disk, that can take longer than the time limit."""
    search = _Search(System([2.0], [[1.0]], [1.0], [1.0]))
    search.generation.compile()
    search.answer(0.0)


class _Search:
    """The column generation for the types that do arrive, and the answer for all."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.units: Units = integer_units(system)
        _require_representable(system, self.units)
        work = system.offered_work
        self.active = work > 0
        if self.active.any():
            demand, most = self.units.demand[self.active], largest_counts(system)[self.active]
            self.generation = Generation(work[self.active], demand, self.units.capacity, most)

    def answer(self, time_s: float) -> Load:
        """What was found until now."""
        found = self.generation
        K = len(self.system.names)
        candidates = np.zeros((len(found.candidates), K), dtype=np.int64)
        candidates[:, self.active] = found.candidates
        work = self.system.offered_work
        # Capacity that is left goes to the types with the highest load; types with a positive price never fit into it.
        spare = np.where(self.active, work / np.maximum(found.weights @ candidates, 1e-300), -1.0)
        candidates = np.array([make_maximal(self.units.demand, self.units.capacity, row, spare) for row in candidates])
        candidates, inverse = np.unique(candidates, axis=0, return_inverse=True)
        weights: Array = np.bincount(inverse.ravel(), weights=found.weights, minlength=len(candidates)).astype(np.float64)
        weights = weights / weights.sum()

        served = weights @ candidates
        type_load = np.divide(work, served, out=np.zeros(K), where=served > 0)
        load = float(type_load.max())
        lower = min(found.lower, load)
        type_price = np.zeros(K)
        type_price[self.active] = found.proved
        _, price = found.pricing.relax(found.proved)
        return Load(
            load=load,
            candidates=_frozen(candidates),
            weights=_frozen(weights),
            lower_bound=lower,
            gap=load / lower - 1,
            type_load=_frozen(type_load),
            type_price=_frozen(type_price),
            resource_price=_frozen(self._user_price(price, type_price)),
            utilization=_frozen(served @ self.system.demand / self.system.capacity),
            fluid_load=float((work @ self.system.demand / self.system.capacity).max()),
            system=self.system,
            iterations=found.iterations,
            columns=len(found.master),
            exact_solves=found.exact_solves,
            time_s=time_s,
        )

    def _user_price(self, price: Array, type_price: Array) -> Array:
        """Prices per unit as the user counts, with D p ≥ y in the user's numbers.

        The part of a capacity that no whole number of units can use has a price too: p·P exceeds the bound of the whole units by that.
        """
        price = price * self.units.per_unit
        cost = self.system.demand @ price
        return price * max(float((type_price / np.where(cost > 0, cost, np.inf)).max()), 1.0)

    def nothing(self, time_s: float) -> Load:
        """The load of a system without arrivals."""
        K, R = self.system.demand.shape
        return Load(
            load=0.0,
            candidates=_frozen(np.zeros((0, K), dtype=np.int64)),
            weights=_frozen(np.zeros(0)),
            lower_bound=0.0,
            gap=0.0,
            type_load=_frozen(np.zeros(K)),
            type_price=_frozen(np.zeros(K)),
            resource_price=_frozen(np.zeros(R)),
            utilization=_frozen(np.zeros(R)),
            fluid_load=0.0,
            system=self.system,
            iterations=0,
            columns=0,
            exact_solves=0,
            time_s=time_s,
        )


def _require_representable(system: System, units: Units) -> None:
    """Raises where a type's offered work or its demands are too large or too small to be computed with."""
    work = system.offered_work
    arrives = system.arrival_rate > 0
    rule = f"times the mean size must be 0 or from {_LEAST_WORK:g} to {_MOST_WORK:g}: check the rates, or leave the type out"
    problems = [
        Problem(f"jobs.{system.names[i]}.arrival_rate", rule, float(work[i]))
        for i in np.flatnonzero(arrives & ~((work >= _LEAST_WORK) & (work <= _MOST_WORK)))
    ]
    # In a resource without a common grid, demands are rounded. Each type needs at least one resource in which its demand survives that.
    asked = system.demand * units.per_unit
    distinct = (system.demand > 0) & (np.abs(units.demand - asked) <= _MISSED * asked)
    rule = "is too small relative to the capacity to be distinguished from others: round all demands to a common grid"
    for i in np.flatnonzero(arrives & ~distinct.any(axis=1)):
        r = int(np.argmax(system.demand[i] / system.capacity))
        problems.append(Problem(f"jobs.{system.names[i]}.demand.{system.resources[r]}", rule, float(system.demand[i, r])))
    if problems:
        raise BadSpec(problems)


def _normalised(parts: Array) -> Array:
    total = parts.sum()
    return parts / total if total > 0 else parts


def _frozen(array: NDArray[_T]) -> NDArray[_T]:
    array.flags.writeable = False
    return array
