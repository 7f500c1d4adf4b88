"""The law of the response time T of one type, for exponential sizes.

The running jobs of a type are always its oldest. So the fate of a job depends on the number k of jobs ahead of it and on the state s of the
process, and on nothing behind it: a slot rings, and moves the process, whether it holds a later job or none. With k jobs ahead in state s

    k → k − 1     a_s(k) = μ min(k, u_s)      a job ahead is done
    end           μ 1{k < u_s}                the job itself runs, and is done
    k → k         c_s − a_s(k+1)              any other slot rings

and every ring may move the state, which also moves without rings of this type. So k only falls. An arrival finds (k, s) with probability
π_k(s), as arrivals are Poisson. From level β on every slot runs a job that is ahead: with D₀ the moves without a ring, its diagonal set,
and D₁ = diag(c)·After those with one, the vectors of these levels stay matrix-geometric,

    x_{β+m}(t) = π_β Rᵐ H(t),      H′ = H D₀ + R H D₁,      H(0) = I,

and N² numbers stand for all of them: nothing is cut off. Below, x_k(t) is followed level by level.

The equations are *uniformised*: with a step at every point of a Poisson process whose rate θ is above every rate out of a state,

    P(T > t) = Σ_n e^{−θt} (θt)ⁿ/n! w_n,      w_n = P(not done after n steps),      E[T] = Σ w_n / θ.

All numbers are positive and none is subtracted. The steps end when all entries shrink by the same factor r: a positive map shrinks them by
that factor ever after, so w_{n+m} = w_n rᵐ.

Arrivals with phases (`rota.analysis.markovian`) find (k, s) with the probabilities π_k E, where E weighs each phase by its rate of
arrivals: H(0) = E in place of I, and R is that of the pairs of phases and states. Arrivals after the job's own do not matter to it.

Far out, P(T > t) decays as the slowest part of it: H at rate λ(1/η − 1), with the decay rate η of the queue (in general, as D₀ + ηD₁ does),
or the time of a job with none ahead, x₀′ = x₀ L₀ (with more ahead L_k is smaller, entry by entry).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from rota.analysis.law import TimeLaw, poisson_mixture
from rota.analysis.qbd import Levels
from rota.analysis.queue import TypeQueue, erlang_c
from rota.analysis.solution import QueueLength
from rota.arrays import Array
from rota.errors import NotConverged

__all__ = ["ResponseTime", "erlang_response", "quantile_of_mixture", "uniform_rate", "uniform_response"]

_SLACK = 1.25  # θ over the largest rate
_TURN = 32  # steps between two looks at whether all entries shrink alike
_SMALL = 256  # entries up to which a turn is a product with one matrix
_SPREAD = 1e-15  # factors that differ by less are the same
_ERROR = 1e-12  # what P(T > t) may be off by the end of the steps
_GONE = 1e-17  # what is less does not count

_Step = Callable[[Array], Array]
_Turn = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, kw_only=True)
class ResponseTime(TimeLaw):
    """The time T from the arrival of a job of a type to its end, in steady state.

    `mean` and `variance` come from the law itself, `mean_by_little` is E[Q]/λ; `accuracy` is the relative difference of the two means.
    `decay_rate` γ: P(T > t) ~ const·e^{−γt}. `method`: how it was found.
    """

    variance: float
    decay_rate: float
    mean_by_little: float
    method: str

    @property
    def accuracy(self) -> float:
        """An estimate of the relative error of the mean."""
        return abs(self.mean / self.mean_by_little - 1)


def erlang_response(queue: TypeQueue) -> ResponseTime:
    """The law of T in an M/M/k queue: a job waits with probability C, then for an exponential time of rate ν = kμ − λ, and runs at rate μ.

    P(T > t) = e^{−μt} + C μ (e^{−μt} − e^{−νt})/(ν − μ)
    """
    k, mu, lam = queue.max_parallel, queue.service_rate, queue.arrival_rate
    waits = erlang_c(k, lam / mu)
    nu = k * mu - lam
    slow, gap = min(mu, nu), abs(nu - mu)

    def tails(t: Array) -> Array:
        ratio = -np.expm1(-gap * t) / gap if gap > 0 else t  # (1 − e^{−|ν−μ|t})/|ν − μ|
        law: Array = np.exp(-mu * t) + waits * mu * np.exp(-slow * t) * ratio
        return law

    return ResponseTime(
        mean=1 / mu + waits / nu,
        variance=1 / mu**2 + waits * (2 - waits) / nu**2,
        decay_rate=slow if waits > 0 else mu,
        mean_by_little=(lam / mu + waits * queue.load / (1 - queue.load)) / lam,
        method=f"Erlang C, {k} slots",
        tails=tails,
    )


def quantile_of_mixture(laws: Sequence[tuple[float, ResponseTime]], p: float) -> float:
    """The t with Σ w_i P(T_i > t) = 1 − p, for weights w that sum to 1: it lies between the quantiles of the laws."""
    own = [law.quantile(p) for _, law in laws]
    low, high = min(own), max(own)
    if high - low <= 1e-12 * high:
        return high
    low, high = low * (1 - 1e-9), high * (1 + 1e-9)
    return float(scipy.optimize.brentq(lambda t: sum(share * float(law.tail(t)) for share, law in laws) - (1 - p), low, high, rtol=1e-10))


def uniform_rate(queue: TypeQueue) -> float:
    """θ, above the rate out of every state, rings included: a step may change nothing, so the steps have no period."""
    return _SLACK * float((queue.ring_rate + queue.plain.sum(axis=1)).max())


def uniform_response(queue: TypeQueue, levels: Levels, length: QueueLength, most_steps: float, seen: Array | None = None) -> ResponseTime:
    """The law of T by uniformisation, given that of Q; `NotConverged` after `most_steps` steps. `seen`: E, I if it is None."""
    theta = uniform_rate(queue)
    w, r = _survival(queue, levels, theta, most_steps, np.eye(len(queue.slots)) if seen is None else seen)
    M = len(w) - 1  # w_{M+m} = w_M rᵐ
    n = np.arange(M)
    last = float(w[M])
    mean = (float(w[:M].sum()) + last / (1 - r)) / theta  # ∫ P(T > t) dt = Σ w_n/θ
    # E[T²] = 2 ∫ t P(T > t) dt = 2 Σ (n+1) w_n/θ²
    second = 2 * (float((n + 1) @ w[:M]) + last * ((M + 1) / (1 - r) + r / (1 - r) ** 2)) / theta**2
    return ResponseTime(
        mean=mean,
        variance=second - mean**2,
        decay_rate=min(_decay_far_behind(queue, length.decay_rate), _decay_with_none_ahead(queue)),
        mean_by_little=length.mean / queue.arrival_rate,
        method=f"uniformisation, {len(levels.rate_matrix)} phases, {queue.max_parallel} boundary levels, {M} steps",
        tails=lambda t: np.array([poisson_mixture(w, r, theta * one) for one in t]),
    )


def _decay_far_behind(queue: TypeQueue, eta: float) -> float:
    """The rate at which H decays: λ(1/η − 1) with Poisson arrivals, otherwise − the largest eigenvalue of D₀ + ηD₁."""
    if queue.arrivals is None:
        return queue.arrival_rate * (1 / eta - 1)
    c, plain = queue.ring_rate, queue.plain.toarray()
    L = plain + eta * c[:, None] * queue.after.toarray() - np.diag(plain.sum(axis=1) + c)
    return -float(np.linalg.eigvals(L).real.max())


def _decay_with_none_ahead(queue: TypeQueue) -> float:
    """The rate γ at which P(T > t) decays for a job that finds no other: −γ is the largest eigenvalue of L₀."""
    c, runs = queue.ring_rate, queue.service_rate * np.minimum(1, queue.slots)
    plain = queue.plain.toarray()
    L = plain + (c - runs)[:, None] * queue.after.toarray() - np.diag(plain.sum(axis=1) + c)
    return -float(np.linalg.eigvals(L).real.max())


def _survival(queue: TypeQueue, levels: Levels, theta: float, most_steps: float, seen: Array) -> tuple[Array, float]:
    """w_0, …, w_M, and the factor r by which w shrinks from there on."""
    mu, u, c = queue.service_rate, queue.slots, queue.ring_rate / theta
    P, beta = len(seen), queue.max_parallel
    plain = queue.plain.toarray() / theta
    after = queue.after.toarray() if queue.triggers.any() else None
    stay = plain + np.diag(1 - plain.sum(axis=1) - c)
    k = np.arange(beta)[:, None]
    ahead = mu * np.minimum(k, u) / theta  # (β, N), a_s(k) per step
    others = c - mu * np.minimum(k + 1, u) / theta
    R, top = levels.rate_matrix, levels.vectors[-1]
    # Rows: H (P, N), then x_0, …, x_{β−1}. What a row of H stands for, all levels from β on: π_β Σ Rᵐ.
    z = np.vstack([seen, levels.vectors[:-1] @ seen])
    weight = np.append(np.linalg.solve((np.eye(P) - R).T, top), np.ones(beta))

    def step(z: Array) -> Array:
        rung = np.empty_like(z)
        rung[:P] = c * z[:P]
        rung[P:] = others * z[P:]
        rung[P:-1] += ahead[1:] * z[P + 1 :]
        rung[-1] += top @ rung[:P]
        if after is not None:
            rung = rung @ after
        rung[:P] = R @ rung[:P]
        rung += z @ stay
        return rung

    turn = _turn_at_once if z.size <= _SMALL else _turn_by_steps
    go = turn(step, weight, z.shape)
    w = [np.array([weight @ z.sum(axis=1)])]
    for _ in range(int(most_steps / _TURN) + 1):
        before, (z, left) = z, go(z)
        w.append(left)
        r = float((w[-1][-1] / w[-2][-1]) ** (1 / _TURN))
        if left[-1] < _GONE:
            return np.concatenate(w), r
        counts = weight[:, None] * z > _GONE
        with np.errstate(divide="ignore"):
            factors = (z[counts] / before[counts]) ** (1 / _TURN)
        spread = float(factors.max() - factors.min())
        # Off by m·spread·rᵐ at most after m more steps, which is largest at m = 1/(1−r).
        if spread < _SPREAD or left[-1] * spread < _ERROR * (1 - r):
            return np.concatenate(w), r
    raise NotConverged(f"the law of the response time is not found after {_TURN * (len(w) - 1):,} steps: simulate")


def _turn_by_steps(step: _Step, weight: Array, shape: tuple[int, ...]) -> _Turn:
    """z ↦ z after a turn, and what is left after each step of it."""

    def go(z: Array) -> tuple[Array, Array]:
        left = np.empty(_TURN)
        for n in range(_TURN):
            z = step(z)
            left[n] = weight @ z.sum(axis=1)
        return z, left

    return go


def _turn_at_once(step: _Step, weight: Array, shape: tuple[int, ...]) -> _Turn:
    """The same for few numbers: with the matrix M of a step, z M³² and z Mⁿ·weight for n = 1…32."""
    size = int(np.prod(shape))
    M = np.array([step(unit.reshape(shape)).ravel() for unit in np.eye(size)])
    columns = [np.repeat(weight, shape[1])]
    for _ in range(_TURN):
        columns.append(M @ columns[-1])
    many, lefts = np.linalg.matrix_power(M, _TURN), np.column_stack(columns[1:])
    return lambda z: ((z.ravel() @ many).reshape(shape), z.ravel() @ lefts)
