"""From a policy to its process: the paper's figures, the laws every built process obeys, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.policy import MSR, stationary_law
from rota.process import SETUP, TIMER, build_process, check_policy, rates_from_weights, working_generator
from rota.process.build import draining_time
from rotas import generators, paper_case, paper_rota, systems_and_rotas
from systems import decimal, paper_example


def walk(process, start):
    """The states of a loop from a working state on, each as (name, rate out, trigger)."""
    seen, state = [], start
    while True:
        (move,) = np.flatnonzero(process.source == state)
        seen.append((process.state_name(state), process.rate[move], process.trigger[move]))
        state = int(process.target[move])
        if state == start:
            return seen


def route(process, start):
    """The schedules between a working state and the next, in a loop."""
    states = [tuple(map(int, name[2:-1].split(", "))) for name, _, _ in walk(process, start)]
    names = [name for name, _, _ in walk(process, start)]
    end = next(k for k, name in enumerate(names) if k and name.startswith("w"))
    return states[1:end]


# ------------------------------------------------------------------------------------------------------------ the paper


def test_figure_of_the_pmsr():
    """Figure mp:pmsr: two states, left at rate α each (NOTES 8)."""
    process = build_process(*paper_case(0.9, "full", 2.0))
    assert walk(process, 0) == [("w(0, 0, 2)", 2.0, TIMER), ("w(1, 4, 0)", 2.0, TIMER)]


def test_figure_of_the_nmsr():
    """Figure mp:nmsr: the states, the rates α, μ_1, 4μ_2 … and 2μ_3, μ_3, each by the completion of its type."""
    system = paper_example(0.9).replace(service_rate=[2, 3, 5])
    process = build_process(system, paper_rota("none", 0.06))
    assert walk(process, 1) == [
        ("w(1, 4, 0)", 0.06, TIMER),
        ("t(1, 4, 0)", 2, 0),
        ("t(0, 4, 0)", 12, 1),
        ("t(0, 3, 0)", 9, 1),
        ("t(0, 2, 0)", 6, 1),
        ("t(0, 1, 0)", 3, 1),
        ("w(0, 0, 2)", 0.06, TIMER),
        ("t(0, 0, 2)", 10, 2),
        ("t(0, 0, 1)", 5, 2),
    ]


def test_figure_of_the_smsr():
    """Figure mp:smsr: setups end at 5γ, 4γ, … γ and 2γ, γ; nothing runs meanwhile."""
    process = build_process(*paper_case(0.9, "setup", 0.5, setup_rate=10.0))
    assert walk(process, 1) == [
        ("w(1, 4, 0)", 0.5, TIMER),
        *((f"t(0, 0, 0)+{k} in setup", 10.0 * k, SETUP) for k in (5, 4, 3, 2, 1)),
        ("w(0, 0, 2)", 0.5, TIMER),
        *((f"t(0, 0, 0)+{k} in setup", 10.0 * k, SETUP) for k in (2, 1)),
    ]


def test_only_jobs_that_must_yield_are_preempted():
    """Between (2, 1) and (1, 2) an sMSR sets up one job, and the shared (1, 1) go on running."""
    system = rota.System([3], [[1], [1]], [0.5, 0.5], [1, 1])
    process = build_process(system, MSR([[2, 1], [1, 2]], [0.5, 0.5], "setup", 1.0, setup_rate=4.0))
    assert [name for name, _, _ in walk(process, 0)] == ["w(2, 1)", "t(1, 1)+1 in setup", "w(1, 2)", "t(1, 1)+1 in setup"]


# ------------------------------------------------------------------------------------------------------------ routes

SYSTEM = rota.System([6], [[1], [1], [1]], [0.1] * 3, [1, 4, 1])
CANDIDATES, WEIGHTS = [[2, 3, 0], [0, 0, 6]], [0.5, 0.5]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("type-order", [(2, 3, 0), (1, 3, 0), (0, 3, 0), (0, 2, 0), (0, 1, 0)]),
        ("fastest-first", [(2, 3, 0), (2, 2, 0), (2, 1, 0), (2, 0, 0), (1, 0, 0)]),  # 11/24 against 3/2
        ([[1, 0, 2], [0, 1, 2]], [(2, 3, 0), (2, 2, 0), (2, 1, 0), (2, 0, 0), (1, 0, 0)]),
    ],
)
def test_orders_of_draining(order, expected):
    """Type order, fastest first, or an order of one's own for the move that leaves a candidate."""
    process = build_process(SYSTEM, MSR(CANDIDATES, WEIGHTS, "none", 1.0, route=order))
    assert route(process, 0) == expected


def test_early_opening():
    """New slots open as soon as there is room: here one at once, and one more with each completion."""
    process = build_process(SYSTEM, MSR(CANDIDATES, WEIGHTS, "none", 1.0, opening="early"))
    assert route(process, 0) == [(2, 3, 1), (1, 3, 2), (0, 3, 3), (0, 2, 4), (0, 1, 5)]


def test_parallel_draining():
    """Every type drains at once: one state per pair of slots still to close, each left by either completion."""
    process = build_process(SYSTEM, MSR(CANDIDATES, WEIGHTS, "none", 1.0, route="parallel"))
    between = {tuple(u) for u, c in zip(process.schedules.tolist(), process.candidate, strict=True) if c < 0 and u[2] == 0}
    assert between == {(a, b, 0) for a in range(3) for b in range(4)} - {(0, 0, 0)}
    start = next(s for s in range(2, len(process)) if process.schedules[s].tolist() == [2, 3, 0])
    out = process.source == start
    assert sorted(zip(process.rate[out], process.trigger[out], strict=True)) == [(2.0, 0), (12.0, 1)]
    ends = process.target == 1
    assert sorted(zip(process.rate[ends], process.trigger[ends], strict=True)) == [(1.0, 0), (4.0, 1)]


def test_growing_needs_no_route():
    """A move that only opens slots is one step in every preemption model."""
    system = rota.System([3], [[1]], [0.5], [1])
    for preemption, extra in [("full", {}), ("none", {}), ("setup", {"setup_rate": 1.0})]:
        process = build_process(system, MSR([[1], [2]], [0.5, 0.5], preemption, 1.0, **extra))
        (up,) = np.flatnonzero(process.source == 0)
        assert (process.target[up], process.trigger[up]) == (1, TIMER)


def test_draining_time():
    """Draining from 4 to 1 slots of rate 2 takes (1/4 + 1/3 + 1/2)/2 on average; a type that stays takes none."""
    system = rota.System([9], [[1], [1]], [0, 0], [2, 1])
    assert draining_time(system, np.array([4, 1]), np.array([1, 3])) == pytest.approx([13 / 24, 0], rel=1e-14)


# ------------------------------------------------------------------------------------------------------------ laws


@given(systems_and_rotas(most_units=9))
def test_every_state_fits_the_server(case):
    """What is held fits in exact decimals in every state, and what runs is held."""
    system, policy = case
    process = build_process(system, policy)
    for held in process.held:
        for r, capacity in enumerate(system.capacity):
            assert sum(int(n) * decimal(d) for n, d in zip(held, system.demand[:, r], strict=True)) <= decimal(capacity)
    assert (process.held >= process.schedules).all()
    assert (process.schedules >= 0).all()


@given(systems_and_rotas("none", most_units=9))
def test_an_nmsr_never_preempts(case):
    """A move lowers the slots of a type by at most one, only by a completion of that type, whose rings all trigger it."""
    system, policy = case
    process = build_process(system, policy)
    for a, b, rate, trigger in zip(process.source, process.target, process.rate, process.trigger, strict=True):
        closed = np.maximum(process.schedules[a] - process.schedules[b], 0)
        if trigger == TIMER:
            assert not closed.any()
        else:
            assert closed.tolist() == np.eye(len(closed), dtype=int)[trigger].tolist()
            assert rate == process.schedules[a, trigger] * system.service_rate[trigger]
    assert (process.held == process.schedules).all()


@given(systems_and_rotas("none", most_units=9))
def test_an_nmsr_keeps_what_both_schedules_share(case):
    """Between two candidates no type has fewer slots than in the one that has fewer, nor more than in the one that has more."""
    _, policy = case
    process = build_process(*case)
    for a in range(len(policy.candidates)):
        for b in np.flatnonzero(working_generator(policy)[a] > 0):
            low, high = np.minimum(*policy.candidates[[a, b]]), np.maximum(*policy.candidates[[a, b]])
            for state in between(process, a, b):
                assert (low <= process.schedules[state]).all()
                assert (process.schedules[state] <= high).all()


def between(process, a, b):
    """The switching states on the way from candidate a to candidate b."""
    after = {}
    for source, target in zip(process.source.tolist(), process.target.tolist(), strict=True):
        after.setdefault(source, []).append(target)

    def ends(state):
        while process.candidate[state] < 0:
            state = after[state][0]
        return state

    waiting = [target for target in after.get(a, []) if process.candidate[target] < 0 and ends(target) == b]
    found = set(waiting)
    while waiting:
        for target in after[waiting.pop()]:
            if process.candidate[target] < 0 and target not in found:
                found.add(target)
                waiting.append(target)
    return found


@given(systems_and_rotas("setup", most_units=9))
def test_an_smsr_sets_up_every_preempted_job(case):
    """The jobs that must yield are in setup when the move begins; each setup ends at rate γ and frees what it held."""
    system, policy = case
    process = build_process(system, policy)
    in_setup = (process.held - process.schedules).sum(axis=1)
    for a, b, rate, trigger in zip(process.source, process.target, process.rate, process.trigger, strict=True):
        if trigger == SETUP:
            assert rate == pytest.approx(in_setup[a] * policy.setup_rate, rel=1e-14)
            assert in_setup[b] == in_setup[a] - 1
        else:
            assert process.candidate[a] >= 0
            assert in_setup[b] == 0 or (process.held[b] == process.held[a]).all()
    assert (in_setup[process.working] == 0).all()


@given(systems_and_rotas())
def test_working_states_have_the_weights_of_the_policy(case):
    """Given that it works, the process is in a candidate for the part of time that its weight says, and runs it."""
    _, policy = case
    process = build_process(*case)
    works = process.working
    assert process.candidate[works].tolist() == list(range(len(policy.weights)))
    assert np.array_equal(process.schedules[works], policy.candidates)
    assert process.stationary[works] / process.working_fraction == pytest.approx(policy.weights, rel=1e-12)


@given(systems_and_rotas())
def test_switching_rate(case):
    """α departures from working states happen per unit of working time (NOTES 8)."""
    _, policy = case
    process = build_process(*case)
    departures = process.stationary[process.working] @ process.exit_rate[process.working]
    wanted = policy.switching_rate if len(policy.weights) > 1 else 0
    assert departures / process.working_fraction == pytest.approx(wanted, rel=1e-12)


@given(st.data())
def test_rates_from_weights(data):
    """On any strongly connected graph the rates have the wanted stationary law and switching rate, on its edges only."""
    n = data.draw(st.integers(2, 6))
    graph = data.draw(generators(n)) > 0
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n)))
    weights = weights / weights.sum()
    alpha = data.draw(st.floats(1e-3, 1e3))
    G = rates_from_weights(weights, [tuple(edge) for edge in np.argwhere(graph)], alpha)
    assert ((G > 0) == graph).all()
    assert np.abs(G.sum(axis=1)).max() <= 1e-13 * np.abs(G).max()
    assert np.abs(weights @ G).max() <= 1e-13 * np.abs(weights @ np.abs(G)).max()
    assert stationary_law(G) == pytest.approx(weights, rel=1e-12)
    assert -(weights @ np.diag(G)) == pytest.approx(alpha, rel=1e-12)
    policy = MSR(np.eye(n, dtype=int), weights, generator=G)
    assert policy.switching_rate == pytest.approx(alpha, rel=1e-12)


def test_rates_from_weights_on_the_loop():
    """On the loop they are those of the loop: state s is left at rate α/(n π_s)."""
    weights = np.array([0.2, 0.3, 0.5])
    loop = working_generator(MSR(np.eye(3, dtype=int), weights, switching_rate=4.0))
    assert np.diag(loop) == pytest.approx(-4 / (3 * weights), rel=1e-14)
    assert rates_from_weights(weights, [(0, 1), (1, 2), (2, 0)], 4.0) == pytest.approx(loop, rel=1e-13)


def test_rates_from_weights_refuses():
    """A graph that is not strongly connected has no such rates, and an edge must join two states."""
    with pytest.raises(rota.Infeasible, match="not strongly connected"):
        rates_from_weights([0.5, 0.5], [(0, 1)], 1.0)
    for edge in [(0, 0), (0, 2), (-1, 0)]:
        with pytest.raises(rota.BadSpec, match="two different states 0…1"):
            rates_from_weights([0.5, 0.5], [(0, 1), edge], 1.0)


# ------------------------------------------------------------------------------------------------------------ refusals


def test_a_policy_for_another_system():
    """The number of types must be that of the system."""
    with pytest.raises(rota.BadSpec, match="needs 3 counts per candidate, as the system has 3 types"):
        build_process(paper_example(), MSR([[1, 1]]))


def test_names_that_differ():
    """Named types must be those of the system, in its order; a policy without names takes any."""
    with pytest.raises(rota.BadSpec, match=r"types: differ from those of the system \(type1, type2, type3\)"):
        check_policy(paper_example(), paper_rota(names=["type1", "type3", "type2"]))
    check_policy(paper_example(), paper_rota(names=["type1", "type2", "type3"]))
    check_policy(paper_example(), paper_rota())


def test_candidates_that_do_not_fit():
    """A candidate beyond the server is refused with the resources it lacks."""
    policy = MSR([[0, 0, 2], [2, 4, 0]], [0.5, 0.5], switching_rate=1)
    with pytest.raises(rota.Infeasible, match=r"\[2, 4, 0\] does not fit the server: it needs resource1 22 of 20, resource2 18 of 15$"):
        build_process(paper_example(), policy)


def test_a_candidate_that_fits_by_decimals():
    """Three times 0.1 fit into 0.3, although floating point says otherwise, and early opening counts the same way."""
    system = rota.System([0.3], [[0.1], [0.1]], [0.1, 0.1], [1, 1])
    process = build_process(system, MSR([[3, 0], [1, 2]], [0.5, 0.5], "none", 1.0, opening="early"))
    assert route(process, 0) == [(3, 0), (2, 1)]


def test_too_many_switching_states():
    """A route through hundreds of thousands of states is refused with the way out."""
    n = 250_000
    system = rota.System([n], [[1], [1]], [0.1, 0.1], [1, 1])
    policy = MSR([[n, 0], [0, n]], [0.5, 0.5], "none", 1.0)
    with pytest.raises(rota.Infeasible, match="more than 200,000 states: choose candidates that differ less, or another route"):
        build_process(system, policy)
