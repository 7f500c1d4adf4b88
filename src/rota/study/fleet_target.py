"""How many servers are needed so that jobs take no longer than they should? Targets are mean response times, of types or of all jobs.

Pinned servers are searched first: their values are exact, so what is said of them is proved (for the servers that were designed; others
might need fewer). What is recommended is then simulated at and around that number (`rota.study.fleet_estimate`): a target counts as kept
if the whole 95 % interval is below it. Servers are bought of the kinds that pinned servers need more of, if there are such. Both searches
take it that more servers never make a type slower, which is not proved (`rota.study.fleet_counts`).

No number of servers makes a job faster than it runs: E[T_i] ≥ 1/(μ_i max_c v_ci), over the kinds c on which it can run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
from rota.capacity import FleetLoad, system_load
from rota.errors import BadSpec, Infeasible, Problem, RotaError
from rota.model import Fleet
from rota.study.fleet_counts import Counts, enough_servers
from rota.study.fleet_estimate import Estimate, estimate
from rota.study.fleet_growth import pinned_option
from rota.study.fleet_options import FleetOption, Known, redesigned
from rota.study.plan_objective import checked_limits, time_words

__all__ = ["ALL_JOBS", "Enough", "check_reachable", "checked_targets", "enough_for", "fastest"]

ALL_JOBS = "mean"  # the name of the target for all jobs
_MOST_KINDS = 4  # of which servers are bought alone


@dataclass(frozen=True, eq=False)
class Enough:
    """Numbers of servers that keep the targets. `pinned`: of pinned servers, with their exact values `known`; None if none were found.

    `count`: under what is recommended, simulated, with the `estimate` of its response times; None if none were found. `kept_today`:
    whether today's servers keep the targets, by simulation.
    """

    targets: dict[str, float]
    fleet: Fleet
    option: FleetOption
    kept_today: bool
    pinned: Counts | None
    known: Known | None
    count: Counts | None
    estimate: Estimate | None


def checked_targets(fleet: Fleet, targets: Mapping[str, float | str] | None, place: str = "targets") -> dict[str, float]:
    """Targets by type, or for all jobs as "mean", in the fleet's unit of time; raises `BadSpec` with every problem."""
    return checked_limits(fleet, targets, place, also=() if ALL_JOBS in fleet.names else (ALL_JOBS,))


def fastest(fleet: Fleet) -> Array:
    """The mean running time of each type on the kind where it runs fastest (K,)."""
    best = np.where(fleet.runs, fleet.speed, 0.0).max(axis=0)
    return np.asarray(1 / (fleet.service_rate * best))


def check_reachable(fleet: Fleet, targets: Mapping[str, float]) -> None:
    """Raises `Infeasible` for targets that no number of servers can keep, and `BadSpec` for those of types that never arrive."""
    times, rate, wrong = fastest(fleet), fleet.arrival_rate, []
    idle = [name for name in targets if name in fleet.names and rate[fleet.names.index(name)] == 0]
    if idle:
        raise BadSpec([Problem(f"target.{name}", "no jobs of this type arrive, so it has no response time") for name in idle])
    for name, target in targets.items():
        own = name in fleet.names
        least = float(times[fleet.names.index(name)]) if own else float(times @ rate / rate.sum())
        if target <= least:
            who = f"a job of type {name!r} runs" if own else "a job runs"
            runs = f"{who} {time_words(fleet, least)} on average on the fastest servers it can use"
            wrong.append(f"{name}={time_words(fleet, target)}: {runs}")
    if wrong:
        raise Infeasible(f"no number of servers can keep this target: {'; '.join(wrong)}. Ask for a longer time")


def enough_for(
    load: FleetLoad,
    option: FleetOption,
    targets: dict[str, float],
    *,
    jobs: int,
    seed: int,
    tell: Callable[[str], None],
) -> Enough:
    """The search: pinned servers exactly, then what is recommended by simulation."""
    fleet = load.fleet
    order = [int(c) for c in np.argsort(load.server_price, kind="stable")]  # servers that carry least are given up first
    useful = _useful(load, targets)
    loads: dict[Counts, FleetLoad] = {}
    exact: dict[Counts, Known | None] = {}
    estimates: dict[Counts, Estimate] = {}

    def fleet_of(counts: Counts) -> tuple[Fleet, FleetLoad]:
        there = fleet.replace(count=list(counts))
        if counts not in loads:
            loads[counts] = system_load(there, gap=1e-5, time_limit_s=2.0)
        return there, loads[counts]

    def pinned_keeps(counts: Counts) -> bool:
        there, best = fleet_of(counts)
        tell(f"pinned servers: {_in_words(fleet, counts)}")
        pinned = None if best.load >= 1 else pinned_option(there, best)
        exact[counts] = None if pinned is None else pinned.known
        known = exact[counts]
        return known is not None and _kept(fleet, targets, known.response_time, known.mean_response_time)

    def simulated_keeps(counts: Counts) -> bool:
        there, best = fleet_of(counts)
        if best.load >= 1:
            return False
        words = _in_words(fleet, counts)
        try:
            there_too = redesigned(option, there, best)
            found = estimate(there, there_too, jobs=jobs, seed=seed, tell=lambda part: tell(f"simulating {words}: {part:.0%}"))
        except RotaError:
            return False
        estimates[counts] = found
        return _kept(fleet, targets, found.response_time + found.response_time_interval, found.mean_response_time + found.interval)

    now = tuple(int(n) for n in fleet.count)
    pinned = enough_servers(now, pinned_keeps, order=order, useful=useful)
    if pinned is not None:  # the same kinds are bought
        useful = [c for c in useful if pinned[c] > now[c]] or useful
    count = enough_servers(now, simulated_keeps, order=order, useful=useful, guess=pinned)
    kept_today = count is not None and all(n <= m for n, m in zip(count, now, strict=True))
    return Enough(
        targets=targets,
        fleet=fleet,
        option=option,
        kept_today=kept_today,
        pinned=pinned,
        known=None if pinned is None else exact[pinned],
        count=count,
        estimate=None if count is None else estimates[count],
    )


def _kept(fleet: Fleet, targets: Mapping[str, float], by_type: Array, mean: float) -> bool:
    values = {name: float(by_type[fleet.names.index(name)]) if name in fleet.names else mean for name in targets}
    return all(values[name] <= target for name, target in targets.items())  # a mean that is not known is not below it


def _useful(load: FleetLoad, targets: Mapping[str, float]) -> list[int]:
    """The kinds that may help alone: those on which a type with a target can run, or all for the mean; the most valuable of them."""
    fleet = load.fleet
    rows = [fleet.names.index(name) for name in targets if name in fleet.names] or list(range(len(fleet.names)))
    helps = np.atleast_1d(fleet.runs[:, rows].any(axis=1))
    order = np.argsort(-load.server_price, kind="stable")
    return [int(c) for c in order if helps[c]][:_MOST_KINDS]


def _in_words(fleet: Fleet, counts: Counts) -> str:
    return ", ".join(f"{n:,} {kind}" for n, kind in zip(counts, fleet.kinds, strict=True))
