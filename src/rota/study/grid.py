"""From the axes of a grid to its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from rota.capacity import system_load
from rota.decide import policy_name
from rota.errors import BadSpec, Problem
from rota.model import Preemption, System
from rota.policy import MSR, Policy
from rota.policy.files import read_policy
from rota.simulation import POLICY_NAMES
from rota.study.runs import Run, policy_text

__all__ = ["MSR_NAMES", "grid", "numbers"]

_MODELS: dict[str, Preemption] = {"pMSR": "full", "nMSR": "none", "sMSR": "setup"}
MSR_NAMES = (*_MODELS, *(f"{name}+backfill" for name in _MODELS))
_MOST = 10_000  # numbers on one axis


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
    system: System,
    policies: Sequence[Policy | str | Path],
    *,
    loads: Iterable[float] | None = None,
    switching_rates: Iterable[float] | None = None,
    setup_rates: Iterable[float] | None = None,
    jobs: float | Iterable[float] = 1_000_000,
    seeds: int | Iterable[int] = 1,
) -> list[Run]:
    """The runs of a grid, the seeds of a case beside each other. Axes that do not matter to a policy do not multiply its runs.

    Without `loads` the system is taken as it is. `seeds` is a list of them, or how many: 0, 1, 2, …
    """
    axes = {
        "loads": _axis("loads", loads),
        "switching_rates": _axis("switching_rates", switching_rates),
        "setup_rates": _axis("setup_rates", setup_rates),
        "jobs": _axis("jobs", [jobs] if isinstance(jobs, int | float) else jobs, whole=True, least=100),
        "seeds": _axis("seeds", range(seeds) if isinstance(seeds, int) else seeds, whole=True, least=0),
    }
    known = [_known(policy, system) for policy in policies]
    problems = [Problem(name, "must not be empty") for name, values in {**axes, "policies": known}.items() if values == []]
    if axes["switching_rates"] and not any(policy.switches for policy in known):
        problems.append(Problem("switching_rates", f"no policy here switches: add one of {', '.join(MSR_NAMES)}, or a policy file"))
    if axes["setup_rates"] and not any(policy.sets_up for policy in known):
        problems.append(Problem("setup_rates", "no policy here has setups: add sMSR or sMSR+backfill"))
    if problems:
        raise BadSpec(problems)

    systems = _at_loads(system, axes["loads"])
    runs = []
    for label, policy in zip(_labels([policy.name for policy in known]), known, strict=True):
        alphas: Sequence[float | None] = (policy.switches and axes["switching_rates"]) or [None]
        gammas: Sequence[float | None] = (policy.sets_up and axes["setup_rates"]) or [None]
        points = product(systems, alphas, gammas, axes["jobs"] or [], axes["seeds"] or [])
        runs += [
            Run(label, policy.definition(alpha, gamma), text, load, alpha, gamma, int(n), int(seed))
            for (load, text), alpha, gamma, n, seed in points
        ]
    return runs


def _axis(name: str, values: Iterable[float] | None, whole: bool = False, least: float | None = None) -> list[float] | None:
    """The numbers of an axis, each once."""
    if values is None:
        return None
    given = list(dict.fromkeys(values))
    for value in given:
        if not (np.isfinite(value) and (value >= least if least is not None else value > 0)):
            raise BadSpec([Problem(name, "must be positive" if least is None else f"must be at least {least:g}", value)])
        if whole and value != int(value):
            raise BadSpec([Problem(name, "must be whole numbers", value)])
    return [float(value) for value in given] if not whole else given


def _at_loads(system: System, loads: list[float] | None) -> list[tuple[float, str]]:
    """The system at each load, as text."""
    now = system_load(system).load
    if loads is None:
        return [(now, system.to_toml())]
    if now == 0:
        raise BadSpec([Problem("loads", "a system without arrivals has load 0 at any scale")])
    return [(load, system.scaled(factor=load / now).to_toml()) for load in loads]


def _labels(names: list[str]) -> list[str]:
    """The names, with a number where one comes more than once."""
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


# ------------------------------------------------------------------------------------------------- policies, known or to be designed


@dataclass(frozen=True)
class _Known:
    """A policy that is there already."""

    name: str
    policy: Policy

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
    """An MSR by name: designed for the system at each load, with the rates of the grid."""

    name: str
    switches: bool = True

    @property
    def sets_up(self) -> bool:
        return self.name.startswith("sMSR")

    def definition(self, switching_rate: float | None, setup_rate: float | None) -> str:
        fields = {"design": _MODELS[self.name[:4]], "backfill": self.name.endswith("+backfill")}
        return json.dumps({**fields, "switching_rate": switching_rate, "setup_rate": setup_rate})


def _known(policy: Policy | str | Path, system: System) -> _Known | _ToDesign:
    if isinstance(policy, str) and policy in MSR_NAMES:
        return _ToDesign(policy)
    if isinstance(policy, str) and policy in POLICY_NAMES:
        return _Known(policy, POLICY_NAMES[policy])
    name = ""
    if isinstance(policy, str | Path):
        name = str(policy)
        if not name.endswith(".json") and not Path(policy).exists():
            rule = f"must be one of {', '.join([*POLICY_NAMES, *MSR_NAMES])}, or a policy file"
            raise BadSpec([Problem("policies", rule, name)])
        policy = read_policy(policy)
    if isinstance(policy, MSR) and policy.names is None:  # its text calls the types by name
        policy = policy.replace(names=system.names)
    policy_text(policy)  # refuses what has no text before anything runs
    return _Known(name or policy_name(policy), policy)
