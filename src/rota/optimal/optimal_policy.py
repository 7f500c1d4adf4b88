"""`optimal_policy`: the best policy there is, for few types and exponential sizes, with a proved lower bound on every policy.

On a truncation the values of the best decisions are found by policy iteration (`rota.optimal.iteration`); beyond its edge they go on as a
quadratic function, which makes the least one-step difference a bound on every policy (`rota.optimal.continuation`). That function is
below what jobs beyond the edge really cost, so decisions near the edge are too careless of them: the table keeps the inner part only. Its
stationary law on the truncation gives its mean. If that is near the bound and the law has little weight at the edge, the answer is settled;
else the truncation is enlarged where there is weight. Where the edge of a type is so near that little is proved beyond it, that edge is
moved out first. While the bound still rises much from one truncation to the next, the values need not be exact, and a law that takes
longer than they did is given up: the next truncation proves more in that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rota.arguments import is_real
from rota.arrays import Array, Int
from rota.capacity import Load, system_load
from rota.display import number
from rota.errors import BadSpec, Infeasible, NotConverged, Problem
from rota.model import Preemption, System
from rota.optimal.answer import Answer, OptimalProgress
from rota.optimal.chain import BYTES_PER_PLACE, OutOfTime, stationary_law
from rota.optimal.continuation import continued, extended, first_values
from rota.optimal.evaluate import BYTES_PER_STATE
from rota.optimal.iteration import BYTES_PER_VALUE, Solved, solve, values_of
from rota.optimal.lowering import proved_by_lowering
from rota.optimal.state_space import StateSpace, least_truncation, schedules_of, state_space
from rota.optimal.table_chain import chain_of_table
from rota.optimal.truncation import check_system, checked_truncation, first_truncation, grown_blindly, larger_truncation, missing_beyond
from rota.policy import Tabulated

__all__ = ["Optimal", "optimal_policy"]

Stopped = Literal["settled", "truncation", "memory", "time", "interrupt"]
_SOLVER_SHARE = 0.1  # of the accuracy, for the gap of the bounds
_SOLVER_TIME = 0.7  # of the time that is left, for the values on one truncation; the rest is for the law of the table, or to prove more
_GOOD_ENOUGH = 0.02  # the gap of the bounds with which decisions are taken that the time limit ended
_FURTHER = 1.5  # of an edge that is too near for a proof
_LAW_PART, _LAST_LAW_PART, _LAW_LEAST_S = 0.25, 3.0, 1.0  # of the time of the values, for a law that may be given up; the last; seconds
_STILL = 5  # times the accuracy: a rise of the bound with which the truncation may be the last
_COARSE, _OF_RISE = 2e-3, 0.02  # the gap of the bounds: at most, and as a part of how much the bound rose with the last truncation
_KEPT = 0.6  # of the truncation, in the table
_LAW_ERROR, _LAW_SHARE = 1e-8, 1e-5  # the flow out of balance: at most, and as a part of the accuracy


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Optimal(Answer):
    """The best policy of a system, found on states with at most `truncation` jobs of each type.

    `lower_bound` is proved: no policy of the preemption model has a smaller mean response time, on this truncation or without any.
    `policy` is the table that was found, and `mean_response_time` its mean on the truncation, E[Q_i] per type is `queue_length` (K,); a job
    that is lost at the edge counts for the least that it would have cost. `gap` is the relative distance between the two. `residual` is the
    relative gap between the bounds of the truncated system; `missing` (K,) estimates what states beyond would add to E[Q_i]. `settled`: gap
    and missing are below the accuracy asked for, so that no policy is much better than the table; the mean of the table is not proved.
    `stopped`: why the search ended: "settled", "truncation" (one was given), "memory", "time" or "interrupt" (Ctrl-C).
    `later_table`: `policy` comes from a larger truncation, on which its law was not found; the mean is that of the last one that has a law.
    """

    policy: Tabulated
    lower_bound: float
    residual: float
    iterations: int
    stopped: Stopped
    time_s: float
    later_table: bool = False

    @property
    def gap(self) -> float:
        """1 − lower_bound / mean_response_time; negative where the truncation is too short to tell the mean of the table."""
        return 1 - self.lower_bound / self.mean_response_time

    @property
    def preemption(self) -> Literal["full", "none"]:
        """Whether jobs may be stopped."""
        return self.policy.preemption

    def explain(self) -> str:
        """What is proved of the numbers and what is not, in sentences."""
        with_jobs = "with full preemption" if self.preemption == "full" else "without preemption"
        lines = [
            f"Proved, but for rounding: no policy {with_jobs} has a mean response time below {self.lower_bound:.6g}.",
            f"With at most {self.edge} counted, the table has {self.mean_response_time:.6g}, "
            + (f"{number(100 * self.gap, 2)} % above that." if self.gap >= 0 else "below that: so few jobs do not tell its mean."),
            "Gap and missing part are below the accuracy asked for: the mean of the table is stable, not proved."
            if self.settled
            else f"It is not settled{_REASONS[self.stopped]}: the mean of the table may be larger. rota.simulate measures it.",
            *(
                ["The table given is a later one, from a larger truncation, on which its mean was not computed."]
                if self.later_table
                else []
            ),
            super().explain(),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        settled = "" if self.settled else ", not settled"
        return (
            f"<Optimal, preemption {self.preemption}: mean response time {self.mean_response_time:.6g}, no policy below "
            f"{self.lower_bound:.6g}, {self.states:,} states{settled}>"
        )


_REASONS: dict[Stopped, str] = {
    "settled": "",
    "truncation": " (the truncation was given)",
    "memory": ", for want of memory (memory_limit_gb)",
    "time": ", for want of time (time_limit_s)",
    "interrupt": ", because the search was interrupted",
}


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
    mean of the table and the bound on all policies differ by less than `accuracy` (relative), unless one is given. Where memory, time or
    Ctrl-C end that, the best answer so far is returned, and says so (`settled`, `stopped`). Raises `Infeasible` where not even the first
    truncation fits, `NotConverged` where there is no table yet when the time is over; it has the `lower_bound` that is proved by then.
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
    load = system_load(system) if system.arrival_rate.any() else None
    check_system(system, sizes, None if load is None else load.load)
    assert load is not None  # some jobs arrive
    preemptive = model == "full"
    schedules = schedules_of(system)
    N = first_truncation(system) if truncation is None else checked_truncation(system, truncation)
    began = time.monotonic()
    until = began + time_limit_s
    found: Optimal | None = None
    solved: Solved | None = None
    later: Tabulated | None = None  # than `found`
    missing: Array = np.ones(len(N))  # beyond the edge of each type, by the last law
    rise = np.inf  # of the bound with the last truncation, relative
    iterations, bound, delta, last_delta = 0, 0.0, 0.0, 0.0

    def tell(text: str) -> None:
        if progress is not None:
            progress(OptimalProgress(tuple(N.tolist()), text, time.monotonic() - began))

    def best_so_far(stopped: Stopped) -> Optimal:
        if found is None:
            least = max(bound, float(system.offered_work.sum() / system.arrival_rate.sum()))  # no job takes less than its size
            raise NotConverged(
                f"{time_limit_s:g} s were not enough for {values_of(space, preemptive):,} values: raise time_limit_s, or take fewer types, "
                f"a smaller server or a smaller truncation. Proved so far: no policy has a mean response time below {least:.5g}",
                lower_bound=least,
            )
        now = time.monotonic() - began
        table = found.policy if later is None else later
        best = replace(found, lower_bound=max(found.lower_bound, bound), policy=table, later_table=later is not None)
        return replace(best, iterations=iterations, stopped=stopped, time_s=now)

    while True:
        space = continued(state_space(system, N, schedules), load, delta)
        if reason := _too_large(space, preemptive, memory_limit_gb):
            if found is None:
                raise Infeasible(f"{reason}: take fewer types, a smaller server or a smaller truncation, or compare policies by simulation")
            return best_so_far("memory")
        try:
            start = (
                first_values(space, values_of(space, preemptive) // space.size)
                if solved is None
                else extended(solved.space, solved.values, space)
            )
            now = time.monotonic()
            solver_until = now + _SOLVER_TIME * (until - now)
            give_up = truncation is None and found is not None
            fine = _SOLVER_SHARE * accuracy
            gap = fine if truncation is not None else max(fine, min(_COARSE, _OF_RISE * rise))
            solved, delta = _solved(space, load, delta, preemptive, gap, start, solver_until, tell, give_up)
            iterations += solved.sweeps
            if solved.stopped == "time" and found is not None and not preemptive:
                tell("what the values prove")
                solved = replace(solved, proved=proved_by_lowering(solved, until))
            proved = solved.proved / float(system.arrival_rate.sum())
            rise, bound = max(1 - bound / proved, 0.0) if proved > 0 else np.inf, max(bound, proved)
            if solved.stopped == "edge" and delta < last_delta:
                delta = last_delta  # rather than a larger truncation
                continue
            last_delta, delta = delta, 0.0  # that of a short truncation may be too large for the next one
            if solved.stopped == "edge":
                N = np.where(solved.lacking, np.ceil(_FURTHER * N), N).astype(np.int64)
                continue
            if found is not None and (solved.stopped == "interrupt" or solved.gap > _GOOD_ENOUGH):
                return best_so_far("interrupt" if solved.stopped == "interrupt" else "time")
            tell("the law of the table")
            part = _LAST_LAW_PART if rise <= _STILL * accuracy else _LAW_PART
            law_s = max(part * (time.monotonic() - now), _LAW_LEAST_S)
            law_until = min(until, time.monotonic() + law_s) if give_up and solved.stopped == "gap" else until
            policy = _table(system, solved, preemptive)
            if found is not None:
                later = policy
            try:
                latest, missing, decay = _optimal(system, solved, policy, preemptive, min(_LAW_ERROR, _LAW_SHARE * accuracy), law_until)
            except OutOfTime:
                if law_until == until:
                    raise
                N = grown_blindly(N, missing)
                continue
        except OutOfTime:
            return best_so_far("time")
        except KeyboardInterrupt:
            if found is None:
                raise
            return best_so_far("interrupt")
        except NotConverged:  # the law of a table that is not good enough for its edge: what is proved stands, and the next table is better
            if found is None or solved is None:
                raise
            if solved.stopped != "gap":
                return best_so_far("time" if solved.stopped == "edge" else solved.stopped)
            N = grown_blindly(N, missing)
            continue
        found, later = latest, None
        if truncation is not None:
            return best_so_far("truncation")
        allowed = accuracy * float(found.queue_length.sum())
        if best_so_far("settled").gap <= accuracy and found.missing.sum() <= allowed:
            return replace(best_so_far("settled"), settled=True)
        if solved.stopped != "gap":
            return best_so_far(solved.stopped)
        N = larger_truncation(N, found.missing, decay, allowed / 2)


def _solved(
    space: StateSpace,
    load: Load,
    delta: float,
    preemptive: bool,
    gap: float,
    start: Array,
    until: float,
    tell: Callable[[str], None],
    give_up: bool,
) -> tuple[Solved, float]:
    """Values on one truncation, with a δ that makes the bound large, and this δ (`rota.optimal.continuation`).

    Beyond the edge the least difference rises by as much as δ, and within it falls: by some share of that, for which a second δ is tried.
    The bound is largest where the two meet.
    """
    solved = solve(space, preemptive, gap, start, until, tell, give_up)
    proved, sweeps, least, tried = solved.proved, solved.sweeps, solved.least, delta
    lacks = least - proved
    share = 0.0
    while solved.stopped == "gap" and lacks > gap * least and (tried == delta or share > gap):
        step = lacks / (1 + share)
        try:
            solved = solve(continued(space, load, delta + step), preemptive, gap, solved.values, until, tell)
        except OutOfTime:
            solved = replace(solved, stopped="time")
            break
        proved, sweeps = max(proved, solved.proved), sweeps + solved.sweeps
        if tried != delta:
            tried = delta + step
            break
        tried, share = delta + step, (least - solved.least) / step
    return replace(solved, proved=proved, sweeps=sweeps), tried


def _optimal(
    system: System, solved: Solved, policy: Tabulated, preemptive: bool, error: float, until: float
) -> tuple[Optimal, Array, Array]:
    """The answer on one truncation, not settled yet, what is missing beyond the edge of each type, and the decay of its queue."""
    space = solved.space
    chain = chain_of_table(space, policy)
    law, _ = stationary_law(space, chain, error, until)
    missing, decay = missing_beyond(law, chain.present, space.truncation)
    lost = (chain.present == space.truncation) * space.arrival_rate * (space.first + chain.present @ space.growth)
    found = Optimal(
        system=system,
        policy=policy,
        lower_bound=solved.proved / float(system.arrival_rate.sum()),
        queue_length=law @ chain.present + law @ lost,
        residual=solved.gap,
        missing=missing,
        truncation=tuple(space.truncation.tolist()),
        states=values_of(space, preemptive),
        iterations=solved.sweeps,
        settled=False,
        stopped="truncation",
        time_s=0.0,
    )
    return found, missing, decay


def _table(system: System, solved: Solved, preemptive: bool) -> Tabulated:
    """The inner part of the decisions as a policy."""
    space = solved.space
    choice = _clipped(space, solved.choice.astype(np.int64)) if preemptive else solved.choice
    kept = np.minimum(np.maximum(np.ceil(_KEPT * space.truncation).astype(np.int64), least_truncation(system)), space.truncation)
    inner = choice.reshape(*(space.truncation + 1).tolist(), -1)[tuple(slice(n + 1) for n in kept.tolist())]
    return Tabulated(space.schedules, kept, inner.ravel(), "full" if preemptive else "none", system.names)


def _clipped(space: StateSpace, choice: Int) -> Int:
    """From maximal schedules to the numbers of those that hold no more jobs than are present."""
    present = np.stack(np.unravel_index(np.arange(space.size), tuple((space.truncation + 1).tolist())), axis=1)
    radix = np.append(np.cumprod((space.largest + 1)[::-1])[::-1][1:], 1)
    keys = space.schedules @ radix  # in rising order, as the schedules are
    return np.asarray(np.searchsorted(keys, np.minimum(space.maximal[choice], present) @ radix), dtype=np.int64)


def _too_large(space: StateSpace, preemptive: bool, memory_gb: float) -> str:
    """Why a truncation cannot be solved; empty if it can."""
    n = values_of(space, preemptive)
    need_gb = 1e-9 * (n * BYTES_PER_VALUE + space.size * (len(space.schedules) * BYTES_PER_PLACE + BYTES_PER_STATE))
    where = f"{n:,} values ({' × '.join(str(N + 1) for N in space.truncation)} numbers of jobs present"
    where += ")" if preemptive else f", {len(space.schedules)} schedules)"
    if need_gb > memory_gb:
        return f"{where} would need about {need_gb:,.3g} GB, more than the {memory_gb:g} GB allowed (memory_limit_gb)"
    return ""
