"""The largest stable switching rate: the edge of stability itself, and the formula of the paper's lemma, which stays below it."""

import math

import numpy as np
import pytest
from hypothesis import given

import rota
from rota.design import largest_stable_switching_rate
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas, twice_round
from systems import paper_example


def stable(system, policy, rate):
    """Whether every load of the analysis is below 1 at a switching rate."""
    return rota.analyze(system, policy.replace(switching_rate=rate)).stable


@given(systems_and_rotas(most_load=0.97))
def test_the_edge_of_stability(case):
    """Just below the rate every load is below 1; just above it one is above; a rate that is infinite has no such edge."""
    system, policy = case
    try:
        most = largest_stable_switching_rate(system, policy)
    except rota.Unstable:
        assert not any(stable(system, policy, rate) for rate in np.geomspace(1e-6, 1e6, 25))
        return
    if math.isinf(most):
        assert stable(system, policy, 1e9)
        return
    assert stable(system, policy, most * (1 - 1e-6))
    assert not stable(system, policy, most * (1 + 1e-6))


@pytest.mark.parametrize("load", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_the_load_is_one_at_the_edge(preemption, load):
    """The example: at the rate itself the largest load of a type is 1."""
    system, policy = paper_case(load, preemption)
    most = largest_stable_switching_rate(system, policy)
    assert rota.analyze(system, policy.replace(switching_rate=most)).load.max() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_lemma_epsilon_nmsr(preemption):
    """The lemma: α < ε R(1) / ((1−ε) S(1)) makes π_W > 1 − ε. With 1 − ε = max λ_i/(μ_i (πW)_i), that rate is stable; it is the edge itself
    where switching states serve nobody, as in this sMSR."""
    system, policy = paper_case(0.9, preemption)
    process = build_process(system, policy.replace(switching_rate=1.0))
    R, S = process.working_fraction, 1 - process.working_fraction
    epsilon = 1 - (system.offered_work / (policy.weights @ policy.candidates)).max()
    lemma = epsilon * R / ((1 - epsilon) * S)
    assert build_process(system, policy.replace(switching_rate=lemma)).working_fraction == pytest.approx(1 - epsilon, rel=1e-12)
    most = largest_stable_switching_rate(system, policy)
    assert stable(system, policy, lemma * (1 - 1e-9))
    assert most == pytest.approx(lemma, rel=1e-12) if preemption == "setup" else most > 1.05 * lemma


def test_the_rate_of_the_policy_is_ignored():
    """Only the rota counts, not the rate that it has."""
    system, policy = paper_case(0.9, "none", 0.06)
    assert largest_stable_switching_rate(system, policy.replace(switching_rate=7.0)) == largest_stable_switching_rate(system, policy)


def test_a_pmsr_may_switch_as_fast_as_it_likes():
    """Without switching states there is no edge, nor with one candidate, nor where nobody arrives."""
    assert largest_stable_switching_rate(*paper_case(0.9)) == math.inf
    assert largest_stable_switching_rate(rota.System([2], [[1]], [1.0], [1.0]), rota.MSR([[2]], preemption="none")) == math.inf
    assert largest_stable_switching_rate(*paper_case(0.0, "none")) == math.inf


def test_a_loop_that_visits_a_schedule_twice():
    """A → B → A → C has its edge too."""
    system, policy = twice_round("none")
    most = largest_stable_switching_rate(system, policy)
    assert stable(system, policy, most * (1 - 1e-9))
    assert not stable(system, policy, most * (1 + 1e-9))


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("load", [1.0, 1.05])
def test_stable_at_no_rate(preemption, load):
    """At load 1 and above no rate will do; the error names the type, its load and the way out."""
    with pytest.raises(rota.Unstable, match=rf"no switching rate is stable: type 'type.' has load {load:g} .* less than {1 / load:.4g}"):
        largest_stable_switching_rate(*paper_case(load, preemption))


def test_a_type_that_switching_states_serve_more():
    """While the slow first type drains, the second keeps its slot: it needs switches, so too slow is unstable, and the edge is above."""
    system = rota.System([2], [[1], [1], [2]], [0.001, 0.1, 0.3], [0.1, 1.0, 1.0])
    policy = rota.MSR([[1, 1, 0], [0, 0, 1]], [0.05, 0.95], "none", 1.0)
    most = largest_stable_switching_rate(system, policy)
    assert [stable(system, policy, rate) for rate in (1e-6, most * (1 - 1e-9), most * (1 + 1e-9))] == [False, True, False]
    with pytest.raises(rota.Unstable, match=r"type 'type3' has load 0.9474 however slowly .* and others need it to switch faster"):
        largest_stable_switching_rate(system.replace(arrival_rate=[0.001, 0.1, 0.9]), policy)


def test_a_type_that_is_never_served():
    """A type that arrives and is in no schedule makes every rate unstable."""
    with pytest.raises(rota.Unstable, match="type 'type2' has load inf"):
        largest_stable_switching_rate(rota.System([1], [[1], [1]], [0.1, 0.1], [1.0, 1.0]), rota.MSR([[1, 0]]))


def test_what_looks_at_the_queues_is_refused():
    """Backfilling, and policies that are no MSR, have no such rate."""
    system, policy = paper_case(0.5, "none")
    with pytest.raises(rota.Infeasible, match="backfilling depends on the queues"):
        largest_stable_switching_rate(system, policy.replace(backfill=True))
    with pytest.raises(rota.Infeasible, match="analysis is for MSR policies"):
        largest_stable_switching_rate(paper_example(0.5), "first-fit")
