"""`optimal_policy`: the best policy there is, for few types and exponential sizes, with a proved lower bound on every policy.

The lower bound. Let a policy π run the system without truncation, and let another server see the same jobs but turn away those that arrive
with N_i jobs of their type in it. It serves every job that it let in exactly when π does: what it serves is part of a schedule of π, so it
fits, and a job that π lets run to its end does so here. So each of its jobs leaves when it leaves π, and it never has more jobs of a type
than π has. Where it needs to know of jobs that it turned away it draws their sizes itself, so it is a policy of the truncated system, one
that knows the past. A job that it turns away stays with π for some time: it finds N_i or more jobs of its type there, so at least c_i on
average (`rota.optimal.state_space`), if π serves each type in the order of arrival, which changes no count. So the mean number of jobs of
the truncated server, plus c_i for each job that it turns away, is at most that of π; and it is at least the least that any policy of the
truncated server can have, g_N. Hence E[Q] ≥ g_N for every π, and E[T] ≥ g_N / Λ with the full Λ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rota.arguments import is_real
from rota.arrays import Array, Int
from rota.capacity import system_load
from rota.display import html_lines, html_table, html_title, number, rough_duration
from rota.errors import BadSpec, Infeasible, NotConverged, Problem
from rota.model import Preemption, System
from rota.optimal.chain import BYTES_PER_PLACE
from rota.optimal.evaluate import BYTES_PER_STATE, OptimalProgress, law_of
from rota.optimal.iteration import BYTES_PER_VALUE, OutOfTime, Solved, solve, values_of
from rota.optimal.state_space import StateSpace, schedules_of, state_space
from rota.optimal.truncation import check_system, checked_truncation, first_truncation, larger_truncation, missing_beyond
from rota.policy import Tabulated

__all__ = ["Optimal", "optimal_policy"]

_SECONDS_PER_VALUE = 3e-5  # some hundred pairs of sweeps
_SOLVER_SHARE = 0.1  # of the accuracy, for the gap of the bounds


@dataclass(frozen=True, eq=False)
class Optimal:
    """The best policy of a system, found on states with at most `truncation` jobs of each type.

    `lower_bound` is proved: no policy of the preemption model has a smaller mean response time, on this truncation or without any.
    `mean_response_time` is that of `policy` on the truncation, E[Q_i] per type is `queue_length` (K,); a job that is lost at the edge
    counts for the least time that it would have spent. `residual` is the relative gap
    between the bounds of the truncated system; `missing` (K,) estimates what states beyond would add to E[Q_i]. `settled`: the last
    enlargement changed the mean by less than the accuracy asked for, so that the mean without truncation is about the same; not a proof.
    """

    system: System
    policy: Tabulated
    lower_bound: float
    queue_length: Array
    residual: float
    missing: Array
    truncation: tuple[int, ...]
    states: int
    iterations: int
    settled: bool
    time_s: float

    @property
    def mean_response_time(self) -> float:
        """E[T] = Σ E[Q_i] / Σ λ_i over all jobs."""
        return float(self.queue_length.sum() / self.system.arrival_rate.sum())

    @property
    def response_time(self) -> Array:
        """E[T_i] = E[Q_i]/λ_i by Little's law; not a number for a type that never arrives."""
        lam = self.system.arrival_rate
        return np.asarray(np.divide(self.queue_length, lam, out=np.full(len(lam), np.nan), where=lam > 0))

    @property
    def preemption(self) -> Literal["full", "none"]:
        """Whether jobs may be stopped."""
        return self.policy.preemption

    def explain(self) -> str:
        """What is proved of the numbers and what is not, in sentences."""
        edge = ", ".join(f"{N} × {name}" for N, name in zip(self.truncation, self.system.names, strict=True))
        with_jobs = "with full preemption" if self.preemption == "full" else "without preemption"
        part = number(100 * self.missing.sum() / self.queue_length.sum(), 2)
        lines = [
            f"Proved, but for rounding: no policy {with_jobs} has a mean response time below {self.lower_bound:.6g}.",
            f"With at most {edge}, jobs beyond being lost, the best one has {self.mean_response_time:.6g}; "
            f"the gap of the bounds is {number(100 * self.residual, 2)} %.",
            "A larger truncation changed this by less than the accuracy asked for: as the value without any it is stable, not proved."
            if self.settled
            else "It is not settled: without truncation the mean may be larger, and that of the table, read at its edge, much larger.",
            f"The states beyond would add about {part} % to the mean number of jobs, by the decay of its law.",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        settled = "" if self.settled else ", not settled"
        return (
            f"<Optimal, preemption {self.preemption}: mean response time {self.mean_response_time:.6g}, no policy below "
            f"{self.lower_bound:.6g}, {self.states:,} states{settled}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (name, number(q, 6), number(t, 6)) for name, q, t in zip(self.system.names, self.queue_length, self.response_time, strict=True)
        ]
        return html_title(repr(self)[1:-1]) + html_table(["", "E[Q]", "E[T]"], rows) + html_lines(self.explain())


def optimal_policy(
    system: System,
    preemption: Preemption | None = None,
    *,
    truncation: int | Sequence[int] | None = None,
    accuracy: float = 1e-3,
    sizes: Literal["as given", "exponential"] = "as given",
    memory_limit_gb: float = 4.0,
    time_limit_s: float = 600.0,
    progress: Callable[[OptimalProgress], None] | None = None,
) -> Optimal:
    """The policy of least mean response time, for few types and exponential sizes.

    `preemption` is that of the system if not given. "full": the schedule is chosen anew at every event. "none": jobs that wait may start at
    every event, or wait on; those that run go on. The number of jobs of each type is truncated, and the truncation enlarged until the
    mean changes by less than `accuracy` (relative), unless one is given. If memory or time do not allow that, the largest truncation
    that was solved is returned, and says so (`settled`). Raises `Infeasible` where not even the first one can be solved.
    """
    model = system.preemption if preemption is None else preemption
    if model == "setup":
        raise Infeasible(
            'with setups the state would have to hold every setup under way: ask for preemption "full" or "none", which bracket it'
        )
    if model not in ("full", "none"):
        raise BadSpec([Problem("preemption", 'must be "full" or "none"', model)])
    if not (is_real(accuracy) and 0 < accuracy < 1):
        raise BadSpec([Problem("accuracy", "must be a number between 0 and 1", accuracy)])
    check_system(system, sizes, system_load(system).load if system.arrival_rate.any() else None)
    preemptive = model == "full"
    schedules = schedules_of(system)
    N = first_truncation(system) if truncation is None else checked_truncation(system, truncation)
    began = time.monotonic()
    found: Optimal | None = None
    iterations = 0

    def tell(_: float, text: str) -> None:
        if progress is not None:
            progress(OptimalProgress(tuple(N.tolist()), text, time.monotonic() - began))

    while True:
        space = state_space(system, N, schedules)
        if reason := _too_large(space, preemptive, memory_limit_gb, time_limit_s - (time.monotonic() - began)):
            if found is None:
                raise Infeasible(f"{reason}: take fewer types, a smaller server or a smaller truncation, or compare policies by simulation")
            return found
        try:
            solved = solve(space, preemptive, _SOLVER_SHARE * accuracy, began + time_limit_s, tell)
        except OutOfTime:
            if found is None:
                raise NotConverged(
                    f"{time_limit_s:g} s were not enough for {values_of(space, preemptive):,} values: raise time_limit_s"
                ) from None
            return found
        iterations += solved.sweeps
        last = found
        found, decay = _optimal(system, solved, preemptive, iterations, began)
        if truncation is not None:
            return found
        allowed = accuracy * float(found.queue_length.sum())
        change = np.inf if last is None else abs(float((found.queue_length - last.queue_length).sum()))
        if change <= allowed and found.missing.sum() <= allowed:
            return replace(found, settled=True)
        N = larger_truncation(N, found.missing, decay, allowed / 2)


def _optimal(system: System, solved: Solved, preemptive: bool, iterations: int, began: float) -> tuple[Optimal, Array]:
    """The answer on one truncation, not settled yet, and the decay of the queue of each type."""
    space = solved.space
    choice = _clipped(space, solved.choice.astype(np.int64)) if preemptive else solved.choice
    policy = Tabulated(space.schedules, space.truncation, choice, "full" if preemptive else "none", system.names)
    chain, law, _ = law_of(system, policy, space)
    missing, decay = missing_beyond(law, chain.present, space.truncation)
    found = Optimal(
        system=system,
        policy=policy,
        lower_bound=solved.least / float(system.arrival_rate.sum()),
        queue_length=law @ chain.present + law @ (chain.present == space.truncation) * space.toll,
        residual=solved.gap,
        missing=missing,
        truncation=tuple(space.truncation.tolist()),
        states=values_of(space, preemptive),
        iterations=iterations,
        settled=False,
        time_s=time.monotonic() - began,
    )
    return found, decay


def _clipped(space: StateSpace, choice: Int) -> Int:
    """From maximal schedules to the numbers of those that hold no more jobs than are present."""
    present = np.stack(np.unravel_index(np.arange(space.size), tuple((space.truncation + 1).tolist())), axis=1)
    radix = np.append(np.cumprod((space.largest + 1)[::-1])[::-1][1:], 1)
    keys = space.schedules @ radix  # in rising order, as the schedules are
    return np.asarray(np.searchsorted(keys, np.minimum(space.maximal[choice], present) @ radix), dtype=np.int64)


def _too_large(space: StateSpace, preemptive: bool, memory_gb: float, left_s: float) -> str:
    """Why a truncation cannot be solved; empty if it can."""
    n = values_of(space, preemptive)
    need_gb = 1e-9 * (n * BYTES_PER_VALUE + space.size * (len(space.schedules) * BYTES_PER_PLACE + BYTES_PER_STATE))
    need_s = n * _SECONDS_PER_VALUE
    where = f"{n:,} values ({' × '.join(str(N + 1) for N in space.truncation)} numbers of jobs present"
    where += ")" if preemptive else f", {len(space.schedules)} schedules)"
    if need_gb > memory_gb:
        return f"{where} would need about {need_gb:,.3g} GB, more than the {memory_gb:g} GB allowed (memory_limit_gb)"
    if need_s > left_s:
        return f"{where} would take about {rough_duration(need_s)}, more than the {rough_duration(max(left_s, 0))} left (time_limit_s)"
    return ""
