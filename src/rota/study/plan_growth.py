"""How far load can grow under each policy: E[T] on a grid of loads, and the largest load at which the queue still settles.

Theory gives that limit for policies that attain any load below 1 (MSR without backfilling, redesigned for each load; MaxWeight with
preemption; ServerFilling where it applies). For all others simulation searches for it, by halving the interval between a load at which
the queue settled and one at which it kept growing: an estimate, as a run of finite length cannot prove either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rota.capacity import Load
from rota.errors import Infeasible, NotConverged, RotaError
from rota.model import Preemption, System
from rota.policy import MSR, Adaptive, Policy, Tabulated, policy_name, record_of
from rota.simulation import Result, SimulationProgress, enough_jobs, in_threads, simulate
from rota.study.plan_policies import Rotas, analysis_of, design_rotas, fixed_policies, rotas_of
from rota.tuning import proved_load

__all__ = ["Limit", "against_load", "limit_of", "limits_of", "loads_around"]

_GRID = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_TOO_CLOSE = 0.02
_HIGHEST = 0.98  # at higher loads any affordable run looks unstable
_STEPS = 4
_BUSY = 0.8  # at lower loads fewer jobs are enough
_ALL = 1 - 1e-6  # of all load that any policy can carry
_CHOICE = 4  # so many times fewer jobs are enough to choose between two rotas as are simulated of the better one
_DESIGN_S = 4.0  # for a balanced rota


@dataclass(frozen=True)
class Limit:
    """The largest stable system load: proved (`settles` = `grows` = 1) or, by simulation, between the two."""

    settles: float
    grows: float
    proved: bool

    @property
    def middle(self) -> float:
        """The limit as one number; the largest load tried if the queue settled there too."""
        return self.settles if self.grows >= 1 else (self.settles + self.grows) / 2

    def scaling(self, load: float) -> float:
        """By how much arrivals can be multiplied, from a system at this load."""
        return self.middle / load

    def scaling_text(self, load: float) -> str:
        """The scaling for people: `~` marks an estimate, `≥` that the queue still settled at the highest load tried."""
        mark = "" if self.proved else "≥ " if self.grows >= 1 else "~ "
        return f"{mark}{self.scaling(load):.3g}"


def loads_around(load: float) -> list[float]:
    """The grid of loads, with the system's own among them."""
    return sorted([load, *(at for at in _GRID if abs(at - load) > _TOO_CLOSE)])


def against_load(
    load: Load,
    known: dict[str, Result],
    near: Mapping[Preemption, Rotas],
    *,
    jobs: int,
    seed: int,
    time_limit_s: float,
    tell: Callable[[str, float], None],
) -> list[dict[str, Any]]:
    """A row per policy and load, with rotas redesigned for each load. `known` are the results at the system's own `load`, `near` its rotas.

    At most so many jobs are simulated, fewer at low loads (`jobs_at`). A policy that cannot be made for a load has no row there.
    """
    adaptive = next((result.policy for result in known.values() if isinstance(result.policy, Adaptive)), None)  # tuned once
    tables = [result.policy for result in known.values() if isinstance(result.policy, Tabulated)]  # for its own load, and tried at others
    grid, stopped = [at for at in loads_around(load.load) if at != load.load], threading.Event()
    at_load = {at: load.scaled(at / load.load) for at in grid}

    def tasks() -> Iterator[tuple[float, str, System, Policy]]:
        for at, there in at_load.items():  # these need no design, and run while rotas are designed
            yield from ((at, policy_name(policy), there.system, policy) for policy in [*fixed_policies(there.system), *tables])
        for k, (at, there) in enumerate(at_load.items()):
            tell(f"load {at:.2f}", k / len(grid))
            few = jobs_at(at, there.system, jobs) // _CHOICE  # to choose between two rotas, which other jobs then measure
            rotas = design_rotas(there, jobs=few, seed=seed + 1, time_limit_s=time_limit_s, adaptive=adaptive, near=near)
            yield from ((at, name, there.system, policy) for name, policy in rotas_of(rotas).items())

    def row(at: float, name: str, system: System, policy: Policy) -> dict[str, Any] | None:
        try:
            return _row(at, name, run(system, policy, jobs_at(at, system, jobs), seed, stopped))
        except (Infeasible, NotConverged):  # an improved rota whose tables cannot be made at this load
            return None

    made = in_threads(row, (task for task in tasks() if task[1] in known), stopped)
    if stopped.is_set():
        raise KeyboardInterrupt
    own = [_row(load.load, name, result) for name, result in known.items()]
    order = {name: k for k, name in enumerate(known)}
    return sorted([*own, *(one for one in made if one is not None)], key=lambda one: (one["load"], order[one["policy"]]))


def jobs_at(load: float, system: System, jobs: int) -> int:
    """How many jobs are enough at a load, of which `jobs` are at a load of 0.8 or more.

    A queue forgets its state in a time that grows as 1/(1 − ρ)², so many times fewer jobs have an error that is as small relative to the
    mean. But not less than a fifth, and as many as rare types need for a mean.
    """
    fewest = max(jobs // 5, enough_jobs(system, 0) // 5, 1000)
    return min(max(int(jobs * ((1 - _BUSY) / (1 - load)) ** 2), fewest), jobs)


def run(system: System, policy: Policy, jobs: int, seed: int, stopped: threading.Event) -> Result:
    """A simulation that raises KeyboardInterrupt on Ctrl-C and when it is `stopped`, instead of a partial result."""

    def watch(_: SimulationProgress) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt  # only the main thread hears Ctrl-C

    result = simulate(system, policy, jobs=jobs, seed=seed, progress=watch)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _row(load: float, name: str, result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": name, "load": load, "stable": result.stable, "jobs": result.jobs, "seed": result.seed}
    row |= {"mean_response_time": result.mean_response_time, "interval": result.interval}
    row |= {f"p{100 * p:g}": value for p, value in result.response_time_quantiles.items()}
    row |= {"lower": None, "upper": None, "prediction": None, "exact": None}
    if isinstance(result.policy, MSR) and not result.policy.backfill:
        answer, as_given = analysis_of(result.system, result.policy)
        if as_given and answer.stable:  # bounds for other sizes than the simulated ones would mislead
            row |= {"lower": answer.little(answer.lower), "upper": answer.little(answer.upper)}
            row["prediction"] = answer.little(answer.prediction) if answer.exponential else None
            row["exact"] = answer.mean_response_time if answer.has_exact else None
    return row


def limits_of(load: Load, known: dict[str, Result], rows: list[dict[str, Any]], *, jobs: int, seed: int) -> dict[str, Limit]:
    """The largest stable load of every policy, by name, several at a time."""
    stopped = threading.Event()

    def one(policy: Policy) -> Limit:
        return limit_of(load, policy, rows, jobs=jobs, seed=seed, stopped=stopped)

    found = in_threads(one, [(result.policy,) for result in known.values()], stopped)
    if stopped.is_set():
        raise KeyboardInterrupt
    return dict(zip(known, found, strict=True))


def limit_of(
    load: Load, policy: Policy, rows: list[dict[str, Any]], *, jobs: int, seed: int, stopped: threading.Event | None = None
) -> Limit:
    """The largest stable load of a policy, from the rows of the grid and a few loads between them."""
    record = record_of(policy)
    proved = proved_load(load, policy) > _ALL if isinstance(policy, Adaptive) else record.throughput_optimal
    if proved:
        return Limit(1.0, 1.0, True)
    own = sorted((row["load"], row["stable"]) for row in rows if row["policy"] == record.name)
    grows = min((at for at, stable in own if not stable), default=1.0)
    settles = max((at for at, stable in own if stable and at < grows), default=0.0)
    for _ in range(_STEPS):
        middle = (settles + grows) / 2
        if middle > _HIGHEST or grows - settles < 0.01:
            break
        try:
            stable = run(*_at(load, policy, middle), jobs, seed, stopped or threading.Event()).stable
        except RotaError:
            stable = False
        settles, grows = (middle, grows) if stable else (settles, middle)
    return Limit(settles, grows, False)


def _at(load: Load, policy: Policy, at: float) -> tuple[System, Policy]:
    """System and policy at another load; a rota is redesigned with balanced loads, which serves the highest load."""
    there = load.scaled(at / load.load)
    if not isinstance(policy, MSR):
        return there.system, policy
    from rota.design import design_policy

    balanced = design_policy(there.system, policy.preemption, load=there, objective="load", time_limit_s=_DESIGN_S)
    return there.system, balanced.replace(backfill=True)
