"""Queues under a modulating process as plain truncated Markov chains: the reference for `rota.analysis`.

Written from the definition of the policy and of its process alone. In state s there are u_s slots of a type, and each rings at rate μ. A
ring in a slot that holds a job completes the job. A move that this type's completions trigger happens at any of its rings, job or not;
every other move happens at its own rate. The chain is cut off at a level that is hardly ever reached, and solved by sparse elimination.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from rota.model import PhaseTypeFamily
from rota.process import ModulatingProcess

TAIL = 1e-13


def queue_law(process: ModulatingProcess, i: int, arrival_rate: float, service_rate: float, *, single_server: bool = False) -> np.ndarray:
    """P(Q_i = q, state s) (levels, N). `single_server`: Definition msr-1, one job at a time at rate u_s μ."""
    return cut_off(lambda levels: _queue_chain(process, i, arrival_rate, service_rate, single_server, levels), len(process))


def _queue_chain(process: ModulatingProcess, i: int, lam: float, mu: float, single_server: bool, levels: int) -> sp.csc_array:
    N = len(process)
    slots = process.schedules[:, i]
    q = np.arange(levels)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(s: int, s_after: int, up: int, rates: np.ndarray) -> None:
        """At every level q, from state s to s_after with `up` more jobs, at rate rates[q]."""
        good = (rates > 0) & (q + up < levels) & ((s, 0) != (s_after, up))
        parts.append((q[good] * N + s, (q[good] + up) * N + s_after, rates[good]))

    moves: list[list[tuple[int, float]]] = [[] for _ in range(N)]
    by_ring: list[list[tuple[int, float]]] = [[] for _ in range(N)]
    for source, target, rate, trigger in zip(process.source, process.target, process.rate, process.trigger, strict=True):
        (by_ring if trigger == i else moves)[source].append((int(target), float(rate)))
    for s in range(N):
        total = sum(rate for _, rate in by_ring[s])
        # A ring leads somewhere for sure: the triggered moves share the rings of the state among them.
        assert not by_ring[s] or abs(total - slots[s] * mu) <= 1e-12 * total
        leads = [(target, rate / total) for target, rate in by_ring[s]] or [(s, 1.0)]
        busy = np.minimum(q, slots[s]) if not single_server else np.where(q > 0, slots[s], 0)
        add(s, s, 1, np.full(levels, lam))
        for target, rate in moves[s]:
            add(s, target, 0, np.full(levels, rate))
        for target, probability in leads:
            add(s, target, -1, mu * busy * probability)
            add(s, target, 0, mu * (slots[s] - busy) * probability)
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csc_array((values, (rows, columns)), shape=(levels * N, levels * N))


def arrivals_law(
    process: ModulatingProcess, i: int, moves: np.ndarray, marked: np.ndarray, batches: Callable[[int], np.ndarray], service_rate: float
) -> np.ndarray:
    """P(Q_i = q) (levels,) with a phase of arrivals that moves by `moves` without and by `marked` with a batch.

    `batches(n)` are the probabilities of batches of 1, …, n jobs. A batch that would go beyond the last level is lost.
    """
    N, M = len(process), len(marked)

    def chain(levels: int) -> sp.csc_array:
        one = sp.csr_array(_queue_chain(process, i, 0.0, service_rate, False, levels))  # without arrivals, at every phase
        width = M * N
        rows, columns, values = [], [], []
        entries = one.tocoo()
        for m in range(M):
            place = lambda k, m=m: k // N * width + m * N + k % N  # noqa: E731
            rows.append(place(entries.row)), columns.append(place(entries.col)), values.append(entries.data)
        law = batches(levels)
        q, s = np.divmod(np.arange(levels * N), N)
        for m in range(M):
            for n in range(M):
                if m != n:
                    rows.append(q * width + m * N + s), columns.append(q * width + n * N + s), values.append(np.full(len(q), moves[m, n]))
                for k in np.flatnonzero(law > 0) + 1:
                    fit = q + k < levels
                    rows.append((q * width + m * N + s)[fit])
                    columns.append(((q + k) * width + n * N + s)[fit])
                    values.append(np.full(int(fit.sum()), marked[m, n] * law[k - 1]))
        shape = (levels * width,) * 2
        return sp.csc_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)

    return cut_off(chain, M * N).sum(axis=1)


def phase_law(process: ModulatingProcess, i: int, arrival_rate: float, size: PhaseTypeFamily) -> np.ndarray:
    """P(Q_i = q) for phase-type sizes, (levels,); completions of type i move nothing.

    The oldest u_s jobs run. A job draws its phase when it starts for the first time and keeps it while it is interrupted, so the jobs with
    a phase are the oldest ones: the state is (q, state s, phases of the jobs that ever started, oldest first).
    """
    assert not (process.trigger == i).any()
    levels = 64
    while True:
        law = _phase_chain(process, i, arrival_rate, size, levels)
        if law[-1] * levels**2 < TAIL:
            return law
        levels *= 2


def _phase_chain(process: ModulatingProcess, i: int, lam: float, size: PhaseTypeFamily, levels: int) -> np.ndarray:
    slots = process.schedules[:, i]
    initial, T = size.representation
    State = tuple[int, int, tuple[int, ...]]

    def started(q: int, s: int, phases: tuple[int, ...]) -> Iterable[tuple[State, float]]:
        """The state once every job that should run has drawn its phase."""
        if len(phases) >= min(q, slots[s]):
            yield (q, s, phases), 1.0
            return
        for j, probability in enumerate(initial):
            if probability > 0:
                for state, other in started(q, s, (*phases, j)):
                    yield state, probability * other

    def events(state: State) -> Iterable[tuple[int, int, tuple[int, ...], float]]:
        q, s, phases = state
        if q + 1 < levels:
            yield q + 1, s, phases, lam
        for m in np.flatnonzero(process.source == s):
            yield q, int(process.target[m]), phases, float(process.rate[m])
        for place in range(min(q, int(slots[s]))):
            phase = phases[place]
            yield q - 1, s, phases[:place] + phases[place + 1 :], float(-T[phase].sum())
            for j in range(len(initial)):
                if j != phase:
                    yield q, s, (*phases[:place], j, *phases[place + 1 :]), float(T[phase, j])

    rows, columns, values = [], [], []
    waiting = [state for state, _ in started(0, 0, ())]
    number: dict[Hashable, int] = {state: k for k, state in enumerate(waiting)}
    while waiting:
        state = waiting.pop()
        for q, s, phases, rate in events(state):
            if rate <= 1e-15:
                continue
            for after, probability in started(q, s, phases):
                if after not in number:
                    number[after] = len(number)
                    waiting.append(after)
                rows.append(number[state])
                columns.append(number[after])
                values.append(rate * probability)
    # By level, so that elimination fills little.
    order = np.empty(len(number), dtype=np.int64)
    level = np.array([state[0] for state in number])
    order[np.argsort(level, kind="stable")] = np.arange(len(number))
    rates = sp.csc_array((values, (order[rows], order[columns])), shape=(len(number),) * 2)
    return np.bincount(np.sort(level), weights=stationary(rates), minlength=levels)


def cut_off(chain: Callable[[int], sp.csc_array], width: int) -> np.ndarray:
    """The stationary law (levels, width) of a chain with enough levels: the last one is as good as never reached."""
    levels = 64
    while True:
        law = stationary(chain(levels)).reshape(levels, width)
        if law[-1].sum() * levels**2 < TAIL:
            return law
        levels *= 2


def stationary(rates: sp.csc_array) -> np.ndarray:
    """π with π Q = 0 for rates without a diagonal: relative to the first state, then normalised."""
    Q = (rates - sp.diags_array(rates.sum(axis=1))).T.tocsc()
    inner = splu(Q[1:, 1:], permc_spec="NATURAL", diag_pivot_thresh=0.0)
    law = np.append(1.0, inner.solve(-Q[1:, [0]].toarray().ravel()))
    assert np.abs(Q @ law).max() <= 1e-12 * np.abs(Q.diagonal() * law).max()
    return law / law.sum()


def mean_and_variance(law: np.ndarray) -> tuple[float, float]:
    """Of a law on 0, 1, 2, …"""
    numbers = np.arange(len(law))
    mean = float(numbers @ law)
    return mean, float((numbers - mean) ** 2 @ law)
