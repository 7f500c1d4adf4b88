"""The best policy: closed forms, policy iteration in plain numpy, bounds, and what is refused."""

import importlib
import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import rota
from rota.decide import decider_of
from rota.optimal import chain, iteration, with_preemption, without_preemption
from rota.optimal.continuation import continued, extended, first_values
from rota.optimal.iteration import solve
from rota.optimal.lowering import lower, proved_by_lowering
from rota.optimal.state_space import schedules_of, state_space
from rota.optimal.table_chain import chain_of_table
from systems import paper_example

optimal_policy_module = importlib.import_module("rota.optimal.optimal_policy")  # the function has the same name
PREEMPTION = pytest.mark.parametrize("preemption", ["full", "none"])


def erlang_c(k, lam, mu):
    """E[T] of an M/M/k queue."""
    a = lam / mu
    waits = a**k / math.factorial(k) * k / (k - a)
    waits /= sum(a**n / math.factorial(n) for n in range(k)) + waits
    return waits / (k * mu - lam) + 1 / mu


def brute_force(system, N, preemptive, growth, first):
    """The least mean cost with at most N_i jobs, a lost job costing first_i + Σ growth_ij q_j: policy iteration with dense matrices.

    States are all (q, u) before a decision; a decision is any u' that fits, u' ≤ q, and u' ≥ u without preemption.
    """
    schedules = [tuple(row) for row in schedules_of(system).tolist()]
    lam, mu, K = system.arrival_rate, system.service_rate, len(N)
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
                cost += lam[i] * (first[i] + growth[i] @ q)
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
def test_the_bound_is_the_mean_of_one_type(preemption, k, load):
    """However few jobs are counted, the bound is not above the exact mean without truncation, and hardly below it."""
    system, exact = rota.System([k], [[1]], [load * k], [1.0]), erlang_c(k, load * k, 1.0)
    for extra, near in ((2, 0.05), (8, 1e-4), (32, 1e-4)):
        bound = rota.optimal_policy(system, preemption, truncation=k + extra, accuracy=1e-5).lower_bound
        assert exact * (1 - near) < bound <= exact * (1 + 1e-9)


@PREEMPTION
def test_a_type_that_does_not_limit_the_load(preemption):
    """Two types that do not share a resource are two M/M/k queues; the second has price 0, and its values go on in their own way."""
    system = rota.System([2, 5], [[1, 0], [0, 1]], [1.6, 2.0], [1.0, 1.0])
    exact = [erlang_c(2, 1.6, 1.0), erlang_c(5, 2.0, 1.0)]
    assert rota.system_load(system).type_price[1] == 0
    best = rota.optimal_policy(system, preemption, accuracy=1e-3)
    assert best.settled
    assert best.response_time == pytest.approx(exact, rel=2e-3)
    assert best.lower_bound <= system.arrival_rate @ exact / 3.6 * (1 + 1e-9)


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
    q = np.unravel_index(np.arange(len(best.policy.choice)), tuple(best.policy.truncation + 1))
    runs = best.policy.schedules[best.policy.choice]
    assert (runs[q[0] > 0] == [1, 0]).all()


def solved_values(system, N, preemption, gap=1e-10):
    """The values on a truncation."""
    space = continued(state_space(system, N), rota.system_load(system))
    preemptive = preemption == "full"
    return solve(space, preemptive, gap, first_values(space, 1 if preemptive else len(space.schedules)))


@PREEMPTION
def test_brute_force(preemption):
    """Dense policy iteration over all decisions has the same mean cost on the truncation, between the bounds."""
    system, N = rota.System([4, 3], [[1, 1], [3, 1]], [0.9, 0.5], [1.0, 0.7]), [5, 4]
    found = solved_values(system, N, preemption)
    g = brute_force(system, N, preemption == "full", found.space.growth, found.space.first)
    assert found.largest == pytest.approx(g, rel=1e-8)
    assert found.least == pytest.approx(g, rel=1e-8)
    best = rota.optimal_policy(system, preemption, truncation=N)
    assert not best.settled
    assert best.stopped == "truncation"
    assert "It is not settled (the truncation was given)" in best.explain()


@PREEMPTION
@pytest.mark.parametrize("load", [0.6, 0.9])
def test_the_bound_is_the_least_difference_of_all_states(preemption, load):
    """The values go on beyond the edge; one-step differences in plain Python, up to three jobs beyond, have the same least value.

    It is attained with no more than one job beyond along each type.
    """
    system = rota.System([4, 3], [[1, 1], [3, 1]], [0.9, 0.5], [1.0, 0.7]).scaled(load=load)
    N, preemptive = np.array([5, 6]), preemption == "full"
    found = solved_values(system, N, preemption, gap=1e-3)
    wide = continued(state_space(system, N + 4), rota.system_load(system))
    h = extended(found.space, found.values, wide).reshape(*(N + 5), -1)
    schedules = [tuple(u) for u in wide.schedules.tolist()]
    lam, mu, R = system.arrival_rate, system.service_rate, wide.uniform_rate

    def step(counts, i, by):
        return tuple(n + by * (k == i) for k, n in enumerate(counts))

    def at(q, u):
        return h[q][0 if preemptive else schedules.index(u)]

    def difference(q, u):
        options = []
        for v in schedules:
            if all(a <= b <= c for a, b, c in zip((0, 0) if preemptive else u, v, q, strict=True)):
                drift = sum(q) + sum(lam[i] * (at(step(q, i, 1), v) - at(q, v)) for i in range(2))
                drift += sum(v[i] * mu[i] * (at(step(q, i, -1), step(v, i, -1)) - at(q, v)) for i in range(2) if v[i])
                options.append(R * (at(q, v) - at(q, u)) + drift)
        return min(options)

    def least(beyond, at_least=(0, 0)):
        states = itertools.product(*(range(low, n + beyond + 1) for low, n in zip(at_least, N, strict=True)))
        running = [(0, 0)] if preemptive else schedules
        return min(difference(q, u) for q in states for u in running if all(a <= min(b, n) for a, b, n in zip(u, q, N, strict=True)))

    kind = with_preemption if preemptive else without_preemption
    edge = np.zeros(2)
    inside, _, proved = kind.backup(found.space, found.values, found.choice.copy(), R, edge)
    assert least(0) == pytest.approx(inside, abs=1e-9)
    assert least(1) == pytest.approx(proved, abs=1e-9)
    assert least(3) == pytest.approx(proved, abs=1e-9)
    assert min(inside, *edge) == pytest.approx(proved, abs=1e-12)
    for i in range(2):  # with a job of type i beyond
        assert least(1, at_least=step(tuple(0 * N), i, int(N[i]) + 1)) == pytest.approx(edge[i], abs=1e-9)


def test_an_edge_that_is_too_near_for_a_proof():
    """Many jobs of type 2 and few of type 1: little is proved beyond the edge of type 1, until it is moved out; then all that is found."""
    system = paper_example(0.95)
    load, N, proved = rota.system_load(system), np.array([4, 40, 10]), [0.0]
    while True:
        space = continued(state_space(system, N), load, 0.9)
        found = solve(space, False, 1e-2, first_values(space, len(space.schedules)), give_up=True)
        assert found.proved > proved[-1]
        proved.append(found.proved)
        if found.stopped != "edge":
            break
        assert found.lacking.tolist() == [True, False, False]
        N[0] *= 2
    assert len(proved) > 2
    assert found.stopped == "gap"
    assert found.proved == found.least > 2 * proved[1]


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
    table, schedules = best.policy.choice.reshape(*(best.policy.truncation + 1), -1), best.policy.schedules
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


@pytest.mark.parametrize(("load", "most", "mean"), [(0.8, 30, 2.74), (0.9, 40, 4.83)])
def test_the_paper_example_agrees_with_an_earlier_prototype(load, most, mean):
    """With at most so many jobs of each type, and lost jobs that cost nothing, it is the prototype's mean in all its digits."""
    system = paper_example(load)
    lossy = state_space(system, [most] * 3)
    assert not lossy.growth.any()
    assert not lossy.first.any()
    space = continued(lossy, rota.system_load(system))  # for values to start with
    found = solve(lossy, False, 2e-3, first_values(space, len(space.schedules)))
    for bound in (found.least, found.largest):
        assert bound / system.arrival_rate.sum() == pytest.approx(mean, abs=0.005)


def test_the_bound_of_the_paper_example_is_above_the_prototype():
    """At load 0.8, at most 30 jobs of each type: lost jobs cost something here, and the bound holds without truncation."""
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
    assert any("pairs of sweeps" in at.text for at in seen)
    assert best.stopped == "settled"
    assert 0 <= best.gap <= 1e-3


@PREEMPTION
def test_an_interrupt_loses_nothing(preemption):
    """Ctrl-C ends the search; the last table is returned, with the best bound. Before there is one, it is passed on."""
    seen = []

    def press(at):
        seen.append(at.truncation)
        if len(set(seen)) == 2:
            raise KeyboardInterrupt

    best = rota.optimal_policy(paper_example(0.7), preemption, accuracy=1e-4, progress=press)
    assert best.stopped == "interrupt"
    assert not best.settled
    assert best.truncation == seen[0]
    assert "because the search was interrupted" in best.explain()

    def at_once(at):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rota.optimal_policy(paper_example(0.7), preemption, truncation=12, progress=at_once)


def test_the_time_limit_ends_every_step(monkeypatch):
    """By a clock that goes on by a second whenever it is read: the answer is the better the later it is."""
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(ticks)))
    for module in (iteration, optimal_policy_module, chain):
        monkeypatch.setattr(module, "time", clock)
    system = paper_example(0.7)
    with pytest.raises(rota.NotConverged, match="3 s were not enough"):
        rota.optimal_policy(system, "full", accuracy=1e-4, time_limit_s=3)
    early, late = (rota.optimal_policy(system, "full", accuracy=1e-6, time_limit_s=limit) for limit in (400, 4000))
    assert early.stopped == "time"
    assert early.time_s < 450
    assert early.lower_bound <= late.lower_bound
    assert early.truncation <= late.truncation


def test_a_law_that_is_not_found(monkeypatch):
    """The search goes on with a larger truncation, and ends with the same answer."""
    calls = itertools.count(1)

    def law(*arguments):
        if next(calls) == 2:
            raise rota.NotConverged("the stationary law is still out of balance")
        return chain.stationary_law(*arguments)

    system = paper_example(0.7)
    best = rota.optimal_policy(system, "full", accuracy=1e-3)
    monkeypatch.setattr(optimal_policy_module, "stationary_law", law)
    again = rota.optimal_policy(system, "full", accuracy=1e-3)
    assert next(calls) > 3
    assert again.settled
    assert again.mean_response_time == pytest.approx(best.mean_response_time, rel=2e-3)


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
        (paper_example(0.8), {"truncation": 40, "preemption": "none", "time_limit_s": 1e-9}, rota.NotConverged, "s were not enough"),
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


@PREEMPTION
def test_the_chain_of_a_table_is_that_of_its_decisions(preemption):
    """Found without calling the decision function; also beyond the table, which is read at its edge."""
    system = rota.System([4], [[1], [3]], [1.0, 0.3], [1.0, 1.0])
    table = rota.optimal_policy(system, preemption, truncation=[6, 3]).policy
    space = state_space(system, [9, 7])
    fast, slow = chain_of_table(space, table), chain.chain_of(system, space, decider_of(system, table), keeps=False)
    assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))


# ---------------------------------------------------------------------------------------------------------------- lowering


def test_values_that_are_wrong_in_a_few_states_prove_as_much_after_lowering():
    """Raised in the far corner they prove nothing; lowered, they prove what the solved ones do, and never more than the optimum."""
    system = paper_example(0.7)
    space = continued(state_space(system, [9, 12, 10]), rota.system_load(system))
    solved = solve(space, False, 1e-4, first_values(space, len(space.schedules)))
    assert solved.proved > 0.999 * solved.least
    values = solved.values.copy()
    values.reshape(space.size, -1)[-40:] += 30.0
    spoiled = replace(solved, values=values, proved=kept_backup(space, values))
    assert spoiled.proved < 0.5 * solved.proved
    proved = proved_by_lowering(spoiled, np.inf)
    assert 0.997 * solved.proved < proved <= solved.largest
    assert proved_by_lowering(spoiled, -np.inf) == spoiled.proved  # no time: what was proved before


def kept_backup(space, values):
    """What values prove."""
    return without_preemption.backup(space, values, np.zeros(len(values), dtype=np.int16), space.uniform_rate, np.empty(3))[2]


@pytest.mark.parametrize("aim", [0.5, 0.99])
def test_lowering_only_lowers(aim):
    """Values that prove more than is asked for stay as they are; others fall, and prove what is asked for if that is below the optimum."""
    system = paper_example(0.6)
    space = continued(state_space(system, [8, 10, 9]), rota.system_load(system))
    solved = solve(space, False, 1e-4, first_values(space, len(space.schedules)))
    same = solved.values.copy()
    lower(space, same, aim * solved.proved, True)
    assert np.array_equal(same, solved.values)
    values = first_values(space, len(space.schedules))
    before = values.copy()
    for _ in range(3000):
        lower(space, values, aim * solved.proved, True)
        lower(space, values, aim * solved.proved, False)
    assert (values <= before).all()
    assert kept_backup(space, values) > (1 - 1e-6) * aim * solved.proved


def test_a_law_that_takes_too_long_is_given_up(monkeypatch):
    """The search goes on; the bound rises, and the table is that of the last values, which the answer says."""
    calls = itertools.count(1)

    def law(*arguments):
        if next(calls) > 1:
            raise chain.OutOfTime
        return chain.stationary_law(*arguments)

    system = paper_example(0.7)
    first = rota.optimal_policy(system, "none", truncation=12)
    monkeypatch.setattr(optimal_policy_module, "stationary_law", law)
    best = rota.optimal_policy(system, "none", memory_limit_gb=0.1)
    assert next(calls) > 3
    assert best.stopped == "memory"
    assert best.later_table
    assert "a later one" in best.explain()
    assert best.truncation == first.truncation
    assert (best.policy.truncation > first.policy.truncation).all()
    assert best.lower_bound > first.lower_bound
