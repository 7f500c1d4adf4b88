"""`MSR`: what it holds, what it refuses, and the policies made from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.policy import MSR, is_strongly_connected, stationary_law
from rota.process import build_process
from rotas import generators, paper_rota, systems_and_rotas
from systems import paper_example

GOOD = {"candidates": [[0, 0, 2], [1, 4, 0]], "weights": [0.25, 0.75], "switching_rate": 2.0}
TWO = [[-3, 3], [1, -1]]  # stationary law (1/4, 3/4), 3/2 departures per unit of time


def test_fields_and_defaults():
    """A policy holds whole counts and weights in the shapes of the glossary; the rest has the defaults of the paper's figures."""
    policy = MSR(**GOOD)
    assert (policy.candidates.dtype, policy.candidates.shape, policy.weights.shape) == (np.int64, (2, 3), (2,))
    assert (policy.preemption, policy.setup_rate, policy.backfill) == ("full", None, False)
    assert (policy.route, policy.opening, policy.empty_slots) == ("type-order", "late", "virtual")
    assert (policy.generator, policy.names) == (None, None)


def test_arrays_are_read_only_copies():
    """Nothing changes a policy: not its own arrays, nor those it was made from."""
    weights, generator = np.array([0.25, 0.75]), np.array(TWO, dtype=float)
    policy = MSR(GOOD["candidates"], weights, generator=generator)
    weights[0] = generator[0, 1] = 9
    assert policy.weights.tolist() == [0.25, 0.75]
    assert policy.generator.tolist() == TWO
    for array in (policy.candidates, policy.weights, policy.generator):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        policy.switching_rate = 3


def test_one_candidate_needs_neither_weight_nor_rate():
    """A rota of one schedule never switches."""
    policy = MSR([[1, 4, 0]])
    assert policy.weights.tolist() == [1]
    assert MSR([[1, 4, 0]], generator=[[0]]).weights.tolist() == [1]


def test_a_generator_brings_weights_and_rate():
    """The weights are its stationary law, α is the departures per unit of time, and its diagonal is ours to fill."""
    policy = MSR(GOOD["candidates"], generator=[[7, 3], [1, 0]])
    assert policy.weights == pytest.approx([0.25, 0.75], rel=1e-15)
    assert policy.switching_rate == pytest.approx(1.5, rel=1e-15)
    assert policy.generator.tolist() == TWO


def test_a_switching_rate_scales_the_generator():
    """With both given, the generator keeps its weights and gets the switching rate."""
    policy = MSR(GOOD["candidates"], generator=TWO, switching_rate=6)
    assert policy.generator == pytest.approx(4 * np.array(TWO), rel=1e-15)
    assert policy.weights == pytest.approx([0.25, 0.75], rel=1e-15)


@pytest.mark.parametrize(
    ("change", "place", "rule"),
    [
        ({"candidates": "many"}, "candidates", "table of counts"),
        ({"candidates": [1, 2]}, "candidates", "table of counts"),
        ({"candidates": [[]]}, "candidates", "table of counts"),
        ({"candidates": [[1], [1, 2]]}, "candidates", "table of counts"),
        ({"candidates": [[0, 0, 2], [1, 4.5, 0]]}, "candidates", "whole numbers"),
        ({"candidates": [[0, 0, 2], [1, -4, 0]]}, "candidates", "not negative"),
        ({"candidates": [[0, 0, 2], [1, math.nan, 0]]}, "candidates", "whole numbers"),
        ({"candidates": [[0, 0, 2], [1, 1e30, 0]]}, "candidates", "whole numbers"),
        ({"candidates": [[0, 0, 2], [0, 0, 2]]}, "candidates", "the same schedule twice"),
        ({"weights": None}, "weights", "is missing"),
        ({"weights": "ab"}, "weights", "needs 2 numbers"),
        ({"weights": [1.0]}, "weights", "needs 2 numbers"),
        ({"weights": [0.0, 1.0]}, "weights", "leave out a candidate"),
        ({"weights": [-0.5, 1.5]}, "weights", "must be positive"),
        ({"weights": [math.nan, 1.0]}, "weights", "must be positive"),
        ({"weights": [0.5, 0.6]}, "weights", "must sum to 1"),
        ({"switching_rate": None}, "switching_rate", "positive and finite"),
        ({"switching_rate": 0}, "switching_rate", "positive and finite"),
        ({"switching_rate": math.inf}, "switching_rate", "positive and finite"),
        ({"switching_rate": "fast"}, "switching_rate", "positive and finite"),
        ({"candidates": [[1]], "weights": [1], "switching_rate": -1}, "switching_rate", "positive and finite"),
        ({"preemption": "some"}, "preemption", '"full", "none", "setup"'),
        ({"preemption": "setup"}, "setup_rate", 'is missing: preemption = "setup"'),
        ({"setup_rate": 1.0}, "setup_rate", "only with it"),
        ({"preemption": "setup", "setup_rate": 0.0}, "setup_rate", "positive and finite"),
        ({"opening": "soon"}, "opening", '"late", "early"'),
        ({"empty_slots": "wait"}, "empty_slots", '"virtual", "skip"'),
        ({"route": "shortest"}, "route", '"type-order", "fastest-first", "parallel" or orders'),
        ({"route": None}, "route", "2 orders of the types 0…2"),
        ({"route": [["a"], ["b"]]}, "route", "2 orders of the types 0…2"),
        ({"route": [[0, 1, 2]]}, "route", "one per candidate"),
        ({"route": [[0, 1, 2], [0, 1, 1]]}, "route", "2 orders of the types 0…2"),
        ({"generator": TWO, "weights": [0.5, 0.5]}, "weights", "not the stationary law of the generator"),
        ({"generator": [[-1, 1], [1]]}, "generator", "must be 2 × 2"),
        ({"generator": [[-1]]}, "generator", "must be 2 × 2"),
        ({"generator": [[1, -1], [1, -1]]}, "generator", "no negative rate"),
        ({"generator": [[0, math.inf], [1, 0]]}, "generator", "must be finite"),
        ({"generator": [[math.nan, 1], [1, 0]]}, "generator", "must be finite"),
        ({"generator": [[0, 1], [0, 0]]}, "generator", "not irreducible"),
        ({"names": ["a", "b"]}, "names", "needs 3 names"),
        ({"names": ["a", "b", "a"]}, "names", "differ from each other"),
    ],
)
def test_a_broken_rule_is_reported_with_its_place(change, place, rule):
    """Each argument that breaks a rule raises `BadSpec`, which names the argument and the rule."""
    with pytest.raises(rota.BadSpec) as caught:
        MSR(**GOOD | change)
    assert [problem.place for problem in caught.value.problems] == [place]
    assert rule in str(caught.value)


def test_a_schedule_may_come_up_twice():
    """A loop A → B → A → C is a rota: each visit has its own weight, and A runs for the sum of them."""
    policy = MSR([[0, 0, 2], [1, 4, 0], [0, 0, 2], [2, 0, 0]], [0.3, 0.3, 0.2, 0.2], "none", 0.1)
    process = build_process(paper_example(0.5), policy)
    working = process.stationary * process.working / process.working_fraction
    visits = (process.schedules == [0, 0, 2]).all(axis=1)
    assert working[visits].sum() == pytest.approx(0.5, rel=1e-12)
    assert np.bincount(process.candidate[process.working], weights=working[process.working]) == pytest.approx(policy.weights, rel=1e-12)
    assert process.loop is not None


@pytest.mark.parametrize("candidates", [[[1], [1]], [[1], [2], [2]], [[1], [2], [1]]])
def test_a_schedule_does_not_follow_itself(candidates):
    """In a loop, which goes on from the last candidate to the first, the same schedule twice in a row is refused with the way out."""
    with pytest.raises(rota.BadSpec, match=r"twice in a row.*add their weights"):
        MSR(candidates, np.full(len(candidates), 1 / len(candidates)), switching_rate=1.0)


def test_a_generator_may_stay_with_a_schedule():
    """With a generator of its own a schedule may follow itself: two states in a row make an Erlang time."""
    G = [[-2, 2, 0], [0, -2, 2], [1, 0, -1]]
    assert MSR([[0, 0, 2], [0, 0, 2], [1, 4, 0]], generator=G).weights == pytest.approx([0.25, 0.25, 0.5])


def test_problems_come_together():
    """Problems of different fields come in one error."""
    with pytest.raises(rota.BadSpec, match=r"^4 problems"):
        MSR(**GOOD | {"switching_rate": -1, "setup_rate": 3, "opening": "x", "empty_slots": "y"})


@given(systems_and_rotas())
def test_replace(case):
    """A replaced field is the new one and every other is kept; nothing replaced is the same policy."""
    _, policy = case
    assert policy.replace() == policy
    faster = policy.replace(switching_rate=2 * policy.switching_rate)
    assert faster.switching_rate == 2 * policy.switching_rate
    assert np.array_equal(faster.weights, policy.weights)
    if policy.generator is not None:
        assert faster.generator == pytest.approx(2 * policy.generator, rel=1e-12)
    assert faster.replace(switching_rate=policy.switching_rate, generator=policy.generator) == policy


def test_replacing_the_generator():
    """A new generator brings its own weights and rate; without one, weights and rate stay."""
    policy = MSR(**GOOD).replace(generator=[[-1, 1], [1, -1]])
    assert (policy.weights.tolist(), policy.switching_rate) == ([0.5, 0.5], 1.0)
    loop = policy.replace(generator=None)
    assert (loop.weights.tolist(), loop.switching_rate, loop.generator) == ([0.5, 0.5], 1.0, None)


def test_equality_looks_at_every_field():
    """Equal policies are equal and hash alike; a change anywhere makes them differ."""
    policy = paper_rota("setup")
    assert policy == paper_rota("setup")
    assert hash(policy) == hash(paper_rota("setup"))
    assert policy != "policy"
    changes = [
        {"candidates": [[0, 0, 2], [1, 3, 0]]},
        {"weights": [0.25, 0.75]},
        {"preemption": "full", "setup_rate": None},
        {"switching_rate": 3},
        {"setup_rate": 9},
        {"backfill": True},
        {"route": "parallel"},
        {"route": [[0, 1, 2], [0, 1, 2]]},
        {"opening": "early"},
        {"empty_slots": "skip"},
        {"generator": [[-1, 1], [1, -1]]},
        {"names": ["a", "b", "c"]},
    ]
    assert {field for change in changes for field in change} == set(MSR.__dataclass_fields__)
    for change in changes:
        assert policy != policy.replace(**change)


def test_short_representation():
    """The short form shows the rota."""
    assert repr(MSR(**GOOD)) == "<MSR, preemption full, switching rate 2: 25.0% [0, 0, 2], 75.0% [1, 4, 0]>"


@given(st.data())
def test_stationary_law(data):
    """π G = 0, π·1 = 1 and π > 0, to the last digits, though rates differ by 10^12."""
    n = data.draw(st.integers(1, 6))
    G = data.draw(generators(n)) * 10.0 ** np.array(data.draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)))[:, None]
    pi = stationary_law(G)
    assert (pi > 0).all()
    assert pi.sum() == pytest.approx(1, rel=1e-14)
    assert np.abs(pi @ G).max() <= 1e-14 * np.abs(pi * np.diag(G)).max()


def test_strong_connection_of_many_states():
    """A ring of 2000 states is strongly connected; without one edge it is not."""
    n = 2000
    ring = np.roll(np.eye(n), 1, axis=1)
    assert is_strongly_connected(ring)
    ring[5, 6] = 0
    assert not is_strongly_connected(ring)
