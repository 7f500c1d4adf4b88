"""`design_policy`: from a system to a rota."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from rota.analysis import analyze
from rota.arguments import whole
from rota.capacity import Load, system_load
from rota.design.fairness import ResponseLimits
from rota.design.switching import Yardstick, choose_switching_rate, measure
from rota.design.tune import TuneProgress, tune_response_time
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import Preemption, System
from rota.policy import MSR, Opening, Route

__all__ = ["Objective", "balanced_policy", "break_even_setup_rate", "design_policy"]

Objective = Literal["load", "response-time"]
RouteChoice = Route | Literal["random", "search"]

_FAR = 1e6  # setups beyond so many times the service rates are as good as free, or never done


def design_policy(
    system: System,
    preemption: Preemption | None = None,
    *,
    switching_rate: float | None = None,
    setup_rate: float | None = None,
    objective: Objective = "load",
    by: Yardstick | None = None,
    route: RouteChoice = "type-order",
    opening: Opening = "late",
    seed: int = 0,
    max_response_time: Mapping[str, float] | None = None,
    time_limit_s: float = 30.0,
    progress: Callable[[TuneProgress], None] | None = None,
) -> MSR:
    """A good MSR policy for a system; sizes are taken as exponential.

    `preemption` and `setup_rate` are the system's unless given. `objective="load"`: the paper's design, candidates and weights that
    balance the loads of the types (Eq. optimization, solved to optimality), in a loop in lexicographic order, with the best switching rate.
    `objective="response-time"`: from there on everything is tuned on E[T] for at most `time_limit_s`, and never ends worse. With it,
    `max_response_time`, as `{"train": 5.0}`, limits E[T_i] of some types; `Infeasible` if no policy that keeps the limits was found.

    `switching_rate` is kept if given; None means: choose it, `by` the exact E[T] (default where the process is small), the prediction
    or a bound. `route`, `opening`: how an nMSR moves between schedules, see `rota.MSR`; "random" orders by `seed`, "search" the best by
    prediction.
    """
    if objective not in ("load", "response-time"):
        raise BadSpec([Problem("objective", 'must be "load" or "response-time"', objective)])
    seed = whole("seed", seed, 0)
    if max_response_time and objective == "load":
        raise BadSpec(
            [Problem("max_response_time", 'goes with objective="response-time": balanced loads are not tuned', max_response_time)]
        )
    limits = ResponseLimits.of(system, max_response_time)
    best = system_load(system)
    policy = balanced_policy(system, best, preemption, setup_rate=setup_rate, opening=opening)
    policy = _routed(system, policy, route, seed)
    if switching_rate is not None:
        policy = policy.replace(switching_rate=switching_rate)
        analyze(system, policy, sizes="exponential").require_stable()
    else:
        policy = choose_switching_rate(system, policy, by=by).policy
    if objective == "load":
        return policy
    keep = switching_rate is not None
    tuned = tune_response_time(
        system, policy, best, by=by, keep_rate=keep, max_response_time=max_response_time, time_limit_s=time_limit_s, progress=progress
    )
    if tuned.preemption != "full":
        return tuned
    if switching_rate is None and len(tuned.weights) > 1:  # it was tuned in the limit of fast switching
        tuned = limits.fast_enough(choose_switching_rate(system, tuned).policy)
    before, after = (measure(analyze(system, p, sizes="exponential"), by or "exact") for p in (policy, tuned))
    return tuned if after <= before or limits.any else policy


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


def _routed(system: System, policy: MSR, route: RouteChoice, seed: int) -> MSR:
    n, K = policy.candidates.shape
    if route == "random":
        rng = np.random.default_rng(seed)
        return policy.replace(route=[rng.permutation(K).tolist() for _ in range(n)])
    if route != "search":
        return policy.replace(route=route)
    if policy.preemption != "none" or n == 1:
        return policy
    return _best_routes(system, policy)


def _best_routes(system: System, policy: MSR) -> MSR:
    """Draining orders of lowest predicted E[T]: all orders of each move in turn, or exchanges of neighbours where there are too many."""
    n, K = policy.candidates.shape
    orders = [list(range(K)) for _ in range(n)]
    policy = choose_switching_rate(system, policy.replace(route=orders), by="prediction").policy
    value = measure(analyze(system, policy, sizes="exponential"), "prediction")
    improved = True
    while improved:
        improved = False
        for s in range(n):
            drained = [i for i in orders[s] if policy.candidates[s, i] > policy.candidates[(s + 1) % n, i]]
            rest = [i for i in orders[s] if i not in drained]
            for order in _neighbours(drained):
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
