"""The mean queues of all types in compiled code, for searches that ask for thousands of them.

The equations are those of `rota.analysis.qbd`; only the mean comes out, by the exact identity of `rota.analysis.queue`, in which

    E_U[q − Δ(s⁺)] = Σ_q π_q (c − a(q))(q − Δ(s⁺)) / Σ_q π_q (c − a(q)),       q = 0, …, β − 1

needs the stationary vectors π_q below level β. As π_{q+1} = π_q λ(−S_{q+1})^{-1}, both sums are found from the top down, as
t_q = c − a(q) + λ(−S_{q+1})^{-1} t_{q+1}, beside the passage matrices: nothing is kept of a level once the next one is done.

Every matrix that is inverted is −S with S·1 ≤ 0 known, and is eliminated by the entries off its diagonal and these row sums, without a
subtraction (Grassmann, Taksar and Heyman 1985): no digits are lost close to load 1.
"""

from __future__ import annotations

import numpy as np

from rota.analysis.queue import erlang_c
from rota.arrays import Array, Int
from rota.errors import Infeasible, NotConverged
from rota.kernel import compiled
from rota.model import System
from rota.policy import MSR
from rota.process import TIMER, ModulatingProcess, build_process

__all__ = ["SMALL_STATES", "LoopMeans", "mean_queues", "mean_queues_at", "predicted_queues", "require_poisson"]

SMALL_STATES = 128  # phases up to which this is faster than the functions of linear algebra
_RESIDUAL = 1e-11
_WITHIN = 1e-6  # of the bounds, relative
_EDGE = 1e-12  # a load so close to 1 is 1, up to rounding


def mean_queues(system: System, process: ModulatingProcess, rate: Array | None = None) -> Array:
    """E[Q_i] of all types (K,), sizes exponential; infinite for a type that is not stable. `rate`: of the moves, if not the process's own.

    Raises `NotConverged` where the equations were not solved, or a mean is not between its bounds.
    """
    require_poisson(system)
    means = mean_queues_at(process, system.arrival_rate, system.service_rate, rate)
    if np.isnan(means).any():
        name = system.names[int(np.argmax(np.isnan(means)))]
        raise NotConverged(f"the equations of the mean queue of {name!r} were not solved to {_RESIDUAL:.0e}")
    return means


def mean_queues_at(process: ModulatingProcess, arrival_rate: Array, service_rate: Array, rate: Array | None = None) -> Array:
    """`mean_queues` of any Poisson arrivals under the same process; not a number where the equations were not solved."""
    rates = process.rate.copy() if rate is None else rate  # writable and the next read-only, so that the kernel is compiled once
    lam = arrival_rate.copy()
    lam.flags.writeable = False
    slots = np.ascontiguousarray(process.schedules, dtype=np.float64)
    means: Array = _means(slots, process.source, process.target, rates, process.trigger, lam, service_rate)
    return means


def predicted_queues(system: System, process: ModulatingProcess, rate: Array | None = None) -> Array:
    """The prediction of E[Q_i] as `TypeQueue.prediction` has it (K,); infinite for a type that is not stable."""
    require_poisson(system)
    rates = process.rate.copy() if rate is None else rate
    slots = np.ascontiguousarray(process.schedules, dtype=np.float64)
    outline = _outline(slots, process.source, process.target, rates, process.trigger, system.service_rate)
    queues = np.zeros(len(system.names))
    for i, (k, ring_average, lowest, highest) in enumerate(outline):
        offered = system.offered_work[i]
        if offered >= k and offered > 0:
            queues[i] = np.inf
        elif offered > 0:
            load = offered / k
            main = (load + ring_average) / (1 - load)  # of the bounds (Theorem msr-bound)
            guess = erlang_c(k, offered) * load * (1 + ring_average) / (1 - load) + offered
            queues[i] = min(max(guess, main - highest, 0.0), main - lowest + slots[:, i].max())
    return queues


def require_poisson(system: System) -> None:
    """Raises `Infeasible` if arrivals are not Poisson."""
    if system.bursty:
        raise Infeasible(
            f"this is for Poisson arrivals, and those of type {system.bursty[0]!r} are not: "
            "use rota.analyze, or system.with_poisson_arrivals()"
        )


class LoopMeans:
    """The mean queues under a loop of candidates, at any weights and switching rate: only the timers of the process change."""

    def __init__(self, system: System, policy: MSR) -> None:
        self.system = system
        self.process = build_process(system, policy)
        self.timers = np.flatnonzero(self.process.trigger == TIMER)
        self.candidate = self.process.candidate[self.process.source[self.timers]]

    def __call__(self, weights: Array, switching_rate: float) -> Array:
        """E[Q_i] (K,); infinite where a type is not stable."""
        return mean_queues(self.system, self.process, self._rate(weights, switching_rate))

    def predicted(self, weights: Array, switching_rate: float) -> Array:
        """The prediction of E[Q_i] (K,); infinite where a type is not stable."""
        return predicted_queues(self.system, self.process, self._rate(weights, switching_rate))

    def _rate(self, weights: Array, switching_rate: float) -> Array:
        rate = self.process.rate.copy()
        rate[self.timers] = switching_rate / (len(weights) * weights[self.candidate])
        return rate


@compiled
def _means(slots: Array, source: Int, target: Int, rate: Array, trigger: Int, lam: Array, mu: Array) -> Array:
    """E[Q_i]: infinite if unstable, not a number if the equations were not solved."""
    N, K = slots.shape
    law, offered, marks = _types(slots, source, target, rate)
    means, own, mark = np.zeros(K), np.empty(N), np.empty(N)
    for i in range(K):
        if lam[i] == 0.0:
            continue
        if offered[i] * mu[i] <= lam[i] * (1 + _EDGE):
            means[i] = np.inf
            continue
        fewest, most = slots[0, i], slots[0, i]
        for s in range(N):
            own[s], mark[s] = slots[s, i], mu[i] * marks[s, i]
            fewest, most = min(fewest, own[s]), max(most, own[s])
        if fewest == most:
            means[i] = _erlang(int(most), lam[i] / mu[i])
        else:
            means[i] = _mean(i, int(most), own, source, target, rate, trigger, lam[i], mu[i], law, mark)
    return means


@compiled
def _outline(slots: Array, source: Int, target: Int, rate: Array, trigger: Int, mu: Array) -> Array:
    """Of each type E[u], E[Δ(ν⁺)], min Δ and max Δ (K, 4)."""
    N, K = slots.shape
    law, offered, marks = _types(slots, source, target, rate)
    out = np.zeros((K, 4))
    after, moving = np.empty(N), np.empty(N)
    for i in range(K):
        out[i, 0] = offered[i]
        for s in range(N):
            mark = mu[i] * marks[s, i]
            out[i, 2], out[i, 3] = min(out[i, 2], mark), max(out[i, 3], mark)  # its mean is 0
            after[s] = moving[s] = 0.0
        for m in range(len(source)):
            if trigger[m] == i:
                after[source[m]] += rate[m] * marks[target[m], i]
                moving[source[m]] += rate[m]
        for s in range(N):
            next_mark = mu[i] * (after[s] / moving[s] if moving[s] > 0 else marks[s, i])
            if offered[i] > 0:
                out[i, 1] += law[s] * slots[s, i] * next_mark / offered[i]
    return out


@compiled
def _types(slots: Array, source: Int, target: Int, rate: Array) -> tuple[Array, Array, Array]:
    """The stationary law (N,), E[u_i] (K,), and Δ_i/μ_i (N, K)."""
    N, K = slots.shape
    moves = np.zeros((N, N))
    for m in range(len(source)):
        moves[source[m], target[m]] += rate[m]
    law = _null_vector(moves)
    offered = np.zeros(K)
    for s in range(N):
        for i in range(K):
            offered[i] += law[s] * slots[s, i]
    return law, offered, _relative_completions(moves, law, slots, offered)


@compiled
def _mean(
    i: int, levels: int, slots: Array, source: Int, target: Int, rate: Array, trigger: Int, lam: float, mu: float, law: Array, mark: Array
) -> float:
    """E[Q_i] of a type whose slots change; not a number if the equations were not solved."""
    N = len(slots)
    plain, after = _split(N, source, target, rate, trigger, i)
    ring, capacity = np.empty(N), 0.0
    for s in range(N):
        ring[s] = mu * slots[s]
        capacity += law[s] * ring[s]
    load = lam / capacity
    next_mark, average = np.zeros(N), 0.0  # Δ(s⁺), E[Δ(ν⁺)]
    down = np.empty((N, N))  # from level β on every slot is busy: no ring without a job
    for s in range(N):
        for t in range(N):
            next_mark[s] += after[s, t] * mark[t]
            down[s, t] = ring[s] * after[s, t]
        average += law[s] * ring[s] * next_mark[s] / capacity
    main = (load + average) / (1 - load)

    passage = _first_passage(lam, plain, down)
    if np.isnan(passage[0, 0]):
        return np.nan

    # From level β down to 0: the right sides are A₂(q) for the passage to the level below, and the two sums.
    right = np.empty((N, N + 2))
    total, surplus, unit = np.zeros(N), np.zeros(N), 1.0  # the sums from a level on, in units that keep them near 1
    inner, leaving = np.empty((N, N)), np.empty(N)
    for q in range(levels, 0, -1):
        for s in range(N):
            real = mu * min(float(q), slots[s])
            for t in range(N):
                inner[s, t] = plain[s, t] + (ring[s] - real) * after[s, t] + lam * passage[s, t]
                right[s, t] = real * after[s, t]
            right[s, N], right[s, N + 1] = lam * total[s], lam * surplus[s]
            leaving[s] = real
        _eliminate(inner, leaving, right)
        largest = 0.0
        for s in range(N):
            for t in range(N):
                passage[s, t] = right[s, t]
            unused = unit * (ring[s] - mu * min(q - 1.0, slots[s]))
            total[s] = unused + right[s, N]
            surplus[s] = unused * (q - 1.0 - next_mark[s]) + right[s, N + 1]
            largest = max(largest, total[s])
        for s in range(N):
            total[s] /= largest
            surplus[s] /= largest
        unit /= largest
    for s in range(N):
        for t in range(N):
            inner[s, t] = plain[s, t] + ring[s] * after[s, t] + lam * passage[s, t]
    empty = _null_vector(inner)
    rest = _dot(empty, surplus) / _dot(empty, total)
    lowest, highest = mark[0], mark[0]
    for s in range(N):
        lowest, highest = min(lowest, mark[s]), max(highest, mark[s])
    slack = _WITHIN * (1 + abs(main))
    if not -highest - slack <= rest <= levels - lowest + slack:  # Theorem msr-bound
        return np.nan
    return float(main + rest)


@compiled
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for s in range(len(a)):
        total += a[s] * b[s]
    return total


@compiled
def _split(N: int, source: Int, target: Int, rate: Array, trigger: Int, i: int) -> tuple[Array, Array]:
    """Rates of the moves that a type's completions do not trigger, and where its rings lead (N, N)."""
    plain, after = np.zeros((N, N)), np.zeros((N, N))
    for m in range(len(source)):
        if trigger[m] == i:
            after[source[m], target[m]] += rate[m]
        else:
            plain[source[m], target[m]] += rate[m]
    for s in range(N):
        moving = 0.0
        for t in range(N):
            moving += after[s, t]
        if moving == 0.0:
            after[s, s] = moving = 1.0
        for t in range(N):
            after[s, t] /= moving
    return plain, after


@compiled
def _first_passage(lam: float, local: Array, down: Array) -> Array:
    """G by logarithmic reduction, as `rota.analysis.qbd.first_passage`; not numbers if it does not converge."""
    N = len(local)
    H, L, both, inner, new = np.empty((N, N)), np.empty((N, N)), np.zeros((N, 2 * N)), np.empty((N, N)), np.empty((N, N))
    G, T, product, up, low = np.zeros((N, N)), np.zeros((N, N)), np.empty((N, N)), np.empty((N, N)), np.empty((N, N))
    leaving, away = np.zeros(N), np.zeros(N)
    for s in range(N):
        both[s, s] = lam
        for t in range(N):
            inner[s, t], both[s, N + t] = local[s, t], down[s, t]
            leaving[s] += down[s, t]
        away[s] = leaving[s] + lam
        T[s, s] = 1.0
    found = False
    for _ in range(64):  # H and L: the probabilities to go 2ᵏ levels up or down before the other
        _eliminate(inner, away, both)
        for s in range(N):
            out = 0.0
            for t in range(2 * N):
                out += both[s, t]
            for t in range(N):
                H[s, t], L[s, t] = both[s, t] / out, both[s, N + t] / out
        largest = _multiply(T, L, product)
        for s in range(N):
            for t in range(N):
                G[s, t] += product[s, t]
        still = _multiply(T, H, product)
        T, product = product, T
        if largest < 1e-17 or still < 1e-17:
            found = True
            break
        _multiply(H, L, inner)
        _multiply(L, H, product)
        _multiply(H, H, up)
        _multiply(L, L, low)
        for s in range(N):
            away[s] = 0.0
            for t in range(N):
                inner[s, t] += product[s, t]
                both[s, t], both[s, N + t] = up[s, t], low[s, t]
                away[s] += up[s, t] + low[s, t]
    residual = np.inf
    for s in range(N):
        out = 0.0
        for t in range(N):
            out += G[s, t]
        for t in range(N):
            G[s, t] /= out
    for _ in range(20):
        for s in range(N):
            away[s] = leaving[s]
            for t in range(N):
                inner[s, t] = local[s, t] + lam * G[s, t]
                new[s, t] = down[s, t]
        _eliminate(inner, away, new)
        residual = 0.0
        for s in range(N):
            for t in range(N):
                residual = max(residual, abs(new[s, t] - G[s, t]))
        G, new = new, G
        if residual < _RESIDUAL:
            break
    if not found or not residual < _RESIDUAL:
        G[0, 0] = np.nan
    return G


@compiled
def _multiply(A: Array, B: Array, out: Array) -> float:
    """`out` := A B; returns its largest entry, for A and B without negative ones."""
    np.dot(A, B, out)
    largest = 0.0
    for s in range(len(out)):
        for t in range(len(out)):
            largest = max(largest, out[s, t])
    return largest


@compiled
def _eliminate(inner: Array, leaving: Array, right: Array) -> None:
    """Solves M X = right, X taking its place, for M_st = −inner_st off the diagonal and rows of M that sum to `leaving`. Destroys both."""
    N = len(inner)
    width = right.shape[1]
    pivot = np.empty(N)
    for k in range(N - 1, -1, -1):
        pivot[k] = leaving[k]
        for t in range(k):
            pivot[k] += inner[k, t]
        for s in range(k):
            part = inner[s, k] / pivot[k]
            if part > 0.0:
                for t in range(k):
                    inner[s, t] += part * inner[k, t]
                for t in range(width):
                    right[s, t] += part * right[k, t]
                leaving[s] += part * leaving[k]
    for k in range(N):
        for s in range(k):
            part = inner[k, s]
            if part > 0.0:
                for t in range(width):
                    right[k, t] += part * right[s, t]
        for t in range(width):
            right[k, t] /= pivot[k]


@compiled
def _null_vector(rates: Array) -> Array:
    """The stationary law of a generator, given by its rates off the diagonal (Grassmann, Taksar and Heyman)."""
    N = len(rates)
    moves = rates.copy()
    for k in range(N - 1, 0, -1):
        away = 0.0
        for t in range(k):
            away += moves[k, t]
        for s in range(k):
            moves[s, k] /= away
            part = moves[s, k]
            if part > 0.0:
                for t in range(k):
                    moves[s, t] += part * moves[k, t]
    law, total = np.zeros(N), 1.0
    law[0] = 1.0
    for k in range(1, N):
        for s in range(k):
            law[k] += law[s] * moves[s, k]
        total += law[k]
    for k in range(N):
        law[k] /= total
    return law


@compiled
def _relative_completions(moves: Array, law: Array, slots: Array, offered: Array) -> Array:
    """Δ_i/μ_i of every type (N, K): −G Δ = u − E[u], first with Δ = 0 in state 0, then moved so that its mean is 0."""
    N, K = slots.shape
    marks = np.zeros((N, K))
    if N > 1:
        right, inner, leaving = np.empty((N - 1, K)), np.empty((N - 1, N - 1)), np.empty(N - 1)
        for s in range(1, N):
            leaving[s - 1] = moves[s, 0]
            for t in range(1, N):
                inner[s - 1, t - 1] = moves[s, t]
            for i in range(K):
                right[s - 1, i] = slots[s, i] - offered[i]
        _eliminate(inner, leaving, right)
        mean = np.zeros(K)
        for s in range(1, N):
            for i in range(K):
                marks[s, i] = right[s - 1, i]
                mean[i] += law[s] * right[s - 1, i]
        for s in range(N):
            for i in range(K):
                marks[s, i] -= mean[i]
    return marks


@compiled
def _erlang(k: int, offered: float) -> float:
    """E[Q] of M/M/k: a + C ρ/(1−ρ), with C from Erlang's recursion for the loss probability B."""
    blocked = 1.0
    for n in range(1, k + 1):
        blocked = offered * blocked / (n + offered * blocked)
    waits = k * blocked / (k - offered * (1 - blocked))
    return offered + waits * offered / (k - offered)
