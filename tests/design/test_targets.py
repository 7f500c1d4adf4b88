"""How many slots each type should have: Erlang's queue, marginal values, whole numbers, and what is left of a server."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

import rota
from rota.analysis import erlang_c
from rota.design.targets import Marginals, best_single_schedule, rounded_up, spend_each, spend_together
from systems import EXAMPLES, paper_example, small_systems


def marginals_of(system):
    """Of a system with its load."""
    return Marginals(system, rota.system_load(system))


def example(name, load=0.9):
    """An example at a load."""
    return rota.read_system(EXAMPLES / f"{name}.toml").scaled(load=load)


def test_queues_by_erlang():
    """q(x) = a + C(x, a) a/(x − a), infinite without enough slots, and 0 where nobody arrives."""
    system = paper_example(0.9).replace(arrival_rate=[0.45, 1.8, 0.0])
    found = marginals_of(system).queue(np.array([0.4, 2.5, 0.0]))
    assert found[0] == np.inf
    assert found[1] == pytest.approx(1.8 + erlang_c(2.5, 1.8) * 1.8 / 0.7)
    assert found[2] == 0


@pytest.mark.parametrize("name", ["borg", "gpu", "paper", "vm", "web"])
def test_marginal_values_are_equal(name):
    """The target by marginal value has the same slope per price in every type, covers more than the work, and can be served."""
    marginals = marginals_of(example(name))
    target = marginals.marginal(0.95)
    assert target.load.load <= 1
    assert (target.slots > marginals.work).all()
    step = 1e-5
    slope = (marginals.queue(target.slots) - marginals.queue(target.slots + step)) / step / marginals.price
    if marginals.price @ target.slots == pytest.approx(marginals.price @ marginals.work * 0.95 / 0.9, rel=1e-6):  # not moved back
        assert slope == pytest.approx(np.full(len(slope), slope.mean()), rel=0.02)


def test_marginal_values_beat_proportion():
    """At the same level Σ q is no larger than with slots in proportion to the work, on a server whose only price is that of its cores."""
    rng = np.random.default_rng(1)
    system = rota.System([1000.0], rng.integers(1, 20, (8, 1)).astype(float), rng.uniform(0.1, 5, 8), np.ones(8)).scaled(load=0.9)
    marginals = marginals_of(system)
    by_value, by_share = marginals.marginal(0.95).slots, marginals.proportional(0.95).slots
    assert marginals.queue(by_value).sum() <= marginals.queue(by_share).sum()


@pytest.mark.parametrize("name", ["borg", "vm", "gpu"])
def test_rounding_up(name):
    """Rounding up never lowers a target, makes some of it whole, and leaves it within reach."""
    marginals = marginals_of(example(name))
    before = marginals.proportional(0.95)
    after = rounded_up(marginals, before)
    assert after.load.load <= 1
    assert (after.slots >= before.slots).all()
    assert (after.slots == np.round(after.slots)).any()


def test_the_best_single_schedule():
    """On a small server it is the best of all schedules that serve every type."""
    system = rota.System([12.0, 9.0], [[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]], [1.4, 0.9, 0.7], [1.0, 1.0, 1.0])
    marginals = marginals_of(system)
    found = best_single_schedule(marginals)
    assert rota.is_maximal(system, found)
    counts = [np.array(u) for u in product(range(10), repeat=3)]
    best = min(marginals.queue(u.astype(float)).sum() for u in counts if rota.fits(system, u))
    assert marginals.queue(found.astype(float)).sum() == pytest.approx(best, rel=1e-9)


def test_where_no_single_schedule_serves_every_type():
    """The paper's example at load 0.9 needs two of type 2, one of type 1 and one of type 3 at once at least; they do not fit."""
    with pytest.raises(rota.Infeasible, match="must turn"):
        best_single_schedule(marginals_of(paper_example(0.9)))


@settings(deadline=None, max_examples=30)
@given(small_systems())
def test_what_is_left_is_spent(system):
    """Spent slots fit, no slot is lost; spent together every candidate gets the same, spent alone nothing that arrives fits any more."""
    best = rota.system_load(system)
    system = system.scaled(factor=0.9 / best.load)
    best = rota.system_load(system)
    marginals = Marginals(system, best)
    start = best.candidates // 2
    together = spend_together(marginals, start, best.weights)
    each = spend_each(marginals, start, best.weights)
    assert rota.fits(system, together).all()
    assert rota.fits(system, each).all()
    assert (together - start == (together - start)[0]).all()
    assert (each >= together).all()
    room = marginals.units.capacity - each @ marginals.units.demand
    useful = marginals.arrives & (marginals.gain(best.weights @ each) > 0)
    for left in room:
        assert not ((marginals.units.demand[useful] <= left).all(axis=1)).any()


@pytest.mark.parametrize("types", [5, 30])
def test_the_lower_bound_of_a_load(types):
    """What `least_load` says of some slots is never above their load."""
    rng = np.random.default_rng(types)
    demand = rng.integers(1, 9, (types, 2)).astype(float)
    marginals = marginals_of(rota.System([80.0, 90.0], demand, rng.uniform(0.1, 1, types), np.ones(types)).scaled(load=0.9))
    for _ in range(5):
        slots = marginals.work * rng.uniform(0.5, 1.5, types)
        assert marginals.least_load(slots) <= marginals.load_of(slots, np.inf).load * (1 + 1e-9)
