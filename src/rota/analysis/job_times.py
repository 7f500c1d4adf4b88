"""When will a job start, and when will it end? The exact laws, from the present state of a rota, for exponential sizes.

Jobs of a type are served in order. So the start of a job with k jobs of its type ahead depends on k and on the state s of the process, and
on nothing else: it runs as soon as k < u_s. While it waits, k ≥ u_s, every slot of its type holds a job ahead, and each ring is the end of
one of them. From (k, s) the chain (`rota.analysis.walk`) only goes down:

    P(start > t) = P(k ≥ u_s at all times up to t),

and P(end > t) is as in `rota.analysis.response`, from (k, s) instead of what an arrival sees.

Sizes are exponential, so it does not matter for how long the jobs ahead have run. If the time τ of the next move is known (a scheduler that
has drawn it knows it), the state stays what it is until τ and moves then: the start may be at τ itself with positive probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rota.analysis.law import TimeLaw, poisson_mixture, poisson_range, poisson_weights
from rota.analysis.queue import TypeQueue
from rota.analysis.walk import Walk
from rota.arguments import is_real, whole
from rota.arrays import Array
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Infeasible, Problem

if TYPE_CHECKING:
    from rota.process import ModulatingProcess

__all__ = ["LONGEST_S", "Forecast", "forecast_job", "state_law"]

LONGEST_S = 60.0  # computing time of a forecast, about
_GONE = 1e-14  # what is left when the steps end
_TURN = 64  # steps by which the last factor is measured
_LEVELS = (0.5, 0.8, 0.95)

State = int | Sequence[float] | Array | None


@dataclass(frozen=True)
class Forecast:
    """When a job starts and when it ends, as times from now: `mean`, `tail`, `cdf` and `quantile` of each."""

    start: TimeLaw
    end: TimeLaw

    def __repr__(self) -> str:
        times = ", ".join(f"{number(self.start.quantile(p))} with {p:.0%}" for p in _LEVELS)
        return f"<Forecast: starts within {times}; in {number(self.start.mean)} on average>"

    def _repr_html_(self) -> str:
        laws = (("start", self.start), ("end", self.end))
        rows = [(name, number(law.mean), *(number(law.quantile(p)) for p in _LEVELS)) for name, law in laws]
        return html_title("Forecast, times from now") + html_table(["", "mean", *(f"{p:.0%}" for p in _LEVELS)], rows)


def state_law(process: ModulatingProcess, state: State) -> Array:
    """The law (N,) of the state of the process: a state by its number, a law as such, or the stationary one."""
    N = len(process)
    if state is None:
        return process.stationary
    if isinstance(state, int | np.integer) and not isinstance(state, bool):
        if not 0 <= state < N:
            raise BadSpec([Problem("state", f"must be a state of the process, 0…{N - 1}", state)])
        known: Array = np.eye(1, N, int(state))[0]
        return known
    try:
        law = np.asarray(state, dtype=np.float64)
    except (TypeError, ValueError):
        law = np.empty(0)
    if law.shape != (N,) or not (law >= 0).all() or not abs(law.sum() - 1) < 1e-9:
        rule = f"must be a state of the process, 0…{N - 1}, or its law: {N} probabilities that sum to 1"
        raise BadSpec([Problem("state", rule, state)])
    return law


def forecast_job(
    queue: TypeQueue, ahead: int, state: State = None, next_move: float | None = None, *, most_s: float = LONGEST_S
) -> Forecast:
    """The laws of start and end of a job of a type with `ahead` jobs of its type before it, those that run included."""
    ahead, law = whole("ahead", ahead, 0), state_law(queue.process, state)
    name = queue.process.names[queue.type]
    if queue.max_parallel == 0:
        raise Infeasible(f"type {name!r} is in no schedule of the policy, so its jobs never start")
    if next_move is not None:
        law_after = _after_move(queue.process, law, next_move)
        return Forecast(*(_with_move(queue, ahead, law, law_after, next_move, start, most_s) for start in (True, False)))
    return Forecast(*(_law(walk := Walk(queue, until_start=start), walk.begin(ahead, law), most_s) for start in (True, False)))


def _law(walk: Walk, x: Array, most_s: float) -> TimeLaw:
    """The law of the end of a walk from x.

    With w_n the part that is left after n steps, P(T > t) = Σ e^{−θt} (θt)ⁿ/n! w_n and E[T] = Σ w_n/θ; from the last step on w shrinks by
    one factor, and is less than 10⁻¹⁴.
    """
    theta = walk.rate
    w, _, _ = walk.go(x, np.empty(0), steps=None, gone=_GONE, most_s=most_s)
    M = len(w) - 1
    turn = min(_TURN, M)
    r = float((w[M] / w[M - turn]) ** (1 / turn)) if turn and w[M] > 0 else 0.0

    def tails(t: Array) -> Array:
        return np.array([w[0] if one == 0 or M == 0 else poisson_mixture(w, r, theta * one) for one in t])

    return TimeLaw(mean=(float(w[:M].sum()) + float(w[M]) / (1 - r)) / theta, tails=tails)


# ---------------------------------------------------------------------------------------------------------- a known next move


def _after_move(process: ModulatingProcess, law: Array, next_move: float) -> Array:
    """The law of the state after the next move; it must be known which state is left, and that it is left by no completion."""
    if not is_real(next_move) or not 0 <= next_move < np.inf:
        raise BadSpec([Problem("next_move", "must be a time from now, at least 0", next_move)])
    s = int(np.argmax(law))
    moves = process.source == s
    if law[s] < 1 or not moves.any() or (process.trigger[moves] >= 0).any():
        rule = "is known only in a state (given by its number) that a timer or a setup ends, not a completion; leave it out"
        raise BadSpec([Problem("next_move", rule, next_move)])
    after: Array = np.bincount(process.target[moves], weights=process.rate[moves], minlength=len(process)).astype(np.float64)
    after /= after.sum()
    return after


def _with_move(queue: TypeQueue, ahead: int, law: Array, law_after: Array, next_move: float, until_start: bool, most_s: float) -> TimeLaw:
    """The law of start or end where the next move is at a known time τ: jobs end in one state until τ, and from τ on all goes on."""
    before, after = (Walk(queue, until_start=until_start, frozen=frozen) for frozen in (True, False))
    a = before.rate * next_move
    steps = poisson_range(a)[1]
    if steps * before.step_s(ahead + 1) > most_s:
        raise Infeasible(f"{steps:,} steps until the next move would take more than {most_s:g} s: simulate, or leave next_move out")
    weights = poisson_weights(a, 0, steps + 1)
    w, _, then = before.go(before.begin(ahead, law), weights, steps=steps, gone=0.0, most_s=most_s)
    x = then.sum(axis=1)[:, None] * law_after  # only k has changed
    x = x * (np.arange(ahead + 1)[:, None] >= queue.slots) if until_start else x
    later = _law(after, x, most_s)

    def tails(t: Array) -> Array:
        early = [w[0] if one == 0 else poisson_mixture(w, 1.0, before.rate * one) for one in t[t < next_move]]
        law = np.empty(len(t))
        law[t < next_move], law[t >= next_move] = early, later.tails(t[t >= next_move] - next_move)
        return law

    # ∫ P(T > t) dt up to τ is Σ_n w_n P(Poisson(θτ) > n)/θ.
    more = np.cumsum(weights[::-1])[::-1][1:]
    mean = float(w[: len(more)] @ more) / before.rate + later.mean
    return TimeLaw(mean=mean, tails=tails, jumps=(next_move,) if next_move > 0 else ())
