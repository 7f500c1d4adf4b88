"""Many servers and the jobs that arrive at them. Servers of one kind are alike.

n (C,)     count           how many servers of kind c there are
P (C, R)   capacity        how much a server of kind c has of each resource; 0 if it has none
D (K, R)   demand          what a job of type i holds while it runs, on whatever server
v (C, K)   speed           how fast a job of type i runs on kind c: there it takes its size divided by this
λ (K,)     arrival_rate    jobs of type i that arrive at the fleet per unit of time, on average
μ (K,)     service_rate    1 / mean size of type i, which is its running time at speed 1

A type can run on the kinds where one of its jobs fits, or on those of them that `only` lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array, Bool, Int
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Problem
from rota.model.arrivals import ArrivalProcess
from rota.model.dispatch import Dispatch, checked_dispatch
from rota.model.distribution import SizeDistribution
from rota.model.fleet_checks import (
    checked_affinities,
    checked_failures,
    checked_kinds,
    checked_servers,
    checked_table,
    placement_problems,
    server_problems,
)
from rota.model.job_types import HasJobTypes, Preemption, TimeUnit
from rota.model.system import WITHIN_ROUNDING, System

__all__ = ["Fleet"]


@dataclass(frozen=True, eq=False, init=False)
class Fleet(HasJobTypes):
    """Kinds of servers with counts and capacities, job types, rates and sizes. Arrays are read-only; every rule is checked.

    The job types are those of a `rota.System`. `only`: for each type None, or the kinds on which it may run. `speed` (C, K): how fast a
    type runs on a kind, 1 if left out; sizes are running times at speed 1. `dispatch`: a `rota.Dispatch`, or the name of its rule.
    `up_time` and `down_time` (C,): how long a server of a kind works until it fails, and how long it then takes until it works again, on
    average; infinite and 0 if it does not fail.
    """

    count: Int
    capacity: Array
    demand: Array
    arrival_rate: Array
    service_rate: Array
    names: tuple[str, ...]
    resources: tuple[str, ...]
    kinds: tuple[str, ...]
    only: tuple[tuple[str, ...] | None, ...]
    speed: Array
    dispatch: Dispatch | None
    sizes: tuple[SizeDistribution, ...]
    preemption: Preemption
    setup_time: float | None
    time_unit: TimeUnit | None
    arrivals: tuple[ArrivalProcess, ...]
    up_time: Array
    down_time: Array

    def __init__(
        self,
        count: ArrayLike,
        capacity: ArrayLike,
        demand: ArrayLike,
        arrival_rate: ArrayLike,
        service_rate: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        only: Sequence[Sequence[str] | None] | None = None,
        speed: ArrayLike | None = None,
        dispatch: Dispatch | str | None = None,
        sizes: Sequence[SizeDistribution] | None = None,
        preemption: Preemption = "none",
        setup_time: float | None = None,
        time_unit: TimeUnit | None = None,
        mean_size: ArrayLike | None = None,
        arrivals: Sequence[ArrivalProcess] | None = None,
        up_time: ArrayLike | None = None,
        down_time: ArrayLike | None = None,
    ) -> None:
        n, P = checked_servers(count, capacity)
        C, R = P.shape
        labels = tuple(f"kind{c + 1}" for c in range(C)) if kinds is None else checked_kinds(kinds, C)
        D = checked_table("demand", demand)
        if D.shape[1] != R:
            raise BadSpec([Problem("demand", f"needs {R} columns, as capacity is {C} × {R}", D.shape[1])])
        # The types obey the rules of a system, whatever the servers: those of a server on which every one of them fits.
        enclosing = np.nan_to_num(np.vstack([D, P]), nan=0.0, posinf=0.0).max(axis=0)
        types = System(
            np.where(enclosing > 0, enclosing, 1.0),
            D,
            arrival_rate,
            service_rate,
            names,
            resources,
            sizes,
            preemption,
            setup_time,
            time_unit,
            mean_size,
            arrivals,
        )
        K = len(types.names)
        v: Array = np.ones((C, K)) if speed is None else checked_table("speed", speed).copy()
        if v.shape != (C, K):
            raise BadSpec([Problem("speed", f"needs {C} × {K} numbers, one per kind and type", v.shape)])
        allowed = checked_affinities(only, K)
        problems = server_problems(labels, n, P, types.resources)
        servers = {kind: dict(zip(types.resources, map(float, row), strict=True)) for kind, row in zip(labels, P, strict=True)}
        for i, job in enumerate(types.job_types):
            fast = {kind: float(v[c, i]) for c, kind in enumerate(labels) if v[c, i] != 1}
            problems += placement_problems(job.name, job.demand, servers, allowed[i], fast)
        if problems:
            raise BadSpec(problems)
        up, down = checked_failures(labels, up_time, down_time)
        for array in (n, P, v, up, down):
            array.flags.writeable = False
        own = {"count": n, "capacity": P, "kinds": labels, "only": allowed, "speed": v, "dispatch": checked_dispatch(dispatch)}
        own |= {"up_time": up, "down_time": down}
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, own[name] if name in own else getattr(types, name))

    @classmethod
    def equal(cls, system: System, count: int, kind: str = "server") -> Fleet:
        """`count` servers like that of a system, at which its jobs arrive: the same rates, now for all of them."""
        fields = {name: getattr(system, name) for name in system.__dataclass_fields__ if name not in ("capacity", "service_rate")}
        return cls(count=[count], capacity=[system.capacity], kinds=[kind], **fields)

    # ------------------------------------------------------------------------------------------------------ what it is

    @property
    def servers(self) -> int:
        """How many servers there are in all."""
        return int(self.count.sum())

    @property
    def runs(self) -> Bool:
        """Whether a type can run on a kind (C, K): a job fits, and `only` allows it."""
        fit = (self.demand[None, :, :] <= self.capacity[:, None, :] * WITHIN_ROUNDING).all(axis=2)
        allowed = [[places is None or kind in places for places in self.only] for kind in self.kinds]
        return np.asarray(fit & np.array(allowed))

    def kind_index(self, which: int | str) -> int:
        """The number of a kind, given by its name or by its number 0 … C−1."""
        C = len(self.kinds)
        if isinstance(which, str) and which in self.kinds:
            return self.kinds.index(which)
        if isinstance(which, int | np.integer) and not isinstance(which, bool) and 0 <= which < C:
            return int(which)
        raise BadSpec([Problem("kind", f"must be a name ({', '.join(self.kinds)}) or a number 0…{C - 1}", which)])

    def server(self, kind: int | str, arrival_rate: ArrayLike | None = None) -> System:
        """One server of a kind: with the types that can run there, their running times there, and the resources that it has.

        `arrival_rate` (K,): what arrives at this server, for all types of the fleet; if left out, arrivals of each type are spread evenly
        over all servers on which it can run.
        """
        c = self.kind_index(kind)
        runs = self.runs
        if not runs[c].any():
            raise BadSpec([Problem(f"servers.{self.kinds[c]}", "no type can run on this kind: it has no system of its own")])
        if arrival_rate is None:
            rate = self.arrival_rate / (self.count @ runs)
        else:
            rate = np.array(arrival_rate, dtype=np.float64)
            if rate.shape != self.arrival_rate.shape:
                raise BadSpec([Problem("arrival_rate", f"needs {len(self.names)} numbers, one per type of the fleet", rate.shape)])
            if (rate[~runs[c]] != 0).any():
                strays = ", ".join(self.names[i] for i in np.flatnonzero(~runs[c] & (rate != 0)))
                raise BadSpec([Problem("arrival_rate", f"must be 0 for types that cannot run on this kind: {strays}", rate.tolist())])
        here, has = np.flatnonzero(runs[c]), np.flatnonzero(self.capacity[c] > 0)
        speed = self.speed[c]
        return System(
            capacity=self.capacity[c, has],
            demand=self.demand[np.ix_(here, has)],
            arrival_rate=rate[here],
            sizes=[self.sizes[i] if speed[i] == 1 else self.sizes[i].scaled(1 / float(speed[i])) for i in here],
            names=[self.names[i] for i in here],
            resources=[self.resources[r] for r in has],
            preemption=self.preemption,
            setup_time=self.setup_time,
            time_unit=self.time_unit,
            arrivals=[self.arrivals[i] for i in here],
        )

    def replace(self, **changes: object) -> Fleet:
        """A copy with some fields changed, as in `fleet.replace(count=[40, 5])`."""
        fields = {field: getattr(self, field) for field in self.__dataclass_fields__ if field != "service_rate"}
        if ("service_rate" in changes or "mean_size" in changes) and "sizes" not in changes:
            del fields["sizes"]
        if np.isinf(self.up_time).all():  # none fails, so that there may be other kinds
            del fields["up_time"], fields["down_time"]
        return Fleet(**{**fields, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fleet):
            return NotImplemented
        texts = ("kinds", "only", "dispatch", "names", "resources", "sizes", "preemption", "setup_time", "time_unit", "arrivals")
        arrays = ("count", "capacity", "speed", "demand", "arrival_rate", "up_time", "down_time")
        return all(getattr(self, name) == getattr(other, name) for name in texts) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays
        )

    def __hash__(self) -> int:
        return hash((self.kinds, self.names, self.resources, self.count.tobytes(), self.capacity.tobytes(), self.arrival_rate.tobytes()))

    # ------------------------------------------------------------------------------------------------------ shown and written

    def __repr__(self) -> str:
        servers = " + ".join(f"{n} {kind}" for n, kind in zip(self.count, self.kinds, strict=True))
        return f"<Fleet: {servers}; jobs {', '.join(self.names)}; preemption {self.preemption}>"

    def _repr_html_(self) -> str:
        kinds = [
            (kind, f"{n:,}", *(number(amount) if amount else "" for amount in row))
            for kind, n, row in zip(self.kinds, self.count, self.capacity, strict=True)
        ]
        runs = self.runs
        types = []
        for i, job in enumerate(self.job_types):
            places = ", ".join(
                kind if self.speed[c, i] == 1 else f"{kind} ({number(self.speed[c, i])} × as fast)"
                for c, kind in enumerate(self.kinds)
                if runs[c, i]
            )
            types.append((job.name, *map(number, job.demand.values()), number(job.arrival_rate), number(job.size.moment(1)), places))
        return "".join(
            [
                html_title(f"Fleet of {self.servers:,} servers, preemption {self.preemption}"),
                html_table(["", "servers", *self.resources], kinds),
                html_table(["", *self.resources, "arrival rate", "mean size", "runs on"], types, left=(0, len(self.resources) + 3)),
            ]
        )

    def to_toml(self) -> str:
        """The spec of this fleet, as `rota.read_system` reads it."""
        from rota.model.spec import write_toml

        return write_toml(self)
