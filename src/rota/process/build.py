"""From a policy to its modulating process: the working states, the loop between them, and the routes that preemption asks for.

pMSR   a move between working states is one step.
nMSR   slots that must go are drained by completions, one at a time; jobs of both schedules keep their slots (Theorem nmsr-existence).
sMSR   jobs that must yield are preempted at once and hold their resources for a setup of rate γ each; the others go on (Theorem
smsr-existence).

Working state s of n is left at rate α/(n π_s) in a loop, so α departures from working states happen per unit of working time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import Units, integer_units
from rota.errors import BadSpec, Infeasible, Problem
from rota.kernel import compiled
from rota.model import System
from rota.model.system import check_system
from rota.policy import MSR, is_strongly_connected, stationary_law
from rota.process.check import require_fit
from rota.process.process import SETUP, TIMER, ModulatingProcess

__all__ = ["build_process", "opened", "rates_from_weights", "working_generator"]


MAX_STATES = 200_000


def build_process(system: System, policy: MSR) -> ModulatingProcess:
    """The modulating process of a policy on a system."""
    check_policy(system, policy)
    builder = _Builder(system, policy)
    G = working_generator(policy)
    for a, b in np.argwhere(G > 0):
        builder.connect(int(a), int(b), float(G[a, b]))
    return builder.finish()


def check_policy(system: System, policy: MSR) -> None:
    """Raises if the policy does not match the system."""
    check_system(system)
    if not isinstance(policy, MSR):
        raise BadSpec([Problem("policy", "must be a rota.MSR: no other policy has a modulating process", policy)])
    K = len(system.names)
    if policy.candidates.shape[1] != K:
        raise BadSpec([Problem("candidates", f"needs {K} counts per candidate, as the system has {K} types", policy.candidates.shape)])
    if policy.names is not None and policy.names != system.names:
        raise BadSpec([Problem("types", f"differ from those of the system ({', '.join(system.names)})", list(policy.names))])
    require_fit(system, policy.candidates, "candidate")


def working_generator(policy: MSR) -> Array:
    """The generator between working states (n, n), given the time spent in them: the loop, or the policy's own."""
    n = len(policy.weights)
    if policy.generator is not None:
        return policy.generator
    G = np.zeros((n, n))
    if n > 1:
        s = np.arange(n)
        G[s, (s + 1) % n] = policy.switching_rate / (n * policy.weights)
    return G - np.diag(G.sum(axis=1))


def rates_from_weights(weights: Sequence[float] | Array, edges: Sequence[tuple[int, int]], switching_rate: float) -> Array:
    """A generator on a given graph with the wanted stationary weights and switching rate.

    Let p be the stationary law of the walk that takes every edge at rate 1: slowing state s down by p_s/π_s makes it π. The graph must be
    strongly connected. (The answer is one of many; the flows over edges are those of the walk.)
    """
    pi = np.asarray(weights, dtype=np.float64)
    n = len(pi)
    unit = np.zeros((n, n))
    for a, b in edges:
        if not (0 <= a < n and 0 <= b < n and a != b):
            raise BadSpec([Problem("edges", f"must join two different states 0…{n - 1}", (a, b))])
        unit[a, b] = 1.0
    if not is_strongly_connected(unit):
        raise Infeasible("the graph is not strongly connected: no rates on it give every state a positive weight")
    unit -= np.diag(unit.sum(axis=1))
    G = (stationary_law(unit) / pi)[:, None] * unit
    scaled: Array = G * (switching_rate / -(pi @ np.diag(G)))
    return scaled


class _Builder:
    """Collects states and moves."""

    def __init__(self, system: System, policy: MSR) -> None:
        self.system, self.policy = system, policy
        self.units: Units = integer_units(system)
        self.schedules: list[Int] = list(policy.candidates)
        self.held: list[Int] = list(policy.candidates)
        self.candidate: list[int] = list(range(len(policy.candidates)))
        self.moves: list[tuple[int, int, float, int]] = []

    def state(self, schedule: Int, held: Int | None = None) -> int:
        """A new switching state."""
        if len(self.schedules) >= MAX_STATES:
            raise Infeasible(
                f"the switching routes need more than {MAX_STATES:,} states: choose candidates that differ less, or another route"
            )
        self.schedules.append(schedule.copy())
        self.held.append(schedule.copy() if held is None else held.copy())
        self.candidate.append(-1)
        return len(self.schedules) - 1

    def connect(self, a: int, b: int, rate: float) -> None:
        """The move from candidate a to candidate b, begun by a timer."""
        go = np.maximum(self.policy.candidates[a] - self.policy.candidates[b], 0)
        if self.policy.preemption == "full" or not go.any():
            self.moves.append((a, b, rate, TIMER))
        elif self.policy.preemption == "setup":
            self.connect_by_setups(a, b, rate, go)
        elif self.policy.route == "parallel":
            self.drain_together(a, b, rate, go)
        else:
            self.drain_in_order(a, b, rate, go)

    def connect_by_setups(self, a: int, b: int, rate: float, go: Int) -> None:
        """k setups under way end at rate kγ; meanwhile only the jobs that both schedules share run. Figure mp:smsr."""
        assert self.policy.setup_rate is not None
        shared = np.minimum(self.policy.candidates[a], self.policy.candidates[b])
        before, step = a, (rate, TIMER)
        in_setup = go.copy()
        while in_setup.any():
            here = self.state(shared, shared + in_setup)
            self.moves.append((before, here, *step))
            before, step = here, (float(in_setup.sum()) * self.policy.setup_rate, SETUP)
            in_setup[int(np.argmax(in_setup))] -= 1  # which one ends first makes no difference to the schedule
        self.moves.append((before, b, *step))

    def drain_in_order(self, a: int, b: int, rate: float, go: Int) -> None:
        """One type after the other, one completion at a time. Figure mp:nmsr."""
        schedule = self.opened(self.policy.candidates[a], b)
        before, step = a, (rate, TIMER)
        for i in self.order(a, b):
            for _ in range(int(go[i])):
                here = self.state(schedule)
                self.moves.append((before, here, *step))
                before, step = here, (float(schedule[i] * self.system.service_rate[i]), int(i))
                schedule = schedule.copy()
                schedule[i] -= 1
                schedule = self.opened(schedule, b)
        self.moves.append((before, b, *step))

    def drain_together(self, a: int, b: int, rate: float, go: Int) -> None:
        """Every completion of a type with slots that must go closes one of them.

        A state per vector of slots still to close, and, as slots that opened early stay open, of slots opened on the way there.
        """
        first = self.opened(self.policy.candidates[a], b)
        waiting = [(tuple(go.tolist()), tuple(first.tolist()))]
        index = {waiting[0]: self.state(first)}
        self.moves.append((a, index[waiting[0]], rate, TIMER))
        while waiting:
            left, schedule = waiting.pop()
            here = index[left, schedule]
            for i in np.flatnonzero(left):
                fewer = tuple(count - (j == i) for j, count in enumerate(left))
                then = self.opened(np.array([count - (j == i) for j, count in enumerate(schedule)]), b)
                key = (fewer, tuple(then.tolist()))
                if not any(fewer):
                    target = b
                elif key in index:
                    target = index[key]
                else:
                    target = index[key] = self.state(then)
                    waiting.append(key)
                self.moves.append((here, target, float(self.schedules[here][i] * self.system.service_rate[i]), int(i)))

    def opened(self, schedule: Int, b: int) -> Int:
        """With opening "early": the schedule plus those new slots of candidate b that fit already, types in order."""
        if self.policy.opening == "late":
            return schedule
        return opened(schedule, self.policy.candidates[b], self.units.demand, self.units.capacity)

    def order(self, a: int, b: int) -> Sequence[int]:
        """The order in which the types are drained."""
        route = self.policy.route
        if not isinstance(route, str):
            return route[a]
        K = len(self.system.names)
        if route == "type-order":
            return range(K)
        times = draining_time(self.system, self.policy.candidates[a], self.policy.candidates[b])
        return sorted(range(K), key=lambda i: (times[i], i))

    def finish(self) -> ModulatingProcess:
        source, target, rate, trigger = zip(*self.moves, strict=True) if self.moves else ((), (), (), ())
        return ModulatingProcess(
            schedules=np.array(self.schedules, dtype=np.int64),
            held=np.array(self.held, dtype=np.int64),
            candidate=np.array(self.candidate, dtype=np.int64),
            source=np.array(source, dtype=np.int64),
            target=np.array(target, dtype=np.int64),
            rate=np.array(rate, dtype=np.float64),
            trigger=np.array(trigger, dtype=np.int64),
            names=self.system.names,
        )


@compiled
def opened(schedule: Int, wanted: Int, demand: Int, capacity: Int) -> Int:
    """The schedule with as many more slots as are wanted and fit, types in order."""
    K, R = demand.shape
    slots = schedule.copy()
    residual = capacity.copy()
    for i in range(K):
        for r in range(R):
            residual[r] -= schedule[i] * demand[i, r]
    for i in range(K):
        count = wanted[i] - slots[i]
        for r in range(R):
            if demand[i, r] > 0:
                count = min(count, residual[r] // demand[i, r])
        if count > 0:
            slots[i] += count
            for r in range(R):
                residual[r] -= count * demand[i, r]
    return slots


def draining_time(system: System, a: Int, b: Int) -> Array:
    """Expected time to drain each type from a_i to b_i slots alone, Σ_k 1/(k μ_i) over k = b_i+1 … a_i (K,)."""
    return _draining_time(a, b, system.service_rate)


@compiled
def _draining_time(a: Int, b: Int, mu: Array) -> Array:
    times = np.zeros(len(mu))
    for i in range(len(mu)):
        for k in range(b[i] + 1, a[i] + 1):
            times[i] += 1.0 / k
        times[i] /= mu[i]
    return times
