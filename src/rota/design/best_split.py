"""The best split of arrivals between places that serve each type by itself.

Under a rota the clock does not look at the queues, so the queue of a type at a place depends on nothing but the rate at which that type
arrives there: g_di(x), convex in x. What is sent where is then a problem of its own for every type,

    min Σ_d g_di(x_di)   s.t.   Σ_d x_di = λ_i,   x ≥ 0

solved by moves between two places, from the one with the highest to the one with the lowest marginal g′, each to its best length by golden
section. All types move at once. No move makes any type worse, so the answer is never worse than the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rota.arrays import Array, Bool
from rota.design.deadline import Deadline

__all__ = ["Place", "best_split", "jobs_at"]

Place = Callable[[Array], Array]  # rates of the types (K,) → mean numbers of jobs there (K,), infinite where a type is not stable

_MOVES = 60
_STEP = 1e-5  # of the arrivals of a type, for marginals
_GAIN = 1e-8  # relative: a move that gains less was the last
_GOLDEN = (5**0.5 - 1) / 2
_SECTIONS = 32  # of a move, each to 0.618 of the length before


def jobs_at(places: Sequence[Place], rate: Array, split: Array) -> Array:
    """g_di of every place and type (D, K)."""
    return np.array([place(rate * part) for place, part in zip(places, split, strict=True)])


def best_split(places: Sequence[Place], rate: Array, start: Array, allowed: Bool, deadline: Deadline) -> Array:
    """The split (D, K) of arrivals at `rate` (K,) of the fewest jobs, from a split that is stable. Types go only where `allowed` (D, K)."""
    split = start.copy()
    movable = (allowed.sum(axis=0) > 1) & (rate > 0)
    now = jobs_at(places, rate, split)
    for _ in range(_MOVES):
        if not movable.any() or deadline.left_s < 0:
            break
        source, target = _directions(places, rate, split, allowed, now)
        length = np.where(movable & (source != target), split[source, np.arange(len(rate))], 0.0)
        if not length.any():
            break
        moved = _moved(places, rate, split, source, target, length, deadline)
        then = jobs_at(places, rate, moved)
        before, after = now.sum(axis=0), then.sum(axis=0)
        movable &= after < before * (1 - _GAIN)
        split = np.where(movable, moved, split)
        now = np.where(movable, then, now)
    return split


def _directions(places: Sequence[Place], rate: Array, split: Array, allowed: Bool, now: Array) -> tuple[Array, Array]:
    """Of every type, the place where a job less gains most and the one where a job more costs least."""
    more = jobs_at(places, rate, split + np.where(allowed, _STEP, 0.0)) - now
    less = now - jobs_at(places, rate, np.maximum(split - _STEP, 0.0))
    gains = np.where(allowed & (split > 0), less / np.where(split > 0, np.minimum(split, _STEP), 1.0), -np.inf)
    costs = np.where(allowed, more / _STEP, np.inf)
    return gains.argmax(axis=0), costs.argmin(axis=0)


def _moved(places: Sequence[Place], rate: Array, split: Array, source: Array, target: Array, length: Array, deadline: Deadline) -> Array:
    """The split after moving the best part of at most `length` (K,) of every type from one place to another."""
    types = np.arange(len(rate))

    def at(part: Array) -> Array:
        changed = split.copy()
        changed[source, types] -= part
        changed[target, types] += part
        return np.maximum(changed, 0.0)

    def value(part: Array) -> Array:
        total: Array = jobs_at(places, rate, at(part)).sum(axis=0)
        return total

    low, high = np.zeros(len(rate)), length.copy()
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    one, other = value(first), value(second)
    for _ in range(_SECTIONS):
        if deadline.left_s < 0:
            break
        left = one <= other  # also where both are infinite: too much was moved
        low, high = np.where(left, low, first), np.where(left, second, high)
        new = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        found = value(new)
        first, second = np.where(left, new, second), np.where(left, first, new)
        one, other = np.where(left, found, other), np.where(left, one, found)
    best = np.where(one <= other, first, second)
    ends = np.array([value(part) for part in (best, length, np.zeros(len(rate)))])
    return at(np.choose(ends.argmin(axis=0), [best, length, np.zeros(len(rate))]))
