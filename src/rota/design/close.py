"""Close rotas: candidates near the work that arrives, instead of at the corners of the server.

The least load says which mixes of schedules serve the work, and leaves open which of them to take. Column generation returns extreme ones,
one type at a time, and a switch between them drains the server. Any mix with Σ π_s s > λ⊘μ is stable if it switches slowly enough (Theorem
nmsr-existence), so the candidates may as well lie next to each other: then a switch waits for a job or two.

    target      x slots on average, at a level τ between ρ and 1 of the server (`rota.design.targets`)
    cover       the mix of least mean distance from x that covers it (`rota.capacity.cover`), jobs weighed by what moving one costs:
                1/μ_i where it must end first, the same for all where it is set up again, and where it may be stopped freely
    loop        a short tour through the candidates, weighed by the time that each switch takes (`rota.design.tour`)
    the rest    of the server is spent by marginal value
    switching   slots drain in parallel or the fastest first, new ones open as soon as they fit; the rate is the best one

Where one schedule has a slot more than its work for every type, it is tried alone: its queues are M/M/k, and nothing ever switches.
The level, the kind of target and the rest are compared by the prediction first, and the best of them by the exact E[T]. The proof is that
of the exact analysis: nothing is claimed about rotas that were not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rota.analysis import analyze
from rota.arrays import Array, Int
from rota.capacity import Load, cover
from rota.design.deadline import Deadline, OutOfTime
from rota.design.fairness import ResponseLimits
from rota.design.stable_rates import edge_of_stability
from rota.design.switching import Rates, Yardstick, fast_switching_limit, measure, minimize_on_log_scale
from rota.design.targets import Marginals, Target, best_single_schedule, rounded_up, spend_each, spend_together
from rota.design.tour import short_tour
from rota.design.tune import TuneProgress, tune_within
from rota.errors import Infeasible, NotConverged, Unstable
from rota.model import System
from rota.policy import MSR, Opening, Route, repeats_itself
from rota.process.build import draining_time
from rota.threads import one_thread

__all__ = ["Close", "close_rotas", "find_close"]

_LEVELS = (0.55, 0.85, 0.25, 0.7, 0.4, 0.95, 0.1)  # of the way from ρ to 1, in the order in which they are tried
_FINALISTS = 6  # rotas that are compared exactly
_STATES = 300  # of the moves of a rota that drains in parallel, and of a balanced rota
_RATES = 7  # switching rates at which a rota is predicted
_EXACT_VALUES = 12  # exact values that the comparison of one rota takes, about
_ALWAYS_S = 0.5  # what is estimated to take less is done in any case
_TUNED = 3  # close rotas that are tuned
_PERFECT = 0.02  # a single schedule whose jobs wait for less than this part of their time in service need not be improved
_TRUST = 0.1  # a rota with exact values is taken before one that is predicted to be better by no more than this
_HOPELESS = 50.0  # a balanced rota that is worse by this factor is not,
_PROMISING = 1.5  # and if it still is by this after a while, no longer
_UNSTABLE = 1e100  # E[T] where there is none: a search by parabolas cannot use infinity
_LEAST_WEIGHT = 1e-3  # a candidate that runs less than this is left out, if the others still serve the work


Ways = tuple[tuple[Route, Opening], ...]
BEST_WAYS: Ways = (("fastest-first", "early"), ("parallel", "early"))


@dataclass(frozen=True)
class Close:
    """A close rota; `remark` says why it was chosen by the prediction, where it was."""

    policy: MSR
    remark: str = ""


@one_thread()
def find_close(
    deadline: Deadline,
    system: System,
    best: Load,
    like: MSR,
    *,
    by: Yardstick | None = None,
    keep_rate: bool = False,
    ways: Ways = BEST_WAYS,
    limits: ResponseLimits | None = None,
    near: Sequence[MSR] = (),
    progress: Callable[[TuneProgress], None] | None = None,
) -> Close:
    """The best close rota found, with the preemption model and setups of `like`.

    `by` None means: exact E[T] where some dozen values of each rota fit the time, otherwise the prediction. The best few are tuned
    (`rota.design.tune`), the balanced rota with them where it is not far worse, and the best of them as long as that helps.
    `keep_rate`: all rotas have the switching rate of `like`. `ways`: how slots drain and open (nMSR). `near`: rotas that
    are good at another load, and take part.
    """
    rated: list[tuple[float, int, MSR]] = []
    least = float(system.offered_work.sum() / system.arrival_rate.sum())  # no policy has less: the mean time in service
    for rota in chain(near, close_rotas(deadline, system, best, like, ways)):
        value, policy = _rated(system, rota, "prediction", deadline, keep_rate)
        rated.append((value, len(rated), policy))
        if len(policy.weights) == 1 and value <= (1 + _PERFECT) * least and (limits is None or not limits.any):
            return Close(policy)
    rated = sorted(entry for entry in rated if np.isfinite(entry[0]))
    if not rated:
        raise Infeasible("no close rota is stable at any switching rate")
    remark = ""
    if like.preemption != "full" and by in (None, "exact"):
        exact = _exactly(system, rated, deadline, by == "exact", keep_rate)
        if exact and (by == "exact" or exact[0][0] <= (1 + _TRUST) * rated[0][0]):
            rated = exact
        else:
            remark = "exact values of close rotas take too long: the prediction decided"
    if limits is not None and limits.any:  # to keep them takes all the time there is
        found = tune_within(deadline, system, rated[0][2], best, by=by, keep_rate=keep_rate, limits=limits, progress=progress)
        return Close(found.policy, remark)
    tuned: list[tuple[float, int, MSR]] = []
    ended: set[MSR] = set()  # tuned until nothing helped: not again

    def tune(number: int, policy: MSR, seconds: float) -> None:
        if policy in ended:
            return
        if seconds > 0:
            within = Deadline.after(seconds)
            policy = tune_within(within, system, policy, best, by=by, keep_rate=keep_rate, progress=progress).policy
            if within.left_s >= 0:
                ended.add(policy)
        tuned.append((_value(system, policy, by, remark), number, policy))

    first, others = _different(rated[:_TUNED]), _different(rated[:_FINALISTS])
    for value, number, policy in first:
        if value <= _PROMISING * first[0][0]:
            tune(number, policy, deadline.left_s / (2 * _TUNED))
    if not remark:
        for value, number, policy in _balanced(system, like, deadline, keep_rate):
            if value <= _HOPELESS * min(tuned)[0]:
                tune(number, policy, 0.25 * deadline.left_s)
                if tuned[-1][0] <= _PROMISING * min(tuned)[0]:
                    tune(number, tuned[-1][2], 0.5 * deadline.left_s)
    _, number, policy = min(tuned)
    tune(number, policy, deadline.left_s)
    for value, number, policy in others[len(first) :]:  # where there is time left
        if value <= _PROMISING * min(tuned)[0]:
            tune(number, policy, deadline.left_s)
    return Close(min(tuned)[2], remark)


def _different(rated: list[tuple[float, int, MSR]]) -> list[tuple[float, int, MSR]]:
    """Of rotas with the same candidates the best one only: tuning changes their weights, their order and the rate."""
    found: dict[object, tuple[float, int, MSR]] = {}
    for entry in rated:
        policy = entry[2]
        rows = np.unique(policy.candidates, axis=0).tobytes()
        found.setdefault((rows, policy.route if isinstance(policy.route, str) else "", policy.opening), entry)
    return list(found.values())


def _balanced(system: System, like: MSR, deadline: Deadline, keep_rate: bool) -> list[tuple[float, int, MSR]]:
    """The balanced rota at its best rate, if exact values of it take little time: on a small server tuning may get further from there."""
    if like.preemption == "full":
        return [(_rated(system, like, "prediction", deadline, keep_rate)[0], -1, like)]
    if np.maximum(like.candidates - np.roll(like.candidates, -1, axis=0), 0).sum() > _STATES:
        return []
    early = like.replace(opening="early") if like.preemption == "none" else like
    value, policy = _rated(system, early, "prediction", deadline, keep_rate)
    return _exactly(system, [(value, -1, policy)], deadline, False, keep_rate) if np.isfinite(value) else []


def _exactly(
    system: System, rated: list[tuple[float, int, MSR]], deadline: Deadline, wanted: bool, keep_rate: bool
) -> list[tuple[float, int, MSR]]:
    """The first few rotas whose exact E[T] takes little time (any, if `wanted`), at their best rates by it, the best of them first."""
    found: list[tuple[float, int, MSR]] = []
    for _, number, policy in rated:
        takes_s = _EXACT_VALUES * Rates(system, policy, deadline)(policy.switching_rate).means_time_s
        if takes_s > max(deadline.budget_s / _FINALISTS, _ALWAYS_S) and not wanted:
            continue
        try:
            within = Deadline.after(None) if wanted or takes_s <= _ALWAYS_S else deadline
            value, policy = _rated(system, policy, "exact", within, keep_rate)
        except (NotConverged, OutOfTime):
            continue
        found.append((value, number, policy))
        if len(found) == _FINALISTS:
            break
    return sorted(found)


def _value(system: System, policy: MSR, by: Yardstick | None, remark: str) -> float:
    if policy.preemption == "full":
        return _rated(system, policy, "prediction", Deadline.after(None), False)[0]
    answer = analyze(system, policy, sizes="exponential")
    yardstick: Yardstick = by or ("prediction" if remark else "exact")
    return answer.little(answer.exact_means) if yardstick == "exact" and answer.stable else measure(answer, yardstick)


def close_rotas(deadline: Deadline, system: System, best: Load, like: MSR, ways: Ways = BEST_WAYS) -> Iterator[MSR]:
    """Close rotas to choose from, at several levels, each with a first guess of a switching rate. Ends when half of the time is over."""
    marginals = Marginals(system, best)
    with suppress(Infeasible):
        yield _alone(like, best_single_schedule(marginals))
    cost = 1 / system.service_rate if like.preemption == "none" else np.ones(len(system.names))
    seen: set[bytes] = set()
    known = best.candidates
    for part in _LEVELS:
        for target in _targets(marginals, best.load + part * (1 - best.load)):
            if deadline.left_s < deadline.budget_s / 2 and seen:
                return
            try:
                limit_s = max(deadline.budget_s / 20, 0.2)
                found = cover(system, target.slots, cost, load=target.load, known=known, gap=1e-3, time_limit_s=limit_s)
            except Infeasible:  # by rounding
                continue
            known = np.unique(np.vstack([known, found.candidates]), axis=0)
            candidates, weights = _few(system, found.candidates, found.weights)
            for spend in (spend_together, spend_each):
                filled, shares = _merged(spend(marginals, candidates, weights), weights)
                key = filled.tobytes() + np.round(shares, 6).tobytes()
                if key not in seen:
                    seen.add(key)
                    yield from _looped(system, like, filled, shares, ways)


def _targets(marginals: Marginals, level: float) -> Iterator[Target]:
    """Those of a level, each also with whole numbers for as many types as can be."""
    for target in (marginals.marginal(level), marginals.proportional(level)):
        yield rounded_up(marginals, target)
        yield target


def _alone(like: MSR, schedule: Int) -> MSR:
    return like.replace(candidates=schedule[None, :], weights=[1.0], route="type-order")


def _few(system: System, candidates: Int, weights: Array) -> tuple[Int, Array]:
    """Without candidates that hardly ever run, if the others serve the work."""
    keep = weights >= _LEAST_WEIGHT
    left = weights[keep] / weights[keep].sum()
    if ((left @ candidates[keep] > system.offered_work) | (system.offered_work == 0)).all():
        return candidates[keep], left
    return candidates, weights


def _merged(candidates: Int, weights: Array) -> tuple[Int, Array]:
    """Each schedule once."""
    rows, inverse = np.unique(candidates, axis=0, return_inverse=True)
    shares: Array = np.bincount(inverse.ravel(), weights=weights, minlength=len(rows)).astype(np.float64)
    return rows, shares / shares.sum()


def _looped(system: System, like: MSR, candidates: Int, weights: Array, ways: Ways) -> Iterator[MSR]:
    """The candidates in a loop in good order, with the ways to switch that the preemption model leaves open."""
    if len(weights) == 1:
        yield _alone(like, candidates[0])
        return
    order = short_tour(_switching_times(system, like, candidates))
    rota = like.replace(candidates=candidates[order], weights=weights[order], route="type-order")
    assert not repeats_itself(rota.candidates)
    if like.preemption != "none":
        yield rota
        return
    go = np.maximum(rota.candidates - np.roll(rota.candidates, -1, axis=0), 0)
    in_parallel = (go > 0).sum(axis=1).max() > 1 and (go + 1.0).prod(axis=1).sum() <= _STATES
    for route, opening in ways:
        if route != "parallel" or in_parallel or len(ways) == 1:
            yield rota.replace(route=route, opening=opening)


def _switching_times(system: System, like: MSR, candidates: Int) -> Array:
    """What each move takes (n, n): the expected time to drain or to set up; where both are free, the jobs that change."""
    n = len(candidates)
    times = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            go = np.maximum(candidates[a] - candidates[b], 0)
            if like.preemption == "none":
                times[a, b] = float(draining_time(system, candidates[a], candidates[b]).sum())
            else:
                times[a, b] = float(np.abs(candidates[a] - candidates[b]).sum() if like.preemption == "full" else go.sum())
    return times


def _rated(system: System, policy: MSR, by: Yardstick, deadline: Deadline, keep_rate: bool) -> tuple[float, MSR]:
    """E[T] by the yardstick at a good switching rate, and the policy with that rate; infinite if it is stable at none.

    With `keep_rate` at the rate that the policy has.
    """
    if policy.preemption == "full":
        queues = fast_switching_limit(system, policy)
        return float(queues.sum() / system.arrival_rate.sum()), policy
    at = Rates(system, policy, deadline)
    if len(policy.weights) == 1:
        return measure(at(1.0), by), policy
    if keep_rate:
        answer = at(policy.switching_rate)
        means = answer.exact_means if by == "exact" and answer.stable else answer.prediction
        return answer.little(means) if answer.stable else np.inf, policy
    if by == "exact":  # the rate of the prediction is at hand
        middle = float(np.log(policy.switching_rate))

        def value_at(rate: float) -> float:
            deadline.check()
            return at(rate).little(at(rate).exact_means) if at(rate).stable else _UNSTABLE

        rate, value = minimize_on_log_scale(value_at, middle - 1.5, middle + 1.5, 0.05)
        return value, policy.replace(switching_rate=rate)
    try:
        edge = edge_of_stability(system, at.process)
    except Unstable:
        return np.inf, policy
    fastest = 10 * float(at.process.exit_rate[~at.process.working].max(initial=float(system.service_rate.max())))
    rates = np.geomspace(1e-3, 0.9, _RATES) * min(edge, fastest)
    values = [at(float(rate)).little(at(float(rate)).quick_prediction) for rate in rates]
    k = int(np.argmin(values))
    return values[k], policy.replace(switching_rate=float(rates[k]))
