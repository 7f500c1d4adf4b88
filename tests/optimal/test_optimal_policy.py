"""The best policy: closed forms, policy iteration in plain numpy, bounds, and what is refused."""

import itertools
import math

import numpy as np
import pytest

import rota
from rota.optimal.state_space import schedules_of
from systems import paper_example

PREEMPTION = pytest.mark.parametrize("preemption", ["full", "none"])


def erlang_c(k, lam, mu):
    """E[T] of an M/M/k queue."""
    a = lam / mu
    waits = a**k / math.factorial(k) * k / (k - a)
    waits /= sum(a**n / math.factorial(n) for n in range(k)) + waits
    return waits / (k * mu - lam) + 1 / mu


def brute_force(system, N, preemptive):
    """E[Q] of the best policy with at most N_i jobs, jobs beyond lost at the cost c_i: policy iteration with dense matrices.

    States are all (q, u) before a decision; a decision is any u' that fits, u' ≤ q, and u' ≥ u without preemption.
    """
    schedules = [tuple(row) for row in schedules_of(system).tolist()]
    lam, mu, K = system.arrival_rate, system.service_rate, len(N)
    most = np.max(schedules, axis=0)
    toll = [lam[i] * (1 / mu[i] + (N[i] - most[i] + 1) / (most[i] * mu[i])) for i in range(K)]
    states = [
        (q, u)
        for q in itertools.product(*(range(n + 1) for n in N))
        for u in (schedules if not preemptive else [(0,) * K])
        if all(a <= b for a, b in zip(u, q, strict=True))
    ]
    place = {state: x for x, state in enumerate(states)}
    R = lam.sum() + max(np.dot(u, mu) for u in schedules)

    def step(counts, i, by):
        return tuple(n + by * (k == i) for k, n in enumerate(counts))

    def row(q, u):
        """Probabilities of the next state and the cost, with schedule u."""
        p, cost = np.zeros(len(states)), float(sum(q))
        keep = (0,) * K if preemptive else u
        for i in range(K):
            if q[i] < N[i]:
                p[place[step(q, i, 1), keep]] += lam[i] / R
            else:
                cost += toll[i]
            if u[i]:
                p[place[step(q, i, -1), keep if preemptive else step(u, i, -1)]] += u[i] * mu[i] / R
        p[place[q, keep]] += 1 - p.sum()
        return p, cost

    choices = [
        [v for v in schedules if all(a <= b <= c for a, b, c in zip(u if not preemptive else (0,) * K, v, q, strict=True))]
        for q, u in states
    ]
    rows = [[row(q, v) for v in options] for (q, _), options in zip(states, choices, strict=True)]
    best = [len(options) - 1 for options in choices]
    while True:
        P = np.array([rows[x][a][0] for x, a in enumerate(best)])
        c = np.array([rows[x][a][1] for x, a in enumerate(best)])
        A = np.eye(len(states)) - P
        A[:, 0] = 1.0  # the value of the empty server is 0, and its place holds g
        h = np.linalg.solve(A, c)
        g, h[0] = h[0], 0.0
        values = [[cost + p @ h for p, cost in options] for options in rows]
        improved = [a if v[a] <= min(v) + 1e-9 else int(np.argmin(v)) for a, v in zip(best, values, strict=True)]
        if improved == best:
            return g
        best = improved


@PREEMPTION
@pytest.mark.parametrize("k", [1, 3])
def test_one_type_is_erlang_c(preemption, k):
    """With one type any policy that lets no server idle is best: M/M/1 and M/M/k."""
    system = rota.System([k], [[1]], [0.7 * k], [1.0])
    best = rota.optimal_policy(system, preemption, accuracy=1e-5)
    exact = erlang_c(k, 0.7 * k, 1.0)
    assert best.settled
    assert best.mean_response_time == pytest.approx(exact, rel=3e-5)
    assert exact * (1 - 3e-5) < best.lower_bound <= exact


@PREEMPTION
@pytest.mark.parametrize(("k", "load"), [(1, 0.9), (3, 0.9), (3, 0.97)])
def test_the_bound_holds_on_short_truncations(preemption, k, load):
    """However few jobs are counted, the bound is below the exact mean without truncation, although lost jobs cost something."""
    system, exact = rota.System([k], [[1]], [load * k], [1.0]), erlang_c(k, load * k, 1.0)
    bounds = [rota.optimal_policy(system, preemption, truncation=k + extra).lower_bound for extra in (2, 4, 8, 16, 32)]
    assert bounds == sorted(bounds)
    assert 1 / 2 < bounds[0] < bounds[-1] < exact


def test_the_shortest_mean_first_with_preemption():
    """One server, two types: the type of higher μ first is best (the cμ rule), and its mean has a closed form."""
    lam, mu = np.array([0.3, 0.25]), np.array([2.0, 0.5])
    best = rota.optimal_policy(rota.System([1], [[1], [1]], lam, mu), "full", accuracy=1e-4)
    rho = lam / mu
    first = 1 / mu[0] / (1 - rho[0])  # an M/M/1 queue of its own
    second = (1 / mu[1] + (lam / mu**2).sum() / (1 - rho.sum())) / (1 - rho[0])
    exact = (lam @ [first, second]) / lam.sum()
    assert best.response_time == pytest.approx([first, second], rel=1e-3)
    assert best.mean_response_time == pytest.approx(exact, rel=2e-4)
    assert best.lower_bound <= exact
    q = np.unravel_index(np.arange(len(best.policy.choice)), tuple(n + 1 for n in best.truncation))
    runs = best.policy.schedules[best.policy.choice]
    inside = q[1] < best.truncation[1]  # at the edge a second job that leaves lets another one in
    assert (runs[inside & (q[0] > 0)] == [1, 0]).all()


@PREEMPTION
def test_brute_force(preemption):
    """Dense policy iteration over all decisions has the same mean, between the bounds."""
    system = rota.System([4, 3], [[1, 1], [3, 1]], [0.9, 0.5], [1.0, 0.7])
    N = [5, 4]
    g = brute_force(system, N, preemption == "full")
    best = rota.optimal_policy(system, preemption, truncation=N, accuracy=1e-8)
    assert best.queue_length.sum() == pytest.approx(g, rel=1e-8)
    assert best.lower_bound * system.arrival_rate.sum() <= g * (1 + 1e-12)
    assert not best.settled
    assert "It is not settled" in best.explain()


@PREEMPTION
def test_the_lower_bound_grows_to_the_mean(preemption):
    """A larger truncation proves more, and all bounds are below the settled mean."""
    system = paper_example(0.6)
    bounds = [rota.optimal_policy(system, preemption, truncation=N).lower_bound for N in (8, 12, 16)]
    settled = rota.optimal_policy(system, preemption, accuracy=3e-3)
    assert settled.settled
    assert bounds == sorted(bounds)
    assert bounds[-1] <= settled.mean_response_time * (1 + 3e-3)
    assert settled.lower_bound <= settled.mean_response_time * (1 + 1e-9)


def test_waiting_can_be_better_than_starting():
    """Without preemption it can pay to leave a job waiting that would fit; First-Fit and MaxWeight never do."""
    system = rota.System([4], [[1], [4]], [1.6, 0.3], [1.0, 1.0])
    best = rota.optimal_policy(system, "none", accuracy=2e-3)
    for policy in ("first-fit", "max-weight-np"):
        other = rota.simulate(system, policy, jobs=200_000, seed=2)
        assert best.lower_bound < other.mean_response_time + other.interval
    assert best.mean_response_time < 0.99 * rota.evaluate(system, "max-weight-np", accuracy=2e-3).mean_response_time
    table, schedules = best.policy.choice.reshape(*(n + 1 for n in best.truncation), -1), best.policy.schedules
    idle = [
        (q, s)
        for q in itertools.product(range(1, 6), range(1, 6))
        for s, u in enumerate(schedules)
        if table[q][s] == s and u[0] < min(q[0], 4) and u[1] == 0 and u.sum() > 0
    ]
    assert idle


@PREEMPTION
def test_no_policy_is_better(preemption):
    """Of simulated policies none is below the bound; the table itself has the mean that was computed."""
    system = paper_example(0.7)
    best = rota.optimal_policy(system, preemption, accuracy=3e-3)
    own = rota.simulate(system, best.policy, jobs=300_000, seed=5)
    assert own.interval < 0.05 * own.mean_response_time
    assert abs(own.mean_response_time - best.mean_response_time) < 2 * own.interval
    for policy in ["first-fit", "max-weight-np", "fcfs", *["max-weight"] * (preemption == "full")]:
        other = rota.simulate(system, policy, jobs=100_000, seed=5)
        assert not other.stable or best.lower_bound < other.mean_response_time + other.interval


def test_preemption_helps():
    """What may be done without preemption may be done with it."""
    system = paper_example(0.6)
    free, bound = (rota.optimal_policy(system, preemption, accuracy=3e-3) for preemption in ("full", "none"))
    assert free.lower_bound < bound.lower_bound


def test_the_paper_example_agrees_with_an_earlier_prototype():
    """At load 0.8, at most 30 jobs of each type: 2.74 for lost jobs that cost nothing; here they cost something."""
    best = rota.optimal_policy(paper_example(0.8), "none", truncation=30)
    assert 2.74 < best.lower_bound < 2.79


def test_words_and_progress():
    """It says what is proved, and how far it is."""
    seen = []
    best = rota.optimal_policy(rota.System([2], [[1]], [1.0], [1.0]), "none", progress=seen.append)
    assert repr(best).startswith("<Optimal, preemption none: mean response time 1.33")
    assert "Proved, but for rounding: no policy without preemption has a mean response time below 1.33" in best.explain()
    assert "stable, not proved" in best.explain()
    assert "<table>" in best._repr_html_()
    assert seen[-1].truncation == best.truncation
    assert "pairs of sweeps" in seen[-1].text


def test_a_type_that_never_arrives():
    """It changes nothing, and has no response time."""
    system = rota.System([2], [[1], [2]], [1.0, 0.0], [1.0, 1.0])
    best = rota.optimal_policy(system, "none")
    assert best.mean_response_time == pytest.approx(erlang_c(2, 1.0, 1.0), rel=1e-3)
    assert np.isnan(best.response_time[1])


@pytest.mark.parametrize(
    ("system", "options", "kind", "words"),
    [
        (paper_example(0.8), {"preemption": "setup"}, rota.Infeasible, "every setup under way"),
        (paper_example(0.8), {"preemption": "some"}, rota.BadSpec, 'must be "full" or "none"'),
        (paper_example(1.1), {}, rota.Unstable, "load 1.1 is not below 1"),
        (paper_example(0.0), {}, rota.Infeasible, "no jobs arrive"),
        (paper_example(0.8), {"accuracy": 0}, rota.BadSpec, "between 0 and 1"),
        (paper_example(0.8), {"truncation": 3}, rota.BadSpec, "truncation of type1: must be at least 4"),
        (paper_example(0.8), {"truncation": [9, 9]}, rota.BadSpec, "one number, or 3"),
        (paper_example(0.8), {"truncation": 400, "preemption": "none"}, rota.Infeasible, "would need about .* GB"),
        (paper_example(0.8), {"truncation": 40, "preemption": "none", "time_limit_s": 1}, rota.Infeasible, "would take about"),
        (rota.System([99], [[1]] * 6, [1.0] * 6, [1.0] * 6), {}, rota.Infeasible, "more than 5,000 schedules"),
        (rota.System([1], [[1]], [0.5], sizes=[rota.Deterministic(mean=1.0)]), {}, rota.Infeasible, "deterministic sizes"),
        (paper_example(0.8), {"sizes": "mean"}, rota.BadSpec, "as given"),
    ],
)
def test_what_is_refused(system, options, kind, words):
    """Each with the reason and the way out."""
    with pytest.raises(kind, match=words):
        rota.optimal_policy(system, **options)


def test_other_sizes_taken_as_exponential():
    """The best policy for exponential sizes of the same means, asked for by name."""
    system = rota.System([1], [[1]], [0.5], sizes=[rota.Deterministic(mean=1.0)])
    assert rota.optimal_policy(system, sizes="exponential").mean_response_time == pytest.approx(2.0, rel=2e-3)


def test_what_memory_does_not_hold_is_not_settled():
    """The largest truncation that was solved is given, and says that it is not settled."""
    best = rota.optimal_policy(paper_example(0.8), "none", memory_limit_gb=0.05)
    assert not best.settled
    assert "not settled" in repr(best)
    assert best.lower_bound < 2.78
