"""Random splitting: an arriving job of a fleet goes to a server at random, and every server follows a rota of its own.

Arrivals that are split at random stay Poisson processes, so each server can be designed for and analyzed by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array
from rota.display import jobs_together, per_cent
from rota.errors import BadSpec, Problem
from rota.model import Fleet, System
from rota.policy.msr import MSR

__all__ = ["Split", "checked_policies", "turning_row"]


@dataclass(frozen=True, eq=False, init=False)
class Split:
    """A job of type i goes to kind c with probability `split[c, i]`, there to any server alike, which runs `policies[c]`.

    The policy of a kind is one for `fleet.server(kind)`, or None if nothing goes there.
    """

    policies: tuple[MSR | None, ...]
    split: Array

    def __init__(self, policies: Sequence[MSR | None], split: ArrayLike) -> None:
        policies = checked_policies(policies)
        parts: Array = np.array(split, dtype=np.float64)
        if parts.ndim != 2 or len(parts) != len(policies) or not (np.isfinite(parts).all() and (parts >= 0).all()):
            rule = f"needs {len(policies)} rows of numbers that are not negative, a row for each policy"
            raise BadSpec([Problem("split", rule, parts.tolist())])
        if (np.abs(parts.sum(axis=0) - 1) > 1e-9).any():
            raise BadSpec([Problem("split", "needs columns that sum to 1: every job goes somewhere", parts.sum(axis=0).tolist())])
        parts.flags.writeable = False
        object.__setattr__(self, "policies", policies)
        object.__setattr__(self, "split", parts)

    def server(self, fleet: Fleet, c: int) -> System:
        """One server of a kind, with the arrivals that it gets."""
        if self.split.shape != (len(fleet.kinds), len(fleet.names)):
            rule = f"is for another fleet: this one has {len(fleet.kinds)} kinds and {len(fleet.names)} types"
            raise BadSpec([Problem("split", rule, self.split.shape)])
        return fleet.server(c, fleet.arrival_rate * self.split[c] / fleet.count[c])

    def rows(self, fleet: Fleet) -> list[tuple[str, str, str]]:
        """In words: kind, servers, and the schedules of their rota with their parts of the time."""
        return [turning_row(fleet, c, int(fleet.count[c]), rota) for c, rota in enumerate(self.policies) if rota is not None]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split):
            return NotImplemented
        return self.policies == other.policies and np.array_equal(self.split, other.split)

    def __hash__(self) -> int:
        return hash(self.split.tobytes())

    def __repr__(self) -> str:
        return f"<Split over {len(self.policies)} kinds of servers>"


def checked_policies(policies: object) -> tuple[MSR | None, ...]:
    """A rota for each kind of server, or None; anything else is refused."""
    if not isinstance(policies, Iterable) or not all(policy is None or isinstance(policy, MSR) for policy in policies):
        raise BadSpec([Problem("policies", "must be a list with a rota.MSR, or None, for each kind of server", policies)])
    return tuple(policies)


def turning_row(fleet: Fleet, c: int, servers: int, rota: MSR) -> tuple[str, str, str]:
    """Servers of a kind that turn, in words: kind, servers, every schedule of their rota with its part of the time."""
    here = np.flatnonzero(fleet.runs[c])
    turns = []
    for row, weight in zip(rota.candidates, rota.weights, strict=True):
        full = np.zeros(len(fleet.names), dtype=np.int64)
        full[here] = row
        turns.append(f"{per_cent(float(weight))} {jobs_together(full, fleet.names)}")
    return fleet.kinds[c], f"{servers:,}", "turns: " + "; ".join(turns)
