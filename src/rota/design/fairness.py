"""Response times that no type may exceed: a rota that is good on average without hurting one type of jobs.

Balancing the loads, the paper's objective, keeps every type within reach of the others (Section "Choosing a pMSR Policy"). Tuning on the
mean response time alone does not: it may let a rare type wait so that many others do not. A limit on E[T_i] says how long at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rota.analysis import analyze, erlang_c
from rota.arrays import Array
from rota.capacity import largest_counts
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import System
from rota.policy import MSR

__all__ = ["ResponseLimits"]

_PENALTY = 100.0  # E[T] counts double for a type that is 1 % above its limit
_FASTEST = 1e9  # times the fastest service
_MARGIN = 1e-3  # a search aims this much below the limits


@dataclass(frozen=True, eq=False)
class ResponseLimits:
    """The largest E[T_i] that each type of a system may have (K,); infinite where there is no limit."""

    system: System
    limits: Array

    @staticmethod
    def of(system: System, limits: Mapping[str, float] | None) -> ResponseLimits:
        """From limits by name of the type. Raises `Infeasible` for one that no policy can keep, even for that type alone."""
        values: Array = np.full(len(system.names), np.inf)
        problems = []
        for name, limit in (limits or {}).items():
            if name not in system.names:
                problems.append(Problem(f"max_response_time.{name}", f"no such type (there are: {', '.join(system.names)})"))
            elif not isinstance(limit, int | float | np.number) or not limit > 0:
                problems.append(Problem(f"max_response_time.{name}", "must be a positive time", limit))
            else:
                values[system.names.index(name)] = float(limit)
        if problems:
            raise BadSpec(problems)
        for i in np.flatnonzero(np.isfinite(values)):
            least = _alone(system, int(i))
            if values[i] < least:
                raise Infeasible(
                    f"type {system.names[i]!r} cannot have a mean response time of {values[i]:.6g}: even with the server to itself it "
                    f"has {least:.6g}. Allow more than that: the other types need the server too"
                )
        return ResponseLimits(system, values)

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return bool(np.isfinite(self.limits).any())

    def excess(self, queues: Array) -> float:
        """By how much, relative, the type furthest above its limit is above it; 0 if all limits hold. `queues` are the E[Q_i]."""
        lam = self.system.arrival_rate
        times = np.divide(queues, lam, out=np.zeros(len(lam)), where=lam > 0)
        return float(max((times / self.limits - 1).max(), 0.0))

    def charged(self, mean_response_time: float, queues: Array) -> float:
        """E[T] for a search: larger the more a limit is broken, and above that of any policy near it that keeps them."""
        if not self.any or not np.isfinite(mean_response_time):
            return mean_response_time
        aim = ResponseLimits(self.system, self.limits * (1 - _MARGIN))
        return mean_response_time * (1 + _PENALTY * aim.excess(queues))

    def require(self, queues: Array) -> None:
        """Raises `Infeasible` if a limit does not hold, saying which and by how much."""
        if self.excess(queues) == 0:
            return
        times = np.divide(queues, self.system.arrival_rate, out=np.zeros(len(queues)), where=self.system.arrival_rate > 0)
        broken = [
            f"{name!r} has {time:.6g}, above {limit:.6g}"
            for name, time, limit in zip(self.system.names, times, self.limits, strict=True)
            if time > limit
        ]
        raise Infeasible(
            f"no policy was found that keeps the limits on the mean response time: in the best one {', '.join(broken)}. "
            "Allow more, give the search more time, or use another preemption model"
        )

    def fast_enough(self, policy: MSR) -> MSR:
        """A pMSR that keeps the limits in the limit of fast switching, with a rate at which it does: its own, or as often doubled."""
        while self.any:
            queues = analyze(self.system, policy, sizes="exponential").exact
            if self.excess(queues) == 0:
                break
            if policy.switching_rate > _FASTEST * self.system.service_rate.max():
                self.require(queues)
            policy = policy.replace(switching_rate=2 * policy.switching_rate)
        return policy


def _alone(system: System, i: int) -> float:
    """The least E[T_i] of any policy: an M/M/k queue with as many slots as fit (K types or not, no more can run)."""
    lam, mu, k = float(system.arrival_rate[i]), float(system.service_rate[i]), int(largest_counts(system)[i])
    if lam == 0:
        return 0.0
    if lam >= k * mu:
        return np.inf
    return 1 / mu + erlang_c(k, lam / mu) / (k * mu - lam)
