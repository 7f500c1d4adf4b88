"""Servers of a fleet of which most hold one schedule for good, and the rest turn: each of these follows a rota of its own.

An arriving job goes to the pinned slots of its type, or to one of the servers that turn, at random. Each part of the arrivals stays a
Poisson process, so the pinned slots are M/M/k queues (`rota.policy.pinned`) and every server that turns is one server with its rota
(`rota.policy.split`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array, Int
from rota.display import html_table, html_title
from rota.errors import BadSpec, Problem
from rota.model import Fleet, System
from rota.policy.msr import MSR
from rota.policy.pinned import Pinned
from rota.policy.split import checked_policies, turning_row

__all__ = ["PartlyPinned"]

_NOTHING = 1e-12  # a smaller part of the arrivals of a type is rounding


@dataclass(frozen=True, eq=False, init=False)
class PartlyPinned:
    """`turning[c]` servers of kind c follow the rota `policies[c]`; of the others, some hold schedules as `pinned` says.

    `split` (C, K): the part of each type that goes to the servers of kind c that turn, to any of them alike. What is left of a type goes to
    its pinned slots; where these have different speeds, in the proportions of `pinned.split`.
    """

    pinned: Pinned
    turning: Int
    policies: tuple[MSR | None, ...]
    split: Array

    def __init__(self, pinned: Pinned, turning: ArrayLike, policies: Sequence[MSR | None], split: ArrayLike) -> None:
        if not isinstance(pinned, Pinned):
            raise BadSpec([Problem("pinned", "must be a rota.Pinned", pinned)])
        rotas = checked_policies(policies)
        servers: Array = np.array(turning, dtype=np.float64)
        if servers.shape != (len(rotas),) or not (np.isfinite(servers).all() and (servers >= 0).all() and (servers % 1 == 0).all()):
            rule = f"needs {len(rotas)} whole numbers that are not negative, one for each policy"
            raise BadSpec([Problem("turning", rule, servers.tolist())])
        parts: Array = np.array(split, dtype=np.float64)
        if parts.shape != pinned.split.shape or len(parts) != len(rotas) or not (np.isfinite(parts).all() and (parts >= 0).all()):
            rule = f"needs {len(rotas)} rows of {pinned.split.shape[1]} numbers that are not negative, as pinned.split has"
            raise BadSpec([Problem("split", rule, parts.tolist())])
        if (parts.sum(axis=0) > 1 + 1e-9).any():
            raise BadSpec([Problem("split", "needs columns that sum to at most 1", parts.sum(axis=0).tolist())])
        whole = servers.astype(np.int64)
        for array in (whole, parts):
            array.flags.writeable = False
        for name, value in (("pinned", pinned), ("turning", whole), ("policies", rotas), ("split", parts)):
            object.__setattr__(self, name, value)

    @property
    def pinned_share(self) -> Array:
        """The part of each type that goes to its pinned slots (K,)."""
        rest = 1 - self.split.sum(axis=0)
        return np.where(rest > _NOTHING, rest, 0.0)

    def pinned_fleet(self, fleet: Fleet) -> Fleet:
        """The fleet with the arrivals of the pinned slots alone."""
        return fleet.replace(arrival_rate=fleet.arrival_rate * self.pinned_share)

    def server(self, fleet: Fleet, c: int) -> System:
        """One server of a kind that turns, with the arrivals that it gets."""
        return fleet.server(c, fleet.arrival_rate * self.split[c] / self.turning[c])

    def check(self, fleet: Fleet) -> None:
        """Raises `BadSpec` unless this fits the fleet."""
        self.pinned.check(fleet)
        held = np.bincount(self.pinned.kind, weights=self.pinned.servers, minlength=len(fleet.kinds))
        problems = []
        for c, kind in enumerate(fleet.kinds):
            needed = int(held[c] + self.turning[c])
            if needed > fleet.count[c]:
                rule = f"and those that turn are more servers of kind {kind!r} than the {fleet.count[c]} there are"
                problems.append(Problem("pinned.servers", rule, needed))
            sent = bool((fleet.arrival_rate * self.split[c]).any())
            if sent and not (self.turning[c] and self.policies[c] is not None):
                problems.append(Problem("split", "sends jobs to servers of a kind of which none turns, or without a policy", kind))
        if problems:
            raise BadSpec(problems)

    def rows(self, fleet: Fleet) -> list[tuple[str, str, str]]:
        """In words: kind, servers, jobs together; of servers that turn, every schedule of their rota with its part of the time."""
        turning = zip(self.turning.tolist(), self.policies, strict=True)
        turns = [turning_row(fleet, c, n, rota) for c, (n, rota) in enumerate(turning) if n and rota is not None]
        return [*self.pinned.rows(fleet), *turns]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartlyPinned):
            return NotImplemented
        same = self.pinned == other.pinned and self.policies == other.policies
        return same and np.array_equal(self.turning, other.turning) and np.array_equal(self.split, other.split)

    def __hash__(self) -> int:
        return hash((self.pinned, self.turning.tobytes(), self.split.tobytes()))

    def __repr__(self) -> str:
        held, schedules = int(self.pinned.servers.sum()), len(self.pinned.servers)
        return f"<PartlyPinned: {held} servers hold {schedules} schedules, {int(self.turning.sum())} turn>"

    def _repr_html_(self) -> str:
        rows = [(str(c), f"{n:,}", repr(policy)) for c, (n, policy) in enumerate(zip(self.turning, self.policies, strict=True)) if n]
        return self.pinned._repr_html_() + html_title("Servers that turn") + html_table(["kind", "servers", "rota"], rows)
