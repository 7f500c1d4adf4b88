"""What a simulation of a fleet measured: a `Result`, and the same by kind of server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from rota.arrays import Array, Int
from rota.model import Dispatch, Fleet
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.run import KindSums
from rota.simulation.result import Result

__all__ = ["FleetResult", "fleet_result"]


@dataclass(frozen=True, eq=False, repr=False)
class FleetResult(Result):
    """A `Result` of a fleet. `system` is one server as large as all of them, `utilization` the part of what all servers have.

    By kind (C, …): `kind_utilization` (C, R), not a number for what a kind has not; `kind_counted` (C, K), the jobs that ended there;
    `kind_response_time` (C, K), their means, not a number if there are none.
    """

    fleet: Fleet = field(kw_only=True)
    dispatch: Dispatch = field(kw_only=True)
    kind_utilization: Array = field(kw_only=True)
    kind_counted: Int = field(kw_only=True)
    kind_response_time: Array = field(kw_only=True)

    @property
    def parts(self) -> Array:
        """Which part of each type ended on each kind (C, K); not a number for a type of which no job ended."""
        total = self.kind_counted.sum(axis=0)
        return np.asarray(np.divide(self.kind_counted, total, out=np.full(self.kind_counted.shape, np.nan), where=total > 0))


def fleet_result(result: Result, policy: FleetPolicy, sums: Sequence[KindSums], total_time: float) -> FleetResult:
    """The result with what was measured by kind."""
    fleet = policy.given
    apart = KindSums(*(np.sum([getattr(one, name) for one in sums], axis=0) for name in KindSums._fields))
    jobs, responses, served = (np.zeros((len(fleet.kinds), len(fleet.names))) for _ in apart)
    for total, part in zip((jobs, responses, served), apart, strict=True):
        np.add.at(total, policy.home, part)
    has = fleet.count[:, None] * fleet.capacity
    held = served @ fleet.demand / max(total_time, 1e-300)
    hidden = 1.0 if result.stable else np.nan
    return FleetResult(
        **{one.name: getattr(result, one.name) for one in fields(Result)},
        fleet=fleet,
        dispatch=policy.dispatch,
        kind_utilization=np.divide(held, has, out=np.full(has.shape, np.nan), where=has > 0),
        kind_counted=jobs.astype(np.int64),
        kind_response_time=hidden * np.divide(responses, jobs, out=np.full(jobs.shape, np.nan), where=jobs > 0),
    )
