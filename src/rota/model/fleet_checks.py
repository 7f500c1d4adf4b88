"""The rules of a fleet: shapes, counts, names, and where a type can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rota.arguments import is_real
from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.model.system import exceeds

__all__ = [
    "COUNT_RULE",
    "MOST_SERVERS",
    "RESERVED",
    "checked_affinities",
    "checked_failures",
    "checked_kinds",
    "checked_servers",
    "checked_table",
    "placement_problems",
    "server_problems",
]

MOST_SERVERS = 1_000_000_000  # of a kind: more is a mistake
RESERVED = ("count", "up_time", "down_time")  # what else a table of servers has, beside resources
COUNT_RULE = f"must be a whole number from 1 to {MOST_SERVERS:,}: leave a kind out of which there is no server"


def placement_problems(
    name: str,
    demand: Mapping[str, float],
    servers: Mapping[str, Mapping[str, float]],
    only: Sequence[str] | None,
    speed: Mapping[str, float],
) -> list[Problem]:
    """What is wrong with where a type may run: it fits no kind, or `only` or `speed` name kinds that there are not or where it cannot run.

    `servers`: what a server of each kind has of each resource; what is not named it has not.
    """
    known = ", ".join(servers)
    unknown = f"there is no such kind of server (there are: {known})"
    problems = [Problem(f"jobs.{name}.only", unknown, kind) for kind in only or () if kind not in servers]
    for kind, v in speed.items():
        if kind not in servers:
            problems.append(Problem(f"jobs.{name}.speed.{kind}", unknown))
        elif only is not None and kind not in only:
            problems.append(Problem(f"jobs.{name}.speed.{kind}", "is a speed on a kind that is not in only: leave it out", v))
        elif not (is_real(v) and v > 0):
            problems.append(Problem(f"jobs.{name}.speed.{kind}", "must be positive and finite: 2 halves the running time there", v))
    if problems:
        return problems
    lacking = {kind: _lacking(demand, server) for kind, server in servers.items() if only is None or kind in only}
    if only is not None and not only:
        problems.append(Problem(f"jobs.{name}.only", "must name at least one kind of server; left out, it means all", list(only)))
    elif all(lacking.values()):
        why = "; ".join(f"{kind!r} {lack}" for kind, lack in lacking.items())
        problems.append(Problem(f"jobs.{name}.demand", f"fits no kind of server, so a job of this type can never run: {why}"))
    else:
        problems += [
            Problem(f"jobs.{name}.only", f"names a kind on which a job of this type can never run, as {kind!r} {lack}: leave it out", kind)
            for kind, lack in lacking.items()
            if lack and only is not None
        ]
        problems += [
            Problem(f"jobs.{name}.speed.{kind}", f"is a speed on a kind on which no job of this type fits: {kind!r} {lacking[kind]}", v)
            for kind, v in speed.items()
            if lacking[kind] and only is None
        ]
    return problems


def _lacking(demand: Mapping[str, float], server: Mapping[str, float]) -> str:
    """Why a job does not fit a server, for the first resource of which it has too little; empty if it fits."""
    for resource, amount in demand.items():
        has = server.get(resource, 0.0)
        if exceeds(amount, has):
            return f"has {has:g} of {resource!r}, and it needs {amount:g}" if has else f"has no {resource!r}"
    return ""


def checked_servers(count: ArrayLike, capacity: ArrayLike) -> tuple[Int, Array]:
    """Counts and capacities of the kinds, in the right shapes."""
    P = checked_table("capacity", capacity).copy()
    try:
        numbers = np.array(count, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem("count", "must be whole numbers, one per kind of server", count)]) from None
    if numbers.shape != (len(P),):
        raise BadSpec([Problem("count", f"needs {len(P)} entries, as capacity has {len(P)} rows", numbers.shape)])
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**53)
    if not whole.all():
        raise BadSpec([Problem("count", "must be whole numbers, one per kind of server", numbers.tolist())])
    return numbers.astype(np.int64), P


def checked_table(place: str, values: ArrayLike) -> Array:
    """Numbers in rows."""
    try:
        table: Array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem(place, "must be numbers in a regular shape", values)]) from None
    if table.ndim != 2 or table.size == 0:
        rows = "type" if place == "demand" else "kind of server"
        raise BadSpec([Problem(place, f"must be a non-empty table of numbers, one row per {rows}", table.shape)])
    return table


def checked_kinds(kinds: object, C: int) -> tuple[str, ...]:
    """Names of the kinds."""
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise BadSpec([Problem("kinds", "must be a list of names", kinds)])
    labels = tuple(kinds)
    if len(labels) != C:
        raise BadSpec([Problem("kinds", f"needs {C} entries, as capacity has {C} rows", len(labels))])
    problems = [Problem(f"kinds[{c}]", "must be a non-empty string", kind) for c, kind in enumerate(labels) if not _is_name(kind)]
    problems += [Problem(f"kinds[{c}]", "is a duplicate", kind) for c, kind in enumerate(labels) if kind in labels[:c]]
    if problems:
        raise BadSpec(problems)
    return labels


def checked_affinities(only: object, K: int) -> tuple[tuple[str, ...] | None, ...]:
    """For each type the kinds on which it may run, or None for all."""
    if only is None:
        return (None,) * K
    rule = f"must be a list of {K} entries, one per type: None, or a list of kinds of servers"
    if isinstance(only, str) or not isinstance(only, Iterable):
        raise BadSpec([Problem("only", rule, only)])
    given = list(only)
    if len(given) != K or any(places is not None and (isinstance(places, str) or not isinstance(places, Iterable)) for places in given):
        raise BadSpec([Problem("only", rule, given)])
    return tuple(None if places is None else tuple(dict.fromkeys(places)) for places in given)


def checked_failures(kinds: tuple[str, ...], up_time: ArrayLike | None, down_time: ArrayLike | None) -> tuple[Array, Array]:
    """Mean times that servers of each kind are up and down; infinite and 0 if they do not fail."""
    C, problems = len(kinds), []
    if up_time is None and down_time is None:
        return np.full(C, np.inf), np.zeros(C)
    try:
        up = np.full(C, np.inf) if up_time is None else np.array(up_time, dtype=np.float64).reshape(C).copy()
        down = np.zeros(C) if down_time is None else np.array(down_time, dtype=np.float64).reshape(C).copy()
    except (TypeError, ValueError):
        raise BadSpec([Problem("up_time", f"needs {C} numbers, one per kind of server, and so does down_time", up_time)]) from None
    for kind, a, b in zip(kinds, up.tolist(), down.tolist(), strict=True):
        if not ((a == np.inf and b == 0) or (0 < a < np.inf and 0 < b < np.inf)):
            rule = "must be positive and finite, and so must down_time; leave out both if servers do not fail"
            problems.append(Problem(f"servers.{kind}.up_time", rule, a if not 0 < a < np.inf else b))
    if problems:
        raise BadSpec(problems)
    return up, down


def _is_name(label: object) -> bool:
    return isinstance(label, str) and bool(label)


def server_problems(kinds: tuple[str, ...], n: Int, P: Array, resources: tuple[str, ...]) -> list[Problem]:
    """What is wrong with counts, capacities and names of resources."""
    rule = "must not have the name that a table of servers uses for something else"
    problems = [Problem("resources", rule, name) for name in RESERVED if name in resources]
    for c, kind in enumerate(kinds):
        if not 1 <= n[c] <= MOST_SERVERS:
            problems.append(Problem(f"servers.{kind}.count", COUNT_RULE, int(n[c])))
        for r, resource in enumerate(resources):
            if not (np.isfinite(P[c, r]) and P[c, r] >= 0):
                problems.append(Problem(f"servers.{kind}.{resource}", "must be finite and not negative", float(P[c, r])))
        if not P[c].any():
            problems.append(Problem(f"servers.{kind}", "needs a positive amount of at least one resource"))
    return problems
