"""From the axes of a grid to its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any

from rota.arguments import is_real
from rota.capacity import system_load
from rota.errors import BadSpec, Problem
from rota.imported import is_place
from rota.model import Fleet, System, Workload
from rota.model.system import check_system
from rota.policy import DESIGNED_NAMES, MSR, Policy, Record, as_policy, draws, policy_name, record_named, records
from rota.simulation.fleet.policy import PolicyOfFleet
from rota.simulation.of_fleet import Rules, server_for
from rota.study.fleet_grid import FleetCase, fleet_cases
from rota.study.runs import Run, policy_text
from rota.study.workloads import named_workload

__all__ = ["MSR_NAMES", "grid", "numbers"]

MSR_NAMES = tuple(record.name for record in records() if record.policy is MSR)
_WITH_SETUPS = [record.name for record in records() if record.policy is MSR and record.preemption == "setup"]
_MOST = 10_000  # numbers on one axis
JOBS = 1_000_000  # of a workload without end


def numbers(text: str, place: str = "numbers") -> list[float]:
    """Numbers from text: `0.5,0.7`, with ranges that include their end, `0.1:0.9:0.1`, also by a factor, `0.01:100:x10`."""
    found: list[float] = []
    for part in text.split(","):
        try:
            found += _range(part.strip())
        except ValueError:
            rule = "must be numbers with commas between them, or ranges as 0.1:0.9:0.1 (steps) or 0.01:100:x10 (factors)"
            raise BadSpec([Problem(place, rule, part)]) from None
    return found


def _range(part: str) -> list[float]:
    if ":" not in part:
        return [float(part)]
    first, last, step = part.split(":")
    low, high, by = float(first), float(last), float(step.removeprefix("x"))
    if step.startswith("x"):
        if not (0 < low <= high < math.inf and 1 < by < math.inf):
            raise ValueError
        steps = math.log(high / low) / math.log(by)
    else:
        if not (-math.inf < low <= high < math.inf and 0 < by < math.inf):
            raise ValueError
        steps = (high - low) / by
    if steps > _MOST:
        raise ValueError
    exponents = range(math.floor(steps + 1e-9) + 1)
    values = [low * by**k if step.startswith("x") else low + by * k for k in exponents]
    return [float(f"{value:.12g}") for value in values]  # 0.3, not 0.30000000000000004


def grid(
    system: System | Fleet,
    policies: Sequence[PolicyOfFleet],
    *,
    dispatch: Rules = None,
    loads: Iterable[float] | None = None,
    switching_rates: Iterable[float] | None = None,
    setup_rates: Iterable[float] | None = None,
    jobs: float | Iterable[float] | None = None,
    seeds: int | Iterable[int] = 1,
    workload: Workload | str | Path | None = None,
) -> list[Run]:
    """The runs of a grid, the seeds of a case beside each other. Axes that do not matter to a policy do not multiply its runs.

    Without `loads` the system is taken as it is. `seeds` is a list of them, or how many: 0, 1, 2, … A workload that is the same for every
    seed needs one only where the policy draws nothing itself. On a fleet every policy is combined with every rule of `dispatch`.
    """
    server = server_for(system, dispatch, 0.0, None)
    check_system(server)
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise BadSpec([Problem("policies", 'must be a list, as ["first-fit", "nMSR"]', policies)])
    given = None if workload is None else named_workload(workload, server)
    if jobs is None:
        jobs = JOBS if given is None or given.jobs is None else given.jobs
    axes = {
        "loads": _axis("loads", loads),
        "switching_rates": _axis("switching_rates", switching_rates),
        "setup_rates": _axis("setup_rates", setup_rates),
        "jobs": _axis("jobs", jobs, whole=True, least=min(100, given.jobs or 100) if given else 100),
        "seeds": _axis("seeds", _so_many(seeds), whole=True, least=0),
    }
    known = _all_known(system, list(policies), dispatch)
    problems = [Problem(name, "must not be empty") for name, values in {**axes, "policies": known}.items() if values == []]
    if axes["switching_rates"] and not any(policy.switches for policy in known):
        if isinstance(system, Fleet):
            problems.append(Problem("switching_rates", "are for one server: the rotas of a fleet have the best one of each kind"))
        else:
            problems.append(Problem("switching_rates", f"no policy here switches: add one of {', '.join(MSR_NAMES)}, or a policy file"))
    if axes["setup_rates"] and not any(policy.sets_up for policy in known):
        if isinstance(system, Fleet):
            problems.append(Problem("setup_rates", "are for one server: of a fleet they are those of its file"))
        else:
            problems.append(Problem("setup_rates", f"no policy here has setups: add {' or '.join(_WITH_SETUPS)}"))
    if problems:
        raise BadSpec(problems)

    systems = _at_loads(system, axes["loads"])
    runs = []
    for label, policy in zip(_labels([policy.name for policy in known]), known, strict=True):
        alphas: Sequence[float | None] = (policy.switches and axes["switching_rates"]) or [None]
        gammas: Sequence[float | None] = (policy.sets_up and axes["setup_rates"]) or [None]
        counts = axes["jobs"] or []
        if given is not None and given.jobs is not None:
            counts = list(dict.fromkeys(min(n, given.jobs) for n in counts))
        seeds_of = (axes["seeds"] or [])[: 1 if given is not None and given.fixed and not policy.draws else None]
        points = product(systems, alphas, gammas, counts, seeds_of)
        runs += [
            Run(
                *(label, policy.definition(alpha, gamma), text, load, alpha, gamma, int(n), int(seed)),
                workload=None if given is None else given.text(factor),
            )
            for (load, factor, text), alpha, gamma, n, seed in points
        ]
    return runs


def _so_many(seeds: Any) -> Any:
    """0, 1, 2, … for a number of seeds."""
    return range(int(seeds)) if is_real(seeds) and float(seeds).is_integer() else seeds


def _axis(name: str, values: float | Iterable[float] | None, whole: bool = False, least: float | None = None) -> list[float] | None:
    """The numbers of an axis, each once; one number is an axis too."""
    if values is None:
        return None
    if isinstance(values, Real) or not isinstance(values, Iterable):
        values = [values]  # type: ignore[list-item]
    given = list(dict.fromkeys(values))
    for value in given:
        if not is_real(value):
            raise BadSpec([Problem(name, "must be positive and finite" if least is None else "must be finite numbers", value)])
        if not (value >= least if least is not None else value > 0):
            raise BadSpec([Problem(name, "must be positive" if least is None else f"must be at least {least:g}", value)])
        if whole and value != int(value):
            raise BadSpec([Problem(name, "must be whole numbers", value)])
    return [float(value) for value in given] if not whole else given


def _at_loads(system: System | Fleet, loads: list[float] | None) -> list[tuple[float, float, str]]:
    """Each load, the factor of the arrival rates, and the system, as text."""
    now = system_load(system).load
    if loads is None:
        return [(now, 1.0, system.to_toml())]
    if now == 0:
        raise BadSpec([Problem("loads", "a system without arrivals has load 0 at any scale")])
    return [(load, load / now, system.scaled(factor=load / now).to_toml()) for load in loads]


def _labels(names: list[str]) -> list[str]:
    """The names, with a number where one comes more than once."""
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


# ------------------------------------------------------------------------------------------------- policies, known or to be designed


@dataclass(frozen=True)
class _Known:
    """A given policy."""

    name: str
    policy: Policy

    @property
    def draws(self) -> bool:
        return draws(self.policy)

    @property
    def switches(self) -> bool:
        return isinstance(self.policy, MSR) and len(self.policy.weights) > 1

    @property
    def sets_up(self) -> bool:
        return self.switches and isinstance(self.policy, MSR) and self.policy.preemption == "setup"

    def definition(self, switching_rate: float | None, setup_rate: float | None) -> str:
        given = {"switching_rate": switching_rate, "setup_rate": setup_rate}
        changes = {name: rate for name, rate in given.items() if rate is not None}
        return policy_text(self.policy.replace(**changes) if isinstance(self.policy, MSR) and changes else self.policy)


@dataclass(frozen=True)
class _ToDesign:
    """A policy by name that is designed for the system at each load; a rota as in the paper, with the rates of the grid."""

    name: str
    record: Record | None  # of a rota
    draws: bool = True

    @property
    def switches(self) -> bool:
        return self.record is not None

    @property
    def sets_up(self) -> bool:
        return self.record is not None and self.record.preemption == "setup"

    def definition(self, switching_rate: float | None, setup_rate: float | None) -> str:
        rates = {"objective": "load", "switching_rate": switching_rate, "setup_rate": setup_rate} if self.record is not None else {}
        return json.dumps({"design": self.name, **rates})


def _all_known(system: System | Fleet, policies: list[PolicyOfFleet], dispatch: Rules) -> Sequence[_Known | _ToDesign | FleetCase]:
    if isinstance(system, Fleet):
        return fleet_cases(system, policies, dispatch, policy_text)
    return [_known(policy, system) for policy in policies]  # type: ignore[arg-type]  # it refuses what is not for one server


def _known(given: Policy | str | Path, system: System) -> _Known | _ToDesign:
    record = record_named(given) if isinstance(given, str) else None
    if isinstance(given, str) and given in DESIGNED_NAMES:
        return _ToDesign(given, record if record is not None and record.policy is MSR else None)
    policy = as_policy(given, system, place="policies")
    if isinstance(policy, MSR) and policy.names is None:  # its text calls the types by name
        policy = policy.replace(names=system.names)
    policy_text(policy)  # raises before anything runs if the policy has no text
    from_file = isinstance(given, str | Path) and record is None and not is_place(given)
    return _Known(str(given) if from_file else policy_name(policy), policy)
