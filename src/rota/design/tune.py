"""Beyond balanced loads: a rota tuned on its exact mean response time.

Balancing the loads (the paper's objective) is a heuristic: it looks at the bottleneck only. As E[T] can be computed, everything about a
rota can be tuned on it, starting from the balanced design and accepting improvements only:

    weights and switching rate     together, by a simplex search on their logarithms
    opening of slots               early instead of late (nMSR)
    draining orders                one per move (nMSR), by exchanging two types
    the order of the loop          by exchanging two candidates (nMSR, sMSR)
    candidates                     one more maximal schedule, one fewer, or one schedule alone

For preemption "full" the weights are tuned in the limit of fast switching, which has a closed form, unless the rate is to be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from rota.analysis import analyze
from rota.analysis.means import SMALL_STATES, LoopMeans, require_poisson
from rota.arrays import Array, Int
from rota.capacity import Load, list_schedules
from rota.capacity.schedules import LISTED
from rota.design.deadline import Deadline, OutOfTime
from rota.design.fairness import ResponseLimits
from rota.design.switching import Yardstick, fast_switching_limit, measure
from rota.errors import Infeasible, NotConverged, TooManySchedules
from rota.model import System
from rota.policy import MSR, repeats_itself
from rota.threads import one_thread

__all__ = ["TuneProgress", "Tuned", "tune_response_time", "tune_within"]

_POOL = 40  # schedules to choose further candidates from
_ENOUGH = 1e-3  # a change must gain this much, relative, to be kept
_COARSE, _NEAR = 1e-4, 5e-3  # a search ends first when its values differ by so little, and goes on where it is so near to the best
_SIMPLER = 1e-4  # a candidate less may cost this much
_LEAST = 2e-3  # the least weight of a candidate, and
_FASTEST = 10.0  # the fastest clock, in rings of the busiest schedule: beyond it there are hardly any working states
_VALUES = 50  # exact values that must fit the time limit, or the prediction is tuned
_MOST_STATES = 2000  # of the moves of a rota that drains in parallel: a corner beside a close schedule may need millions
_NEVER = 1e100


@dataclass(frozen=True)
class TuneProgress:
    """How far a tuning has come."""

    mean_response_time: float
    start: float
    step: str
    time_s: float


@dataclass(frozen=True)
class Tuned:
    """A tuned policy; `remark` says why it was tuned on the prediction, where it was."""

    policy: MSR
    remark: str = ""


def tune_response_time(
    system: System,
    start: MSR,
    best_load: Load,
    *,
    by: Yardstick | None = None,
    keep_rate: bool = False,
    max_response_time: Mapping[str, float] | None = None,
    time_limit_s: float = 60.0,
    progress: Callable[[TuneProgress], None] | None = None,
) -> MSR:
    """A policy of lower E[T] than `start`, or `start` itself. Stops at the time limit or on Ctrl-C with the best so far.

    `by` None means: the exact E[T] where the time is enough for some fifty values, otherwise the prediction. `keep_rate`: the switching
    rate of `start` stays as it is. `max_response_time`: limits on E[T_i] by name of the type; a policy that keeps them comes before one
    that does not, and raises `Infeasible` if none was found.
    """
    limits = ResponseLimits.of(system, max_response_time)
    deadline = Deadline.after(time_limit_s)
    return tune_within(deadline, system, start, best_load, by=by, keep_rate=keep_rate, limits=limits, progress=progress).policy


@one_thread()
def tune_within(
    deadline: Deadline,
    system: System,
    start: MSR,
    best_load: Load,
    *,
    by: Yardstick | None = None,
    keep_rate: bool = False,
    limits: ResponseLimits | None = None,
    progress: Callable[[TuneProgress], None] | None = None,
) -> Tuned:
    """`tune_response_time` with a time limit that began before."""
    require_poisson(system)
    if start.generator is not None:
        raise Infeasible("only loops are tuned: this policy has a generator of its own between its candidates")
    limits = limits or ResponseLimits.of(system, None)
    if limits.any:  # the best rota that keeps the limits is mostly near the best without them, so that one is looked for first
        half = Deadline.after(deadline.left_s / 2)
        start = tune_within(half, system, start, best_load, by=by, keep_rate=keep_rate, progress=progress).policy
    began = time.perf_counter()
    search = _Search(system, start, best_load, by, keep_rate, limits, deadline)

    def tell(step: str) -> None:
        if progress is not None:
            now, first = search.value, search.first
            if limits.any:  # these are charged for broken limits
                now, first = (search.little(search.queues(policy)) for policy in (search.policy, start))
            progress(TuneProgress(now, first, step, time.perf_counter() - began))

    try:
        search.try_and_polish(start, "weights")
        tell("weights")
        search.try_alone(start)
        improved = True
        while improved and not search.out_of_time():
            improved = False
            for step, proposal in search.proposals():
                if search.out_of_time():
                    break
                if search.try_and_polish(proposal, step):
                    improved = True
                    tell(step)
                    break
    except (KeyboardInterrupt, OutOfTime):
        pass
    found = search.answer(start)
    if limits.any:
        limits.require(search.queues(found.policy))
    return found


class _Search:
    """The best policy so far, and what could be changed about it."""

    def __init__(
        self,
        system: System,
        start: MSR,
        best_load: Load,
        by: Yardstick | None,
        keep_rate: bool,
        limits: ResponseLimits,
        deadline: Deadline,
    ) -> None:
        self.system, self.keep_rate, self.limits, self.deadline = system, keep_rate, limits, deadline
        self._last: tuple[object, LoopMeans | None] = (None, None)
        self.closed_form = start.preemption == "full" and not keep_rate
        # One yardstick for all policies: a prediction must not be compared with an exact value.
        self.remark, self.longest_s = "", np.inf
        self.by: Yardstick = by or "exact"
        answer = analyze(system, start, sizes="exponential")
        if by is None and not self.closed_form and not (answer.stable and _VALUES * answer.means_time_s <= deadline.budget_s):
            self._predict(f"exact values of this process ({len(answer.process):,} states) take too long")
        self.pool = _pool(system, best_load)
        self.policy = start
        try:
            self.first = self.value = self.score(start)
        except OutOfTime:  # only the start is known
            self.first = self.value = np.inf
        except NotConverged as problem:
            if by is not None:
                raise
            self._predict(f"exact values did not converge ({problem})")
            self.first = self.value = self.score(start)
        if self.by == "exact":
            self.longest_s = max(answer.means_time_s, deadline.budget_s / _VALUES)

    def _predict(self, why: str) -> None:
        self.by, self.remark = "prediction", f"{why}: the prediction was tuned"

    def answer(self, start: MSR) -> Tuned:
        """The result. An improvement by the prediction is checked with exact values if they can be computed in time."""
        if self.remark and self.policy != start and not self.limits.any:
            answers = [analyze(self.system, policy, sizes="exponential") for policy in (start, self.policy)]
            affordable = sum(answer.exact_time_s for answer in answers) <= self.deadline.left_s
            if affordable and all(answer.has_exact for answer in answers) and measure(answers[0], "exact") < measure(answers[1], "exact"):
                return Tuned(start, self.remark)
        return Tuned(self.policy, self.remark)

    def out_of_time(self) -> bool:
        return self.deadline.left_s < 0

    def score(self, policy: MSR) -> float:
        """E[T] by the yardstick, and more if a limit is broken; infinite if unstable or if exact values would take too long."""
        self.deadline.check()
        queues = self.queues(policy)
        return self.limits.charged(self.little(queues), queues)

    def little(self, queues: Array) -> float:
        return float(queues.sum() / self.system.arrival_rate.sum())

    def queues(self, policy: MSR) -> Array:
        """The E[Q_i] by the yardstick; infinite if unstable or if exact values would take the time of many others."""
        if self.closed_form:
            return fast_switching_limit(self.system, policy)
        nothing: Array = np.full(len(self.system.names), np.inf)
        loop = self.loop(policy)
        if loop is not None:
            try:
                return loop(policy.weights, policy.switching_rate)
            except NotConverged:
                if "first" not in vars(self):
                    raise
                return nothing
        answer = analyze(self.system, policy, sizes="exponential")
        if not answer.stable or (self.by == "exact" and answer.means_time_s > self.longest_s):
            return nothing
        try:
            queues: Array = answer.exact_means if self.by == "exact" else getattr(answer, self.by)
        except NotConverged:
            if "first" not in vars(self):
                raise
            return nothing
        return queues

    def loop(self, policy: MSR) -> LoopMeans | None:
        """Exact mean queues of this loop of candidates at any weights and rate; None if it is too large, or the yardstick is another."""
        if self.by != "exact" or self.closed_form:
            return None
        key = policy.candidates.tobytes(), policy.route, policy.opening
        if self._last[0] != key:
            loop = LoopMeans(self.system, policy)
            self._last = key, loop if len(loop.process) <= SMALL_STATES else None
        return self._last[1]

    def try_alone(self, start: MSR) -> None:
        """One schedule that serves every type, and no switching at all: often the best at low load."""
        for row in self.pool:
            alone = start.replace(candidates=row[None, :], weights=[1.0], route="type-order")
            value = self.score(alone)
            if value < self.value * (1 - _ENOUGH):
                self.policy, self.value = alone, value

    def try_and_polish(self, proposal: MSR, step: str) -> bool:
        """Polishes a proposal; keeps it if it is better than the best so far."""
        rough, value = self._rates(proposal)
        if step != "weights" and value > 1.15 * self.value:  # polishing gains less than that
            return False
        polished, value = self._polish(rough, value)
        allowed = 1 + _SIMPLER if len(proposal.weights) < len(self.policy.weights) else 1 - _ENOUGH
        if value < min(self.value * allowed, self.first):
            self.policy, self.value = polished, value
            return True
        return False

    def _rates(self, policy: MSR) -> tuple[MSR, float]:
        """The proposal at the best of a few switching rates around its own."""
        if policy.preemption == "full" or len(policy.weights) == 1 or self.keep_rate:
            return policy, self.score(policy)
        choices = [policy.replace(switching_rate=policy.switching_rate * factor) for factor in (0.5, 0.7, 1.0, 1.4, 2.0, 3.0)]
        values = [self.score(choice) for choice in choices]
        k = int(np.argmin(values))
        return choices[k], values[k]

    def _polish(self, policy: MSR, value: float) -> tuple[MSR, float]:
        """Weights and switching rate by a simplex search on their logarithms."""
        n = len(policy.weights)
        clocked = policy.preemption != "full" and not self.keep_rate
        if n == 1 or not np.isfinite(value):
            return policy, value

        def build(x: Array) -> tuple[Array, float]:
            weights = np.exp(np.append(x[: n - 1], 0.0) - max(x[: n - 1].max(), 0.0))
            return weights / weights.sum(), float(np.exp(x[-1])) if clocked else policy.switching_rate

        def loss(x: Array) -> float:
            if self.out_of_time() or np.abs(x).max() > 40:
                return _NEVER
            weights, rate = build(x)
            if weights.min() < _LEAST or (clocked and rate > fastest):
                return _NEVER
            try:
                if loop is None:
                    return min(self.score(policy.replace(weights=weights, switching_rate=rate)), _NEVER)
                queues = loop(weights, rate)
                return min(self.limits.charged(self.little(queues), queues), _NEVER)
            except (OutOfTime, NotConverged):
                return _NEVER

        loop = self.loop(policy)

        fastest = _FASTEST * float((policy.candidates @ self.system.service_rate).max())

        x0 = np.log(policy.weights[:-1] / policy.weights[-1])
        if clocked:
            x0 = np.append(x0, np.log(policy.switching_rate))
        most, coarse = 120 * len(x0), {"xatol": 1e-2, "fatol": _COARSE * value}
        found = minimize(loss, x0, method="Nelder-Mead", options={**coarse, "maxfev": most, "initial_simplex": _simplex(x0)})
        if found.fun < (1 + _NEAR) * self.value:  # a fine search gains less than that
            fine = {"xatol": 1e-4, "fatol": 1e-7 * value, "maxfev": max(most - found.nfev, 2 * len(x0) + 2)}
            found = minimize(loss, found.x, method="Nelder-Mead", options={**fine, "initial_simplex": found.final_simplex[0]})
        if not found.fun < value:
            return policy, value
        weights, rate = build(found.x)
        return policy.replace(weights=weights, switching_rate=rate), float(found.fun)

    def proposals(self) -> Iterator[tuple[str, MSR]]:
        """Changes of the best policy, the cheap ones first."""
        policy = self.policy
        n, K = policy.candidates.shape
        if n == 1 and policy.preemption != "full" and not self.keep_rate:  # a clock to start from, when there is something to switch to
            policy = policy.replace(switching_rate=float(self.system.service_rate.min()))
        if policy.preemption == "none":
            if policy.opening == "late":
                yield "opening slots early", policy.replace(opening="early")
            if n > 1:
                yield from self._orders(policy)
        if policy.preemption != "full" and n > 3:
            for a, b in combinations(range(n), 2):
                order = np.arange(n)
                order[[a, b]] = order[[b, a]]
                if repeats_itself(policy.candidates[order]):
                    continue
                yield (
                    "order of the loop",
                    policy.replace(
                        candidates=policy.candidates[order], weights=policy.weights[order], route=_reordered(policy.route, order)
                    ),
                )
        if n > 1:
            for s in np.argsort(policy.weights):
                keep = np.arange(n) != s
                if repeats_itself(policy.candidates[keep]):
                    continue
                weights = policy.weights[keep] / policy.weights[keep].sum()
                yield (
                    "a candidate less",
                    policy.replace(
                        candidates=policy.candidates[keep], weights=weights, route=_reordered(policy.route, np.flatnonzero(keep))
                    ),
                )
        if n < 2 * K + 1:
            yield from self._additions(policy)

    def _orders(self, policy: MSR) -> Iterator[tuple[str, MSR]]:
        """Draining orders that differ in two neighbouring types of one move."""
        n, K = policy.candidates.shape
        route = policy.route if not isinstance(policy.route, str) else (tuple(range(K)),) * n
        for s in range(n):
            go = policy.candidates[s] > policy.candidates[(s + 1) % n]
            drained = [i for i in route[s] if go[i]]
            rest = [i for i in route[s] if not go[i]]
            for k in range(len(drained) - 1):
                order = drained.copy()
                order[k], order[k + 1] = order[k + 1], order[k]
                yield "draining orders", policy.replace(route=(*route[:s], (*order, *rest), *route[s + 1 :]))

    def _additions(self, policy: MSR) -> Iterator[tuple[str, MSR]]:
        """One more schedule of the pool, where in the loop it costs least to visit."""
        present = {row.tobytes() for row in policy.candidates}
        n, K = policy.candidates.shape
        scored: list[tuple[float, int, MSR]] = []
        for row in self.pool:
            if row.tobytes() in present:
                continue
            detour = [
                np.maximum(policy.candidates[s] - row, 0).sum() + np.maximum(row - policy.candidates[(s + 1) % n], 0).sum()
                for s in range(n)
            ]
            at = int(np.argmin(detour)) + 1
            route = policy.route
            if not isinstance(route, str):
                route = (*route[:at], tuple(range(K)), *route[at:])
            proposal = policy.replace(
                candidates=np.insert(policy.candidates, at, row, axis=0),
                weights=np.insert(policy.weights * 0.9, at, 0.1),
                route=route,
            )
            if proposal.route == "parallel" and _parallel_states(proposal.candidates) > _MOST_STATES:
                continue
            scored.append((self._rates(proposal)[1], len(scored), proposal))
            if self.out_of_time():
                return
        for _, _, proposal in sorted(scored)[:6]:
            yield "a candidate more", proposal


def _parallel_states(candidates: Int) -> float:
    """The states between the candidates of a loop that drains in parallel: Π_i (1 + slots of type i that go) for each move."""
    go = np.maximum(candidates - np.roll(candidates, -1, axis=0), 0)
    return float((go + 1.0).prod(axis=1).sum())


def _simplex(x0: Array) -> Array:
    """A start for the simplex search: steps of 10 % in every weight and rate."""
    return np.vstack([x0, x0 + 0.1 * np.eye(len(x0))])


def _reordered(route: object, order: Int | Array) -> object:
    return route if isinstance(route, str) else tuple(route[int(s)] for s in order)  # type: ignore[index]


def _pool(system: System, best_load: Load) -> Int:
    """Maximal schedules that could be worth running: those of highest value at the prices of the load."""
    try:
        maximal = list_schedules(system, maximal=True, limit=LISTED)
    except TooManySchedules:
        return best_load.candidates
    worth = maximal @ best_load.type_price
    return maximal[np.argsort(-worth, kind="stable")[:_POOL]]
