"""Checks of a request before it is accepted: which type it runs as, and whether its working directory can be used."""

from __future__ import annotations

import errno
import os
import stat

import numpy as np

from rota.arrays import Array
from rota.errors import BadSpec, Problem
from rota.live.jobs import Request
from rota.live.messages import JobRequest
from rota.live.resources.gpus import Gpus
from rota.model import System
from rota.model.live import OWN_TYPE

__all__ = ["class_again", "class_of", "remark_on_directory", "smallest_type"]

_ROUNDING = 1e-12


def class_of(request: JobRequest, system: System) -> tuple[str, list[float], str]:
    """The type that a request runs as, its demand, and a remark: the named type, or the smallest one that encloses the demand.

    If no devices (gpus) are asked for, types with devices come last: devices are few, and would be unused. If no type encloses the demand,
    the class of the job is "own".
    """
    if request.type is not None:
        if request.type not in system.names:
            raise BadSpec([Problem("type", f"there is no such type (there are: {', '.join(system.names)})", request.type)])
        return request.type, system.demand[system.names.index(request.type)].tolist(), ""
    asked = request.demand or {}
    rule = f"the server has no such resource (it has: {', '.join(system.resources)})"
    problems = [Problem(f"demand.{name}", rule) for name in asked if name not in system.resources]
    demand = np.array([asked.get(name, 0.0) for name in system.resources])
    problems += _too_much(demand, system)
    if not problems and not demand.any():
        problems.append(Problem("demand", "is empty: name at least one resource"))
    if problems:
        raise BadSpec(problems)
    i = smallest_type(demand, system)
    if i is None:
        return OWN_TYPE, demand.tolist(), "no type of the plan encloses it: it starts only when the policy leaves enough free capacity"
    remark = "" if np.array_equal(system.demand[i], demand) else f"runs as type {system.names[i]}, the smallest that encloses it"
    return system.names[i], system.demand[i].tolist(), remark


def class_again(request: Request, system: System) -> tuple[str, list[float]]:
    """The type and the demand of an earlier request under another plan of the same resources; `BadSpec` if the server is too small for it.

    A request that named a type gets the type's demand in this plan. A request for amounts, or for a type that is gone, runs as the smallest
    type that encloses the amounts, or the demand of the old type.
    """
    if request.asked is None and request.type in system.names:
        return request.type, system.demand[system.names.index(request.type)].tolist()
    demand = np.array(request.demand if request.asked is None else request.asked)
    if problems := _too_much(demand, system):
        raise BadSpec(problems)
    if request.type in system.names and (system.demand[system.names.index(request.type)] >= demand * (1 - _ROUNDING)).all():
        return request.type, system.demand[system.names.index(request.type)].tolist()
    i = smallest_type(demand, system)
    return (OWN_TYPE, demand.tolist()) if i is None else (system.names[i], system.demand[i].tolist())


def _too_much(demand: Array, system: System) -> list[Problem]:
    return [
        Problem(f"demand.{system.resources[r]}", f"the server has {system.capacity[r]:g}", float(demand[r]))
        for r in np.flatnonzero(demand > system.capacity * (1 + _ROUNDING))
    ]


def smallest_type(demand: Array, system: System) -> int | None:
    """The smallest type that encloses a demand, by the sum of its shares of the server; those with devices not asked for come last."""
    enclosing = np.flatnonzero((system.demand >= demand * (1 - _ROUNDING)).all(axis=1))
    idle = [r for r, name in enumerate(system.resources) if Gpus.takes(name) and demand[r] == 0]
    with_idle_devices = (system.demand[enclosing][:, idle] > 0).any(axis=1)
    sizes = (system.demand[enclosing] / system.capacity).sum(axis=1)
    return int(enclosing[np.lexsort((sizes, with_idle_devices))[0]]) if len(enclosing) else None


def remark_on_directory(path: str) -> str:
    """A remark on a working directory: '' if it can be used, or that it does not exist (yet). `BadSpec` if it cannot be used."""
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return f"its working directory {path} is not there (yet)"
        if not os.access(path, os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (FileNotFoundError, NotADirectoryError):
        return f"its working directory {path} is not there (yet)"
    except OSError as error:
        rule = f"the scheduler, as user {os.geteuid()}, cannot enter it ({error.strerror}): submit from another directory"
        raise BadSpec([Problem("cwd", rule, path)]) from None
    return ""
