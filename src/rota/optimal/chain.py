"""The Markov chain of a policy that goes by counts, and its stationary law.

A state is (q, u): jobs present and running after the decision. From it, type i arrives at rate λ_i (lost where q_i = N_i) and one of its
jobs ends at rate u_i μ_i. After each event the policy's own decision function is called, as the simulator calls it. So what is evaluated is
what is simulated. States are found from the empty server on, so that only those are kept that the policy reaches.

The function is called twice for each event, with two orders of arrival of the same jobs: types first to last, and last to first. A policy
whose decisions differ does not go by counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, gmres

from rota.arrays import Array, Int
from rota.decide import ARRIVAL, COMPLETION, START, Decider, State, built_in, new_state, seeded
from rota.errors import NotConverged
from rota.kernel import compiled
from rota.model import System
from rota.optimal.state_space import StateSpace
from rota.threads import one_thread

__all__ = ["BYTES_PER_PLACE", "Chain", "OutOfTime", "Refused", "chain_of", "stationary_law"]

BYTES_PER_PLACE = 4  # of (q, u), for its number
OK, BY_ORDER, BY_TIME, KEEPS, IMPOSSIBLE = range(5)
_RESTART, _ROUNDS = 30, 400


class Refused(Exception):
    """The policy does not go by counts; the text says why. It never leaves this package."""


class OutOfTime(Exception):
    """The time was over before there was an answer; it never leaves this package."""


class Chain(NamedTuple):
    """States that a policy reaches, the empty server first, and where each goes to."""

    place: Int  # (n,) place(q)·S + s
    to: NDArray[np.int32]  # (n, 2K) next states: after arrivals, then after completions; −1 where there is none
    present: Int  # (n, K)
    running: Int  # (n, K)


def chain_of(system: System, space: StateSpace, decider: Decider, *, keeps: bool) -> Chain:
    """The chain of a policy; raises `Refused`. `keeps`: the policy may keep numbers between events, which are not part of the state."""
    u, K = space.schedules, len(space.truncation)
    most = u.max(axis=0)
    radix = np.append(np.cumprod((most + 1)[::-1])[::-1][1:], 1)
    number = np.full(int(np.prod(most + 1)), -1, dtype=np.int64)
    number[u @ radix] = np.arange(len(u))
    state = _with_jobs(new_state(system, decider, seeded(np.random.SeedSequence(0))), space)
    known = np.full(space.size * len(u), -1, dtype=np.int32)
    place, to = np.empty(1024, dtype=np.int64), np.empty((1024, 2 * K), dtype=np.int32)
    found, done, verdict = 0, 0, OK
    explore = _explorer(decider.decide)
    while verdict == OK and (done < found or found == 0):
        grown = max(2 * found, 1024)
        place, to = np.resize(place, grown), np.resize(to, (grown, 2 * K))
        found, done, verdict = explore(state, space, most, radix, number, known, place, to, found, done, keeps)
    if verdict != OK:
        reasons = {
            BY_ORDER: "its decisions depend on the order in which jobs of different types arrived, not only on how many there are",
            BY_TIME: "it asks to be called at times of its own, so that its decisions depend on more than the jobs present",
            KEEPS: "it keeps numbers between events, so that its decisions depend on more than the jobs present",
            IMPOSSIBLE: "it asks for jobs that are not present or do not fit together",
        }
        raise Refused(reasons[verdict])
    j, s = np.divmod(place[:found], len(u))
    present = np.stack(np.unravel_index(j, tuple((space.truncation + 1).tolist())), axis=1)
    return Chain(place[:found].copy(), to[:found].copy(), present, u[s])


# ---------------------------------------------------------------------------------------------------------------- decisions


def _with_jobs(state: State, space: StateSpace) -> State:
    """The state with places for all jobs that can be present: those of a type are next to each other, from old to new."""
    jobs = int((space.truncation + 1).sum())
    ahead = np.arange(1, jobs + 1)
    return state._replace(
        newer=ahead,
        older=ahead - 2,
        sequence=np.zeros(jobs, dtype=np.int64),
        finish=np.ones(jobs),
        estimate=np.ones(jobs),
        keys=np.zeros(jobs),
        places=np.zeros(jobs, dtype=np.int64),
    )


@cache
def _explorer(decide: Callable[..., float]) -> Callable[..., tuple[int, int, int]]:
    """The exploration with a decision function put in, compiled; in plain Python where numba cannot compile the function."""
    if decide in built_in():
        built: Callable[..., tuple[int, int, int]] = compiled(_copy(decide, f"explore_{decide.__name__}"))
        return built
    ready = isinstance(decide, nb.core.dispatcher.Dispatcher)
    njit: Any = nb.njit
    fast, plain = njit(_copy(decide if ready else njit(decide), "explore_own")), _copy(decide, "explore_plain")

    def explore(*arguments: Any) -> tuple[int, int, int]:
        try:
            return fast(*arguments)  # type: ignore[no-any-return]
        except nb.core.errors.NumbaError:  # raised before anything has run
            return plain(*arguments)  # type: ignore[no-any-return]

    return explore


def _copy(decide: Callable[..., float], name: str) -> Any:
    copies = {"decide": decide}
    call = FunctionType(_call.__code__, {**_call.__globals__, **copies}, f"{name}_call")
    njit: Any = nb.njit
    plain = name.endswith("_plain")
    function = FunctionType(_explore.__code__, {**_explore.__globals__, "_call": call if plain else njit(call)}, name)
    function.__qualname__, function.__module__ = name, __name__
    return function


def decide(state: Any, target: Any) -> float:
    """Stands for the policy's function in the code below."""
    raise NotImplementedError


@compiled
def _set_up(state: State, space: StateSpace, present: Int, running: Int, before: Int, target: Int, kind: int, i: int, order: int) -> None:
    """The state after an event, as the simulator would have it; jobs of different types arrived in one of two orders."""
    K = present.shape[0]
    state.event[0], state.event[1] = kind, i
    first = 0
    for k in range(K):
        state.system[k], state.running[k], target[k] = present[k], running[k], before[k]
        last = first + present[k] - 1
        state.oldest[k] = first if present[k] > 0 else -1
        state.newest[k] = last if present[k] > 0 else -1
        state.first_waiting[k] = first + running[k] if running[k] < present[k] else -1
        for job in range(first, first + present[k]):
            state.newer[job], state.older[job] = job + 1, job - 1
            state.sequence[job] = job if order == 0 else job - first + (K - k) * state.newer.shape[0]
        if present[k] > 0:
            state.older[first], state.newer[last] = -1, -1
        first += space.truncation[k] + 1
    for r in range(state.free.shape[0]):
        state.free[r] = state.capacity[r]
        for k in range(K):
            state.free[r] -= running[k] * state.demand[k, r]


def _call(state: State, space: StateSpace, present: Int, running: Int, before: Int, target: Int, kind: int, i: int, keeps: bool) -> int:
    """The decision after an event, by both orders of arrival; a verdict other than OK if it is not one by counts."""
    K = present.shape[0]
    other, again = np.zeros(K, dtype=np.int64), np.inf
    for order in range(2):  # the function is put in at one place only, which halves the time to compile
        for k in range(K):
            other[k] = target[k]
        _set_up(state, space, present, running, before, target, kind, i, order)
        again = min(again, decide(state, target))
    if again < np.inf:
        return BY_TIME
    for k in range(K):
        other[k], target[k] = min(other[k], present[k]), min(target[k], present[k])  # as the simulator takes them
        if other[k] != target[k]:
            return BY_ORDER
    if not keeps:
        for k in range(state.memory.shape[0]):
            if state.memory[k] != 0:
                return KEEPS
        for k in range(state.counters.shape[0]):
            if state.counters[k] != 0:
                return KEEPS
    return OK


def _explore(
    state: State,
    space: StateSpace,
    most: Int,
    radix: Int,
    number: Int,
    known: NDArray[np.int32],
    place: Int,
    to: NDArray[np.int32],
    found: int,
    done: int,
    keeps: bool,
) -> tuple[int, int, int]:
    """Goes on from `done` states looked at and `found` ones, until all are looked at or the arrays are full."""
    u, N, K = space.schedules, space.truncation, space.truncation.shape[0]
    S = u.shape[0]
    target = np.zeros(K, dtype=np.int64)
    present, running, before = np.zeros(K, dtype=np.int64), np.zeros(K, dtype=np.int64), np.zeros(K, dtype=np.int64)
    if found == 0:
        verdict = _call(state, space, present, running, before, target, START, 0, keeps)
        if verdict != OK:
            return found, done, verdict
        place[0], known[0], found = 0, 0, 1
    while done < found:
        if found + 2 * K > place.shape[0]:
            return found, done, OK
        j, s = place[done] // S, place[done] % S
        for event in range(2 * K):
            i = event % K
            arrives = event < K
            rest = j
            for k in range(K):
                present[k] = rest // space.stride[k]
                rest -= present[k] * space.stride[k]
                running[k] = before[k] = u[s, k]
            to[done, event] = -1
            if arrives:
                if present[i] == N[i] or space.arrival_rate[i] == 0.0:
                    continue
                present[i] += 1
            else:
                if running[i] == 0:
                    continue
                present[i] -= 1
                running[i] -= 1
            verdict = _call(state, space, present, running, before, target, ARRIVAL if arrives else COMPLETION, i, keeps)
            if verdict != OK:
                return found, done, verdict
            at, q = 0, 0
            for k in range(K):
                if target[k] < 0 or target[k] > most[k]:
                    return found, done, IMPOSSIBLE
                at += radix[k] * target[k]
                q += space.stride[k] * present[k]
            if number[at] < 0:
                return found, done, IMPOSSIBLE
            next_place = q * S + number[at]
            if known[next_place] < 0:
                known[next_place] = found
                place[found] = next_place
                found += 1
            to[done, event] = known[next_place]
        done += 1
    return found, done, OK


# ---------------------------------------------------------------------------------------------------------------- stationary law


@compiled
def _gauss_seidel(start: Int, source: NDArray[np.int32], rate: Array, out: Array, p: Array, ascending: bool) -> None:
    """p(x) = Σ_y p(y) rate(y, x) / out(x), one state after the other; the first stays as it is."""
    n = out.shape[0]
    for count in range(1, n):
        x = count if ascending else n - count
        total = 0.0
        for k in range(start[x], start[x + 1]):
            total += p[source[k]] * rate[k]
        p[x] = total / out[x]


def stationary_law(space: StateSpace, chain: Chain, error: float = 1e-11, until: float = np.inf) -> tuple[Array, float]:
    """The stationary probabilities of the states, and the flow that is out of balance in them relative to all.

    Raises `OutOfTime` when the clock (`time.monotonic`) is past `until`.
    With p = 1 in the empty server, a pair of Gauss–Seidel sweeps is an affine map p → A p + b, and GMRES solves (I − A) p = b.
    """
    n, K = chain.present.shape
    rates = np.hstack([np.broadcast_to(space.arrival_rate, (n, K)), chain.running * space.service_rate])
    source, event = np.nonzero(chain.to >= 0)
    flow = csr_array((rates[source, event], (chain.to[source, event], source)), shape=(n, n))  # rows: into a state
    out = np.bincount(source, weights=rates[source, event], minlength=n)
    order = np.argsort(chain.place, kind="stable")  # sweeps go by jobs present
    flow, out = flow[order][:, order].tocsr(), out[order]
    start, sources, into = flow.indptr.astype(np.int64), flow.indices.astype(np.int32), flow.data
    leaving: Array = np.asarray(out, dtype=float)
    if n == 1:
        return np.ones(1), 0.0

    def pair(p: Array) -> Array:
        if time.monotonic() > until:
            raise OutOfTime
        _gauss_seidel(start, sources, into, leaving, p, True)
        _gauss_seidel(start, sources, into, leaving, p, False)
        return p

    def product(x: Any) -> Any:
        moved = np.array(x)
        moved[0] = 0.0
        moved = x - pair(moved)
        moved[0] = x[0]
        return moved

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    p = np.zeros(n)
    p[0] = 1.0
    unbalanced = np.inf
    for _ in range(_ROUNDS):
        for _ in range(2):
            pair(p)
        residual = pair(p.copy()) - p
        with one_thread(_RESTART):  # products of long vectors gain nothing from threads that other work takes away
            p += gmres(operator, residual, rtol=1e-3, restart=_RESTART, maxiter=1)[0]
        through = p * out
        unbalanced = float(np.abs(flow @ p - through).sum() / np.abs(through).sum())
        if unbalanced <= error:
            break
    else:
        raise NotConverged(
            f"the stationary law still has {unbalanced:.1e} of its flow out of balance; {error:.0e} was asked for. The policy may be "
            "unstable at this load: rota.simulate would show that"
        )
    law = np.empty(n)
    law[order] = p / p.sum()
    return law, unbalanced
