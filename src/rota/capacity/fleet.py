"""The load of a fleet: how much of what all its servers together can carry do the jobs ask for?

    ρ = min t   s.t.   (λ⊘μ)/t ≤ Σ_c Σ_s π_cs (v_c ⊙ s),   Σ_s π_cs ≤ n_c for every kind c,   π ≥ 0

over all schedules s of each kind. Servers of a kind are alike, so it does not matter which of them runs what: π_cs is how many servers of
kind c run schedule s, on average. For one server this is `rota.capacity.load`. Below load 1 there is a way to serve all jobs, for instance
by sending each type at random to the kinds by `split` and letting every server of a kind turn through its schedules; at load 1 or more
there is none, whatever the dispatcher and the policies.

The prices z_c of the servers say what they are worth: n' servers in place of n carry at most Σ_c n'_c z_c times as much, and hence one more
server of kind c at most 1 + z_c times as much, as the prices stay feasible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import overload

import numpy as np

from rota.arrays import Array, Int
from rota.capacity.fleet_search import FleetSearch, KindPricing, deadline
from rota.capacity.load import (
    Load,
    Progress,
    _compile,
    _frozen,
    _normalised,
    between_in_words,
    check_limits,
    is_interrupt,
    packing_in_words,
)
from rota.capacity.load import system_load as server_load
from rota.capacity.packing import make_maximal
from rota.capacity.units import integer_units
from rota.display import html_lines, html_table, html_title, jobs_together, number
from rota.model import Fleet, System

__all__ = ["FleetLoad", "system_load"]

_NAMED = 3  # kinds of which the explanation says what one more server is worth
_NOTHING = 5e-5  # what is less than this part of the fleet counts as nothing in words


@dataclass(frozen=True)
class FleetLoad:
    """The load of a fleet, the schedules that attain it, and the proof.

    On average `weights[j]` servers of the kind `fleet.kinds[kind[j]]` run the schedule `candidates[j]` (K,); the weights of a kind sum to
    its number of servers. `load` is what they attain; no other mix can do better than `lower_bound`, and `gap` = load / lower_bound − 1.
    `split` (C, K): the part of each type that runs on each kind. `type_load` (K,): the part of its slots that a type needs.

    `type_price` y (K,): what one more busy slot of a type, at speed 1, adds to the load. `server_price` z (C,): one more server of a kind
    carries at most this part more; Σ count · z = 1. `one_more` (C, 2): bounds on the part more that it carries indeed, which is less
    where something else limits soon. `resource_price` p (C, R): what one unit of a resource in a server of the kind is worth, from the
    relaxed knapsack. `utilization` (C, R): how full each resource is when the candidates run with their weights. `fluid_load`: the load if
    jobs could be split at will.
    """

    load: float
    kind: Int
    candidates: Int
    weights: Array
    lower_bound: float
    gap: float
    split: Array
    type_load: Array
    type_price: Array
    server_price: Array
    one_more: Array
    resource_price: Array
    utilization: Array
    fluid_load: float
    fleet: Fleet
    iterations: int
    columns: int
    exact_solves: int
    time_s: float

    @property
    def type_share(self) -> Array:
        """The part of the load that each type causes, y_i (λ_i/μ_i) / y·(λ⊘μ): sums to 1."""
        return _normalised(self.type_price * self.fleet.offered_work)

    @property
    def kind_share(self) -> Array:
        """How much each kind limits the load, n_c z_c: with x % more servers of it the fleet carries x % of this more. Sums to 1."""
        return _normalised(self.server_price * self.fleet.count)

    @property
    def resource_share(self) -> Array:
        """How much each resource of each kind limits the load (C, R): the share of the kind, by price times capacity. Sums to 1."""
        worth = self.resource_price * self.fleet.capacity
        return np.array([share * _normalised(row) for share, row in zip(self.kind_share, worth, strict=True)])

    @property
    def bottleneck(self) -> tuple[str, str, str]:
        """The kind and its resource that limit the load most, and the type that causes most of it."""
        c, r = np.unravel_index(int(np.argmax(self.resource_share)), self.fleet.capacity.shape)
        return self.fleet.kinds[int(c)], self.fleet.resources[int(r)], self.fleet.names[int(np.argmax(self.type_share))]

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        if self.load == 0:
            return "No jobs arrive: the load is 0."
        if self.gap > 1e-4:
            sentences = [between_in_words(self.lower_bound, self.load)]
        elif self.load < 1 - 1e-9:
            sentences = [f"The load is {self.load:.4g}: arrivals can grow by a factor of up to {1 / self.load:.4g}."]
        else:
            sentences = [
                f"The load is {self.load:.4g}: no dispatcher and no policy can serve that. Scale arrivals by less than {1 / self.load:.4g}."
            ]
        kind, resource, name = self.bottleneck
        c, r = self.fleet.kinds.index(kind), self.fleet.resources.index(resource)
        sentences.append(
            f"The bottleneck is {resource!r} of the {kind!r} servers: the best rotas have {self.utilization[c, r]:.1%} of it in use, "
            f"and it accounts for {self.resource_share[c, r]:.0%} of the limit."
        )
        sentences.append(f"Type {name!r} causes more of the load than any other: {self.type_share[self.fleet.names.index(name)]:.0%}.")
        sentences += self._in_words_one_more() + self._in_words_failures()
        if self.gap > 1e-4:
            return "\n".join(sentences)
        return "\n".join([*sentences, packing_in_words(self.load, self.fluid_load)])

    def _in_words_failures(self) -> list[str]:
        fleet = self.fleet
        pairs = zip(fleet.kinds, fleet.up_time, fleet.down_time, strict=True)
        work = [f"those of kind {kind!r} work {up / (up + down):.1%} of the time" for kind, up, down in pairs if np.isfinite(up)]
        return [f"Servers fail: {', '.join(work)}. This is the load if they did not; simulations count it."] if work else []

    def _in_words_one_more(self) -> list[str]:
        """What one more server is worth, for the kinds of which it is worth most."""
        order = np.argsort(-self.server_price, kind="stable")
        named = [c for c in order if self.kind_share[c] >= _NOTHING][:_NAMED]
        sentences = [f"One more {self.fleet.kinds[c]!r} server carries {self.more_in_words(int(c))} more." for c in named]
        idle = [self.fleet.kinds[c] for c in order if self.kind_share[c] < _NOTHING]
        if idle:
            names = ", ".join(map(repr, idle[:_NAMED])) + (" …" if len(idle) > _NAMED else "")
            sentences.append(f"More servers of these kinds carry nothing more: {names}.")
        return sentences

    def more_in_words(self, c: int) -> str:
        """What one more server of a kind carries: `3.1 %`, or two numbers between which it is, where the proof leaves that open."""
        least, most = map(_per_cent, self.one_more[c])
        return f"{most} %" if least == most else f"{least} % to {most} %"

    def __repr__(self) -> str:
        return f"<FleetLoad {self.load:.9g}, gap {self.gap:.1e}, {self.fleet.servers} servers of {len(self.fleet.kinds)} kinds>"

    def _repr_html_(self) -> str:
        rows = [
            (self.fleet.kinds[c], number(weight), jobs_together(row, self.fleet.names))
            for c, row, weight in zip(self.kind, self.candidates, self.weights, strict=True)
        ]
        return "".join(
            [
                html_title(f"Load of the fleet {number(self.load, 6)}{'' if self.gap > 1e-4 else ', proved'}"),
                html_lines(self.explain()),
                html_table(["kind", "servers", "jobs together"], rows, left=(0, 2)) if rows else "",
            ]
        )


@overload
def system_load(
    system: System, *, gap: float = ..., time_limit_s: float | None = ..., progress: Callable[[Progress], None] | None = ...
) -> Load: ...
@overload
def system_load(
    system: Fleet, *, gap: float = ..., time_limit_s: float | None = ..., progress: Callable[[Progress], None] | None = ...
) -> FleetLoad: ...
def system_load(
    system: System | Fleet,
    *,
    gap: float = 1e-7,
    time_limit_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Load | FleetLoad:
    """The load of a server or of a fleet: the smallest ρ at which (λ⊘μ)/ρ can be served, with schedules that attain it and a proved gap.

    A server gives a `Load`, with at most K candidates; a fleet gives a `FleetLoad`. Stops when the relative gap is at most `gap`, when
    `time_limit_s` is over, or on Ctrl-C; `gap` of the answer is always what was proved by then.
    """
    if not isinstance(system, Fleet):
        return server_load(system, gap=gap, time_limit_s=time_limit_s, progress=progress)
    check_limits(gap, time_limit_s)
    _compile()
    began = time.perf_counter()
    left = deadline(time_limit_s, began)
    search = FleetSearch(system)
    if not len(search.work):
        return _nothing(system, time.perf_counter() - began)
    try:
        while True:
            search.solve_master()
            if progress is not None:
                progress(Progress(search.upper, search.lower, len(search.master), time.perf_counter() - began))
            if search.upper <= search.lower * (1 + gap) or left() <= 0:
                break
            if not (search.greedy() or search.exact(gap, left)):
                break
    except (KeyboardInterrupt, SystemError) as error:
        if not (search.iterations and is_interrupt(error)):
            raise
    return _answer(search, began)


# ------------------------------------------------------------------------------------------------------------ the answer


def _answer(search: FleetSearch, began: float) -> FleetLoad:
    fleet, work = search.fleet, search.fleet.offered_work
    C, K, R = len(fleet.kinds), len(fleet.names), len(fleet.resources)
    full = np.zeros(len(search.master))
    full[search.used] = search.weights
    now = np.zeros(K)
    now[search.active] = search.served(full)
    spare = np.where(work > 0, work / np.maximum(now, 1e-300), -1.0)
    kinds, candidates, weights = [], [], []
    for c in range(C):
        mine = [int(j) for j in search.used if search.master.kinds[j] == c]
        rows, parts = _whole_schedules(search, c, mine, full, spare)
        kinds += [c] * len(rows)
        candidates.append(rows)
        weights.append(parts)
    kind, schedules, servers = np.array(kinds, dtype=np.int64), np.vstack(candidates), np.concatenate(weights)

    served = np.zeros((C, K))
    np.add.at(served, kind, servers[:, None] * schedules * fleet.speed[kind])
    slots = np.zeros((C, K))
    np.add.at(slots, kind, servers[:, None] * schedules)
    total = served.sum(axis=0)
    type_load = np.divide(work, total, out=np.zeros(K), where=total > 0)
    load = float(type_load.max())
    lower = min(search.lower, load)
    type_price, resource_price = np.zeros(K), np.zeros((C, R))
    type_price[search.active] = search.proved
    for c, pricing in enumerate(search.kinds):
        if pricing is not None:
            resource_price[c] = _user_price(pricing, fleet, c, search.proved)
    more = np.array([_carries_more(search, c, load, lower) for c in range(C)])
    has = fleet.capacity > 0
    used = np.divide(slots @ fleet.demand, fleet.count[:, None] * fleet.capacity, out=np.zeros((C, R)), where=has)
    return FleetLoad(
        load=load,
        kind=_frozen(kind),
        candidates=_frozen(schedules),
        weights=_frozen(servers),
        lower_bound=lower,
        gap=load / lower - 1,
        split=_frozen(np.divide(served, total, out=np.zeros((C, K)), where=total > 0)),
        type_load=_frozen(type_load),
        type_price=_frozen(type_price),
        server_price=_frozen(search.server_price),
        one_more=_frozen(more),
        resource_price=_frozen(resource_price),
        utilization=_frozen(used),
        fluid_load=search.fluid,
        fleet=fleet,
        iterations=search.iterations,
        columns=len(search.master),
        exact_solves=search.exact_solves,
        time_s=time.perf_counter() - began,
    )


def _whole_schedules(search: FleetSearch, c: int, mine: list[int], full: Array, spare: Array) -> tuple[Int, Array]:
    """The schedules of a kind with all types of the fleet, made maximal, and how many servers run each; together all of them.

    Capacity that is left goes to the types with the highest load.
    """
    fleet, pricing = search.fleet, search.kinds[c]
    count = float(fleet.count[c])
    here = np.flatnonzero(fleet.runs[c])
    if not len(here):
        return np.zeros((1, len(fleet.names)), dtype=np.int64), np.array([count])
    rows = np.zeros((max(len(mine), 1), len(here)), dtype=np.int64)
    units = integer_units(fleet.server(c)) if pricing is None else pricing.units
    for at, j in enumerate(mine):
        assert pricing is not None  # a kind with schedules has types
        rows[at, pricing.own] = search.master.schedules[j]
    parts = full[mine] if mine else np.ones(1)
    rows = np.array([make_maximal(units.demand, units.capacity, row, spare[here]) for row in rows])
    rows, inverse = np.unique(rows, axis=0, return_inverse=True)
    parts = np.bincount(inverse.ravel(), weights=parts, minlength=len(rows)).astype(np.float64)
    schedules = np.zeros((len(rows), len(fleet.names)), dtype=np.int64)
    schedules[:, here] = rows
    return schedules, parts * (count / parts.sum())


def _carries_more(search: FleetSearch, c: int, load: float, lower: float) -> tuple[float, float]:
    """Bounds on the part more that one more server of a kind carries.

    At least: with the schedules found so far. At most: by its price, or by Farley's bound at the prices that these schedules then have.
    """
    price = float(search.server_price[c])
    if price == 0:
        return 0.0, 0.0
    then, y = search.master.with_one_more(c)
    z = search.relaxed(y)
    total = float(search.fleet.count @ z + z[c])
    bound = float(y @ search.work) / total if total > 0 else 0.0
    most = min((1 + price) * load / lower - 1, load / bound - 1 if bound > 0 else np.inf)
    return min(max(lower / then - 1, 0.0), most), most


def _per_cent(x: float) -> str:
    return f"{100 * x:.2g}" if x < 0.0995 else f"{100 * x:.0f}"


def _user_price(pricing: KindPricing, fleet: Fleet, c: int, y: Array) -> Array:
    """Prices of a unit of each resource as the user counts, with D p ≥ v_c ⊙ y in the user's numbers (R,)."""
    value = pricing.value(y)
    prices = np.zeros(len(fleet.resources))
    if not value.any():
        return prices
    price = pricing.knapsack.relax(value)[1] * pricing.units.per_unit
    cost = pricing.system.demand[pricing.own] @ price
    prices[fleet.capacity[c] > 0] = price * max(float((value / np.where(cost > 0, cost, np.inf)).max()), 1.0)
    return prices


def _nothing(fleet: Fleet, time_s: float) -> FleetLoad:
    """The load of a fleet without arrivals."""
    C, K, R = len(fleet.kinds), len(fleet.names), len(fleet.resources)
    return FleetLoad(
        load=0.0,
        kind=_frozen(np.zeros(0, dtype=np.int64)),
        candidates=_frozen(np.zeros((0, K), dtype=np.int64)),
        weights=_frozen(np.zeros(0)),
        lower_bound=0.0,
        gap=0.0,
        split=_frozen(np.zeros((C, K))),
        type_load=_frozen(np.zeros(K)),
        type_price=_frozen(np.zeros(K)),
        server_price=_frozen(np.zeros(C)),
        one_more=_frozen(np.zeros((C, 2))),
        resource_price=_frozen(np.zeros((C, R))),
        utilization=_frozen(np.zeros((C, R))),
        fluid_load=0.0,
        fleet=fleet,
        iterations=0,
        columns=0,
        exact_solves=0,
        time_s=time_s,
    )
