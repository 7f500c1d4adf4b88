"""`design_policy`: from a system to a rota, the routes of an nMSR, and whether to preempt at all."""

from inspect import signature

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import rota
from rota.design import balanced_policy, break_even_setup_rate, choose_switching_rate, design_policy, find_design
from rota.design.switching import measure
from rotas import PREEMPTIONS
from systems import paper_example, small_systems

LOADS = st.floats(0.1, 0.95)
# Six types of which one job each runs at a time (each has a licence), beside each other, and a seventh that needs the server alone.
MANY = rota.System(
    capacity=[6, 1, 1, 1, 1, 1, 1],
    demand=[*np.hstack([np.ones((6, 1)), np.eye(6)]).tolist(), [6, 0, 0, 0, 0, 0, 0]],
    arrival_rate=[0.4, 1.0, 0.2, 2.0, 0.1, 1.2, 0.5],
    service_rate=[1.0, 2.0, 0.5, 4.0, 0.25, 3.0, 1.0],
)


def setup_rate_for(preemption):
    """What an sMSR needs and the others do not."""
    return {"setup_rate": 10.0} if preemption == "setup" else {}


def prediction(system, policy):
    """The predicted E[T]."""
    return measure(rota.analyze(system, policy), "prediction")


# ------------------------------------------------------------------------------------------------------------ balanced loads


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_the_example(preemption):
    """The example's rota is (0,0,2) and (1,4,0), half of the time each, in this order, at its best switching rate."""
    system = paper_example(0.9)
    policy = design_policy(system, preemption, objective="load", **setup_rate_for(preemption))
    assert policy.candidates.tolist() == [[0, 0, 2], [1, 4, 0]]
    assert policy.weights == pytest.approx([0.5, 0.5], abs=1e-9)
    assert policy.names == system.names
    assert (policy.preemption, policy.route, policy.opening, policy.backfill) == (preemption, "type-order", "late", False)
    assert policy.switching_rate == choose_switching_rate(system, policy).rate


def test_a_known_load_is_not_solved_again(monkeypatch):
    """With it the design is the same; one of another system is refused, one of another preemption model or law of sizes is not."""
    system = paper_example(0.9)
    best, policy = rota.system_load(system), design_policy(system, objective="load")
    monkeypatch.setattr("rota.design.design.system_load", lambda *_, **__: pytest.fail("the load is known"))
    assert design_policy(system, load=best, objective="load") == policy
    stopped = system.replace(sizes=[rota.Deterministic(mean=float(size.moment(1))) for size in system.sizes]).with_preemption("full")
    assert design_policy(stopped, "none", load=best, objective="load") == policy
    half = best.scaled(0.5)
    assert np.array_equal(design_policy(half.system, load=half, objective="load").candidates, best.candidates)
    for wrong, rule in [(half, "is of another system"), (best.load, "must be what rota.system_load answers")]:
        with pytest.raises(rota.BadSpec, match=rule):
            design_policy(system, load=wrong, objective="load")


def test_a_design_and_its_account_take_the_same():
    """`design_policy` has the parameters of `find_design`, and one for fleets."""
    of_server = [one for name, one in signature(design_policy).parameters.items() if name not in ("system", "servers")]
    assert of_server == list(signature(find_design).parameters.values())[1:]
    assert signature(design_policy).return_annotation == "MSR | FleetDesign"
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        design_policy(paper_example(0.5), speed=2)


@settings(max_examples=30)
@given(small_systems(), LOADS, st.sampled_from(PREEMPTIONS))
def test_the_rota_is_that_of_the_load(system, load, preemption):
    """Candidates and weights are those that attain the system load, in lexicographic order, and the policy is stable."""
    system = system.scaled(load=load)
    policy = design_policy(system, preemption, by="prediction", objective="load", **setup_rate_for(preemption))
    best = rota.system_load(system)
    assert np.array_equal(policy.candidates, best.candidates)
    assert policy.weights == pytest.approx(best.weights, abs=1e-12)
    assert policy.candidates.tolist() == sorted(policy.candidates.tolist())
    answer = rota.analyze(system, policy)
    assert answer.stable
    if preemption == "full":
        assert answer.load.max() == pytest.approx(load, rel=1e-6)


def test_preemption_and_setup_are_those_of_the_system():
    """What is not given is taken from the system; a setup rate is one over the setup time."""
    system = paper_example(0.9)
    assert design_policy(system, objective="load").preemption == "none"
    slow = system.with_preemption("setup", setup_time=0.25)
    assert design_policy(slow, objective="load").setup_rate == 4.0
    assert design_policy(slow, setup_rate=20.0, objective="load").setup_rate == 20.0
    assert design_policy(slow, "none", objective="load").setup_rate is None


def test_a_setup_rate_must_come_from_somewhere():
    """Without a setup time in the system it has to be given."""
    with pytest.raises(rota.BadSpec, match="setup_rate: is missing"):
        design_policy(paper_example(0.9), "setup")


def test_a_given_switching_rate_is_kept():
    """It is used as it is, and refused if it is unstable."""
    system = paper_example(0.9)
    assert design_policy(system, "none", switching_rate=0.06, objective="load").switching_rate == 0.06
    assert design_policy(system, "full", switching_rate=3.0, objective="load").switching_rate == 3.0
    with pytest.raises(rota.Unstable, match="let the policy switch less often"):
        design_policy(system, "none", switching_rate=0.5, objective="load")


@pytest.mark.parametrize("by", ["exact", "prediction", "upper", "lower"])
def test_the_yardstick_is_handed_on(by):
    """`by` decides what the switching rate is least for."""
    system = paper_example(0.9)
    assert (
        design_policy(system, "none", by=by, objective="load").switching_rate
        == choose_switching_rate(system, design_policy(system, "none", objective="load"), by=by).rate
    )


def test_sizes_are_taken_as_exponential():
    """A system with lognormal sizes has the rota of the exponential one."""
    system = paper_example(0.9)
    assert design_policy(system.replace(sizes=[rota.LogNormal(mean=1.0, cv=2.0)] * 3), "none", objective="load") == design_policy(
        system, "none", objective="load"
    )


def test_one_schedule_is_enough():
    """Where one schedule serves all, the rota has one and never switches."""
    system = rota.System([4], [[1]], [3.0], [1.0])
    for preemption in PREEMPTIONS:
        policy = design_policy(system, preemption, objective="load", **setup_rate_for(preemption))
        assert policy.candidates.tolist() == [[4]]
        assert rota.analyze(system, policy).process.working_fraction == 1


@pytest.mark.parametrize("load", [1.0, 1.25])
def test_too_much_work(load):
    """From a load of 1 on there is no rota, and the error says how much less would do."""
    with pytest.raises(rota.Unstable, match=rf"the system load {load:.4g} is not below 1: scale arrivals by less than {1 / load:.4g}"):
        design_policy(paper_example(load * (1 + 1e-9)))


def test_nothing_to_do():
    """Without arrivals there is nothing to design for."""
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        design_policy(paper_example(0.0))


def test_close_is_the_default():
    """Without an objective the design is a close one, with a lower mean response time than balanced loads."""
    system = paper_example(0.9)
    found = find_design(system, "none", time_limit_s=2)
    assert found.objective == "close"
    means = [rota.analyze(system, policy).mean_response_time for policy in (found.policy, design_policy(system, "none", objective="load"))]
    assert means[0] < 0.5 * means[1]


def test_an_unknown_objective():
    """A misspelt objective is refused with the choices."""
    with pytest.raises(rota.BadSpec, match='objective: must be "close", "response-time", "load" or "p95"'):
        design_policy(paper_example(0.9), objective="latency")


def test_an_unknown_route():
    """So is a misspelt route, and a misspelt yardstick."""
    for objective in ("load", "close"):
        with pytest.raises(rota.BadSpec, match="route: must be"):
            design_policy(paper_example(0.9), route="scenic", objective=objective)
        with pytest.raises(rota.BadSpec, match="by: must be one of exact"):
            design_policy(paper_example(0.9), by="magic", objective=objective)


# ------------------------------------------------------------------------------------------------------------ routes


@settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
@given(small_systems(idle=False), LOADS, st.sampled_from(["late", "early"]))
def test_searched_routes_are_no_worse(system, load, opening):
    """By prediction, and each at its best switching rate, the routes of "search" are never worse than those in type order."""
    system = system.scaled(load=load)
    assume(len(rota.system_load(system).weights) > 1)
    plain, searched = (
        design_policy(system, "none", by="prediction", route=route, opening=opening, objective="load") for route in ("type-order", "search")
    )
    assert prediction(system, searched) <= prediction(system, plain) * (1 + 1e-9)
    assert np.array_equal(searched.candidates, plain.candidates)


def test_searched_routes_are_better_where_it_matters():
    """The example's types in another order: type order drains four jobs before the slow one, the search finds the better order."""
    system = paper_example(0.9)
    turned = rota.System(system.capacity, system.demand[::-1], system.arrival_rate[::-1], system.service_rate)
    plain, searched = (design_policy(turned, "none", route=route, objective="load") for route in ("type-order", "search"))
    assert rota.analyze(turned, plain).mean_response_time == pytest.approx(218.3, rel=1e-3)
    assert rota.analyze(turned, searched).mean_response_time == pytest.approx(173.8, rel=1e-3)


def test_many_types_to_drain():
    """Where more types drain in a move than orders can be tried, neighbours are exchanged; never for the worse, here for the better."""
    system = MANY.scaled(load=0.8)
    plain, searched = (design_policy(system, "none", by="prediction", route=route, objective="load") for route in ("type-order", "search"))
    drained = (plain.candidates > np.roll(plain.candidates, -1, axis=0)).sum(axis=1)
    assert drained.tolist() == [1, 6]
    assert prediction(system, searched) < prediction(system, plain) * (1 - 1e-3)
    assert all(sorted(order) == list(range(7)) for order in searched.route)


def test_random_routes_depend_on_the_seed_only():
    """The same seed gives the same policy, other seeds give other orders."""
    system = MANY.scaled(load=0.8)
    policies = [design_policy(system, "none", by="prediction", route="random", seed=seed, objective="load") for seed in (1, 1, 2)]
    assert policies[0] == policies[1]
    assert policies[0].route != policies[2].route
    assert all(sorted(order) == list(range(7)) for order in policies[0].route)


@pytest.mark.parametrize("preemption", ["full", "setup"])
def test_routes_are_for_the_nmsr_only(preemption):
    """With preemption there is nothing to search for."""
    system = paper_example(0.9)
    assert design_policy(system, preemption, route="search", objective="load", **setup_rate_for(preemption)).route == "type-order"


# ------------------------------------------------------------------------------------------------------------ whether to preempt


def test_break_even():
    """At the break-even setup rate sMSR and nMSR are equal; with faster setups the sMSR wins, with slower ones it loses."""
    system = paper_example(0.7)
    rate = break_even_setup_rate(system)
    best = rota.system_load(system)
    target = choose_switching_rate(system, balanced_policy(system, best, "none")).mean_response_time

    def with_setups(setup_rate):
        return choose_switching_rate(system, balanced_policy(system, best, "setup", setup_rate=setup_rate)).mean_response_time

    assert with_setups(rate) == pytest.approx(target, rel=1e-5)
    assert with_setups(1.1 * rate) < target < with_setups(rate / 1.1)
    assert break_even_setup_rate(system, opening="early") > rate


def test_preempting_never_pays():
    """At low load an nMSR can beat even free preemption, as it leaves slots open on its way: then the break-even rate is infinite."""
    system = rota.System([3], [[1], [3]], [0.012, 0.071], [0.9, 0.1])
    assert break_even_setup_rate(system) == np.inf
    none, full = (
        rota.analyze(system, design_policy(system, preemption, objective="load")).mean_response_time for preemption in ("none", "full")
    )
    assert none < full


def test_nothing_to_preempt():
    """A rota of one schedule never switches, so there is no break-even rate."""
    with pytest.raises(rota.Infeasible, match="never switches, so setups do not matter"):
        break_even_setup_rate(rota.System([4], [[1]], [3.0], [1.0]))
