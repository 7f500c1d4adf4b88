"""`design_policy`: from a system to a rota."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import brentq

from rota.analysis import analyze
from rota.arguments import whole, with_parameters_of
from rota.capacity import Load, check_load, system_load
from rota.design.bursts import POISSON_PART, adapted
from rota.design.close import BEST_WAYS, Ways, find_close
from rota.design.deadline import Deadline
from rota.design.fairness import ResponseLimits
from rota.design.quantile import MEAN_PART, tuned_on_p95
from rota.design.switching import SwitchingRate, Yardstick, choose_switching_rate, choose_within, measure
from rota.design.tune import TuneProgress, tune_within
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import Preemption, System
from rota.model.system import check_system
from rota.policy import MSR, Opening, Route
from rota.threads import one_thread

__all__ = ["LOAD_S", "Design", "Objective", "balanced_policy", "break_even_setup_rate", "design_policy", "find_design"]

Objective = Literal["load", "response-time", "close", "p95"]
RouteChoice = Route | Literal["random", "search"]

LOAD_S = 5.0  # the load may always take this long: without it there is no rota
_CLOSE_S = 9.0  # close rotas are found in less, and tuning them for longer gains little
_FAR = 1e6  # setups beyond so many times the service rates are as good as free, or never done


@dataclass(frozen=True)
class Design:
    """A policy, and how it was found.

    `choice`: how the switching rate of the balanced rota was chosen, None if it was given. `remarks`: anything else worth saying, such as
    that the prediction was used in place of exact values; usually empty.
    """

    policy: MSR
    choice: SwitchingRate | None
    remarks: tuple[str, ...] = ()
    objective: Objective = "load"


@one_thread()
def find_design(
    system: System,
    preemption: Preemption | None = None,
    *,
    load: Load | None = None,
    switching_rate: float | None = None,
    setup_rate: float | None = None,
    objective: Objective = "close",
    by: Yardstick | None = None,
    route: RouteChoice | None = None,
    opening: Opening | None = None,
    seed: int = 0,
    max_response_time: Mapping[str, float] | None = None,
    near: Sequence[MSR] = (),
    time_limit_s: float = 30.0,
    progress: Callable[[TuneProgress], None] | None = None,
) -> Design:
    """`design_policy` with an account of how the policy was found."""
    if objective not in get_args(Objective):
        raise BadSpec([Problem("objective", 'must be "close", "response-time", "load" or "p95"', objective)])
    if by is not None and by not in get_args(Yardstick):
        raise BadSpec([Problem("by", f"must be one of {', '.join(get_args(Yardstick))}", by)])
    seed = whole("seed", seed, 0)
    if max_response_time and objective in ("load", "p95"):
        rule = 'goes with objective="response-time" or "close": balanced loads are not tuned, and the 95 % quantile is tuned without limits'
        raise BadSpec([Problem("max_response_time", rule, max_response_time)])
    check_system(system)
    if not time_limit_s >= 0:
        raise BadSpec([Problem("time_limit_s", "must not be negative", time_limit_s)])
    if load is not None:
        check_load(load, system)
    if objective == "p95":
        design = find_design(
            system,
            preemption,
            load=load,
            switching_rate=switching_rate,
            setup_rate=setup_rate,
            by=by,
            route=route,
            opening=opening,
            near=near,
            time_limit_s=MEAN_PART * time_limit_s,
            progress=progress,
        )
        return tuned_on_p95(system, design, keep_rate=switching_rate is not None, time_limit_s=(1 - MEAN_PART) * time_limit_s)
    if system.bursty:
        design = find_design(
            system.with_poisson_arrivals(),
            preemption,
            load=load,
            switching_rate=switching_rate,
            setup_rate=setup_rate,
            objective=objective,
            by=by,
            route=route,
            opening=opening,
            seed=seed,
            max_response_time=max_response_time,
            near=near,
            time_limit_s=POISSON_PART * time_limit_s,
            progress=progress,
        )
        rest_s = (1 - POISSON_PART) * time_limit_s
        return adapted(system, design, keep_rate=switching_rate is not None, limits=max_response_time, time_limit_s=rest_s)
    limits = ResponseLimits.of(system, max_response_time)
    deadline = Deadline.after(time_limit_s)
    best = load or system_load(system, time_limit_s=max(time_limit_s, LOAD_S))
    policy = balanced_policy(system, best, preemption, setup_rate=setup_rate, opening=opening or "late")
    if objective == "close":
        ways = _ways(route, opening)
        return _close_design(deadline, system, best, policy, switching_rate, by, ways, limits, near, progress)
    policy = _routed(system, policy, route or "type-order", seed, deadline)
    choice = None
    if switching_rate is not None:
        policy = policy.replace(switching_rate=switching_rate)
        analyze(system, policy, sizes="exponential").require_stable()
    else:
        choice = choose_within(deadline, system, policy, by)
        policy = choice.policy
    remarks: tuple[str, ...] = (choice.remark,) if choice is not None and choice.remark else ()
    if objective == "load":
        return Design(policy, choice, remarks)
    keep = switching_rate is not None
    tuned = tune_within(deadline, system, policy, best, by=by, keep_rate=keep, limits=limits, progress=progress)
    remarks += (tuned.remark,) if tuned.remark else ()
    if tuned.policy.preemption != "full":
        return Design(tuned.policy, choice, remarks, objective)
    found = tuned.policy
    if switching_rate is None and len(found.weights) > 1:  # it was tuned in the limit of fast switching
        found = limits.fast_enough(choose_within(deadline, system, found).policy)
    answers = [analyze(system, p, sizes="exponential") for p in (policy, found)]
    yardstick = by or ("exact" if all(answer.has_exact for answer in answers) else "prediction")
    before, after = (measure(answer, yardstick) for answer in answers)
    return Design(found if after <= before or limits.any else policy, choice, remarks, objective)


def _close_design(
    deadline: Deadline,
    system: System,
    best: Load,
    like: MSR,
    switching_rate: float | None,
    by: Yardstick | None,
    ways: Ways,
    limits: ResponseLimits,
    near: Sequence[MSR],
    progress: Callable[[TuneProgress], None] | None,
) -> Design:
    keep = switching_rate is not None
    if switching_rate is not None:
        like = like.replace(switching_rate=switching_rate)
    within = Deadline.after(min(deadline.left_s, _CLOSE_S))
    found = find_close(within, system, best, like, by=by, keep_rate=keep, ways=ways, limits=limits, near=near, progress=progress)
    remarks = (found.remark,) if found.remark else ()
    policy = found.policy
    if policy.preemption == "full" and len(policy.weights) > 1 and not keep:  # it was chosen in the limit of fast switching
        policy = limits.fast_enough(choose_within(deadline, system, policy).policy)
    if keep:
        analyze(system, policy, sizes="exponential").require_stable()
    return Design(policy, None, remarks, "close")


def _ways(route: RouteChoice | None, opening: Opening | None) -> Ways:
    """How the slots of a close rota drain and open: as asked for, or in the best ways known."""
    if route is None:
        return tuple((best, opening or early) for best, early in BEST_WAYS)
    if route not in ("type-order", "fastest-first", "parallel"):
        rule = 'must be "type-order", "fastest-first" or "parallel" with objective="close", which chooses the candidates too'
        raise BadSpec([Problem("route", rule, route)])
    return ((route, opening or "early"),)


@with_parameters_of(find_design)
def design_policy(*arguments: Any, **options: Any) -> MSR:
    """A good MSR policy for one server (`rota.design_policy`)."""
    return find_design(*arguments, **options).policy


def balanced_policy(
    system: System, best: Load, preemption: Preemption | None = None, *, setup_rate: float | None = None, opening: Opening = "late"
) -> MSR:
    """The rota that balances the loads of the types, with a switching rate yet to be chosen."""
    if best.load >= 1:
        raise Unstable(
            f"the system load {best.load:.4g} is not below 1: scale arrivals by less than {1 / best.load:.4g}, or see `rota capacity`"
        )
    if best.load == 0:
        raise Infeasible("no jobs arrive: there is nothing to design for")
    model = preemption or system.preemption
    if model == "setup" and setup_rate is None:
        if system.setup_time is None:
            raise BadSpec([Problem("setup_rate", 'is missing: preemption "setup" needs it, or a setup_time in the system')])
        setup_rate = 1.0 / system.setup_time
    return MSR(
        candidates=best.candidates,
        weights=best.weights,
        preemption=model,
        switching_rate=float(system.service_rate.min()),
        setup_rate=setup_rate if model == "setup" else None,
        opening=opening,
        names=system.names,
    )


def _routed(system: System, policy: MSR, route: RouteChoice, seed: int, deadline: Deadline) -> MSR:
    n, K = policy.candidates.shape
    if route == "random":
        rng = np.random.default_rng(seed)
        return policy.replace(route=[rng.permutation(K).tolist() for _ in range(n)])
    if route != "search":
        return policy.replace(route=route)
    if policy.preemption != "none" or n == 1:
        return policy
    return _best_routes(system, policy, deadline)


def _best_routes(system: System, policy: MSR, deadline: Deadline) -> MSR:
    """Draining orders of lowest predicted E[T]: all orders of each move in turn, or exchanges of neighbours where there are too many.

    Takes half of the time at most; the rest is for the switching rate.
    """
    n, K = policy.candidates.shape
    orders = [list(range(K)) for _ in range(n)]
    policy = choose_within(deadline, system, policy.replace(route=orders), "prediction").policy
    value = measure(analyze(system, policy, sizes="exponential"), "prediction")
    improved = True
    while improved:
        improved = False
        for s in range(n):
            drained = [i for i in orders[s] if policy.candidates[s, i] > policy.candidates[(s + 1) % n, i]]
            rest = [i for i in orders[s] if i not in drained]
            for order in _neighbours(drained):
                if deadline.left_s < deadline.budget_s / 2:
                    return policy
                changed = [*orders[:s], [*order, *rest], *orders[s + 1 :]]
                tried = policy.replace(route=changed)
                found = measure(analyze(system, tried, sizes="exponential"), "prediction")
                if found < value * (1 - 1e-9):
                    policy, orders, value, improved = tried, changed, found, True
    return policy


def _neighbours(drained: list[int]) -> list[tuple[int, ...]]:
    if len(drained) <= 4:
        return list(permutations(drained))
    swapped = []
    for k in range(len(drained) - 1):
        order = drained.copy()
        order[k], order[k + 1] = order[k + 1], order[k]
        swapped.append(tuple(order))
    return swapped


def break_even_setup_rate(system: System, *, by: Yardstick | None = None, opening: Opening = "late") -> float:
    """The γ at which an sMSR overtakes the nMSR, both at their best switching rates: with faster setups than that, preempt.

    Infinite if the nMSR is better even with setups a million times as fast as the fastest service, 0 if it is worse even with setups a
    million times as slow as the slowest.
    """
    best = system_load(system)
    start = balanced_policy(system, best, "none", opening=opening)
    if len(best.weights) == 1:
        raise Infeasible("the rota has one schedule only: it never switches, so setups do not matter")
    target = choose_switching_rate(system, start, by=by).mean_response_time

    def excess(log_rate: float) -> float:
        policy = balanced_policy(system, best, "setup", setup_rate=float(np.exp(log_rate)))
        return float(np.log(choose_switching_rate(system, policy, by=by).mean_response_time / target))

    slowest, fastest = float(np.log(system.service_rate.min() / _FAR)), float(np.log(system.service_rate.max() * _FAR))
    low = high = float(np.log(system.service_rate.mean()))
    while excess(low) < 0:
        if low == slowest:
            return 0.0
        low = max(low - 1.0, slowest)
    while excess(high) > 0:
        if high == fastest:
            return float(np.inf)
        high = min(high + 1.0, fastest)
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)))
