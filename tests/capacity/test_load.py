"""The system load: the paper's numbers, linear programming over all schedules, the optimality conditions, and laws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import rota
from rota.capacity.load import attain
from systems import EXAMPLES, decimal, paper_example, small_systems, vm_example

GAP = 1e-9


def load_over_all_schedules(system: rota.System) -> float:
    """min Σ w s.t. Σ w_s W_s ≥ λ⊘μ over every schedule there is, by scipy."""
    schedules = rota.list_schedules(system)
    answer = linprog(
        np.ones(len(schedules)),
        A_ub=-schedules.T,
        b_ub=-system.offered_work,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    return answer.fun


# ------------------------------------------------------------------------------------------------------------ the paper


def test_paper_example():
    """NOTES: the example system at λ = (.5, 2, 1) has load 1, by (0,0,2) and (1,4,0) half of the time each."""
    best = rota.system_load(paper_example())
    assert best.load == pytest.approx(1, abs=1e-9)
    assert best.gap <= 1e-7
    assert best.candidates.tolist() == [[0, 0, 2], [1, 4, 0]]
    assert best.weights == pytest.approx([0.5, 0.5], abs=1e-9)
    assert best.type_load == pytest.approx([1, 1, 1], abs=1e-9)


def test_vm_example():
    """NOTES: the VM example (Appendix "An Example on the Initialization Step of MSR") has load 0.655."""
    best = rota.system_load(vm_example())
    assert best.load == pytest.approx(0.655, abs=1e-7)
    assert best.gap <= 1e-7


def test_the_candidates_of_the_paper_attain_the_load_of_the_vm_example():
    """The W and π that the paper prints (eight digits) attain 0.655 too."""
    system = vm_example()
    candidates = [[0, 7, 4, 10], [0, 5, 9, 5], [0, 10, 0, 0], [10, 9, 0, 0]]
    weights = np.array([0.07633588, 0.30534351, 0.00763359, 0.61068702])
    assert rota.fits(system, candidates).all()
    assert (system.offered_work / (weights @ candidates)).max() == pytest.approx(0.655, abs=1e-7)


def test_borg_types():
    """NOTES: the ten Borg types have load 0.907664891."""
    best = rota.system_load(rota.read_system(EXAMPLES / "borg.toml"))
    assert best.load == pytest.approx(0.907664891, abs=1e-7)
    assert best.gap <= 1e-7
    assert best.lower_bound <= best.load
    assert rota.fits(best.system, best.candidates).all()


# ------------------------------------------------------------------------------------------------------------ optimality


@given(small_systems())
def test_load_is_that_of_all_schedules(system):
    """Column generation gives the value of the linear program over all enumerated schedules."""
    assert rota.system_load(system, gap=GAP).load == pytest.approx(load_over_all_schedules(system), rel=2 * GAP)


@given(small_systems())
def test_candidates_attain_the_load(system):
    """At most K maximal candidates fit in exact arithmetic, and with their weights serve every type at the load."""
    best = rota.system_load(system, gap=GAP)
    for candidate in best.candidates:
        for r, capacity in enumerate(system.capacity):
            assert sum(int(n) * decimal(d) for n, d in zip(candidate, system.demand[:, r], strict=True)) <= decimal(capacity)
    assert rota.is_maximal(system, best.candidates).all()
    assert len(best.candidates) <= len(system.names)
    assert len(np.unique(best.candidates, axis=0)) == len(best.candidates)

    assert (best.weights >= 0).all()
    assert best.weights.sum() == pytest.approx(1, rel=1e-14)
    served = best.weights @ best.candidates
    assert (served >= system.offered_work / best.load * (1 - 1e-14)).all()
    arrives = system.offered_work > 0
    assert best.type_load[arrives] == pytest.approx((system.offered_work[arrives] / served[arrives]), rel=1e-14)
    assert best.load == best.type_load.max()
    assert best.utilization == pytest.approx(served @ system.demand / system.capacity, rel=1e-12)
    assert (best.utilization <= 1 + 1e-12).all()


@given(small_systems())
def test_prices_prove_the_load(system):
    """Dual feasibility over all schedules, strong duality, and complementary slackness."""
    best = rota.system_load(system, gap=GAP)
    work, price = system.offered_work, best.type_price
    assert (price >= 0).all()
    assert (rota.list_schedules(system) @ price <= 1 + 1e-9).all()
    assert price @ work == pytest.approx(best.lower_bound, rel=1e-12)
    assert best.lower_bound <= best.load
    assert best.gap == best.load / best.lower_bound - 1
    assert best.gap <= GAP

    # A candidate in use has price 1; a type that is served more than it must be has price 0.
    assert best.weights @ (1 - best.candidates @ price) == pytest.approx(0, abs=2 * GAP)
    assert price @ (best.weights @ best.candidates - work / best.load) == pytest.approx(0, abs=2 * GAP)


@given(small_systems())
def test_shares_and_the_fluid_bound(system):
    """Shares sum to 1, no schedule is worth more than all resources at their prices, and divisible jobs would load no more."""
    best = rota.system_load(system, gap=GAP)
    assert best.type_share.sum() == pytest.approx(1, rel=1e-12)
    assert best.resource_share.sum() == pytest.approx(1, rel=1e-12)
    assert (best.resource_price >= 0).all()
    assert best.resource_price @ system.capacity >= (rota.list_schedules(system) @ best.type_price).max() * (1 - 1e-12)
    assert best.fluid_load == pytest.approx((system.offered_work @ system.demand / system.capacity).max(), rel=1e-12)
    assert best.fluid_load <= best.load * (1 + 1e-12)


# ------------------------------------------------------------------------------------------------------------ laws


@given(small_systems(), st.randoms(use_true_random=False))
def test_permuting_types(system, random):
    """The order of the types changes neither the load nor, for a type that limits it, the type's load."""
    order = list(range(len(system.names)))
    random.shuffle(order)
    permuted = rota.System(system.capacity, system.demand[order], system.arrival_rate[order], system.service_rate[order])
    one, other = rota.system_load(system, gap=GAP), rota.system_load(permuted, gap=GAP)
    assert other.load == pytest.approx(one.load, rel=2 * GAP)
    limits = one.type_price[order] * system.offered_work[order] > 1e-3 * one.load  # by slackness its load is the system's
    assert other.type_load[limits] == pytest.approx(one.type_load[order][limits], rel=1e-5)


@given(small_systems(), st.floats(0.01, 100))
def test_scaling_arrivals_scales_the_load(system, c):
    """c times the arrivals make c times the load."""
    assert rota.system_load(system.scaled(factor=c), gap=GAP).load == pytest.approx(c * rota.system_load(system, gap=GAP).load, rel=2 * GAP)


@given(small_systems(), st.floats(0.01, 100))
def test_a_scaled_load_is_that_of_the_scaled_system(system, c):
    """The answer at another scale is derived, not solved: candidates and weights attain it there, the prices prove it, the gap stays."""
    best = rota.system_load(system)
    assume(best.load > 0)
    scaled, work = best.scaled(c), system.offered_work * c
    assert scaled.system == system.scaled(factor=c)
    assert scaled.load == pytest.approx(rota.system_load(scaled.system, gap=GAP).load, rel=2e-7)
    served = scaled.weights @ scaled.candidates
    assert (work / np.where(work > 0, served, 1)).max() == pytest.approx(scaled.load, rel=1e-12)
    assert (rota.list_schedules(scaled.system) @ scaled.type_price <= 1 + 1e-9).all()
    assert scaled.type_price @ work == pytest.approx(scaled.lower_bound, rel=1e-9)
    assert scaled.gap == best.gap == pytest.approx(scaled.load / scaled.lower_bound - 1, abs=1e-12)
    assert scaled.fluid_load == pytest.approx((work @ system.demand / system.capacity).max(), rel=1e-12)
    assert scaled.utilization is best.utilization
    with pytest.raises(ValueError, match="read-only"):
        scaled.type_load[0] = 1


@pytest.mark.parametrize("factor", [0, -1.0, np.inf, np.nan, "2", True])
def test_a_factor_must_be_positive(factor):
    """Anything else is refused."""
    with pytest.raises(rota.BadSpec, match="factor: must be positive and finite"):
        rota.system_load(paper_example()).scaled(factor)


@given(small_systems())
def test_only_the_ratio_of_rates_counts(system):
    """Arrivals and services twice as fast: the same load."""
    faster = rota.System(system.capacity, system.demand, 2 * system.arrival_rate, 2 * system.service_rate)
    assert rota.system_load(faster, gap=GAP).load == pytest.approx(rota.system_load(system, gap=GAP).load, rel=2 * GAP)


@given(small_systems())
def test_units_of_resources_do_not_matter(system):
    """Twice the capacity for twice the demand changes nothing at all."""
    doubled = rota.System(2 * system.capacity, 2 * system.demand, system.arrival_rate, system.service_rate)
    one, other = rota.system_load(system), rota.system_load(doubled)
    assert other.load == one.load
    assert np.array_equal(other.candidates, one.candidates)
    assert np.array_equal(other.weights, one.weights)


@given(small_systems(), small_systems())
def test_more_arrivals_never_lower_the_load(system, other):
    """The load grows with the arrivals of every type."""
    assume(len(other.names) >= len(system.names))
    more = rota.System(system.capacity, system.demand, system.arrival_rate + other.arrival_rate[: len(system.names)], system.service_rate)
    assert rota.system_load(more, gap=GAP).load >= rota.system_load(system, gap=GAP).load * (1 - 2 * GAP)


def test_a_type_that_does_not_arrive_changes_nothing():
    """A type of arrival rate 0 has load and price 0; the others have the load they have without it."""
    system = paper_example()
    more = rota.System(system.capacity, [*system.demand, [1, 0, 0]], [*system.arrival_rate, 0], [1, 1, 1, 1])
    best = rota.system_load(more)
    assert best.load == pytest.approx(1, abs=1e-9)
    assert (best.type_load[3], best.type_price[3]) == (0, 0)
    assert best.candidates.tolist() == [[0, 0, 2, 0], [1, 4, 0, 1]]  # maximal: the one free core takes it


def test_no_arrivals_at_all():
    """Without arrivals the load is 0, nothing needs to run, and that is proved."""
    best = rota.system_load(paper_example(0))
    assert (best.load, best.lower_bound, best.gap, best.fluid_load) == (0, 0, 0, 0)
    assert best.candidates.shape == (0, 3)
    assert best.weights.shape == (0,)
    assert best.type_share.tolist() == [0, 0, 0]
    assert best.explain() == "No jobs arrive: the load is 0."


def test_one_type_is_arithmetic():
    """Seven jobs of one type fit: the load of work x is x/7."""
    best = rota.system_load(rota.System([15], [[2]], [3], [0.5]))
    assert best.load == pytest.approx(6 / 7, rel=1e-15)
    assert best.candidates.tolist() == [[7]]


def test_types_of_very_different_rates():
    """A type that hardly arrives is served too: rates 10^6 apart leave the load exact."""
    best = rota.system_load(rota.System([3], [[1], [2]], [1, 1e-6], [1, 1]), gap=GAP)
    assert best.load == pytest.approx((1 + 2e-6) / 3, rel=GAP)
    assert (best.weights @ best.candidates >= best.system.offered_work / best.load * (1 - 1e-14)).all()


# ------------------------------------------------------------------------------------------------------------ orders of magnitude


def proved(system, gap=1e-6):
    """The load, after a check that its mix serves every type, that it has at most K schedules, and that its prices prove it."""
    best = rota.system_load(system)
    served = best.weights @ best.candidates
    assert rota.fits(system, best.candidates).all()
    assert len(best.candidates) <= len(system.names)
    assert (served >= system.offered_work / best.load * (1 - 1e-12)).all()
    assert best.load == pytest.approx(best.type_load.max(), rel=1e-12)
    assert best.gap <= gap
    assert best.type_price @ system.offered_work == pytest.approx(best.lower_bound, rel=1e-9)
    assert (system.demand @ best.resource_price >= best.type_price * (1 - 1e-12)).all()
    return best


@pytest.mark.parametrize("work", [1e-9, 1e-10, 1e-11, 1e-13, 1e-30, 1e-100])
def test_a_type_that_hardly_ever_arrives(work):
    """However little of a type arrives, beside others or alone, it is served and the load is exact."""
    assert proved(rota.System([3], [[1], [2]], [1, work], [1, 1])).load == pytest.approx((1 + 2 * work) / 3, rel=1e-7)
    assert proved(rota.System([3], [[1]], [work], [1])).load == pytest.approx(work / 3, rel=1e-12)


@pytest.mark.parametrize("rate", [1e6, 1e12, 1e20, 1e50, 1e100])
def test_huge_arrival_rates(rate):
    """Rates of 1e12 or 1e50, of one type or of all, give the load they should."""
    assert proved(rota.System([3], [[1], [2]], [rate, rate], [1, 1])).load == pytest.approx(rate, rel=1e-9)
    assert proved(rota.System([3], [[1], [2]], [rate, 1], [1, 1])).load == pytest.approx((rate + 2) / 3, rel=1e-9)


def test_a_tiny_demand_beside_a_huge_capacity():
    """Jobs that need 1e-9 of a capacity of 1e6: 10^15 of them fit, alone and beside large ones."""
    assert proved(rota.System([1e6], [[1e-9]], [3.0], [1.0])).load == pytest.approx(3e-15, rel=1e-9)
    assert proved(rota.System([1e6], [[1e-9], [1.0]], [1.0, 1.0], [1.0, 1.0])).load == pytest.approx(1e-6, rel=1e-6)
    assert proved(rota.System([1e6], [[1e-9], [2e-9], [1.0]], [1e14, 1e14, 1.0], [1.0] * 3)).load == pytest.approx(0.300001, rel=1e-6)


@settings(max_examples=100)
@given(small_systems(), st.data())
def test_rates_over_many_orders_of_magnitude(system, data):
    """Types whose rates are eighty orders of magnitude apart: the load is proved, over all schedules."""
    factors = [10.0 ** data.draw(st.integers(-40, 40)) for _ in system.names]
    scaled = system.replace(arrival_rate=system.arrival_rate * factors)
    best = proved(scaled)
    assert (rota.list_schedules(scaled) @ best.type_price <= 1 + 1e-9).all()


@settings(max_examples=100)
@given(small_systems(), st.floats(-60, 60))
def test_any_unit_of_time(system, exponent):
    """c times all rates leave the load, c times the arrivals make c times the load: for c from 1e-60 to 1e60."""
    c = 10.0**exponent
    load = proved(system).load
    assert proved(rota.System(system.capacity, system.demand, c * system.arrival_rate, c * system.service_rate)).load == pytest.approx(
        load, rel=2e-6
    )
    assert proved(system.scaled(factor=c)).load == pytest.approx(c * load, rel=2e-6)


@settings(max_examples=100)
@given(small_systems(), st.data())
def test_any_unit_of_a_resource(system, data):
    """Each resource may be counted in any unit, from 1e-12 to 1e12: the load is the same, and prices are per unit as counted."""
    factors = np.array([10.0 ** data.draw(st.integers(-12, 12)) for _ in system.resources])
    counted = rota.System(system.capacity * factors, system.demand * factors, system.arrival_rate, system.service_rate)
    one, other = proved(system), proved(counted)
    assert other.load == pytest.approx(one.load, rel=2e-6)
    assert other.resource_share.sum() == pytest.approx(1, rel=1e-12)
    assert (counted.demand @ other.resource_price >= other.type_price * (1 - 1e-12)).all()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(-12, 0)), min_size=1, max_size=4), st.floats(0.1, 10))
def test_demands_over_many_orders_of_magnitude(digits, rate):
    """Demands of one digit, from 1e-12 to 9 of a capacity of 9: the load is proved, or the demand refused by name."""
    demand = [[digit * 10.0**exponent] for digit, exponent in digits]
    system = rota.System([9.0], demand, [rate / need for (need,) in demand], [1.0] * len(demand))
    best = proved(system, gap=1e-3)
    assert best.load >= best.fluid_load * (1 - 1e-9)


@pytest.mark.parametrize(("arrivals", "services"), [([1e200, 1], [1e-200, 1]), ([1e-200, 1], [1e200, 1]), ([1e101, 1], [1, 1])])
def test_work_that_floats_cannot_hold(arrivals, services):
    """Offered work beyond 1e±100 is refused, with the type and the rule."""
    with pytest.raises(rota.BadSpec, match=r"jobs\.type1\.arrival_rate: times the mean size must be 0 or from 1e-100 to 1e\+100"):
        rota.system_load(rota.System([3], [[1], [2]], arrivals, services))


def test_a_demand_that_whole_units_cannot_hold():
    """A type that needs 1e-30 of the only resource is refused by name; beside another resource that limits it, it counts as one unit."""
    with pytest.raises(rota.BadSpec, match=r"jobs\.type1\.demand\.resource1: is too small relative to the capacity"):
        rota.system_load(rota.System([1.0], [[1e-30], [0.5]], [1.0, 1.0], [1.0, 1.0]))
    assert proved(rota.System([1.0, 4.0], [[1e-30, 1.0], [0.5, 0.0]], [2.0, 1.0], [1.0, 1.0])).load == pytest.approx(0.5, rel=1e-9)


def test_prices_where_the_capacity_is_no_multiple_of_the_unit():
    """Two jobs of 2 fit into 5 and the fifth unit is of no use: a unit costs a quarter, so that D p ≥ y."""
    best = proved(rota.System([5.0], [[2.0]], [1.0], [1.0]))
    assert best.type_price == pytest.approx([0.5], rel=1e-12)
    assert best.resource_price == pytest.approx([0.25], rel=1e-12)


@given(small_systems(), st.floats(1.0, 1.5))
def test_prices_cover_every_demand(system, factor):
    """Whatever the capacity: what a job needs costs at least what the job is worth, D p ≥ y."""
    proved(system.replace(capacity=system.capacity * factor))


# ------------------------------------------------------------------------------------------------------------ stopping


def test_no_time_leaves_an_honest_gap():
    """With no time at all the answer is worse, and its gap covers the truth."""
    system = rota.read_system(EXAMPLES / "borg.toml")
    hasty, best = rota.system_load(system, time_limit_s=0), rota.system_load(system)
    assert hasty.gap > 0.01
    assert hasty.lower_bound <= best.load <= hasty.load
    assert hasty.load == pytest.approx(hasty.lower_bound * (1 + hasty.gap), rel=1e-12)
    assert rota.fits(system, hasty.candidates).all()


def test_a_wide_gap_stops_early():
    """A requested gap is kept, with fewer iterations than a narrow one."""
    system = rota.read_system(EXAMPLES / "borg.toml")
    rough, fine = rota.system_load(system, gap=0.02), rota.system_load(system)
    assert rough.gap <= 0.02
    assert rough.iterations < fine.iterations
    assert rough.lower_bound <= fine.load <= rough.load * (1 + 1e-12)


def test_progress_narrows():
    """Progress is told at every iteration: the load falls, the bound rises, and the last one is the answer."""
    told = []
    best = rota.system_load(rota.read_system(EXAMPLES / "borg.toml"), progress=told.append)
    assert len(told) == best.iterations
    assert all(a.load >= b.load and a.lower_bound <= b.lower_bound for a, b in pairwise(told))
    assert told[-1].load == pytest.approx(best.load, rel=1e-12)
    assert told[-1].columns == best.columns


def test_an_interrupt_keeps_what_was_found():
    """Ctrl-C during the search returns the answer so far with its gap."""
    calls = []

    def interrupt_the_third(progress):
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    best = rota.system_load(rota.read_system(EXAMPLES / "borg.toml"), progress=interrupt_the_third)
    assert best.iterations == 3
    assert best.gap > 1e-7
    assert best.lower_bound <= 0.9076649122559 <= best.load


def test_an_interrupt_within_a_compiled_function():
    """There Ctrl-C comes as a `SystemError` that it caused: the answer so far is returned. Any other such error is raised."""

    def fail(progress, cause):
        raise SystemError("a function returned a result with an exception set") from cause

    system, interrupt = paper_example(), KeyboardInterrupt()
    best = rota.system_load(system, progress=lambda progress: fail(progress, interrupt))
    assert best.iterations == 1
    assert best.lower_bound <= 1 <= best.load
    with pytest.raises(SystemError, match="exception set"):
        rota.system_load(system, progress=lambda progress: fail(progress, ValueError()))


@pytest.mark.parametrize("gap", [-1, float("nan"), float("inf")])
def test_gap_must_be_a_number(gap):
    """A gap that cannot be met is refused."""
    with pytest.raises(rota.BadSpec, match="gap: must be finite"):
        rota.system_load(paper_example(), gap=gap)


@pytest.mark.parametrize("limit", [-1, float("nan")])
def test_time_limit_must_not_be_negative(limit):
    """A time limit that never or already ended is refused."""
    with pytest.raises(rota.BadSpec, match="time_limit: must not be negative"):
        rota.system_load(paper_example(), time_limit_s=limit)


def test_the_same_call_gives_the_same_answer():
    """Nothing random is left: two calls agree in every bit."""
    one, other = rota.system_load(vm_example()), rota.system_load(vm_example())
    assert one.load == other.load
    assert np.array_equal(one.candidates, other.candidates)
    assert np.array_equal(one.weights, other.weights)


def test_answers_are_read_only():
    """The arrays of an answer cannot be changed."""
    best = rota.system_load(paper_example())
    for array in (best.candidates, best.weights, best.type_load, best.type_price, best.resource_price, best.utilization):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# ------------------------------------------------------------------------------------------------------------ in words


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (0.5, "The load is 0.5: arrivals can grow by a factor of up to 2."),
        (1.0, "The load is 1: no policy can serve these arrivals, but any lower rates can be served."),
        (1.25, "The load is 1.25: no policy can serve that. Scale arrivals by less than 0.8."),
    ],
)
def test_explanation(load, words):
    """The answer in words says what the load means, what limits it, and what packing costs."""
    best = rota.system_load(paper_example(load))
    first, *others = best.explain().splitlines()
    assert first == words
    assert best.bottleneck == ("resource1", "type3")
    assert others == [
        "The bottleneck is 'resource1': the best rota has 97.5% of it in use, and it accounts for 81% of the limit.",
        "Type 'type3' causes more of the load than any other: 50%.",
        f"Packing whole jobs costs 2.5% of the capacity: if jobs could be split, the load would be {0.975 * load:.4g}.",
    ]


def test_explanation_without_loss():
    """Where jobs fill the bottleneck completely, nothing is lost to packing."""
    assert "No capacity is lost to packing." in rota.system_load(vm_example()).explain()


def test_explanation_of_an_unproved_load():
    """Where the gap is wide, the words give both bounds and promise neither a factor nor a loss by packing."""
    best = rota.system_load(rota.read_system(EXAMPLES / "borg.toml"), time_limit_s=0)
    first, *others = best.explain().splitlines()
    assert first == f"The load is between {best.lower_bound:.4g} and {best.load:.4g}; more time would narrow this."
    assert len(others) == 2
    assert not any("acking" in sentence for sentence in others)


def test_short_representation():
    """The short form says the load, what is proved and the number of candidates."""
    best = rota.system_load(paper_example())
    assert repr(best) == f"<Load {best.load:.9g}, gap {best.gap:.1e}, 2 candidates>"


# ------------------------------------------------------------------------------------------------------------ low enough


@settings(max_examples=40, deadline=None)
@given(small_systems(), st.floats(0.5, 2.0))
def test_a_load_that_is_low_enough(system, part):
    """`attain` finds a mix of at most the level where linear programming over all schedules has one, and proves it where there is none."""
    least = load_over_all_schedules(system)
    assume(least > 0 and abs(part - 1) > 1e-3)
    level = part * least
    found = attain(system, level, known=rota.list_schedules(system)[:3])
    served = found.weights @ found.candidates
    assert rota.fits(system, found.candidates).all()
    assert (served * found.load >= system.offered_work * (1 - 1e-9)).all()
    assert found.lower_bound <= least * (1 + 1e-9) <= found.load * (1 + 2e-9)
    assert found.load <= level if part > 1 else found.lower_bound > level or found.gap <= 2e-4


def test_known_schedules_are_enough():
    """A mix of known schedules that is good enough ends the search at once; without arrivals there is nothing to search."""
    system = paper_example(0.9)
    best = rota.system_load(system)
    again = attain(system, best.load * (1 + 1e-9), known=best.candidates)
    assert again.iterations == 1
    assert again.load == pytest.approx(best.load)
    assert attain(system.replace(arrival_rate=[0.0, 0.0, 0.0]), 1.0).load == 0
