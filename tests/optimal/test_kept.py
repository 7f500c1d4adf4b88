"""The values of fixed decisions on the states in which no job starts."""

import numpy as np
import pytest

import rota
from rota.optimal import without_preemption
from rota.optimal.continuation import continued, first_values
from rota.optimal.kept import kept_states, sweep_kept
from rota.optimal.state_space import state_space
from systems import paper_example

SYSTEMS = {
    "two types": (rota.System([3], [[1], [2]], [0.6, 0.5], [1.0, 0.7]), (4, 5)),
    "paper": (paper_example(0.8), (3, 7, 4)),
    "a type that does not arrive": (rota.System([3], [[1], [2]], [0.6, 0.0], [1.0, 0.7]), (5, 3)),
}


def decisions(system, N, sweeps):
    """The states of a truncation, and the decisions after so many sweeps."""
    space = continued(state_space(system, N), rota.system_load(system))
    W, choice = first_values(space, len(space.schedules)), np.zeros(space.size * len(space.schedules), dtype=np.int16)
    for k in range(sweeps):
        without_preemption.improve(space, W, choice, k % 2 == 0)
    return space, choice


def plain_values(space, choice):
    """W of every (q, u) that can be, from a dense linear system over all of them: one row for each state, as the model says it."""
    S, lam, mu, N = len(space.schedules), space.arrival_rate, space.service_rate, space.truncation
    present = [np.array(q) for q in np.ndindex(*(N + 1))]
    states = [(j, s) for j, q in enumerate(present) for s in range(S) if (space.schedules[s] <= q).all()]
    number = {state: k for k, state in enumerate(states)}
    place = {tuple(row): s for s, row in enumerate(space.schedules.tolist())}
    A, b, g = np.zeros((len(states) + 1,) * 2), np.zeros(len(states) + 1), len(states)  # the last unknown is the mean number of jobs
    for k, (j, s) in enumerate(states):
        q, u = present[j], space.schedules[s]
        if j == 0:
            A[k, k] = 1.0  # relative to the empty server, whose own equation comes last
            continue
        if choice[j * S + s] != s:
            A[k, k], A[k, number[j, choice[j * S + s]]] = 1.0, -1.0
            continue
        b[k], A[k, g] = q.sum(), 1.0
        for i in range(len(N)):
            if q[i] < N[i]:
                A[k, k] += lam[i]
                A[k, number[j + space.stride[i], s]] -= lam[i]
            else:
                b[k] += lam[i] * (space.first[i] + space.growth[i] @ q)
            if u[i] > 0:
                less = place[tuple(u - np.eye(len(N), dtype=int)[i])]
                A[k, k] += u[i] * mu[i]
                A[k, number[j - space.stride[i], less]] -= u[i] * mu[i]
    A[g, g] = -1.0
    for i in range(len(N)):
        A[g, number[space.stride[i], 0]] += lam[i]  # g = Σ λ_i W(e_i, 0)
    solution = np.linalg.solve(A, b)
    return {state: solution[k] for state, k in number.items()}


@pytest.mark.parametrize("sweeps", [1, 4, 40])
@pytest.mark.parametrize("name", SYSTEMS)
def test_sweeps_lead_to_the_values_of_the_decisions(name, sweeps):
    """Sweeps through the kept states end at the solution of the dense equations over all states, for early and for late decisions."""
    space, choice = decisions(*SYSTEMS[name], sweeps)
    kept, S = kept_states(space, choice), len(space.schedules)
    x = np.zeros(len(kept.place))
    for k in range(20_000):
        before = x.copy()
        sweep_kept(kept, x, 1.0, k % 2 == 0)
        if np.abs(x - before).max() <= 1e-13 * np.abs(x).max():
            break
    plain = plain_values(space, choice)
    assert {divmod(at, S) for at in np.flatnonzero(kept.of >= 0).tolist()} == set(plain)
    values = [x[kept.of[j * S + s]] for j, s in plain]
    assert values == pytest.approx(list(plain.values()), rel=1e-9, abs=1e-9)


def test_the_linear_part_has_no_cost():
    """With cost 0 a sweep is linear: that of a sum is the sum."""
    space, choice = decisions(*SYSTEMS["paper"], 4)
    kept, generator = kept_states(space, choice), np.random.default_rng(1)
    one, other = generator.random((2, len(kept.place)))
    one[0] = other[0] = 0.0
    both = one + other
    for values in (one, other, both):
        sweep_kept(kept, values, 0.0, True)
    assert both == pytest.approx(one + other, rel=1e-12)
