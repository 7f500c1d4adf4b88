"""What a plan compares: the policies that a preemption model allows, from the simplest to the most complex, and the rotas among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rota.analysis import Analysis, analyze, means
from rota.capacity import Load, system_load
from rota.decide import rule_of, suits
from rota.design import Objective, design_policy
from rota.errors import Infeasible
from rota.kernel_cache import is_kept
from rota.model import Preemption, System
from rota.policy import DESIGNED_NAMES, MSR, POLICY_NAMES, Policy, design_named, msr_name, policy_name, record_of
from rota.process import build_process
from rota.simulation import Result, SimulationProgress
from rota.simulation.compiled import runner_of, will_compile
from rota.study.plan_objective import PlanObjective
from rota.tuning import FEWEST_JOBS, TuningProgress, run_all, tune_adaptive

__all__ = [
    "Rotas",
    "analysis_of",
    "capacity_needed",
    "compile_designs",
    "compiled_parts",
    "design_rotas",
    "fixed_policies",
    "policies_of",
    "rotas_of",
]

_MODELS: dict[Preemption, tuple[Preemption, ...]] = {"full": ("full",), "none": ("none",), "setup": ("setup", "none")}
_BALANCED_S = 4.0  # for the balanced rota at each load
_SMALL = System([4, 8], [[1, 2], [2, 1], [4, 4]], [0.9, 0.6, 0.3], [1.0, 1.0, 1.0])
_COMPILING_S = 20.0
MOST_STATES = 200  # of the process of a rota that is improved


@dataclass(frozen=True)
class Rotas:
    """The rotas of a system for one preemption model: the close one, the paper's, and the better of them that fills gaps from the queue.

    `designed` are other policies that are designed for the system, by names.
    """

    plain: MSR
    balanced: MSR
    backfilled: MSR
    designed: tuple[Policy, ...] = ()


def compiled_parts(system: System) -> list[str]:
    """The simulators that a plan uses, by the names of the policies, in the order in which it needs them first."""
    models = _MODELS[system.preemption]
    tuned = [*(msr_name(model, True) for model in models), *(["adaptive"] if "none" in models else [])]
    improved = [f"improved {msr_name(model, model != 'full')}" for model in models]
    return [*tuned, *(policy_name(policy) for policy in fixed_policies(system)), *improved, *(msr_name(model, False) for model in models)]


def fixed_policies(system: System) -> list[Policy]:
    """The policies to compare that need no design."""
    chosen = [policy for policy in POLICY_NAMES.values() if record_of(policy).preemption in ("none", system.preemption)]
    return [policy for policy in chosen if record_of(policy).plan is not None and suits(system, policy)]


def compile_designs(preemption: Preemption) -> None:
    """Compiles what designs run, unless it is on disk, so that their time limit is for the search alone: by designs that take a moment."""
    functions: list[Any] = [means._means, means._outline]
    if all(function.signatures or is_kept(function) for function in functions):
        return
    for model in _MODELS[preemption]:
        system = _SMALL.with_preemption(model, 0.1 if model == "setup" else None)
        design_policy(system, model, objective="close", time_limit_s=_COMPILING_S)


def design_rotas(
    load: Load,
    *,
    jobs: int,
    seed: int,
    time_limit_s: float,
    limits: Mapping[str, float] | None = None,
    adaptive: Policy | None = None,
    near: Mapping[Preemption, Rotas] | None = None,
    judge: Callable[[Result], float] | None = None,
    objective: PlanObjective = "mean",
    tell: Callable[[str, SimulationProgress], None] | None = None,
) -> dict[Preemption, Rotas]:
    """Rotas for every model that the system allows: a server that can stop jobs after a setup may also let them run to their end.

    `plain` is a close rota, chosen and tuned on its mean response time, for `time_limit_s` at most. Theory says nothing about backfilling,
    so which rota is best with it, the balanced or the close one, is measured on `jobs` jobs of their own. `limits` are mean
    response times that types may have: `plain` keeps them if a rota that does was found. `adaptive`: the queue-driven rota, if it is tuned
    already; `judge`: what it is tuned on, if that is not its mean response time. `near`: the rotas for another load, which are tuned for
    this one too. With the objective "p95" and no limits, `plain` switches at the rate of the least exact 95 % quantile.
    """
    system, found = load.system, {}
    for model in _MODELS[system.preemption]:
        balanced = design_policy(system, model, load=load, objective="load", time_limit_s=_BALANCED_S)
        plain = _close(load, model, time_limit_s, limits, objective, () if near is None else (near[model].plain,))
        choices = [policy.replace(backfill=True) for policy in (plain, balanced)]
        if plain == balanced:
            choices = choices[:1]
        best = choices[0] if len(choices) == 1 else _better(system, choices, jobs, seed, tell)
        designed = _improved(load, model, plain)
        if model == "none":
            designed += _adaptive(load, plain, jobs, seed, judge, tell) if adaptive is None else (adaptive,)
        found[model] = Rotas(plain, balanced, best, designed)
    return found


def _close(
    load: Load,
    model: Preemption,
    time_limit_s: float,
    limits: Mapping[str, float] | None,
    objective: PlanObjective,
    near: Sequence[MSR],
) -> MSR:
    """The close rota, within the limits if that is possible."""
    if limits:
        try:
            return design_policy(load.system, model, load=load, max_response_time=limits, time_limit_s=time_limit_s)
        except Infeasible:
            pass
    by: Objective = "p95" if objective == "p95" and not limits else "close"
    return design_policy(load.system, model, load=load, objective=by, near=near, time_limit_s=time_limit_s)


def _improved(load: Load, model: Preemption, plain: MSR) -> tuple[Policy, ...]:
    """The improved rota, where there is one, and its process is small enough that its tables take a moment only."""
    name = f"improved {msr_name(model, model != 'full')}"
    if name not in DESIGNED_NAMES or len(build_process(load.system, plain)) > MOST_STATES:
        return ()
    return (design_named(name, load.system, load=load, base=plain),)


def _adaptive(
    load: Load,
    plain: MSR,
    jobs: int,
    seed: int,
    judge: Callable[[Result], float] | None,
    tell: Callable[[str, SimulationProgress], None] | None,
) -> tuple[Policy, ...]:
    """The queue-driven rota, tuned on jobs of its own; the candidates of the close rota are among its goals."""

    def show(at: TuningProgress) -> None:
        if tell is not None:
            tell("adaptive", SimulationProgress(int(at.part * jobs), jobs, 0.0, np.inf, at.time_s))

    length = max(jobs // 2, FEWEST_JOBS)
    tuned = tune_adaptive(load.system, load=load, goals=[plain.candidates], jobs=length, seed=seed, judge=judge, progress=show)
    return (tuned.policy,)


def _better(system: System, choices: list[MSR], jobs: int, seed: int, tell: Callable[[str, SimulationProgress], None] | None) -> MSR:
    """The rota of lowest mean response time on so many jobs."""
    if tell is not None and will_compile(runner_of(rule_of(choices[0]).decide)):
        tell(policy_name(choices[0]), SimulationProgress(0, jobs, 0.0, np.inf, 0.0, compiling=True))
    results = run_all(system, choices, jobs=jobs, seed=seed)
    means = [result.mean_response_time if result.stable else np.inf for result in results]
    return choices[int(np.argmin(np.where(np.isnan(means), np.inf, means)))]


def policies_of(system: System, rotas: dict[Preemption, Rotas]) -> dict[str, Policy]:
    """The policies to compare, by name: all that a plan compares and that the system allows, from the simplest to the most complex."""
    return _in_order([*fixed_policies(system), *rotas_of(rotas).values()])


def rotas_of(rotas: dict[Preemption, Rotas]) -> dict[str, Policy]:
    """Those among them that are designed."""
    return _in_order([policy for pair in rotas.values() for policy in (pair.backfilled, pair.plain, *pair.designed)])


def _in_order(policies: list[Policy]) -> dict[str, Policy]:
    """The policies that a plan compares, by name, from the simplest to the most complex."""
    placed = [(record.plan, record.name, policy) for policy in policies if (record := record_of(policy)).plan is not None]
    return {name: policy for _, name, policy in sorted(placed, key=lambda row: row[0] or 0)}


def analysis_of(system: System, policy: MSR) -> tuple[Analysis, bool]:
    """The analysis of a rota, and whether it uses the sizes as given; where theory cannot, it takes them as exponential."""
    try:
        return analyze(system, policy), True
    except Infeasible:
        return analyze(system, policy, sizes="exponential"), False


def capacity_needed(best: Load) -> float | None:
    """The capacity of the bottleneck that would make the load 0.95, with all else unchanged; None if four times as much is not enough."""
    system, r = best.system, best.system.resources.index(best.bottleneck[0])

    def enough(factor: float) -> bool:
        capacity = system.capacity.copy()
        capacity[r] *= factor
        return system_load(system.replace(capacity=capacity), gap=1e-3, time_limit_s=1.0).load <= 0.95

    low, high = 1.0, 4.0
    if not enough(high):
        return None
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    amount = float(system.capacity[r] * high)
    whole = float(np.ceil(amount - 1e-9))
    return whole if system.capacity[r] == np.floor(system.capacity[r]) and enough(whole / system.capacity[r]) else amount
