"""Which type a request runs as."""

from __future__ import annotations

import numpy as np

from rota.errors import BadSpec, Problem
from rota.live.messages import JobRequest
from rota.model import System

__all__ = ["class_of"]

_ROUNDING = 1e-12


def class_of(request: JobRequest, system: System) -> tuple[str, list[float], str]:
    """The type that a request runs as, its demand, and a remark: the type named, or the smallest that encloses what is asked for.

    Where none does, the job is of a class of its own, "own".
    """
    if request.type is not None:
        if request.type not in system.names:
            raise BadSpec([Problem("type", f"there is no such type (there are: {', '.join(system.names)})", request.type)])
        return request.type, system.demand[system.names.index(request.type)].tolist(), ""
    asked = request.demand or {}
    rule = f"the server has no such resource (it has: {', '.join(system.resources)})"
    problems = [Problem(f"demand.{name}", rule) for name in asked if name not in system.resources]
    demand = np.array([asked.get(name, 0.0) for name in system.resources])
    problems += [
        Problem(f"demand.{system.resources[r]}", f"the server has {system.capacity[r]:g}", float(demand[r]))
        for r in np.flatnonzero(demand > system.capacity * (1 + _ROUNDING))
    ]
    if not problems and not demand.any():
        problems.append(Problem("demand", "is nothing at all: name at least one resource"))
    if problems:
        raise BadSpec(problems)
    enclosing = np.flatnonzero((system.demand >= demand * (1 - _ROUNDING)).all(axis=1))
    if not len(enclosing):
        return "own", demand.tolist(), "no type of the plan encloses it: it starts only where the policy leaves room"
    i = int(enclosing[np.argmin((system.demand[enclosing] / system.capacity).sum(axis=1))])
    remark = "" if np.array_equal(system.demand[i], demand) else f"runs as type {system.names[i]}, the smallest that encloses it"
    return system.names[i], system.demand[i].tolist(), remark
