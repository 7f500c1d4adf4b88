"""Queue-driven rotas: the queues choose a schedule as goal and hold it; other jobs start only where they cannot delay it.

With Q_i jobs present and importance c_i, a schedule s weighs v(s) = Σ c_i min(s_i, Q_i) Q_i; v is the weight of the heaviest goal. A goal g
is *full* while Σ_i p_i min(Q_i, cap·g_i) ≥ full·Σ p_i g_i, p_i what a job needs of the most loaded resource: jobs for it are there. With
a finite `cap`, many jobs of a type with few slots do not make up for slots of other types that stay empty. With very long queues,
v > 10⁴ v₀, every goal counts as full and nothing grows freely, unless `full` or `free` is infinite (v₀ = Σ c_i max(x_i, 1)², the weight of
the work x that arrives).

1. *Free*: u' is what runs and the heaviest addition to it, as under MaxWeight without preemption. It runs if
   v ≤ (1 + slack·v^(−1/10)) v(u') + free.
2. *Goal*: otherwise the goal g is kept while it is full and no full one weighs more than (1 + hold·v^(−1/10)) v(g); else the heaviest full
   one takes its place. While none is full, jobs start wherever they fit, and the goal stays.
3. *Slots*: jobs with a slot in g start.
4. *Safe backfilling*: others start where they fit beside what runs and all that the goal could run, max(u_i, min(Q_i, g_i)) jobs of each
   type. If the jobs of the goal that wait weigh no more than `waive`, nothing is kept for them.

Of several types that may start a job, that of largest c_i Q_i d_i comes first, d_i its dominant share: large jobs fit less often; or that
of the oldest job. With full = ∞ and the oldest first, the policy is First-Fit.
The power −1/10 makes the thresholds small against long queues, and switches rare against the time that a switch takes. Both are needed
for stability, see docs/explanation/adaptive-rotas.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import fits
from rota.capacity.packing import Workspace, search_best
from rota.decide.rule import Description, Rule
from rota.decide.state import COMPLETION, KIND, SWITCHES, SWITCHING, TYPE, State, copy_waiting, fits_one, take_next
from rota.decide.weights import GRAIN, NODES, MaxWeightData, max_weight_data
from rota.errors import BadSpec, Infeasible, Problem
from rota.kernel import kernel
from rota.model import System
from rota.policy import MaxWeight
from rota.policy.adaptive import Adaptive
from rota.views import by_reference

__all__ = ["ADAPTIVE_RULE", "AdaptiveData", "weight_of_work"]

UNPROVED, GOAL = 0, 1  # counters: additions that were not proved heaviest; the goal
_POWER = -0.1  # of v in the thresholds; between −1 and 0
_LONG = 1e4


@by_reference
class AdaptiveData(NamedTuple):
    """The goals (n, K) and the thresholds; `prices`, `tie`, `weight`, `waiting` and `space` as in `MaxWeightData`."""

    goals: Int
    needs: Array  # (n,) Σ p_i g_i, the part `full` of it
    caps: Array  # (n, K) cap·g_i: so many jobs of a type count
    need: Array  # (K,) p_i
    share: Array  # (K,) d_i
    hold: float
    waive: float
    free: float
    slack: float
    by_arrival: bool
    long: float  # beyond this weight every goal is full, and nothing grows freely
    importance: Array  # (K,)
    prices: Array
    tie: Array
    weight: Array  # (K,) scratch
    waiting: Int  # (K,) scratch
    space: Workspace


@kernel
def adaptive(state: State, target: Int) -> float:
    """Grows what runs freely while that weighs enough; otherwise serves the goal, and fills what it cannot use."""
    if state.event[KIND] == COMPLETION:
        target[state.event[TYPE]] -= 1
    state.mode[SWITCHING] = 0
    data = state.data
    left = 0
    for i in range(target.shape[0]):
        data.weight[i] = data.importance[i] * state.system[i] + data.tie[i]
        data.waiting[i] = state.system[i] - target[i]
        left += data.waiting[i]
    if left == 0:
        return np.inf
    most = 0.0
    for s in range(data.goals.shape[0]):
        most = max(most, _weigh(state, s))
    free = data.free == np.inf or (most <= data.long and (data.free > 0.0 or data.slack > 0.0))
    if free and _grow_freely(state, target, most):
        return np.inf
    goal = _choose(state, most)
    copy_waiting(state)
    if goal >= 0:
        _start(state, target, goal, True)
        _keep_capacity(state, target, goal)
    _start(state, target, goal, False)
    return np.inf


@kernel
def _weigh(state: State, s: int) -> float:
    """v(s) = Σ c_i min(s_i, Q_i) Q_i of a goal."""
    data = state.data
    value = 0.0
    for i in range(data.weight.shape[0]):
        value += min(data.goals[s, i], state.system[i]) * data.weight[i]
    return value


@kernel
def _is_full(state: State, s: int, most: float) -> bool:
    """Whether the jobs present of its types, capped, need enough of what its slots need."""
    data = state.data
    if most > data.long:
        return bool(data.needs[s] < np.inf)
    have = 0.0
    for i in range(data.need.shape[0]):
        have += data.need[i] * min(float(state.system[i]), data.caps[s, i])
    return bool(have >= data.needs[s])


@kernel
def _grow_freely(state: State, target: Int, most: float) -> bool:
    """Adds the heaviest addition to what runs, if the whole then weighs enough; says whether it did."""
    data = state.data
    added, proved = search_best(state.demand, state.free, data.weight, data.waiting, data.prices, 0.0, NODES, GRAIN, data.space)
    state.counters[UNPROVED] += int(not proved)
    value = added
    for i in range(target.shape[0]):
        value += target[i] * data.weight[i]
    slack = data.slack * most**_POWER if most > 0.0 else 0.0
    if most > (1.0 + slack) * value + data.free:
        return False
    for i in range(target.shape[0]):
        target[i] += data.space.best[i]
    return True


@kernel
def _choose(state: State, most: float) -> int:
    """The goal: the present one while it is held, else the heaviest full one; −1 if none is full and has a job."""
    data, goal = state.data, state.counters[GOAL]
    heaviest, best = -1, 0.0
    for s in range(data.goals.shape[0]):
        value = _weigh(state, s)
        if value > best and _is_full(state, s, most):
            heaviest, best = s, value
    if heaviest < 0 or heaviest == goal:
        return int(heaviest)
    value = _weigh(state, goal)
    if value > 0.0 and _is_full(state, goal, most) and best <= (1.0 + data.hold * best**_POWER) * value:
        return int(goal)
    state.counters[GOAL] = heaviest
    state.mode[SWITCHES] += 1
    return int(heaviest)


@kernel
def _start(state: State, target: Int, goal: int, slots: bool) -> None:
    """Starts jobs that fit the residual, those with a slot of the goal or all: the largest c_i Q_i d_i first, or the oldest job."""
    data = state.data
    while True:
        best, largest = -1, -np.inf
        for i in range(target.shape[0]):
            if state.next_up[i] < 0 or (slots and target[i] >= data.goals[goal, i]):
                continue
            rank = -float(state.sequence[state.next_up[i]]) if data.by_arrival else data.weight[i] * data.share[i]
            if rank > largest and fits_one(state.demand, state.residual, i):
                best, largest = i, rank
        if best < 0:
            return
        take_next(state, target, best)


@kernel
def _keep_capacity(state: State, target: Int, goal: int) -> None:
    """Takes what the goal could still run from the residual, unless the jobs that wait for it weigh too little."""
    data = state.data
    kept = 0.0
    for i in range(target.shape[0]):
        left = min(state.system[i], data.goals[goal, i]) - target[i]
        if left > 0:
            kept += data.importance[i] * left * (state.system[i] - target[i])
    if kept <= data.waive:
        return
    state.mode[SWITCHING] = 1
    for r in range(state.residual.shape[0]):
        for i in range(target.shape[0]):
            state.residual[r] -= max(min(state.system[i], data.goals[goal, i]) - target[i], 0) * state.demand[i, r]
        state.residual[r] = max(state.residual[r], 0)


def adaptive_data(system: System, policy: Adaptive) -> AdaptiveData:
    """The goals, thresholds and what the search for additions needs; raises if the goals are not for this system."""
    K = len(system.names)
    if policy.goals.shape[1] != K:
        raise BadSpec([Problem("goals", f"must have {K} columns, one per type", policy.goals.shape)])
    if policy.names is not None and policy.names != system.names:
        raise BadSpec([Problem("names", f"are not those of the system: {', '.join(system.names)}", ", ".join(policy.names))])
    for row in policy.goals:
        if not fits(system, row):
            raise Infeasible(f"the goal {row.tolist()} does not fit the server: goals must be schedules")
    shares: Array = system.demand / system.capacity
    need = shares[:, int((system.offered_work @ shares).argmax())] + 1e-9 * shares.max(axis=1)
    base: MaxWeightData = max_weight_data(system, MaxWeight("none"))
    return AdaptiveData(
        goals=policy.goals.copy(),
        needs=policy.full * (policy.goals @ need) * (1 - 1e-12),
        caps=np.where(policy.goals > 0, policy.cap * np.maximum(policy.goals, 1), 0.0),
        need=need,
        share=np.ascontiguousarray(shares.max(axis=1)),
        hold=policy.hold,
        waive=policy.waive,
        free=policy.free,
        slack=policy.slack,
        by_arrival=policy.order == "arrival",
        long=_LONG * weight_of_work(system, policy.importance),
        importance=policy.importance.copy(),
        prices=base.prices,
        tie=base.tie,
        weight=base.weight,
        waiting=base.waiting,
        space=base.space,
    )


def weight_of_work(system: System, importance: Array) -> float:
    """v₀ = Σ c_i max(x_i, 1)², the weight of the work x = λ⊘μ that arrives."""
    return float(importance @ np.maximum(system.offered_work, 1.0) ** 2)


def _describe(state: State) -> Description:
    """The goal, and those that it may take."""
    rows = [tuple(int(count) for count in row) for row in state.data.goals]
    return Description(slots=rows[int(state.counters[GOAL])], schedules=tuple(rows), unproved=int(state.counters[UNPROVED]))


def _keeps(types: int) -> tuple[int, int]:
    return 1, 2


ADAPTIVE_RULE = Rule(adaptive, constants=adaptive_data, keeps=_keeps, describe=_describe)
