"""What other numbers of servers do: one more of each kind, fewer or more of all kinds, and how many an overloaded fleet needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rota.capacity import FleetLoad, system_load
from rota.errors import Infeasible, RotaError, Unstable
from rota.model import Fleet
from rota.simulation import Difference, Result, SimulationProgress, compare_pair
from rota.study.fleet_counts import enough_servers, least_count
from rota.study.fleet_estimate import estimate
from rota.study.fleet_options import FleetOption, lower_bound, redesigned
from rota.study.fleet_runs import in_parallel, run_option

__all__ = ["OneMore", "against_servers", "one_more_of_each", "overload_text", "pinned_option"]

_FACTORS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
_COMFORTABLE = 0.95  # a load that leaves something for waiting
_DESIGN_S = 3.0  # for the pinned servers of another fleet
_MOST_KINDS = 8  # of which one more is simulated
_TIMES = 16  # as many servers of one kind are tried to carry the load


@dataclass(frozen=True)
class OneMore:
    """The fleet with one more server of a kind: bounds on the part more that it carries, its load, the exact mean response time of pinned
    servers there (None if there is none), what is recommended today simulated there, and how far that is from today on the same jobs.
    """

    kind: str
    carries: tuple[float, float]
    load: float
    pinned: float | None
    result: Result | None
    difference: Difference | None


def one_more_of_each(
    load: FleetLoad, option: FleetOption, today: Result, *, jobs: int, seed: int, tell: Callable[[float], None]
) -> tuple[OneMore, ...]:
    """What one more server of each kind does, the kind first that carries most; kinds that limit nothing and get no jobs come last.

    Where there are many kinds, those that matter least are not simulated.
    """
    fleet = load.fleet
    order = [int(c) for c in np.argsort(-load.server_price, kind="stable")]

    def one(watch: Callable[[SimulationProgress], None], c: int, simulated: bool) -> OneMore:
        more = fleet.replace(count=fleet.count + (np.arange(len(fleet.count)) == c))
        there = system_load(more, time_limit_s=2.0)
        pinned = _pinned_mean(more, there)
        result = difference = None
        if simulated:
            try:
                result = run_option(more, redesigned(option, more, there, time_limit_s=_DESIGN_S), jobs=jobs, seed=seed, watch=watch)
                # The same jobs come to another fleet, which compare_pair would not take for a pair.
                difference = compare_pair(replace(result, system=today.system), today)
            except (Infeasible, Unstable):
                pass
        return OneMore(fleet.kinds[c], (float(load.one_more[c, 0]), float(load.one_more[c, 1])), there.load, pinned, result, difference)

    return tuple(in_parallel(one, [(c, k < _MOST_KINDS) for k, c in enumerate(order)], tell))


def _pinned_mean(fleet: Fleet, load: FleetLoad) -> float | None:
    """The exact mean response time of pinned servers; None if there are none, or sizes or arrivals do not allow exact values."""
    pinned = pinned_option(fleet, load)
    return None if pinned is None or pinned.known is None else pinned.known.mean_response_time


def pinned_option(fleet: Fleet, load: FleetLoad) -> FleetOption | None:
    """Pinned servers of a fleet, or None."""
    from rota.model import Dispatch
    from rota.policy import FirstFit

    try:
        return redesigned(FleetOption("pinned", FirstFit(), Dispatch("pinned")), fleet, load, time_limit_s=_DESIGN_S)
    except (Infeasible, Unstable):
        return None


def against_servers(load: FleetLoad, option: FleetOption, *, jobs: int, seed: int, tell: Callable[[float], None]) -> list[dict[str, Any]]:
    """A row per size of the fleet, at today's arrivals: counts, load, pinned (exact), what is recommended (simulated), the bound."""
    fleet = load.fleet
    own = tuple(int(n) for n in fleet.count)
    found = {own, *(tuple(max(1, round(factor * n)) for n in own) for factor in _FACTORS)}
    sizes = sorted(found, key=lambda counts: (sum(counts), counts))
    rows = []
    for k, counts in enumerate(sizes):
        there = fleet.replace(count=list(counts))
        best = load if counts == own else system_load(there, time_limit_s=2.0)
        row: dict[str, Any] = {"servers": sum(counts), "count": list(counts), "today": counts == own, "load": best.load}
        row |= {"pinned": None, "bound": None, "mean_response_time": None, "interval": None, "stable": False, "jobs": 0}
        if best.load < 1:
            row |= {"pinned": _pinned_mean(there, best), "bound": lower_bound(there, best)}
            with suppress(RotaError):  # a design that cannot be made for this size
                made = redesigned(option, there, best, time_limit_s=_DESIGN_S)
                mean = estimate(there, made, jobs=jobs, seed=seed, tell=partial(_tell, tell, k, len(sizes)))
                known = not np.isnan(mean.mean_response_time)
                row["jobs"] = mean.jobs
                row |= {"stable": known, "mean_response_time": mean.mean_response_time, "interval": mean.interval} if known else {}
        rows.append(row)
    return rows


def _tell(tell: Callable[[float], None], done: int, of: int, part: float) -> None:
    tell((done + part) / of)


# ------------------------------------------------------------------------------------------------------------ overload


def overload_text(best: FleetLoad) -> str:
    """What to say, and how many servers suffice, if the load is not below 1."""
    fleet = best.fleet
    excess = f"{best.load - 1:.1%} more than the fleet can carry" if best.load > 1 + 1e-9 else "all that the fleet can carry"
    alone = [(c, n) for c in range(len(fleet.kinds)) if (n := _needed_of(best, c)) is not None]
    alone.sort(key=lambda row: row[1] - int(fleet.count[row[0]]))  # the fewest servers to buy come first
    ways = [f"{n:,} {fleet.kinds[c]!r} servers in place of {fleet.count[c]:,}" for c, n in alone]
    if not ways:
        order = np.argsort(best.server_price, kind="stable").tolist()
        counts = enough_servers(fleet.count.tolist(), lambda counts: _comfortable(fleet, counts), order=order, useful=())
        assert counts is not None  # load goes down in proportion to all servers
        together = " and ".join(f"{n:,} {kind!r}" for n, kind in zip(counts, fleet.kinds, strict=True))
        ways = [f"{together} servers, as no kind alone is enough"]
    return (
        f"the load of the fleet is {best.load:.4g}: the jobs ask for {excess}, whatever the dispatcher and the policies. "
        f"Scale arrivals by less than {1 / best.load:.4g}, or have {', or '.join(ways)}: that makes the load at most {_COMFORTABLE:g}. "
        "See `rota capacity`; no plan was made"
    )


def _needed_of(best: FleetLoad, c: int) -> int | None:
    """The least number of servers of a kind at which the load is comfortable, with the other kinds as they are; None if there is none."""
    if best.server_price[c] <= 0:
        return None
    fleet = best.fleet
    now = int(fleet.count[c])

    def enough(n: int) -> bool:
        return _comfortable(fleet, [n if k == c else int(m) for k, m in enumerate(fleet.count)])

    # By the price, 1/ρ grows by z_c ≥ 0 per server at most: fewer than this are never enough.
    guess = now + int(np.ceil((best.load / _COMFORTABLE - 1) / float(best.server_price[c])))
    return least_count(enough, now + 1, _TIMES * (now + 1), guess)


def _comfortable(fleet: Fleet, counts: Sequence[int]) -> bool:
    return system_load(fleet.replace(count=list(counts)), gap=1e-4, time_limit_s=1.0).load <= _COMFORTABLE
