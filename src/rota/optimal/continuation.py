"""Values beyond the edge of the states, such that the bound on all policies is proved on the states within it.

Let y be prices with y·u ≤ 1 for every schedule (`rota.system_load`), ρ = Σ y_i λ_i/μ_i < 1, and w(q) = Σ y_i q_i/μ_i the work present. No
schedule does more than one unit of work per unit of time, and w units of work are at least κ w jobs, κ = 1 / max(y_i/μ_i). Where many jobs
wait, values therefore grow at least like κ w²/(2 (1 − ρ)). With N the edge and n = min(q, N), values W on the states go on as

    h(q, u) = W(n, u) + F(q) − F(n),   F(q) = ½ q·A q + b·q
    A_ij = s κ y_i y_j / (μ_i μ_j (1 − ρ)),   s < 1,      b_i = ½ A_ii − δ y_i / (μ_i (1 − ρ))

and a type of price 0 has A_ii = s / (2 (β_i μ_i − λ_i)) instead, β_i being the most of its jobs that run at once. Then A (λ − u μ) ≥ −s for
every schedule, in each row. So the one-step difference c + L h of a state with x_i > 0 jobs beyond the edge, L being the generator,
is a linear function of x that does not fall in any x_i: if it is at least g with one job beyond along any types at the edge, it is so with
more. `backup` looks at these states too, so that the least difference it finds is that of all states there are. A larger δ raises the
difference beyond the edge by as much where all work is done that can be, and lowers the cost of jobs at the edge: it is
raised by what the difference lacks. (In M/M/k the right δ makes h the values themselves, and the bound the mean.)

By Dynkin's formula no policy then has a mean number of jobs below g: E ∫ c dt ≥ g T − E[h(Q(T))] + h(Q(0)), and if the mean of Q
is finite in the long run, E[Q(T)]/T is as small as we like for some large T. That is enough for an h that grows linearly, so let F go on
as a straight line from some work w₁ on. Beyond w₁ the jobs are at least κ w, and what L h takes from them is at most s κ w₁ and
a constant, so for w₁ large enough the difference is at least g there too.
"""

from __future__ import annotations

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import Load
from rota.optimal.state_space import StateSpace

__all__ = ["continued", "extended", "first_values"]

_BELOW_ONE = 1 - 1e-6  # s
_CHUNK = 1 << 20  # numbers of jobs present that are looked at together


def continued(space: StateSpace, load: Load, delta: float = 0.0) -> StateSpace:
    """The states with the values that go on beyond their edge."""
    lam, mu = space.arrival_rate, space.service_rate
    y = load.type_price / float((space.schedules @ load.type_price).max())  # y·u ≤ 1, whatever was rounded
    work = y / mu  # of a job
    spare = 1 - float(y @ (lam / mu))
    A = np.outer(work, work) / (work.max() * spare)
    free = np.flatnonzero(y <= 0)
    A[free, free] = 0.5 / (space.largest * mu - lam)[free]
    A *= _BELOW_ONE
    return space._replace(growth=A, first=np.diag(A) - delta * work / spare)


def first_values(space: StateSpace, copies: int) -> Array:
    """F of each number of jobs present, `copies` times: values to start with."""
    values = np.empty((space.size, copies))
    for first in range(0, space.size, _CHUNK):
        q = _present(space, first)
        values[first : first + len(q)] = _beyond(space, q)[:, None]
    return values.ravel()


def extended(before: StateSpace, values: Array, space: StateSpace) -> Array:
    """Values on a larger truncation: h."""
    old = values.reshape(before.size, -1)
    new = np.empty((space.size, old.shape[1]))
    for first in range(0, space.size, _CHUNK):
        q = _present(space, first)
        n = np.minimum(q, before.truncation)
        new[first : first + len(q)] = old[n @ before.stride] + (_beyond(space, q) - _beyond(space, n))[:, None]
    return new.ravel()


def _present(space: StateSpace, first: int) -> Int:
    places = np.arange(first, min(first + _CHUNK, space.size))
    return np.stack(np.unravel_index(places, tuple((space.truncation + 1).tolist())), axis=1).astype(np.int64)


def _beyond(space: StateSpace, q: Int) -> Array:
    """F(q) = ½ q·A q + b·q, with b_i = F(e_i) − ½ A_ii."""
    b = space.first - 0.5 * np.diag(space.growth)
    return np.asarray(0.5 * ((q @ space.growth) * q).sum(axis=1) + q @ b)
